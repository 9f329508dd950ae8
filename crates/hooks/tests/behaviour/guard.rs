//! Which addresses are called, whatever names say.

use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use baton_hooks::{AllowList, Outcome, Places, Reason, Resolve, Role, Runner, Settings, Verdict};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::receiver::{Receiver, answer, ok};
use crate::support::{hook, local, run};

/// A name server that says something else each time, as an attacker's does.
struct Fickle {
    answers: Mutex<VecDeque<Vec<&'static str>>>,
    asked: Mutex<usize>,
}

impl Fickle {
    fn new(answers: &[&[&'static str]]) -> Arc<Fickle> {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        Arc::new(Fickle { answers: Mutex::new(answers), asked: Mutex::new(0) })
    }
}

impl Resolve for Fickle {
    fn resolve<'a>(
        &'a self,
        _: &'a str,
    ) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send + 'a>> {
        *self.asked.lock() += 1;
        let answer = self.answers.lock().pop_front().unwrap_or_default();
        let answer = answer.iter().map(|address| address.parse().expect("an address")).collect();
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// 127.0.0.2 stands for a public address, 127.0.0.1 for a service inside.
fn settings() -> Settings {
    Settings { allow: AllowList::parse(["127.0.0.2"]).expect("a good entry"), ..local() }
}

/// Two receivers at one port: outside and inside.
async fn outside_and_inside() -> (Receiver, Receiver) {
    let outside = Receiver::start_at("127.0.0.2:0", None, |path| match path {
        "/away" => answer(302, &[("location", "/back")], ""),
        _ => ok(),
    })
    .await;
    let inside = Receiver::start_at(&format!("127.0.0.1:{}", outside.address.port()), None, |_| ok()).await;
    (outside, inside)
}

async fn call(runner: &Runner, settings: &Settings, url: &str) -> Outcome {
    let configuration =
        json!({"name": "notify", "type": "http", "timeout": "30s", "http": {"url": url, "method": "GET"}});
    let call = hook(settings, Role::PreHook, configuration).expect("the hook is good");
    runner.run(&call, Timestamp::UNIX_EPOCH, &CancellationToken::new()).await
}

fn refusal(outcome: &Outcome) -> &str {
    match &outcome.result {
        Verdict::Refused(fault) if fault.reason == Reason::AddressNotAllowed => &fault.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let (outside, inside) = outside_and_inside().await;
    let url = format!("http://rebind.example:{}/", outside.address.port());
    // A second look-up within the call would lead inside.
    let resolver = Fickle::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let runner = Runner::with_resolver(settings(), resolver.clone()).expect("the settings are good");
    assert_eq!(call(&runner, &settings(), &url).await.result, Verdict::Success);
    assert_eq!((*resolver.asked.lock(), outside.connections(), inside.connections()), (1, 1, 0));
    // The next call looks it up, and is refused.
    let outcome = call(&runner, &settings(), &url).await;
    let expected = format!(
        "http://rebind.example:{} may not be called: rebind.example is at 127.0.0.1, which is this machine \
         (loopback); the operator can allow it with --hooks-allow",
        outside.address.port()
    );
    assert_eq!(refusal(&outcome), expected);
    assert_eq!((*resolver.asked.lock(), outside.connections(), inside.connections()), (2, 1, 0));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_on_a_redirect_gains_nothing_either() {
    let (outside, inside) = outside_and_inside().await;
    let resolver = Fickle::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let runner = Runner::with_resolver(settings(), resolver).expect("the settings are good");
    let url = format!("http://rebind.example:{}/away", outside.address.port());
    refusal(&call(&runner, &settings(), &url).await);
    assert_eq!((outside.connections(), inside.connections()), (1, 0));
}

#[tokio::test]
async fn one_address_inside_spoils_the_name() {
    let (outside, inside) = outside_and_inside().await;
    let url = format!("http://mixed.example:{}/", outside.address.port());
    for answers in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "::ffff:127.0.0.1"]]
    {
        let runner =
            Runner::with_resolver(settings(), Fickle::new(&[&answers])).expect("the settings are good");
        refusal(&call(&runner, &settings(), &url).await);
    }
    assert_eq!((outside.connections(), inside.connections()), (0, 0));
}

#[tokio::test]
async fn names_of_every_address_inside_are_refused() {
    let default = Settings::default();
    for address in [
        "127.0.0.1",
        "10.96.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "fc00::1",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:a9fe:a9fe::",
        "2001:0:a9fe:a9fe::",
    ] {
        let runner = Runner::with_resolver(default.clone(), Fickle::new(&[&[address]]))
            .expect("the settings are good");
        refusal(&call(&runner, &default, "https://innocent.example/").await);
    }
}

#[tokio::test]
async fn metadata_is_not_allowed_by_a_name() {
    let allow = AllowList::parse(["receiver.example"]).expect("a good entry");
    let settings = Settings { allow, ..Settings::default() };
    for address in
        ["169.254.169.254", "168.63.129.16", "64:ff9b::168.63.129.16", "fd00:ec2::23", "fd20:ce::254"]
    {
        let runner = Runner::with_resolver(settings.clone(), Fickle::new(&[&[address]]));
        let runner = runner.expect("the settings are good");
        refusal(&call(&runner, &settings, "https://receiver.example/").await);
    }
}

#[tokio::test]
async fn the_operator_says_where_a_host_is() {
    let receiver = Receiver::start(|_| ok()).await;
    let places =
        Places::parse([format!("hooks.example={}", receiver.address).as_str()]).expect("a good entry");
    let runs = |settings: Settings| async {
        let configuration =
            json!({"name": "notify", "type": "http", "http": {"url": "http://hooks.example/services"}});
        let call = hook(&settings, Role::PreHook, configuration).expect("the hook is good");
        run(settings, &call).await
    };
    let outcome = runs(Settings { places: places.clone(), ..local() }).await;
    assert_eq!(outcome.result, Verdict::Success);
    assert!(receiver.requests()[0].contains("host: hooks.example\r\n"));
    // Saying where it is does not allow it.
    let outcome = runs(Settings { places, allow: AllowList::default(), ..local() }).await;
    refusal(&outcome);
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_call_that_nobody_validated_is_refused_all_the_same() {
    let receiver = Receiver::start(|_| ok()).await;
    let configuration = json!({"name": "notify", "type": "http", "http": {"url": receiver.url("/")}});
    let call = hook(&local(), Role::PreHook, configuration).expect("the hook is good");
    let strict = Settings { allow_http: false, ..local() };
    let outcome = run(strict, &call).await;
    assert!(refusal(&outcome).contains("only https is allowed"), "{outcome:?}");
    assert_eq!(receiver.connections(), 0);
}
