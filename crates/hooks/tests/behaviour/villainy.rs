//! A hostile hook, and what it does not get. Unless said otherwise it runs as the same user as these tests, so that
//! nothing but the sandbox stands in its way.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use baton_hooks::sandbox::Support;
use baton_hooks::{CommandLimits, Limits, Outcome, Reason, Settings, Verdict};

use crate::receiver::{Receiver, ok};
use crate::support::{Operator, hook, kernel_holds_commands, marker, processes_with, run, villain};

async fn does(settings: &Settings, arguments: &[&str]) -> Outcome {
    run(settings.clone(), &villain(settings, arguments)).await
}

fn limited(settings: Settings, command: CommandLimits) -> Settings {
    Settings { limits: Limits { command, ..Limits::default() }, ..settings }
}

fn limit_exceeded(outcome: &Outcome) -> &str {
    match &outcome.result {
        Verdict::Failure(fault) if fault.reason == Reason::LimitExceeded => &fault.message,
        other => panic!("{other:?}: {}", outcome.output),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are UTF-8")
}

#[tokio::test]
async fn it_reads_no_token_and_no_file_outside() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let token = operator.private("token", "eyJhbGciOi");
    let settings = operator.as_this_user();
    std::os::unix::fs::symlink(&token, operator.directory().join("link")).expect("a link can be made");
    let own = operator.directory().join("readable");
    std::fs::write(&own, "for hooks").expect("a file can be written");
    let paths = [
        token.as_str(),
        "link",
        "../token",
        "./../hooks/../token",
        "/etc/shadow",
        "/proc/self/environ",
        "readable",
    ];
    let arguments: Vec<&str> = ["read"].into_iter().chain(paths).collect();
    let outcome = does(&settings, &arguments).await;
    let expected: String =
        paths[..6].iter().map(|path| format!("read {path}: permission denied\n")).collect();
    assert_eq!(outcome.output, expected + "read readable: GOT for hooks");

    let parent = text(operator.scratch().parent().expect("it has one")).to_owned();
    let outcome =
        does(&settings, &["list", &parent, "/", "/etc", "/root", "/home", "/var/run/secrets", "."]).await;
    assert!(outcome.output.ends_with("list .: GOT entries"), "{}", outcome.output);
    assert_eq!(outcome.output.matches("GOT").count(), 1, "{}", outcome.output);
}

#[tokio::test]
async fn what_the_operator_lets_it_read_it_reads_and_no_more() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let kubeconfig = operator.private("kubeconfig", "apiVersion: v1");
    let token = operator.private("token", "eyJhbGciOi");
    let settings = Settings { read: vec![kubeconfig.clone().into()], ..operator.as_this_user() };
    let outcome = does(&settings, &["read", &kubeconfig, &token]).await;
    let expected = format!("read {kubeconfig}: GOT apiVersion: v1\nread {token}: permission denied");
    assert_eq!(outcome.output, expected);
    let outcome = does(&settings, &["write", &kubeconfig]).await;
    assert_eq!(outcome.output, format!("write {kubeconfig}: permission denied"));
}

#[tokio::test]
async fn it_writes_nowhere_but_in_its_own_directory() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let outside = operator.private("state", "good");
    operator.script("other", "#!/bin/true\n");
    let program = operator.directory().join("other");
    let settings = operator.as_this_user();
    let outcome = does(
        &settings,
        &["write", &outside, text(&program), "new", "/tmp/baton-hooks-villain-was-here", "/dev/shm/x"],
    )
    .await;
    assert_eq!(outcome.output.matches("permission denied").count(), 5, "{}", outcome.output);
    assert_eq!(std::fs::read_to_string(&outside).expect("it is there"), "good");
    // Modes and names of files outside it changes neither.
    let tries = [
        "chmod 777 FILE",
        "mv FILE FILE.gone",
        "rm FILE",
        "ln FILE $TMPDIR/x",
        "truncate -s 0 FILE",
        "echo x > $TMPDIR/own && rm $TMPDIR/own && echo own done",
        "exit 3",
    ];
    operator.script("change", &format!("#!/bin/sh\n{}\n", tries.join("\n").replace("FILE", &outside)));
    let call = serde_json::json!({"name": "bad", "type": "command", "command": {"command": ["change"]}});
    let call = hook(&settings, baton_hooks::Role::PreHook, call).expect("the hook is good");
    let before = std::fs::metadata(&outside).expect("it is there").permissions();
    let outcome = run(settings, &call).await;
    assert!(outcome.output.ends_with("own done"), "{}", outcome.output);
    assert_eq!(std::fs::read_to_string(&outside).expect("it is there"), "good");
    assert_eq!(std::fs::metadata(&outside).expect("it is there").permissions(), before);
    assert!(operator.is_clean());
}

#[tokio::test]
async fn it_sees_no_other_process_and_no_environment_but_its_own() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let outcome = does(&operator.as_this_user(), &["ancestors"]).await;
    let expected = "read /proc/PARENT/environ: permission denied\nread /proc/PARENT/mem: permission \
                    denied\nread /proc/1/environ: permission denied\nlist /proc: permission denied";
    assert_eq!(outcome.output, expected);
}

#[tokio::test]
async fn it_signals_neither_its_supervisor_nor_the_controller_nor_everybody() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = operator.as_this_user();
    let controller = std::process::id().to_string();
    let outcome = does(&settings, &["signal", "PARENT", &controller, "1"]).await;
    let expected = format!(
        "signal PARENT: permission denied\nsignal {controller}: permission denied\nsignal 1: permission \
         denied"
    );
    assert_eq!(outcome.output, expected);
    operator.script("everybody", "#!/bin/sh\nkill -0 -1 || echo kept\nexit 3\n");
    let call = serde_json::json!({"name": "bad", "type": "command", "command": {"command": ["everybody"]}});
    let call = hook(&settings, baton_hooks::Role::PreHook, call).expect("the hook is good");
    // Also where Landlock cannot keep signals inside.
    for scopes in [settings.support.scopes, false] {
        let mut settings = settings.clone();
        settings.support.scopes = scopes;
        let outcome = run(settings, &call).await;
        assert!(outcome.code == Some(3) && outcome.output.ends_with("kept"), "{outcome:?}");
    }
}

#[tokio::test]
async fn it_gets_no_privileges_and_no_other_view_of_the_machine() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script(
        "privileged",
        "#!/bin/sh\nfor try in 'unshare -U true' 'unshare -m true' 'mount -t tmpfs x .' 'chroot /usr true' \
         'hostname x'; do\n$try >/dev/null 2>&1 && echo \"$try: GOT IT\"\ndone\n\
         for number in 3 4 5 6 7 8 9; do\n(eval \"true >&$number\") 2>/dev/null && echo \"file $number: GOT \
         IT\"\ndone\necho tried; exit 3\n",
    );
    let settings = operator.as_this_user();
    let call = serde_json::json!({"name": "bad", "type": "command", "command": {"command": ["privileged"]}});
    let call = hook(&settings, baton_hooks::Role::PreHook, call).expect("the hook is good");
    let outcome = run(settings, &call).await;
    assert_eq!(outcome.output, "tried");
}

#[tokio::test]
async fn what_it_writes_it_cannot_execute() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script(
        "fetch",
        "#!/bin/sh\ncp villain $TMPDIR/fetched\n$TMPDIR/fetched succeed && echo GOT IT\necho tried; exit 3\n",
    );
    let settings = operator.as_this_user();
    let call = serde_json::json!({"name": "bad", "type": "command", "command": {"command": ["fetch"]}});
    let call = hook(&settings, baton_hooks::Role::PreHook, call).expect("the hook is good");
    let outcome = run(settings, &call).await;
    assert!(outcome.output.ends_with("tried") && !outcome.output.contains("GOT IT"), "{}", outcome.output);
}

#[tokio::test]
async fn it_reaches_the_network_if_the_operator_lets_it_and_the_machines_services_never() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let receiver = Receiver::start(|_| ok()).await;
    let socket = operator.path("service.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket can be made");
    let address = receiver.address.to_string();
    let open = operator.as_this_user();
    let closed = Settings { command_network: false, ..operator.as_this_user() };
    assert_eq!(does(&open, &["tcp", &address]).await.output, format!("connect {address}: GOT done"));
    assert_eq!(
        does(&closed, &["tcp", &address]).await.output,
        format!("connect {address}: permission denied")
    );
    let socket = text(&socket);
    assert_eq!(does(&open, &["unix", socket]).await.output, format!("connect {socket}: permission denied"));
}

#[tokio::test]
async fn it_has_no_more_processes_than_it_may() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    // As a user whose processes the kernel counts; root's it does not.
    let settings = limited(operator.settings(), CommandLimits { processes: 16, ..CommandLimits::default() });
    let marker = marker();
    let outcome = does(&settings, &["crowd", &marker]).await;
    let started =
        outcome.output.lines().find_map(|line| line.strip_prefix("started ")?.parse::<usize>().ok());
    match started {
        Some(started) => assert!(started <= 16, "{}", outcome.output),
        // The supervisor may have counted first.
        None => assert_eq!(
            limit_exceeded(&outcome),
            "the command was ended: it ran more than 16 processes and threads"
        ),
    }
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[tokio::test]
async fn a_fork_bomb_goes_off_in_its_cell() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings = limited(operator.settings(), CommandLimits { processes: 24, ..CommandLimits::default() });
    let marker = marker();
    let mut call = villain(&settings, &["bomb", &marker]);
    call.timeout = Duration::from_secs(2);
    let outcome = run(settings, &call).await;
    match &outcome.result {
        Verdict::Timeout { .. } => {}
        _ => assert_eq!(
            limit_exceeded(&outcome),
            "the command was ended: it ran more than 24 processes and threads"
        ),
    }
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert!(operator.is_clean());
}

#[tokio::test]
async fn a_crowd_that_the_kernel_does_not_count_is_counted_by_the_supervisor() {
    if !kernel_holds_commands() {
        return;
    }
    if !rustix::process::getuid().is_root() {
        // The kernel counts the processes of any other user, which is the test above.
        return;
    }
    let operator = Operator::new();
    let settings =
        limited(operator.as_this_user(), CommandLimits { processes: 16, ..CommandLimits::default() });
    let marker = marker();
    let outcome = does(&settings, &["crowd", &marker]).await;
    assert_eq!(limit_exceeded(&outcome), "the command was ended: it ran more than 16 processes and threads");
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[tokio::test]
async fn it_uses_no_more_processor_time_and_open_files_than_it_may() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let limits = CommandLimits { cpu_seconds: 1, files: 20, ..CommandLimits::default() };
    let settings = limited(operator.as_this_user(), limits);
    let outcome = does(&settings, &["spin"]).await;
    assert_eq!(limit_exceeded(&outcome), "the command was ended: it used more than 1 s of processor time");
    // Three are its input and its outputs.
    assert_eq!(does(&settings, &["open"]).await.output, "opened 17");
}

/// What the other tests find refused is there to be had: it is the sandbox that refuses it.
#[tokio::test]
async fn without_the_sandbox_it_would_get_all_that() {
    let operator = Operator::new();
    let token = operator.private("token", "eyJhbGciOi");
    let support = Support { landlock: false, scopes: false, seccomp: false };
    let settings = Settings { support, allow_unsandboxed: true, ..operator.as_this_user() };
    let outcome = does(&settings, &["read", &token]).await;
    assert_eq!(outcome.output, format!("read {token}: GOT eyJhbGciOi"));
    let outcome = does(&settings, &["write", &token, "new"]).await;
    assert_eq!(outcome.output, format!("write {token}: GOT done\nwrite new: GOT done"));
    let socket = operator.path("service.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket can be made");
    let outcome = does(&settings, &["unix", text(&socket)]).await;
    assert_eq!(outcome.output, format!("connect {}: GOT done", text(&socket)));
    let outcome = does(&settings, &["ancestors"]).await;
    assert!(outcome.output.contains("list /proc: GOT"), "{}", outcome.output);
    // Of its supervisor it learns nothing even so, and that has no environment to tell.
    assert!(outcome.output.contains("read /proc/PARENT/environ: permission denied"), "{}", outcome.output);
}

#[tokio::test]
async fn it_fills_no_memory() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings =
        limited(operator.as_this_user(), CommandLimits { memory: 128 << 20, ..CommandLimits::default() });
    let outcome = does(&settings, &["memory"]).await;
    let held = outcome.output.strip_prefix("no more than ").and_then(|rest| rest.strip_suffix(" MiB"));
    let held: usize = held.and_then(|held| held.parse().ok()).unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(held < 128, "{held}");
    // Nor by many processes, each of them modest.
    let marker = marker();
    let outcome = does(&settings, &["herd", &marker, "4", "64"]).await;
    assert_eq!(
        limit_exceeded(&outcome),
        "the command was ended: its processes held more than 128 MiB of memory"
    );
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[tokio::test]
async fn it_fills_no_disk() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    let settings =
        limited(operator.as_this_user(), CommandLimits { disk: 32 << 20, ..CommandLimits::default() });
    let grown = "the command was ended: its temporary directory grew over 32 MiB, or was made unreadable";
    for (how, message) in [
        ("files", grown),
        ("nameless-files", grown),
        ("file", "the command was ended: it wrote a file of more than 32 MiB"),
    ] {
        let outcome = does(&settings, &[how]).await;
        assert_eq!(limit_exceeded(&outcome), message, "{how}");
        assert!(operator.is_clean(), "{how}");
    }
}
