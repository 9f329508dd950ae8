//! Where a call goes that is sent elsewhere.

use baton_hooks::{AllowList, Outcome, Reason, Role, Settings, Verdict};
use serde_json::{Value, json};

use crate::receiver::{Answer, Receiver, answer, ok};
use crate::support::{hook, local, run};

fn elsewhere(status: u16, location: &str) -> Answer {
    answer(status, &[("location", location)], "")
}

async fn call(settings: Settings, method: &str, url: String, more: Value) -> Outcome {
    let mut http = json!({"url": url, "method": method, "body": "payload"});
    let fields = more.as_object().expect("the rest is an object").clone();
    http.as_object_mut().expect("it is an object").extend(fields);
    let configuration = json!({"name": "notify", "type": "http", "timeout": "30s", "http": http});
    let call = hook(&settings, Role::PreHook, configuration).expect("the hook is good");
    run(settings, &call).await
}

fn fault(outcome: &Outcome) -> (Reason, &str) {
    match &outcome.result {
        Verdict::Failure(fault) | Verdict::Refused(fault) => (fault.reason, &fault.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_redirect_leads_inward() {
    for location in [
        "http://169.254.169.254/latest/meta-data/iam/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://[2002:a00:1::]/",
        "http://0.0.0.0/",
        "//192.168.0.1/",
    ] {
        let receiver = Receiver::start(move |_| elsewhere(302, location)).await;
        let outcome = call(local(), "GET", receiver.url("/"), json!({})).await;
        assert!(matches!(outcome.result, Verdict::Refused(_)), "{location}: {:?}", outcome.result);
        assert_eq!(fault(&outcome).0, Reason::AddressNotAllowed, "{location}");
        assert_eq!(receiver.requests().len(), 1, "{location}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_host_inside_is_judged_by_its_address() {
    // Only the one address is allowed; the other receiver stands for a service inside.
    let inside = Receiver::start_at("127.0.0.9:0", None, |_| ok()).await;
    let location = inside.url("/admin");
    let outside = Receiver::start(move |_| elsewhere(307, &location)).await;
    let settings = Settings { allow: AllowList::parse(["127.0.0.1"]).expect("a good entry"), ..local() };
    let outcome = call(settings, "GET", outside.url("/"), json!({})).await;
    assert_eq!(fault(&outcome).0, Reason::AddressNotAllowed);
    assert_eq!((outside.connections(), inside.connections()), (1, 0));
}

#[tokio::test]
async fn a_get_follows_and_leaves_its_credentials_behind() {
    let target = Receiver::start(|_| ok()).await;
    let location = target.url("/there");
    let first = Receiver::start(move |path| match path {
        "/here" => elsewhere(301, "/moved"),
        _ => elsewhere(302, &location),
    })
    .await;
    let headers = json!({"headers": {"X-Token": "own", "Authorization": "Bearer {{.appset.name}}", "Accept": "text/plain"}});
    let outcome = call(local(), "GET", first.url("/here"), headers).await;
    assert_eq!(outcome.result, Verdict::Success);
    let (first, target) = (first.requests(), target.requests());
    // The same origin gets everything.
    assert!(first[1].starts_with("GET /moved ") && first[1].contains("x-token: own"), "{first:?}");
    assert!(first[1].contains("authorization: Bearer web"), "{first:?}");
    assert!(target[0].starts_with("GET /there "), "{target:?}");
    assert!(
        target[0].contains("accept: text/plain") && target[0].contains("x-hook-name: notify"),
        "{target:?}"
    );
    assert!(!target[0].contains("x-token") && !target[0].contains("authorization"), "{target:?}");
}

#[tokio::test]
async fn a_post_goes_on_only_as_a_post_and_only_to_its_own_origin() {
    let other = Receiver::start(|_| ok()).await;
    let location = other.url("/login");
    let receiver = Receiver::start(move |path| match path {
        "/done" => ok(),
        "/kept" => elsewhere(308, "/done"),
        "/turned" => elsewhere(303, "/done"),
        _ => elsewhere(307, &location),
    })
    .await;
    assert_eq!(call(local(), "POST", receiver.url("/kept"), json!({})).await.result, Verdict::Success);
    assert!(receiver.requests()[1].starts_with("POST /done "), "{:?}", receiver.requests());
    assert!(receiver.requests()[1].ends_with("payload"));

    let address = receiver.address;
    let outcome = call(local(), "POST", receiver.url("/turned"), json!({})).await;
    let message = format!(
        "http://{address} redirects the POST to http://{address} with status 303, which is not followed; \
         write the receiver's own URL"
    );
    assert_eq!(fault(&outcome), (Reason::BadRedirect, message.as_str()));

    let outcome = call(local(), "POST", receiver.url("/away"), json!({})).await;
    assert_eq!(fault(&outcome).0, Reason::BadRedirect);
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn circles_and_odd_places_end() {
    for (location, reason) in [
        ("/again", Reason::BadRedirect),
        ("ftp://example.com/", Reason::BadRedirect),
        ("file:///etc/passwd", Reason::BadRedirect),
        ("http://user:password@127.0.0.1/", Reason::BadRedirect),
        ("http://", Reason::BadRedirect),
    ] {
        let receiver = Receiver::start(move |_| elsewhere(302, location)).await;
        let outcome = call(local(), "GET", receiver.url("/"), json!({})).await;
        assert_eq!(fault(&outcome).0, reason, "{location}");
        assert!(receiver.requests().len() <= 6, "{location}");
        assert!(!fault(&outcome).1.contains("password"), "{location}");
    }
}

#[tokio::test]
async fn a_redirect_without_a_place_is_an_answer() {
    let receiver = Receiver::start(|_| answer(302, &[], "")).await;
    let outcome = call(local(), "GET", receiver.url("/"), json!({})).await;
    assert_eq!((fault(&outcome).0, outcome.code), (Reason::UnexpectedStatus, Some(302)));
}
