//! E-mail. Messages are put together by `lettre`; the dialogue is our own, over the connection that everything else
//! goes over, so that one place judges addresses and certificates and bounds what is read.

use std::net::SocketAddr;
use std::time::SystemTime;

use baton_hooks::Connector;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message as Mail};
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

use super::Failure;
use super::smtp::Session;
use crate::config::{EmailConfig, Security};
use crate::message::Part;
use crate::outbox::Entry;

pub(super) async fn deliver(
    connector: &Connector,
    config: &EmailConfig,
    entry: &Entry,
) -> Result<(), Failure> {
    let letter = Letter::new(config, entry)?;
    let place = format!("smtp://{}:{}", config.host, config.port);
    let url = Url::parse(&place).map_err(|_| Failure::lasting("the mail server's host is no host"))?;
    let fault = |fault: baton_hooks::Fault| Failure::new(fault.message);
    let stream = connector.open(&url).await.map_err(fault)?;
    let caller = stream.local_addr().map_or_else(|_| "localhost".to_owned(), literal);
    if config.security == Security::Tls {
        let stream = connector.secure(&url, stream, config.insecure).await.map_err(fault)?;
        return letter.hand_over(Session::begin(stream, &caller).await?, config, true).await;
    }
    let session = Session::begin(stream, &caller).await?;
    match (config.security, session.offers("STARTTLS")) {
        (Security::Plain, _) | (Security::Opportunistic, false) => {
            letter.hand_over(session, config, config.security == Security::Plain).await
        }
        (_, false) => Err(Failure::lasting("the mail server offers no STARTTLS")),
        (_, true) => {
            let stream = session.start_tls().await?;
            let stream = connector.secure(&url, stream, config.insecure).await.map_err(fault)?;
            letter.hand_over(Session::resume(stream, &caller).await?, config, true).await
        }
    }
}

/// A message with its envelope.
struct Letter {
    from: String,
    to: String,
    text: Vec<u8>,
}

// === impl Letter ===

impl Letter {
    fn new(config: &EmailConfig, entry: &Entry) -> Result<Letter, Failure> {
        let from: Mailbox =
            config.from.parse().map_err(|_| Failure::lasting("the sender is no e-mail address"))?;
        let to: Mailbox = entry
            .recipient
            .parse()
            .map_err(|_| Failure::lasting(format!("{:?} is no e-mail address", entry.recipient)))?;
        let envelope = (from.email.to_string(), to.email.to_string());
        let is_plain = |address: &str| address.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !is_plain(&envelope.0) || !is_plain(&envelope.1) {
            return Err(Failure::lasting("e-mail addresses beyond ASCII are not supported"));
        }
        let subject = entry.message.get(Part::EmailSubject).unwrap_or(&entry.trigger);
        let kind = if config.html { ContentType::TEXT_HTML } else { ContentType::TEXT_PLAIN };
        let id = format!("<{}@{}>", entry.id, from.email.domain());
        let mail = Mail::builder()
            .from(from)
            .to(to)
            .subject(one_line(subject))
            .message_id(Some(id))
            // The same at every attempt, like everything else of it.
            .date(SystemTime::from(entry.queued_at))
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ))
            .header(kind)
            .body(entry.message.first(&[Part::EmailBody, Part::Message]).to_owned())
            .map_err(|error| Failure::lasting(format!("no e-mail can be made of it: {error}")))?;
        Ok(Letter { from: envelope.0, to: envelope.1, text: mail.formatted() })
    }

    async fn hand_over<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut session: Session<S>,
        config: &EmailConfig,
        may_sign_in: bool,
    ) -> Result<(), Failure> {
        if let Some((user, password)) = &config.credentials {
            if !may_sign_in {
                return Err(Failure::lasting(
                    "the mail server offers no STARTTLS, and credentials are not sent in the clear; \
                     set security: plain if that is meant",
                ));
            }
            session.sign_in(user, password).await?;
        }
        session.send(&self.from, &self.to, &self.text).await?;
        session.end().await;
        Ok(())
    }
}

/// A text on one line: what breaks it would begin another header.
fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// An address as a caller names itself by it.
fn literal(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => format!("[{}]", address.ip()),
        SocketAddr::V6(address) => format!("[IPv6:{}]", address.ip()),
    }
}
