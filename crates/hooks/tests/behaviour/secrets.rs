//! No secret is ever told.

use base64::Engine as _;
use baton_hooks::{Action, Call, Fault, Outcome, Role, Settings, Verdict};
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

/// What a hook in the language of Go templates comes to that cannot be filled in.
fn fault_in_go(configuration: Value) -> String {
    in_go(&Operator::new().settings(), configuration).expect_err("it cannot be filled in").to_string()
}

fn in_go(settings: &Settings, configuration: Value) -> Result<Call, Fault> {
    use baton_hooks::{Language, Namespace, Occasion, Policy, prepare_hook};
    let configuration = serde_json::from_value(configuration).expect("the JSON of a hook");
    let policy = Policy::new(settings, Namespace::ControlPlane, Language::Go);
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
    prepare_hook(&configuration, Role::PreHook, &occasion, &policy)
}

#[test]
fn a_template_that_complains_with_a_secret_does_not_get_through() {
    for expression in [
        "fail .secrets.servicenow.token",
        "fail (upper .secrets.servicenow.token)",
        "fail (trunc 5 .secrets.servicenow.token)",
        "fail (.secrets.servicenow.token | splitList \"\" | reverse | join \"\")",
        "fail (b64enc .secrets.servicenow.token)",
        "fail (repeat 2 .secrets.servicenow.token)",
        "mustToDate \"2006\" .secrets.servicenow.token",
        "mustRegexMatch (printf \"%s(\" .secrets.servicenow.token) \"x\"",
        "fromJson .secrets.servicenow.token | mustToJson | fail",
        "index .secrets .secrets.servicenow.token 1",
    ] {
        let text = format!("a\nkey=abc {{{{ {expression} }}}}");
        for (path, field) in [
            ("http.body", json!({"url": "https://example.com/", "body": text})),
            ("http.headers[X-Note]", json!({"url": "https://example.com/", "headers": {"X-Note": text}})),
        ] {
            let message = fault_in_go(with_secret(json!({"type": "http", "http": field})));
            let begin = format!("{path} cannot be filled in at line 2, column ");
            let end = ": what the template engine says is withheld, since secrets are in reach";
            let column = message.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(end));
            assert!(column.is_some_and(|column| column.parse::<u32>().is_ok()), "{expression}: {message}");
        }
    }
    let command = json!({"command": ["./x"], "env": {"A": "{{ fail (lower .secrets.servicenow.token) }}"}});
    let message = fault_in_go(with_secret(json!({"type": "command", "command": command})));
    assert!(message.starts_with("command.env[A] cannot be filled in at line 1, column "), "{message}");
    assert!(message.ends_with(" is withheld, since secrets are in reach"), "{message}");
}

#[test]
fn where_no_secret_is_in_reach_the_engine_is_heard() {
    let message =
        fault_in_go(with_secret(json!({"type": "http", "http": {"url": "https://{{ .nosuch }}/"}})));
    assert!(message.contains("map has no entry for key \"nosuch\""), "{message}");
}

/// Credentials that somebody wrote out in the set.
const LITERAL: &str = "LITERALSECRET123456";

#[tokio::test]
async fn credentials_that_are_written_out_are_not_told_either() {
    let receiver = Receiver::start(|_| {
        let body = format!(
            "authorization: Bearer {LITERAL}, cookie: session=c00kie-of-mine, YWxpY2U6b3BlbnNlc2FtZQ== is \
             opensesame, key-0815-4711, {}, token-of-eu-1, x-note: to be seen",
            LITERAL.to_lowercase()
        );
        answer(500, &[], &body)
    })
    .await;
    let configuration = json!({"name": "notify", "type": "http", "http": {
        "url": receiver.url("/"),
        "headers": {
            "Authorization": format!("Bearer {LITERAL}"),
            "Cookie": "session=c00kie-of-mine",
            "Proxy-Authorization": "Basic YWxpY2U6b3BlbnNlc2FtZQ==",
            "X-Api-Key": "key-0815-4711",
            "Private-Token": "token-of-{{name}}",
            "X-Note": "to be seen",
        },
    }});
    let call = hook(&local(), Role::PreHook, configuration).expect("the hook is good");
    let outcome = run(local(), &call).await;
    let told = format!("{call:?} {outcome:?} {}", outcome.output).to_lowercase();
    let literal = LITERAL.to_lowercase();
    for hidden in
        [&*literal, "c00kie-of-mine", "ywxpy2u6b3blbnnlc2ftzq", "opensesame", "key-0815", "token-of-eu-1"]
    {
        assert!(!told.contains(hidden), "{hidden} in {told}");
    }
    assert!(told.contains("authorization: bearer [redacted]") && told.contains("to be seen"), "{told}");
}

#[tokio::test]
async fn what_comes_back_changed_or_in_part_is_not_told() {
    let receiver = Receiver::start(|_| {
        let reversed: String = SECRET.chars().rev().collect();
        let body =
            format!("{} {reversed} bad token {}… {}", SECRET.to_uppercase(), &SECRET[..10], &SECRET[6..]);
        answer(401, &[], &body)
    })
    .await;
    let configuration = with_secret(json!({"type": "http", "http": {
        "url": receiver.url("/"), "headers": {"Authorization": "Bearer {{.secrets.servicenow.token}}"},
    }}));
    let call = hook(&local(), Role::PreHook, configuration).expect("the hook is good");
    let outcome = run(local(), &call).await;
    assert_eq!(outcome.output, "[redacted] [redacted] bad token [redacted]… [redacted]");
}

#[tokio::test]
async fn a_secret_inside_something_longer_that_is_encoded_is_not_told() {
    let signed = base64::engine::general_purpose::STANDARD.encode(format!("u:{SECRET}"));
    let echoed = signed.clone();
    let receiver = Receiver::start(move |_| answer(500, &[], &format!("you said {echoed}"))).await;
    let value = "{{ printf \"u:%s\" .secrets.servicenow.token | b64enc }}";
    for places in [json!({"body": value}), json!({"headers": {"X-Sig": value}})] {
        let mut http = json!({"url": receiver.url("/")});
        for (key, value) in places.as_object().into_iter().flatten() {
            http[key] = value.clone();
        }
        let configuration = with_secret(json!({"type": "http", "http": http}));
        let call = in_go(&local(), configuration).expect("the hook is good");
        let told = run(local(), &call).await.output;
        assert!(told.starts_with("you said") && told.contains("[redacted]"), "{told}");
        // What stands before it may be seen, and a letter that is of both.
        assert!(!told.contains(&signed[..5]) && !told.contains(&signed[5..11]), "{told}");
    }
}

#[tokio::test]
async fn what_a_header_is_made_of_a_secret_in_any_way_is_not_told() {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let twice = encode(&encode(SECRET));
    let receiver = Receiver::start(move |_| answer(500, &[], &format!("bad signature {twice}"))).await;
    let configuration = with_secret(json!({"type": "http", "http": {
        "url": receiver.url("/"), "headers": {"X-Sig": "{{ .secrets.servicenow.token | b64enc | b64enc }}"},
    }}));
    let call = in_go(&local(), configuration).expect("the hook is good");
    assert_eq!(run(local(), &call).await.output, "bad signature [redacted]");
}

#[test]
fn a_key_that_a_secret_has_not_is_named() {
    for name in ["Authorization", "X-Foo"] {
        let configuration = with_secret(json!({"type": "http", "http": {
            "url": "https://example.com/", "headers": {name: "Bearer {{.secrets.servicenow.nokey}}"},
        }}));
        let fault = hook(&local(), Role::PreHook, configuration).expect_err("there is no such key");
        let expected = format!("http.headers[{name}]: the Secret \"servicenow\" has no key \"nokey\"");
        assert_eq!(fault.to_string(), expected);
    }
}

#[tokio::test]
async fn a_command_tells_no_credential_that_is_written_out() {
    if !kernel_holds_commands() {
        return;
    }
    let operator = Operator::new();
    operator.script("tell", "#!/bin/sh\necho \"token=$API_TOKEN $DB_PASSWORD $PLAIN\"\nexit 3\n");
    let settings = operator.settings();
    let configuration = json!({"name": "tell", "type": "command", "command": {
        "command": ["./tell"], "env": {"API_TOKEN": LITERAL, "DB_PASSWORD": "pass-of-{{name}}", "PLAIN": "plain"},
    }});
    let call = hook(&settings, Role::PreHook, configuration).expect("the hook is good");
    let outcome = run(settings, &call).await;
    assert_eq!(outcome.output, "token=[redacted] [redacted] plain");
}

#[test]
fn a_credential_that_is_no_template_is_not_quoted() {
    let message = |header: &str| {
        let hook = json!({"name": "h", "type": "http", "http": {
            "url": "https://example.com/", "headers": {header: format!("Bearer {{{{ {LITERAL} }}}}")},
        }});
        let strategy = json!({"type": "phaseDeployment", "phases": [{"name": "p", "preHooks": [hook]}]});
        let strategy = serde_json::from_value(strategy).expect("the JSON of a strategy");
        let policy = baton_hooks::Policy::widest(baton_hooks::Language::Go);
        baton_hooks::validate(&strategy, "s", &policy)[0].to_string()
    };
    assert!(message("X-Note").contains(LITERAL));
    let withheld = "s.phases[0].preHooks[0].http.headers[Authorization]: is no template; what is wrong with it is \
                    withheld, since it may quote the credential";
    assert_eq!(message("Authorization"), withheld);
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
