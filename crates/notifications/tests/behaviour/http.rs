//! Webhooks, Slack and Teams over real HTTP.

use std::net::SocketAddr;

use baton_notifications::{Config, Doubt, Failure, Message, Part, Post, Wait};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::receiver::{Receiver, answer};
use crate::support::{carrier, config, entry};

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").expect("a head and a body").1).expect("JSON")
}

fn services(address: SocketAddr) -> Config {
    config(&[
        (
            "service.webhook.ops",
            &format!(
                "url: http://{address}/base/\nheaders:\n- name: X-Token\n  value: $token\nbasicAuth:\n  username: me\n  password: $token"
            ),
        ),
        (
            "service.slack",
            &format!(
                "token: $token\nusername: baton\nicon: ':robot:'\napiURL: http://{address}/api/\ndisableUnfurl: true"
            ),
        ),
        ("service.teams", &format!("recipientUrls:\n  ops: http://{address}/$token")),
        ("service.teams-workflows", &format!("recipientUrls:\n  ops: http://{address}/flow/$token")),
        (
            "service.teams-workflows.raw",
            &format!("recipientUrls:\n  ops: http://{address}/flow\nrawCardPayload: true"),
        ),
    ])
}

async fn deliver(
    config: &Config,
    service: &str,
    recipient: &str,
    message: Message,
    doubt: Doubt,
) -> Result<(), Failure> {
    let entry = entry(service, recipient, message);
    carrier(None, &[]).deliver(&config.services[service], &entry, doubt).await
}

#[tokio::test]
async fn a_webhook_is_called_as_its_template_says_with_the_key_of_the_delivery() {
    let receiver = Receiver::start(|_, _| answer(200, "", "")).await;
    let config = services(receiver.address);
    let mut message = Message::plain("plain");
    message.set(Part::WebhookMethod, "PUT");
    message.set(Part::WebhookPath, "/hook?x=1");
    message.set(Part::WebhookBody, "{\"a\": 1}");
    deliver(&config, "ops", "", message.clone(), Doubt::None).await.expect("it is taken");
    deliver(&config, "ops", "", message, Doubt::MayHaveArrived).await.expect("it is taken");
    let requests = receiver.requests();
    let head = requests[0].to_lowercase();
    assert!(head.starts_with("put /base/hook?x=1 http/1.1\r\n"), "{head}");
    assert!(
        head.contains("\r\nx-token: canary-0451\r\n")
            && head.contains("\r\ncontent-type: application/json\r\n")
    );
    assert!(requests[0].contains("Basic bWU6Y2FuYXJ5LTA0NTE="), "{}", requests[0]);
    let key = entry("ops", "", Message::default()).id;
    assert!(requests[0].contains(&format!("idempotency-key: {key}\r\n")), "{}", requests[0]);
    assert_eq!(requests[0], requests[1], "a repetition is the same to the byte");
}

#[tokio::test]
async fn a_webhook_without_a_template_gets_the_text() {
    let receiver = Receiver::start(|_, _| answer(204, "", "")).await;
    deliver(&services(receiver.address), "ops", "", Message::plain("hello"), Doubt::None)
        .await
        .expect("it is taken");
    let requests = receiver.requests();
    assert!(
        requests[0].starts_with("GET /base/ HTTP/1.1") && requests[0].ends_with("\r\n\r\nhello"),
        "{}",
        requests[0]
    );
}

#[tokio::test]
async fn every_unwelcome_answer_says_when_to_try_again_and_shows_no_secret() {
    let receiver = Receiver::start(|number, request| match number {
        0 => answer(500, "", request),
        1 => answer(429, "retry-after: 90\r\n", ""),
        2 => answer(404, "", "no such hook"),
        3 => answer(302, "location: http://127.0.0.1:1/\r\n", ""),
        _ => "nonsense\r\n\r\n".to_owned(),
    })
    .await;
    let config = services(receiver.address);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let failure =
            deliver(&config, "ops", "", Message::plain("x"), Doubt::None).await.expect_err("it is not taken");
        assert!(!failure.message.contains("canary") && !failure.message.contains("Y2FuYXJ5"), "{failure}");
        assert!(!failure.message.contains("/base/") || failure.message.contains("GET"), "{failure}");
        waits.push(failure.wait);
    }
    let after = Wait::AtLeast(std::time::Duration::from_secs(90));
    assert_eq!(waits, [Wait::Usual, after, Wait::Longest, Wait::Longest, Wait::Usual]);
}

#[tokio::test]
async fn a_method_that_means_something_else_is_not_used() {
    let receiver = Receiver::start(|_, _| answer(200, "", "")).await;
    let mut message = Message::plain("x");
    message.set(Part::WebhookMethod, "CONNECT");
    let failure = deliver(&services(receiver.address), "ops", "", message, Doubt::None).await;
    assert_eq!(failure.expect_err("no such method").wait, Wait::Longest);
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn nobody_there_is_a_failure_like_any_other() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = listener.local_addr().expect("a bound socket has an address");
    drop(listener);
    let failure = deliver(&services(address), "teams", "ops", Message::plain("x"), Doubt::None).await;
    let failure = failure.expect_err("nobody is there");
    assert_eq!(failure.wait, Wait::Usual);
    assert!(failure.message.contains("no connection") && !failure.message.contains("canary"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_says_nothing_is_not_waited_for_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = listener.local_addr().expect("a bound socket has an address");
    let failure = deliver(&services(address), "ops", "", Message::plain("x"), Doubt::None).await;
    assert_eq!(failure.expect_err("it is too late").message, "took longer than 30s");
}

#[tokio::test]
async fn slack_gets_a_message_with_blocks_and_the_id_in_its_metadata() {
    let receiver = Receiver::start(|_, _| answer(200, "", "{\"ok\": true}")).await;
    let config = services(receiver.address);
    let mut message = Message::plain("text");
    message.set(Part::SlackBlocks, "[{\"type\": \"divider\"}]");
    message.set(Part::SlackIcon, "https://pictures.example/a.png");
    deliver(&config, "slack", "#ops", message, Doubt::None).await.expect("it is taken");
    let requests = receiver.requests();
    assert!(requests[0].starts_with("POST /api/chat.postMessage HTTP/1.1"), "{}", requests[0]);
    assert!(requests[0].contains("authorization: Bearer canary-0451\r\n"));
    let id = entry("slack", "#ops", Message::default()).id;
    assert_eq!(
        body(&requests[0]),
        json!({
            "channel": "#ops", "text": "text", "blocks": [{"type": "divider"}], "username": "baton",
            "icon_url": "https://pictures.example/a.png", "unfurl_links": false, "unfurl_media": false,
            "metadata": {"event_type": "baton_notification", "event_payload": {"id": id.as_str()}},
        })
    );
}

#[tokio::test]
async fn slack_is_asked_before_it_is_told_again() {
    let id = entry("slack", "#ops", Message::default()).id.as_str().to_owned();
    let history =
        json!({"ok": true, "messages": [{"text": "other"}, {"metadata": {"event_payload": {"id": id}}}]});
    let receiver = Receiver::start(move |_, _| answer(200, "", &history.to_string())).await;
    let config = services(receiver.address);
    deliver(&config, "slack", "#ops", Message::plain("x"), Doubt::MayHaveArrived)
        .await
        .expect("it has arrived");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests[0].starts_with("POST /api/conversations.history "));

    // Without the right to read the channel it is sent again.
    let receiver = Receiver::start(|number, _| match number {
        0 => answer(200, "", "{\"ok\": false, \"error\": \"missing_scope\"}"),
        _ => answer(200, "", "{\"ok\": true}"),
    })
    .await;
    let config = services(receiver.address);
    deliver(&config, "slack", "#ops", Message::plain("x"), Doubt::MayHaveArrived).await.expect("it is taken");
    assert!(receiver.requests()[1].starts_with("POST /api/chat.postMessage "));
}

#[tokio::test]
async fn what_slack_refuses_is_told_in_its_word() {
    for (said, wait) in [("channel_not_found", Wait::Longest), ("ratelimited", Wait::Usual)] {
        let receiver =
            Receiver::start(move |_, _| answer(200, "", &json!({"ok": false, "error": said}).to_string()))
                .await;
        let failure =
            deliver(&services(receiver.address), "slack", "#ops", Message::plain("x"), Doubt::None).await;
        let failure = failure.expect_err("it is refused");
        assert_eq!(
            (failure.message, failure.wait),
            (format!("Slack refused chat.postMessage: {said}"), wait)
        );
    }
    let receiver = Receiver::start(|_, _| answer(200, "", "<html>")).await;
    let mut message = Message::plain("x");
    let config = services(receiver.address);
    assert!(deliver(&config, "slack", "#ops", message.clone(), Doubt::None).await.is_err());
    message.set(Part::SlackBlocks, "[{]");
    let failure = deliver(&config, "slack", "#ops", message, Doubt::None).await.expect_err("no JSON");
    assert_eq!(failure.message, "the template's slack.blocks are no JSON: line 1, column 3");
}

#[tokio::test]
async fn teams_gets_cards() {
    let receiver = Receiver::start(|_, _| answer(200, "", "1")).await;
    let config = services(receiver.address);
    let mut message = Message::plain("text");
    let facts = "[{\"name\": \"Sync\", \"value\": \"Synced\"}]";
    let action = "[{\"@type\": \"OpenUri\", \"name\": \"Open\", \"targets\": [{\"os\": \"default\", \"uri\": \"https://cd.example\"}]}]";
    for (part, text) in [
        (Part::TeamsTitle, "title"),
        (Part::TeamsFacts, facts),
        (Part::TeamsPotentialAction, action),
        (Part::WorkflowsTitle, "title"),
        (Part::WorkflowsThemeColor, "Good"),
        (Part::WorkflowsFacts, facts),
        (Part::WorkflowsPotentialAction, action),
    ] {
        message.set(part, text);
    }
    for service in ["teams", "teams-workflows", "raw"] {
        deliver(&config, service, "ops", message.clone(), Doubt::None).await.expect("it is taken");
    }
    let cards: Vec<Value> = receiver.requests().iter().map(|request| body(request)).collect();
    assert_eq!(
        (&cards[0]["@type"], &cards[0]["title"], &cards[0]["text"]),
        (&json!("MessageCard"), &json!("title"), &json!("text"))
    );
    assert_eq!(cards[0]["sections"], json!([{"facts": [{"name": "Sync", "value": "Synced"}]}]));
    assert_eq!(cards[1]["attachments"][0]["content"], cards[2]);
    assert_eq!(cards[2]["type"], "AdaptiveCard");
    assert_eq!(cards[2]["body"][0]["color"], "Good");
    assert_eq!(
        cards[2]["body"][2],
        json!({"type": "FactSet", "facts": [{"title": "Sync", "value": "Synced"}]})
    );
    assert_eq!(
        cards[2]["actions"],
        json!([{"type": "Action.OpenUrl", "title": "Open", "url": "https://cd.example"}])
    );

    message.set(Part::WorkflowsAdaptiveCard, "{\"type\": \"AdaptiveCard\", \"body\": []}");
    deliver(&config, "raw", "ops", message.clone(), Doubt::None).await.expect("it is taken");
    assert_eq!(body(&receiver.requests()[3]), json!({"type": "AdaptiveCard", "body": []}));
    let failure =
        deliver(&config, "teams", "nobody", message, Doubt::None).await.expect_err("no such channel");
    assert_eq!(
        (failure.message.as_str(), failure.wait),
        ("the service knows no channel \"nobody\"", Wait::Longest)
    );
}
