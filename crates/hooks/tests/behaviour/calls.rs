//! HTTP calls: what is sent, what counts as success, and how they end.

use std::time::Duration;

use baton_hooks::{Call, Reason, Role, Runner, Verdict};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::receiver::{Answer, Receiver, answer, ok};
use crate::support::{check, hook, local, run};

fn http(call: Value) -> Value {
    json!({"name": "notify", "type": "http", "timeout": "30s", "http": call})
}

fn pre(call: Value) -> Call {
    hook(&local(), Role::PreHook, http(call)).expect("the hook is good")
}

fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
}

#[tokio::test]
async fn a_hook_says_who_it_is() {
    let receiver = Receiver::start(|_| ok()).await;
    let call = json!({
        "url": receiver.url("/{{name}}?set={{.appset.name}}"),
        "headers": {"Content-Type": "application/json", "Authorization": "Bearer {{.secrets.servicenow.token}}"},
        "body": "{\"phase\": \"{{.phase.name}}\"}",
    });
    let mut configuration = http(call);
    configuration["secretRefs"] = json!([{"name": "servicenow"}]);
    for role in [Role::PreHook, Role::PostHook] {
        let call = hook(&local(), role, configuration.clone()).expect("the hook is good");
        let outcome = run(local(), &call).await;
        assert_eq!((outcome.result, outcome.code, outcome.attempt), (Verdict::Success, Some(200), 2));
        assert_eq!((outcome.started, outcome.output.as_str()), (Timestamp::UNIX_EPOCH, ""));
    }
    let requests = receiver.requests();
    for (request, hook_type) in requests.iter().zip(["pre", "post"]) {
        assert!(request.starts_with("POST /eu-1?set=web HTTP/1.1\r\n"), "{request}");
        for (name, value) in [
            ("host", receiver.address.to_string().as_str()),
            ("x-appset-name", "web"),
            ("x-appset-namespace", "argocd"),
            ("x-hook-name", "notify"),
            ("x-hook-type", hook_type),
            ("user-agent", "ArgoCD-ApplicationSet-PhaseHook/1.0"),
            ("idempotency-key", "run-7/canary/notify"),
            ("content-type", "application/json"),
            ("authorization", "Bearer hunter2-and-more"),
        ] {
            assert_eq!(header(request, name), Some(value), "{name} in {request}");
        }
        assert_eq!(header(request, "x-check-name"), None);
        assert!(request.ends_with("\r\n\r\n{\"phase\": \"canary\"}"), "{request}");
    }
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn a_check_is_a_get_with_its_own_header_and_may_call_itself_something_else() {
    let receiver = Receiver::start(|_| ok()).await;
    let call = json!({"url": receiver.url("/health"), "headers": {"User-Agent": "ArgoCD-HealthCheck"}});
    let call = check(&local(), http(call)).expect("the check is good");
    assert_eq!(run(local(), &call).await.result, Verdict::Success);
    let request = &receiver.requests()[0];
    assert!(request.starts_with("GET /health HTTP/1.1\r\n"), "{request}");
    assert_eq!(header(request, "x-check-name"), Some("notify"));
    assert_eq!(header(request, "user-agent"), Some("ArgoCD-HealthCheck"));
    assert_eq!((header(request, "x-hook-name"), header(request, "x-hook-type")), (None, None));
    assert_eq!(header(request, "x-appset-name"), Some("web"));
}

#[tokio::test]
async fn only_the_expected_statuses_are_success() {
    let receiver =
        Receiver::start(|target| answer(target[1..].parse().expect("a status"), &[], "sorry")).await;
    for (expected, status, success) in [
        (json!(null), 200, true),
        (json!(null), 201, false),
        (json!(null), 204, false),
        (json!(204), 204, true),
        (json!(204), 200, false),
        (json!([200, 202]), 202, true),
        (json!([200, 202]), 500, false),
        (json!(500), 500, true),
        // A redirect that is expected is the answer; it has no place to go, but is not asked for one either.
        (json!(302), 302, true),
        (json!(null), 302, false),
    ] {
        let call = pre(json!({"url": receiver.url(&format!("/{status}")), "expectedStatus": expected}));
        let outcome = run(local(), &call).await;
        assert_eq!(outcome.is_success(), success, "{status} for {expected}: {:?}", outcome.result);
        assert_eq!(outcome.code, Some(status));
        assert_eq!(outcome.output, if success || status == 204 { "" } else { "sorry" });
    }
    let outcome =
        run(local(), &pre(json!({"url": receiver.url("/503"), "expectedStatus": [200, 204]}))).await;
    let Verdict::Failure(fault) = outcome.result else { panic!("{:?}", outcome.result) };
    let expected =
        format!("http://{} answered with status 503, expected was one of 200, 204", receiver.address);
    assert_eq!((fault.reason, fault.message), (Reason::UnexpectedStatus, expected));
}

#[tokio::test]
async fn every_method_is_sent_as_it_is() {
    let receiver = Receiver::start(|_| ok()).await;
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    for method in methods {
        let call = pre(json!({"url": receiver.url("/"), "method": method}));
        assert_eq!(run(local(), &call).await.result, Verdict::Success, "{method}");
    }
    let seen: Vec<String> =
        receiver.requests().iter().map(|request| request[..4].trim().to_owned()).collect();
    assert_eq!(seen, ["GET", "HEAD", "POST", "PUT", "PATC", "DELE", "OPTI"]);
}

#[tokio::test]
async fn of_an_endless_answer_only_the_beginning_is_read() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
    let receiver = Receiver::start(move |_| Answer::Endless(head.to_owned())).await;
    assert_eq!(run(local(), &pre(json!({"url": receiver.url("/")}))).await.result, Verdict::Success);
    receiver.closed().await;
    assert_eq!(receiver.open_connections(), 0);
    // What the sockets' buffers took along is the kernel's affair, and far from the gigabyte.
    assert!(receiver.sent() < 64 << 20, "{}", receiver.sent());
}

#[tokio::test]
async fn an_endless_head_is_an_error() {
    let head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(4 << 20));
    let receiver = Receiver::start(move |_| Answer::Endless(head.clone())).await;
    let outcome = run(local(), &pre(json!({"url": receiver.url("/")}))).await;
    assert!(
        matches!(&outcome.result, Verdict::Failure(fault) if fault.reason == Reason::ProtocolError),
        "{outcome:?}"
    );
    receiver.closed().await;
}

/// Receivers that never come to an end, each in its own way.
fn slow() -> [(&'static str, Answer); 3] {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
    [
        ("silence", Answer::Silence),
        ("a slow body", Answer::Drip(head.to_owned())),
        ("a slow head", Answer::Drip("HTTP/1.1 200 OK\r\nx: ".to_owned())),
    ]
}

#[tokio::test]
async fn time_is_up_for_the_whole_exchange_and_nothing_stays_open() {
    for (what, answer) in slow() {
        let receiver = Receiver::start(move |_| answer.clone()).await;
        let mut call = pre(json!({"url": receiver.url("/")}));
        call.timeout = Duration::from_millis(300);
        let outcome = run(local(), &call).await;
        assert_eq!(outcome.result, Verdict::Timeout { after: call.timeout }, "{what}");
        assert!(outcome.duration >= call.timeout, "{what}");
        receiver.closed().await;
        assert_eq!(receiver.open_connections(), 0, "{what}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_and_closes() {
    for (what, answer) in slow() {
        let receiver = Receiver::start(move |_| answer.clone()).await;
        let call = pre(json!({"url": receiver.url("/")}));
        let runner = Runner::new(local()).expect("the settings are good");
        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(runner.run(&call, Timestamp::UNIX_EPOCH, &cancel), async {
            receiver.asked().await;
            cancel.cancel();
        });
        assert_eq!(outcome.result, Verdict::Cancelled, "{what}");
        receiver.closed().await;
        assert_eq!(receiver.open_connections(), 0, "{what}");
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_is_not_made() {
    let receiver = Receiver::start(|_| ok()).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let runner = Runner::new(local()).expect("the settings are good");
    let outcome = runner.run(&pre(json!({"url": receiver.url("/")})), Timestamp::UNIX_EPOCH, &cancel).await;
    assert_eq!((outcome.result, receiver.connections()), (Verdict::Cancelled, 0));
}

#[tokio::test]
async fn a_forgotten_call_closes_too() {
    let receiver = Receiver::start(|_| Answer::Silence).await;
    let call = pre(json!({"url": receiver.url("/")}));
    let runner = Runner::new(local()).expect("the settings are good");
    let cancel = CancellationToken::new();
    tokio::select! {
        outcome = runner.run(&call, Timestamp::UNIX_EPOCH, &cancel) => panic!("{outcome:?}"),
        () = receiver.asked() => {}
    }
    receiver.closed().await;
    assert_eq!(receiver.open_connections(), 0);
}

#[tokio::test]
async fn what_is_no_receiver_is_told_apart() {
    let garbage = Receiver::start(|_| Answer::Bytes("SSH-2.0-OpenSSH\r\n".to_owned())).await;
    let cut = Receiver::start(|_| Answer::Bytes("HTTP/1.1 200 OK\r\ncontent-le".to_owned())).await;
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        listener.local_addr().expect("a bound socket has an address")
    };
    for (url, reason) in [
        (garbage.url("/"), Reason::ProtocolError),
        (cut.url("/"), Reason::ProtocolError),
        (format!("http://{nobody}/"), Reason::ConnectionFailed),
        ("http://no-such-host.invalid/".to_owned(), Reason::NameNotFound),
    ] {
        let outcome = run(local(), &pre(json!({"url": url}))).await;
        let Verdict::Failure(fault) = outcome.result else { panic!("{url}: {:?}", outcome.result) };
        assert_eq!(fault.reason, reason, "{url}: {}", fault.message);
    }
}

#[tokio::test]
async fn where_a_body_breaks_off_the_status_has_been_told() {
    for (status, passes) in [(200, true), (500, false)] {
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 100\r\n\r\nonly this");
        let receiver = Receiver::start(move |_| Answer::Bytes(head.clone())).await;
        let outcome = run(local(), &pre(json!({"url": receiver.url("/")}))).await;
        assert_eq!((outcome.result == Verdict::Success, outcome.code), (passes, Some(status)), "{status}");
    }
}

#[tokio::test]
async fn an_empty_body_is_said_to_be_empty() {
    let receiver = Receiver::start(|_| ok()).await;
    for (method, length) in [("POST", Some("0")), ("PUT", Some("0")), ("PATCH", Some("0")), ("GET", None)] {
        run(local(), &pre(json!({"url": receiver.url("/"), "method": method}))).await;
        let requests = receiver.requests();
        let request = requests.last().expect("a request");
        assert_eq!(header(request, "content-length"), length, "{request}");
        assert_eq!(header(request, "transfer-encoding"), None, "{request}");
    }
}

#[tokio::test]
async fn nothing_is_injected_by_parameters() {
    for (call, message) in [
        (
            json!({"url": "https://example.com/", "headers": {"X-Region": "{{crooked}}"}}),
            "http.headers[X-Region]: the value holds a line end, a control character or other text than \
             ASCII",
        ),
        (
            json!({"url": "https://example.com/{{crooked}}"}),
            "http.url: holds a control character, a line end or a blank at its edge",
        ),
        (
            json!({"url": "https://{{inward}}/latest"}),
            "http.url: 169.254.169.254 is link-local, where cloud metadata is served; the operator can \
             allow it with --hooks-allow and this very address",
        ),
        (
            json!({"url": "https://example.com/{{nowhere}}"}),
            "http.url cannot be filled in: {{nowhere}} is not known",
        ),
    ] {
        let fault = hook(&local(), Role::PreHook, http(call)).expect_err("it is refused");
        assert_eq!((fault.reason, fault.message.as_str()), (Reason::Invalid, message));
    }
}
