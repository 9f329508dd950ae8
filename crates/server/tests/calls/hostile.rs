//! Requests nobody should make: a clear refusal, nothing leaks, nothing hangs.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{Scene, Who};

#[tokio::test]
async fn bodies_are_bounded_and_must_be_json() {
    let scene = Scene::new().await;
    let path = "/api/v1/applicationsets/web/actions";
    let token = format!("Bearer {}", scene.token(Who::Admin).expect("a token"));
    let json = ("content-type", "application/json".to_owned());
    // Only the heads are sent: a body that is too large is refused before it comes.
    let sender = format!("authorization: {token}\r\n");
    for (path, sender, length) in [(path, sender.as_str(), 5 << 20), ("/api/v1/session", "", 20_000)] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
        let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
        let head = format!("{head}{sender}content-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut text = vec![0; 12];
        stream.read_exact(&mut text).await.expect("an answer");
        assert_eq!(String::from_utf8_lossy(&text), "HTTP/1.1 413", "{path}");
    }
    for (kind, status) in [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=utf-8", 404),
    ] {
        let headers = [("authorization", token.clone()), ("content-type", kind.to_owned())];
        let answer = scene.send("POST", path, &headers, json!({"action": "pause"}).to_string()).await;
        assert_eq!(answer.status, status, "{kind}: {}", answer.text);
    }
    for body in ["", "{", "[]", "null", "{\"action\": 1}", "{\"action\": \"explode\"}", "\u{0}"] {
        let answer = scene
            .send("POST", path, &[("authorization", token.clone()), json.clone()], body.to_owned())
            .await;
        assert_eq!(answer.status, 400, "{body:?}: {}", answer.text);
    }
    let answer = scene
        .send("POST", "/api/v1/session", &[json], "{\"username\":\"a\",\"password\":\"hush\" x".to_owned())
        .await;
    assert!(answer.status == 400 && !answer.text.contains("hush"), "{}", answer.text);
}

#[tokio::test]
async fn paths_lead_only_where_they_say() {
    let scene = Scene::new().await;
    for (path, status) in [
        ("/api/v1/applications/..%2F..%2Fsecrets%2Fargocd-secret", 403),
        ("/api/v1/applications/other%2Fresource-tree", 403),
        ("/api/v1/applications/a%3Fb", 403),
        ("/api/v1/applicationsets/..%2Fapplications%2Fother", 404),
    ] {
        assert_eq!(scene.get(Who::Admin, path).await.status, status, "{path}: as what is not there");
    }
    for (path, status) in [
        ("/api/v1/applications/%2e%2e", 400),
        ("/api/v1/applications/%00", 400),
        ("/api/v1/applications/%ff", 400),
        ("/api/v1//applications", 404),
        ("/api/v1/applications/other/nothing", 404),
        ("/api/v1/approvals/approve", 405),
        ("/api/v1/projects/https%3A%2F%2Fgit.example.com%2Fa", 404),
        ("/api/v1/applications?appNamespace=kube-system", 200),
        ("/api/v1/applications/other?appNamespace=kube-system", 403),
    ] {
        let answer = scene.get(Who::Admin, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert!(!answer.text.contains("argocd-secret"), "{path}");
    }
}

#[tokio::test]
async fn what_a_browser_sends_by_itself_changes_nothing_from_a_foreign_page() {
    let scene = Scene::new().await;
    let cookie = ("cookie", format!("argocd.token={}", scene.token(Who::Admin).expect("a token")));
    let json = ("content-type", "application/json".to_owned());
    let send = |more: Vec<(&'static str, String)>| {
        let headers: Vec<(&str, String)> = [cookie.clone(), json.clone()].into_iter().chain(more).collect();
        let scene = &scene;
        async move { scene.send("DELETE", "/api/v1/applications/nothing", &headers, String::new()).await }
    };
    for (origin, message) in [
        ("https://evil.example.com", "the request comes from a page of another origin"),
        ("https://cd.example.com.evil.com", "the request comes from a page of another origin"),
        ("https://cd.example.com", "permission denied"),
    ] {
        let answer = send(vec![("origin", origin.to_owned())]).await;
        assert_eq!((answer.status.as_u16(), answer.message().as_str()), (403, message), "{origin}");
    }
    let foreign = "the request comes from a page of another origin";
    assert_eq!(send(vec![]).await.message(), foreign, "nobody says where it comes from");
    assert_eq!(send(vec![("sec-fetch-site", "cross-site".to_owned())]).await.message(), foreign);
    assert_eq!(send(vec![("sec-fetch-site", "same-origin".to_owned())]).await.message(), "permission denied");
}

#[tokio::test]
async fn nothing_of_a_request_becomes_a_header_or_a_line() {
    let scene = Scene::new().await;
    let answer = scene.get(Who::Nobody, "/api/version").await;
    for name in [
        "content-security-policy",
        "x-content-type-options",
        "x-frame-options",
        "cache-control",
        "x-request-id",
    ] {
        assert!(answer.headers.contains_key(name), "{name}");
    }
    let given = [("x-request-id", "trace-7".to_owned())];
    let answer = scene.send("GET", "/api/version", &given, String::new()).await;
    assert_eq!(answer.headers["x-request-id"], "trace-7");
    let split = "/api/v1/applications/a%0d%0aset-cookie:%20x=y";
    let answer = scene.get(Who::Admin, split).await;
    assert!(answer.status.is_client_error() && !answer.headers.contains_key("set-cookie"));

    let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
    let raw = "GET /api/version HTTP/1.1\r\nhost: x\r\nx-request-id: a\r\n b\r\nbad header\r\n\r\n";
    stream.write_all(raw.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let scene = Scene::new().await;
    let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
    stream.write_all(b"GET /api/version HTTP/1.1\r\nhost: x\r\n").await.expect("sent");
    let line = format!("x-filler: {}\r\n", "y".repeat(8000));
    let mut refused = false;
    for _ in 0..200 {
        if stream.write_all(line.as_bytes()).await.is_err() {
            refused = true;
            break;
        }
    }
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    assert!(refused || String::from_utf8_lossy(&text).starts_with("HTTP/1.1 431"), "{}", text.len());
}

#[tokio::test]
async fn a_slow_client_holds_up_nobody_else() {
    let scene = Scene::new().await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
        stream.write_all(b"POST /api/v1/session HTTP/1.1\r\nhost: x\r\n").await.expect("sent");
        slow.push(stream);
    }
    assert_eq!(scene.get(Who::Nobody, "/api/version").await.status, 200);
    assert_eq!(scene.get(Who::Admin, "/api/v1/applications").await.status, 200);
}

#[tokio::test]
async fn a_body_that_does_not_say_its_length_is_bounded_too() {
    let scene = Scene::new().await;
    let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
    let head = "POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
        transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for _ in 0..5 {
        // Once it is refused nobody reads on.
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut text = vec![0; 12];
    stream.read_exact(&mut text).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&text), "HTTP/1.1 413");
}

#[tokio::test]
async fn two_lengths_are_no_request() {
    let scene = Scene::new().await;
    for lengths in
        ["content-length: 2\r\ncontent-length: 30", "content-length: 2\r\ntransfer-encoding: chunked"]
    {
        let mut stream = TcpStream::connect(scene.address).await.expect("a connection");
        let head = format!(
            "POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{lengths}\r\n\r\n"
        );
        let smuggled = "0\r\n\r\nGET /api/version HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(format!("{head}{smuggled}").as_bytes()).await.expect("sent");
        stream.shutdown().await.expect("an end");
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        assert!(text.starts_with("HTTP/1.1 4"), "{lengths}: {text}");
    }
}
