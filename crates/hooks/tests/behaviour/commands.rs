//! Commands: what they are given, and how they end.

use std::time::Duration;

use baton_hooks::sandbox::Support;
use baton_hooks::{Call, Reason, Role, Runner, Settings, Verdict};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Operator, check, hook, kernel_holds_commands, marker, processes_with, run, villain};

fn command(command: &[&str], env: Value) -> Value {
    json!({"name": "validate", "type": "command", "timeout": "1m", "command": {"command": command, "env": env}})
}

fn pre(settings: &Settings, words: &[&str]) -> Call {
    hook(settings, Role::PreHook, command(words, json!({}))).expect("the hook is good")
}

#[tokio::test]
async fn a_command_gets_its_arguments_as_they_are_and_an_environment_of_its_own() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script("show.sh", "#!/bin/sh\npwd\nfor word; do echo \"<$word>\"; done\nenv | sort\nexit 3\n");
    let settings = operator.settings();
    let words = ["./show.sh", "--env", "{{name}}", "$(id) `id`; *", ""];
    let env = json!({"DEPLOYMENT_ENV": "production", "API_TOKEN": "{{.secrets.servicenow.token}}"});
    let mut configuration = command(&words, env);
    configuration["secretRefs"] = json!([{"name": "servicenow"}]);
    for (role, hook_type) in [(Role::PreHook, "pre"), (Role::PostHook, "post")] {
        let call = hook(&settings, role, configuration.clone()).expect("the hook is good");
        let outcome = run(settings.clone(), &call).await;
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
        let lines: Vec<&str> = outcome.output.lines().collect();
        let directory = operator.directory().canonicalize().expect("it is there");
        assert_eq!(
            lines[..5],
            [directory.to_str().expect("UTF-8"), "<--env>", "<eu-1>", "<$(id) `id`; *>", "<>"]
        );
        let names: Vec<&str> = lines[5..].iter().filter_map(|line| line.split('=').next()).collect();
        let expected = [
            "API_TOKEN",
            "APPSET_NAME",
            "APPSET_NAMESPACE",
            "DEPLOYMENT_ENV",
            "HOME",
            "HOOK_NAME",
            "HOOK_TYPE",
            "IDEMPOTENCY_KEY",
            "PATH",
            "PWD",
            "TMPDIR",
        ];
        // A shell may add some of its own.
        let added = ["SHLVL", "OLDPWD", "_"];
        let names: Vec<&str> = names.into_iter().filter(|name| !added.contains(name)).collect();
        assert_eq!(names, expected, "{}", outcome.output);
        for line in [
            "APPSET_NAME=web",
            "APPSET_NAMESPACE=argocd",
            "HOOK_NAME=validate",
            format!("HOOK_TYPE={hook_type}").as_str(),
            "IDEMPOTENCY_KEY=run-7/canary/notify",
            "DEPLOYMENT_ENV=production",
            "API_TOKEN=[redacted]",
        ] {
            assert!(lines.contains(&line), "{line} in {}", outcome.output);
        }
    }
}

#[tokio::test]
async fn a_check_is_not_told_of_hooks() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let call = check(&settings, command(&["villain", "environment"], json!({}))).expect("the check is good");
    let output = run(settings, &call).await.output;
    assert!(output.contains("APPSET_NAME=web") && !output.contains("HOOK_"), "{output}");
}

#[tokio::test]
async fn the_exit_code_decides() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script("seven", "#!/bin/sh\necho out; echo err >&2; exit 7\n");
    operator.script("hurt", "#!/bin/sh\nkill -TERM $$\n");
    let settings = operator.settings();
    let outcome = run(settings.clone(), &villain(&settings, &["succeed"])).await;
    assert_eq!((&outcome.result, outcome.code, outcome.output.as_str()), (&Verdict::Success, Some(0), ""));
    let outcome = run(settings.clone(), &pre(&settings, &["seven"])).await;
    let Verdict::Failure(fault) = &outcome.result else { panic!("{outcome:?}") };
    assert_eq!(
        (fault.reason, fault.message.as_str()),
        (Reason::NonZeroExit, "the command ended with exit code 7")
    );
    assert_eq!((outcome.code, outcome.output.as_str()), (Some(7), "out\nerr"));
    if settings.support.scopes {
        let outcome = run(settings.clone(), &pre(&settings, &["hurt"])).await;
        let Verdict::Failure(fault) = &outcome.result else { panic!("{outcome:?}") };
        assert_eq!(
            (fault.reason, fault.message.as_str()),
            (Reason::Killed, "the command was ended by signal 15")
        );
    }
    assert!(operator.is_clean());
}

#[tokio::test]
async fn what_is_not_there_is_refused_and_what_cannot_run_is_not_started() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script("odd", "#!/no/such/interpreter\n");
    let settings = operator.settings();
    let outcome = run(settings.clone(), &pre(&settings, &["missing"])).await;
    assert!(
        matches!(&outcome.result, Verdict::Refused(fault) if fault.reason == Reason::ProgramNotAllowed),
        "{outcome:?}"
    );
    let outcome = run(settings.clone(), &pre(&settings, &["odd"])).await;
    assert!(
        matches!(&outcome.result, Verdict::Failure(fault) if fault.reason == Reason::NotStarted),
        "{outcome:?}"
    );
    let nowhere = Settings { directory: None, ..settings.clone() };
    let outcome = run(nowhere, &pre(&settings, &["villain"])).await;
    assert!(
        matches!(&outcome.result, Verdict::Refused(fault) if fault.reason == Reason::ProgramNotAllowed),
        "{outcome:?}"
    );
    assert!(operator.is_clean());
}

#[tokio::test]
async fn only_the_end_of_a_long_output_is_kept() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let outcome = run(settings.clone(), &villain(&settings, &["print", "0123456789", "100000"])).await;
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.output.len() <= settings.limits.command.output, "{}", outcome.output.len());
    assert!(outcome.output.ends_with("\n0123456789"), "{}", outcome.output.len());
}

#[tokio::test]
async fn when_time_is_up_nobody_is_left() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let marker = marker();
    let mut call = villain(&settings, &["escape", &marker]);
    call.timeout = Duration::from_millis(1500);
    let outcome = run(settings, &call).await;
    assert_eq!(outcome.result, Verdict::Timeout { after: call.timeout });
    assert!(
        outcome.output.contains("setsid 1: GOT done"),
        "it did escape from its group: {}",
        outcome.output
    );
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert!(operator.is_clean());
}

#[tokio::test]
async fn a_cancelled_command_is_gone_when_the_call_returns() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let marker = marker();
    let call = villain(&settings, &["escape", &marker]);
    let runner = Runner::new(settings).expect("the settings are good");
    let cancel = CancellationToken::new();
    let (outcome, ()) = tokio::join!(runner.run(&call, Timestamp::UNIX_EPOCH, &cancel), async {
        while processes_with(&marker).len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(outcome.result, Verdict::Cancelled);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert!(operator.is_clean());
}

#[tokio::test]
async fn a_forgotten_command_goes_too() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let marker = marker();
    let call = villain(&settings, &["escape", &marker]);
    let runner = Runner::new(settings).expect("the settings are good");
    let cancel = CancellationToken::new();
    tokio::select! {
        outcome = runner.run(&call, Timestamp::UNIX_EPOCH, &cancel) => panic!("{outcome:?}"),
        () = async { while processes_with(&marker).len() < 2 { tokio::task::yield_now().await } } => {}
    }
    while !processes_with(&marker).is_empty() || !operator.is_clean() {
        tokio::task::yield_now().await;
    }
}

/// Not a test: what the next one starts, and kills.
#[tokio::test]
#[ignore = "only the test below starts it"]
async fn as_a_controller_that_is_killed() {
    let Ok(marker) = std::env::var("BATON_TEST_MARKER") else { return };
    let operator = Operator::new();
    let settings = operator.settings();
    run(settings.clone(), &villain(&settings, &["escape", &marker])).await;
}

#[tokio::test]
async fn a_controller_that_is_killed_takes_its_commands_along() {
    if !kernel_holds_commands() {
        return;
    }
    let marker = marker();
    let place = tempfile::tempdir().expect("a directory can be made");
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("its mode");
    let mut controller = std::process::Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "commands::as_a_controller_that_is_killed"])
        .env("BATON_TEST_MARKER", &marker)
        .env("TMPDIR", place.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it can be started");
    // The command itself, and what has left its session.
    while processes_with(&marker).len() < 2 {
        assert_eq!(controller.try_wait().expect("it can be looked at"), None, "it ended by itself");
        tokio::task::yield_now().await;
    }
    controller.kill().expect("it can be killed");
    controller.wait().expect("it is gone");
    while !processes_with(&marker).is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.settings();
    let marker = marker();
    operator.script(
        "leave",
        &format!("#!/bin/sh\n./villain idle {marker} &\nsetsid ./villain idle {marker} &\nexit 0\n"),
    );
    let outcome = run(settings.clone(), &pre(&settings, &["leave"])).await;
    assert_eq!(outcome.result, Verdict::Success);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[tokio::test]
async fn where_the_kernel_cannot_hold_them_commands_are_refused() {
    let operator = Operator::new();
    let sandboxed = operator.settings();
    for (landlock, seccomp, missing) in [
        (false, true, "Landlock"),
        (true, false, "seccomp filters"),
        (false, false, "Landlock and seccomp filters"),
    ] {
        let support = Support { landlock, scopes: false, seccomp };
        let lacking = Settings { support, ..operator.settings() };
        let message = format!(
            "commands are not run here: the kernel has no {missing} to hold them with; the operator can run \
             them all the same with --hooks-allow-unsandboxed"
        );
        // Prepared under settings that allow it, so that the runner is what refuses.
        let call = {
            let enough = Support { landlock: true, scopes: true, seccomp: true };
            villain(&Settings { support: enough, ..sandboxed.clone() }, &["succeed"])
        };
        let outcome = run(lacking.clone(), &call).await;
        let Verdict::Refused(fault) = outcome.result else { panic!("{outcome:?}") };
        assert_eq!((fault.reason, fault.message), (Reason::NoSandbox, message));
        assert!(hook(&lacking, Role::PreHook, command(&["villain"], json!({}))).is_err());
    }
}

#[tokio::test]
async fn without_a_sandbox_the_rest_still_holds_if_the_operator_insists() {
    let operator = Operator::new();
    let support = Support { landlock: false, scopes: false, seccomp: false };
    let settings = Settings { support, allow_unsandboxed: true, ..operator.settings() };
    let outcome = run(settings.clone(), &villain(&settings, &["environment"])).await;
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(!outcome.output.contains("CARGO"), "{}", outcome.output);
    let marker = marker();
    let mut call = villain(&settings, &["escape", &marker]);
    call.timeout = Duration::from_millis(1500);
    let outcome = run(settings, &call).await;
    assert_eq!(outcome.result, Verdict::Timeout { after: call.timeout });
    assert!(outcome.output.contains("setsid 1: GOT done"), "{}", outcome.output);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}
