//! No secret is ever told.

use baton_hooks::{Action, Call, Outcome, Role, Verdict};
use serde_json::{Value, json};

use crate::receiver::{Receiver, answer};
use crate::support::{Operator, hook, kernel_holds_commands, local, run};

const SECRET: &str = "hunter2-and-more";

fn with_secret(mut configuration: Value) -> Value {
    configuration["secretRefs"] = json!([{"name": "servicenow"}]);
    configuration["name"] = json!("notify");
    configuration
}

fn assert_silent(call: &Call, outcome: &Outcome) {
    let told = format!("{call:?} {call:#?} {outcome:?} {} {}", outcome.result, outcome.output);
    assert!(!told.contains(SECRET), "{told}");
    for hidden in ["/services/T0", "B0/XYZ", "key=abc", "payload"] {
        assert!(!told.contains(hidden), "{hidden} in {told}");
    }
}

#[tokio::test]
async fn an_http_call_tells_neither_secrets_nor_paths_nor_bodies() {
    // A receiver that sends everything back, in several ways.
    let receiver = Receiver::start(move |_| {
        let body = format!(
            "you said Bearer {SECRET}, {{\"t\":\"{SECRET}\"}}, aHVudGVyMi1hbmQtbW9yZQ==, and \
                            hunter2%2Dand%2Dmore"
        );
        answer(500, &[], &body)
    })
    .await;
    let configuration = with_secret(json!({"type": "http", "http": {
        "url": receiver.url("/services/T0/B0/XYZ?key=abc"),
        "headers": {"Authorization": "Bearer {{.secrets.servicenow.token}}"},
        "body": "payload {{.secrets.servicenow.token}}",
    }}));
    let call = hook(&local(), Role::PreHook, configuration).expect("the hook is good");
    let outcome = run(local(), &call).await;
    assert!(receiver.requests()[0].contains(SECRET), "the receiver itself gets it");
    assert_silent(&call, &outcome);
    assert_eq!(
        outcome.output,
        "you said Bearer [redacted], {\"t\":\"[redacted]\"}, [redacted]==, and [redacted]"
    );
}

#[tokio::test]
async fn a_command_tells_no_secret_even_if_it_tries() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script(
        "tell",
        "#!/bin/sh\necho \"token=$TOKEN\"\necho \"$TOKEN\" >&2\nprintf %s \"$TOKEN\" | base64\nexit 3\n",
    );
    let settings = operator.settings();
    let configuration = with_secret(json!({"type": "command", "command": {
        "command": ["./tell"], "env": {"TOKEN": "{{.secrets.servicenow.token}}"},
    }}));
    let call = hook(&settings, Role::PreHook, configuration).expect("the hook is good");
    let outcome = run(settings, &call).await;
    assert_silent(&call, &outcome);
    assert_eq!(outcome.output, "token=[redacted]\n[redacted]\n[redacted]==");
}

#[test]
fn a_template_that_complains_with_a_secret_does_not_get_through() {
    use baton_hooks::{Language, Namespace, Occasion, Policy, prepare_hook};
    let configuration = with_secret(json!({"type": "http", "http": {
        "url": "https://example.com/", "body": "{{ fail .secrets.servicenow.token }}",
    }}));
    let configuration = serde_json::from_value(configuration).expect("the JSON of a hook");
    let policy = Policy::new(&local(), Namespace::ControlPlane, Language::Go);
    let (set, secrets, params) =
        (crate::support::set(), crate::support::secrets(), baton_template::Map::new([]));
    let occasion = Occasion {
        set: &set,
        phase: "canary",
        params: &params,
        secrets: &secrets,
        now: jiff::Timestamp::UNIX_EPOCH,
        attempt: 1,
        idempotency_key: "key",
    };
    let fault = prepare_hook(&configuration, Role::PreHook, &occasion, &policy).expect_err("it fails");
    assert!(fault.message.contains("[redacted]") && !format!("{fault:?}").contains(SECRET), "{fault:?}");
}

#[test]
fn secrets_reach_neither_urls_nor_arguments() {
    for configuration in [
        json!({"type": "http", "http": {"url": "https://example.com/{{.secrets.servicenow.token}}"}}),
        json!({"type": "http", "http": {"url": "https://example.com/{{ secrets.servicenow.token }}"}}),
    ] {
        let fault = hook(&local(), Role::PreHook, with_secret(configuration)).expect_err("it is refused");
        assert!(fault.message.starts_with("http.url cannot be filled in: "), "{}", fault.message);
    }
    let operator = Operator::new();
    let words =
        json!({"type": "command", "command": {"command": ["villain", "{{.secrets.servicenow.token}}"]}});
    let fault = hook(&operator.settings(), Role::PreHook, with_secret(words)).expect_err("it is refused");
    assert!(fault.message.starts_with("command.command[1] cannot be filled in: "), "{}", fault.message);
}

#[test]
fn a_prepared_call_shows_what_it_is() {
    let configuration =
        json!({"name": "notify", "type": "http", "http": {"url": "https://example.com:8443/services/T0"}});
    let call = hook(&local(), Role::PreHook, configuration).expect("the hook is good");
    assert!(matches!(call.action, Action::Http(_)));
    let shown = format!("{call:?}");
    assert!(shown.contains("https://example.com:8443") && !shown.contains("services"), "{shown}");
    assert_eq!(Verdict::Cancelled.to_string(), "cancelled");
}
