//! Calls in earnest: over a socket, with Secrets out of the cluster.

use std::sync::Arc;
use std::time::Duration;

use baton_api::phase_status::{HookState, PhaseState};
use baton_hooks::{AllowList, Language, Namespace, Policy, Role, SetName, Verdict};
use baton_phases::{Ask, CallKey};
use baton_template::{Map, Value as Param};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::lines::Lines;
use super::world::{NAMESPACE, World, phase};
use crate::events;
use crate::phases::audit::manager_of;
use crate::phases::{CallMetrics, Caller, HookCaller, PhaseParts, Phases, Prepared, What};
use crate::settings::{HookSettings, Settings};

const TOKEN: &str = "correct-horse-battery-staple";

/// A receiver on the loopback interface that keeps what it is sent, and answers 200.
struct Receiver {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let (mut text, mut buffer) = (String::new(), [0; 4096]);
                    while !text.contains("\r\n\r\n") {
                        let read = stream.read(&mut buffer).await.unwrap_or(0);
                        if read == 0 {
                            return;
                        }
                        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
                    }
                    let (silent, broken) = (text.contains("/silent"), text.contains("/broken"));
                    let token = if text.contains(TOKEN) { TOKEN } else { "nobody" };
                    kept.lock().push(text);
                    if silent {
                        // It says nothing until the other side goes.
                        let _ = stream.read(&mut buffer).await;
                        kept.lock().push("closed".to_owned());
                        return;
                    }
                    let answer = match broken {
                        false => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
                        // It tells back what it was sent.
                        true => format!("HTTP/1.1 500 Oh\r\nconnection: close\r\n\r\nno room for {token}"),
                    };
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Receiver { port, requests }
    }
}

/// A world whose calls are made in earnest, and told of in Events.
async fn world(hook: Value) -> World {
    let mut world = World::new(json!([phase("dev", json!({"preHooks": [hook]}))]), &["dev-1"]).await;
    let mut hooks = HookSettings::default();
    hooks.calls.allow_http = true;
    hooks.calls.allow = AllowList::parse(["127.0.0.1/32"]).expect("an address");
    world.settings = Arc::new(Settings { hooks, ..(*world.settings).clone() });
    let client = Client::new(world.wire.clone(), NAMESPACE);
    let clock = world.settings.clock.clone();
    let caller = HookCaller::new(client.clone(), &world.settings.hooks, clock.clone()).expect("a caller");
    let (recorder, scribe) = events::channel(client.clone(), clock, "test");
    tokio::spawn(scribe.run());
    world.phases = Phases::new(PhaseParts {
        client,
        settings: world.settings.clone(),
        recorder: Some(recorder),
        caller: Arc::new(caller),
        calls: CallMetrics::default(),
        wake: world.queue.clone(),
    });
    world
}

async fn secret(world: &World, labels: Value) {
    secret_in(world, NAMESPACE, TOKEN, labels).await;
}

async fn secret_in(world: &World, namespace: &str, token: &str, labels: Value) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "pager", "namespace": namespace, "labels": labels},
        "stringData": {"token": token, "other": "not-to-be-used-here"},
    });
    world.cluster.apply("test", &secret).await.expect("a Secret");
}

fn hook(port: u16, path: &str) -> Value {
    json!({
        "name": "page", "type": "http", "timeout": "20s",
        "http": {
            "url": format!("http://127.0.0.1:{port}/{path}/{{{{appset.name}}}}/{{{{phase.name}}}}/{{{{name}}}}"),
            "headers": {"Authorization": "Bearer {{.secrets.pager.token}}"},
        },
        "secretRefs": [{"name": "pager", "keys": ["token"]}],
    })
}

/// Rounds until the calls have come to their end, and everything was told.
async fn until(world: &World, done: impl Fn(&World) -> bool) {
    for _ in 0..400 {
        world.round().await.expect("a round");
        if done(world) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", world.status().phases);
}

/// Everything that was ever written but Secrets, as text.
fn told(world: &World) -> String {
    let history = world.cluster.store().history(0);
    let told = history.iter().filter(|event| &*event.record.key.resource != "secrets");
    told.map(|event| String::from_utf8_lossy(&event.record.json()).into_owned()).collect()
}

fn events(world: &World) -> Vec<String> {
    let line = |event: &Value| {
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        format!("{} {}: {}", text("type"), text("reason"), text("message"))
    };
    world.objects("events").iter().map(line).collect()
}

#[tokio::test]
async fn a_call_goes_out_with_its_secret_which_nobody_else_sees() {
    let lines = Lines::listen();
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "services")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Deploying)
        .await;
    let requests = receiver.requests.lock().clone();
    assert_eq!(requests.len(), 1);
    let request = requests[0].to_lowercase();
    assert!(request.starts_with("post /services/web/dev/dev-1 http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: bearer {TOKEN}")), "{request}");
    let results = world.status().phases[0].pre_hooks.clone();
    let result = results.iter().find(|result| result.target == "dev-1").expect("a result");
    assert!(request.contains(&format!("idempotency-key: {}", result.idempotency_key)), "{request}");
    assert_eq!((result.state.clone(), result.code), (HookState::Succeeded, Some(200)));
    let events = events(&world);
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with(
        "Normal HookSucceeded: hook \"page\" of phase \"dev\" for dev-1, attempt 1 (http://127.0.0.1"
    ));
    let told = told(&world);
    assert!(!told.contains(TOKEN), "a secret was told");
    let audit = lines.of("baton::audit");
    assert_eq!(audit.len(), 1, "a line for each attempt: {audit:?}");
    for part in ["application_set=web", "phase=dev", "role=preHook", "name=page", "target_application=dev-1"]
        .into_iter()
        .chain(["attempt=1", "result=Success", "code=200", "milliseconds="])
    {
        assert!(audit[0].contains(part), "{part} in {}", audit[0]);
    }
    assert!(audit[0].contains(&format!("idempotency_key={}", result.idempotency_key)), "{}", audit[0]);
    assert!(!audit[0].contains("services") && !audit[0].contains("output="), "{}", audit[0]);
    assert!(!lines.all().contains(TOKEN), "a secret stands in the log");
    assert!(!events[0].contains("services"), "{events:?}");
}

#[tokio::test]
async fn a_secret_that_is_not_labelled_for_it_is_refused() {
    for labels in [json!({}), json!({"baton.dev/hooks": "false"})] {
        let receiver = Receiver::start().await;
        let world = world(hook(receiver.port, "services")).await;
        secret(&world, labels).await;
        until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Failed)
            .await;
        assert!(receiver.requests.lock().is_empty(), "nothing goes out");
        let failure = world.status().phases[0].failure.clone().expect("a failure");
        assert!(failure.message.contains("label it baton.dev/hooks=true"), "{}", failure.message);
        let events = events(&world);
        assert_eq!(events.len(), 1);
        assert!(events[0].starts_with("Warning HookRefused: "), "{events:?}");
        assert!(!told(&world).contains(TOKEN));
    }
}

#[tokio::test]
async fn a_secret_that_is_not_there_and_a_key_that_may_not_be_used_are_told() {
    let receiver = Receiver::start().await;
    let missing = world(hook(receiver.port, "services")).await;
    until(&missing, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Failed)
        .await;
    let message = missing.status().phases[0].failure.clone().expect("a failure").message;
    assert!(message.contains("there is no Secret \"pager\""), "{message}");
    let mut other = hook(receiver.port, "services");
    other["http"]["headers"] = json!({"X-Token": "{{.secrets.pager.other}}"});
    let refused = world(other).await;
    let ruling = refused.round().await.expect("a round");
    let notice = ruling.notices.first().expect("a notice");
    assert_eq!(notice.reason, "InvalidPhaseConfig");
    assert!(notice.message.contains("which its keys do not list"), "{}", notice.message);
    // Where it does not show beforehand, the key is not there when it is asked for.
    let mut hidden = hook(receiver.port, "services");
    hidden["http"]["url"] = format!("http://127.0.0.1:{}/", receiver.port).into();
    hidden["http"]["headers"] = json!({"X-Note": "{{ if true }}{{ .secrets.pager.other }}{{ end }}"});
    let world = world(hidden).await;
    world.edit(json!({"spec": {"goTemplate": true}})).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Failed)
        .await;
    let message = world.status().phases[0].failure.clone().expect("a failure").message;
    assert!(message.contains("http.headers[X-Note] cannot be filled in at line 1, column "), "{message}");
    assert!(!told(&world).contains("not-to-be-used-here"));
    assert!(receiver.requests.lock().is_empty());
}

#[tokio::test]
async fn a_forgotten_call_hangs_up() {
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "silent")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |_| !receiver.requests.lock().is_empty()).await;
    world.phases.forget(&world.key);
    for _ in 0..200 {
        if receiver.requests.lock().last().is_some_and(|last| last == "closed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(receiver.requests.lock().last().map(String::as_str), Some("closed"));
    let events = events(&world);
    assert!(events.iter().any(|event| event.starts_with("Normal HookCancelled")), "{events:?}");
}

#[tokio::test]
async fn of_a_failure_the_log_tells_what_was_answered_and_no_secret() {
    let lines = Lines::listen();
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "broken")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Failed)
        .await;
    assert!(receiver.requests.lock()[0].contains(TOKEN), "it was sent");
    let audit = lines.of("baton::audit");
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert!(
        audit[0].contains("result=UnexpectedStatus") && audit[0].contains("no room for [redacted]"),
        "{audit:?}"
    );
    assert!(!lines.all().contains(TOKEN), "a secret stands in the log");
    assert!(!told(&world).contains("no room for"), "what was answered is for the operator alone");
}

#[tokio::test]
async fn calls_that_end_with_the_controller_are_told_of_and_hang_up() {
    let lines = Lines::listen();
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "silent")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |_| !receiver.requests.lock().is_empty()).await;
    assert!(lines.of("baton::audit").is_empty());
    world.phases.stop();
    let audit = lines.of("baton::audit");
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert!(audit[0].contains("name=page") && audit[0].contains("result=Cancelled"), "{audit:?}");
    assert_eq!(world.phases.under_way(), 0);
    world.phases.stop();
    assert_eq!(lines.of("baton::audit").len(), 1, "once");
}

#[tokio::test]
async fn a_set_that_goes_has_no_call_left_when_that_is_said_and_begins_none() {
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "silent")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |_| !receiver.requests.lock().is_empty()).await;
    let (hangup, uid) = (world.phases.hangup(), world.set().metadata.uid.expect("a UID"));
    hangup.end(&world.key, &uid).await;
    assert_eq!(world.phases.under_way(), 0);
    // A round that had begun before would make the call again.
    world.round().await.expect("a round");
    assert_eq!(world.phases.under_way(), 0, "nothing begins any more");
    // Another set of the same name is another set.
    hangup.end(&world.key, "another").await;
    world.round().await.expect("a round");
    assert_eq!(world.phases.under_way(), 1);
}

#[tokio::test]
async fn a_secret_is_read_in_the_namespace_of_the_set_and_nowhere_else() {
    let receiver = Receiver::start().await;
    let world = world(hook(receiver.port, "services")).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    world.cluster.apply("test", &namespace).await.expect("a namespace");
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    let client = Client::new(world.wire.clone(), NAMESPACE);
    let caller =
        HookCaller::new(client, &world.settings.hooks, world.settings.clock.clone()).expect("a caller");
    let policy = Policy::new(&world.settings.hooks.calls, Namespace::Listed, Language::Params);
    let key = CallKey {
        rollout: "1".into(),
        generator: 0,
        phase: 0,
        role: Role::PreHook,
        place: 0,
        target: "dev-1".into(),
        attempt: 1,
    };
    let call = baton_phases::Call {
        key,
        phase: "dev".into(),
        name: "page".into(),
        idempotency_key: "k".to_owned(),
        limit: Duration::from_secs(20),
    };
    let hook = serde_json::from_value(hook(receiver.port, "services")).expect("a hook");
    let prepared = Prepared {
        set: SetName { namespace: "team-a".to_owned(), name: "web".to_owned() },
        call,
        what: What::Hook(Box::new(hook)),
        params: Map::strings([("name", "dev-1")]),
        policy: Arc::new(policy),
    };
    let outcome = caller.call(prepared.clone()).await;
    assert!(matches!(outcome.result, Verdict::Refused(_)), "the control plane's is not its own: {outcome:?}");
    secret_in(&world, "team-a", "of-team-a", json!({"baton.dev/hooks": "true"})).await;
    assert_eq!(caller.call(prepared).await.result, Verdict::Success);
    let requests = receiver.requests.lock().join("\n");
    assert!(requests.contains("of-team-a") && !requests.contains(TOKEN), "{requests}");
}

#[tokio::test]
async fn row_19_texts_of_a_set_in_go_templates_see_parameters_with_their_types() {
    let receiver = Receiver::start().await;
    let mut hook = hook(receiver.port, "go");
    let text = "{{ if eq .replicas 3.0 }}three{{ end }}{{ range .regions }}-{{ . }}{{ end }}";
    hook["http"]["url"] = format!("http://127.0.0.1:{}/{text}/{{{{ .name }}}}", receiver.port).into();
    let mut world = world(hook).await;
    let params = json!({"name": "dev-1", "replicas": 3, "regions": ["eu", "us"]});
    let Param::Map(params) = Param::from(&params) else { panic!("an object is a map") };
    world.typed.insert("dev-1".into(), params);
    world.edit(json!({"spec": {"goTemplate": true}})).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Deploying)
        .await;
    let requests = receiver.requests.lock().clone();
    assert!(requests[0].starts_with("POST /three-eu-us/dev-1 HTTP/1.1"), "{requests:?}");
}

#[tokio::test]
async fn every_answer_to_a_person_is_an_event_and_a_line() {
    let lines = Lines::listen();
    let receiver = Receiver::start().await;
    let mut world = world(hook(receiver.port, "services")).await;
    secret(&world, json!({"baton.dev/hooks": "true"})).await;
    until(&world, |world| !world.set().status.phases.is_empty() && world.state(0) == PhaseState::Deploying)
        .await;
    let asked = async |world: &mut World, retry: &str, abort: Option<&str>| {
        world.requests.retry = Some(retry.to_owned());
        world.requests.abort = abort.map(str::to_owned);
        for _ in 0..3 {
            world.round().await.expect("a round");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    asked(&mut world, "first", None).await;
    asked(&mut world, "first", Some("enough")).await;
    let audit: Vec<String> =
        lines.of("baton::audit").into_iter().filter(|line| line.contains("request=")).collect();
    assert_eq!(audit.len(), 2, "one each: {audit:?}");
    for part in ["application_set=web", "generator=0", "request=retry", "text=first", "result=Refused"] {
        assert!(audit[0].contains(part), "{part} in {}", audit[0]);
    }
    assert!(audit[1].contains("request=abort") && audit[1].contains("result=Granted"), "{}", audit[1]);
    let told: Vec<String> = events(&world).into_iter().filter(|event| event.contains("asked for")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    let has = |begin: &str, word: &str| told.iter().any(|one| one.starts_with(begin) && one.contains(word));
    assert!(has("Warning RetryRefused: ", "nothing has failed"), "{told:?}");
    assert!(has("Normal AbortGranted: ", "granted"), "{told:?}");
}

#[test]
fn who_asked_is_whoever_wrote_the_annotation() {
    let entry = |manager: &str, name: &str| {
        let field = format!("f:{name}");
        json!({"manager": manager, "fieldsV1": {"f:metadata": {"f:annotations": {field: {}}}}})
    };
    let raw = json!({"metadata": {"managedFields": [
        entry("argocd", "baton.dev/paused"), entry("kubectl-annotate", "baton.dev/advance"),
    ]}});
    assert_eq!(manager_of(&raw, Ask::Advance), Some("kubectl-annotate"));
    assert_eq!(manager_of(&raw, Ask::Abort), None);
}
