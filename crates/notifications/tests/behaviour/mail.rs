//! E-mail over real SMTP.

use baton_notifications::{Doubt, Failure, Message, Part, Post, Wait};

use crate::smtp_server::{MailServer, Manner};
use crate::support::{carrier, config, entry};

async fn send_with(server: &MailServer, more: &str, message: Message, to: &str) -> Result<(), Failure> {
    let port = server.address.port();
    let config = config(&[(
        "service.email",
        &format!("host: mail.example\nport: {port}\nfrom: Baton <baton@example.com>\n{more}"),
    )]);
    let carrier = carrier(Some(&server.authority), &["mail.example=127.0.0.1"]);
    carrier.deliver(&config.services["email"], &entry("email", to, message), Doubt::None).await
}

fn message() -> Message {
    let mut message = Message::plain("Hällo\n.\nthe end");
    message.set(Part::EmailSubject, "Grüße\r\nBcc: evil@example.com");
    message
}

const SIGNED_IN: &str = "username: me\npassword: $token";

#[tokio::test]
async fn a_letter_arrives_over_tls_with_the_id_of_the_delivery() {
    for (manner, security) in [(Manner::Tls, "tls"), (Manner::StartTls, "starttls")] {
        let server = MailServer::start(manner).await;
        let more = format!("{SIGNED_IN}\nsecurity: {security}");
        send_with(&server, &more, message(), "People <ops@example.com>").await.expect("it is taken");
        let mails = server.mails();
        let id = entry("email", "People <ops@example.com>", Message::default()).id;
        assert!(mails[0].contains(&format!("Message-ID: <{id}@example.com>\r\n")), "{}", mails[0]);
        assert!(mails[0].contains("To: People <ops@example.com>\r\n"), "{}", mails[0]);
        assert!(mails[0].contains("Date: Sun, 01 Mar 2026 12:00:00 +0000\r\n"), "{}", mails[0]);
        assert!(mails[0].contains("Auto-Submitted: auto-generated\r\n"), "{}", mails[0]);
        assert!(!mails[0].to_lowercase().lines().any(|line| line.starts_with("bcc:")), "{}", mails[0]);
        let commands = server.commands();
        assert!(commands.contains(&"tls RCPT TO:<ops@example.com>".to_owned()), "{commands:?}");
        assert!(commands.iter().any(|command| command.starts_with("tls AUTH PLAIN ")), "{commands:?}");
        assert!(!commands.iter().any(|command| command.starts_with("clear AUTH")), "{commands:?}");
        // The same delivery again is the same letter.
        send_with(&server, &more, message(), "People <ops@example.com>").await.expect("it is taken");
        assert_eq!(server.mails()[0], server.mails()[1]);
    }
}

#[tokio::test]
async fn without_tls_a_letter_goes_but_credentials_do_not() {
    let server = MailServer::start(Manner::Plain).await;
    send_with(&server, "", message(), "ops@example.com").await.expect("it is taken");
    let failure =
        send_with(&server, SIGNED_IN, message(), "ops@example.com").await.expect_err("not in the clear");
    assert!(failure.message.contains("credentials are not sent in the clear"), "{failure}");
    let strict = format!("{SIGNED_IN}\nsecurity: starttls");
    let failure = send_with(&server, &strict, message(), "ops@example.com").await.expect_err("no STARTTLS");
    assert_eq!(
        (failure.message.as_str(), failure.wait),
        ("the mail server offers no STARTTLS", Wait::Longest)
    );
    assert!(!server.commands().iter().any(|command| command.contains("AUTH")));
    // Unless it is meant.
    let plain = format!("{SIGNED_IN}\nsecurity: plain\nhtml: true");
    send_with(&server, &plain, message(), "ops@example.com").await.expect("it is taken");
    assert!(server.mails()[1].contains("Content-Type: text/html"));
}

#[tokio::test]
async fn only_a_trusted_server_is_spoken_to() {
    let server = MailServer::start(Manner::StartTls).await;
    let other = MailServer::start(Manner::StartTls).await;
    let port = server.address.port();
    let service = |more: &str| {
        config(&[(
            "service.email",
            &format!("host: mail.example\nport: {port}\nfrom: a@example.com\n{SIGNED_IN}\n{more}"),
        )])
    };
    let stranger = carrier(Some(&other.authority), &["mail.example=127.0.0.1"]);
    let entry = entry("email", "ops@example.com", message());
    let strict = service("");
    let failure =
        stranger.deliver(&strict.services["email"], &entry, Doubt::None).await.expect_err("not trusted");
    assert!(failure.message.starts_with("TLS with smtp://mail.example:"), "{failure}");
    assert!(server.mails().is_empty());
    let lax = service("insecure_skip_verify: true");
    stranger.deliver(&lax.services["email"], &entry, Doubt::None).await.expect("it is taken");
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn words_put_into_the_clear_before_tls_are_not_believed() {
    let server = MailServer::start(Manner::Injecting).await;
    let failure = send_with(&server, SIGNED_IN, message(), "ops@example.com")
        .await
        .expect_err("somebody is in between");
    assert!(failure.message.contains("went on in the clear"), "{failure}");
}

#[tokio::test]
async fn a_refusal_tells_the_code_and_nothing_that_was_said() {
    for (code, wait) in [(450, Wait::Usual), (550, Wait::Longest)] {
        let server = MailServer::start(Manner::Refusing(code)).await;
        let failure = send_with(&server, "", message(), "ops@example.com").await.expect_err("it is refused");
        let expected = format!("the mail server refused the recipient with code {code}");
        assert_eq!((failure.message, failure.wait), (expected, wait));
    }
    let server = MailServer::start(Manner::Plain).await;
    let failure = send_with(&server, "", message(), "not an address").await.expect_err("no address");
    assert_eq!(failure.message, "\"not an address\" is no e-mail address");
}

#[tokio::test]
async fn a_server_that_goes_away_after_the_message_leaves_doubt() {
    let server = MailServer::start(Manner::Vanishing).await;
    assert!(send_with(&server, "", message(), "ops@example.com").await.is_err());
    assert!(send_with(&server, "", message(), "ops@example.com").await.is_err());
    let mails = server.mails();
    assert_eq!(mails.len(), 2);
    assert_eq!(mails[0], mails[1], "a receiver can tell the repetition by its Message-ID");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_the_end() {
    let server = MailServer::start(Manner::Endless).await;
    let failure = send_with(&server, "", message(), "ops@example.com").await.expect_err("no end");
    assert_eq!(failure.message, "the mail server answered with what is no SMTP");
}
