//! `service.<type>[.<name>]`: where messages go.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use baton_grammar::globs::gobwas;
use baton_hooks::Secret;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value as Json};

use super::Finding;
use super::document::Document;

/// A service, as it is configured.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// What it is.
    pub kind: ServiceKind,
    /// How it is tried again.
    pub patience: Patience,
    /// Whom annotations of Applications and ApplicationSets may name. Baton's own.
    pub allowed: AllowedRecipients,
}

/// Whom the annotations of an object may name: whoever owns it is often not who configured the service.
#[derive(Debug, Clone, Default)]
pub struct AllowedRecipients(Option<Vec<gobwas::Pattern>>);

/// What a service is.
#[derive(Debug, Clone)]
pub enum ServiceKind {
    /// Any HTTP endpoint.
    Webhook(WebhookConfig),
    /// Slack's API.
    Slack(SlackConfig),
    /// A mail server.
    Email(EmailConfig),
    /// A channel of Teams.
    Teams(TeamsConfig),
}

/// How a delivery is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The wait after the first failure; it doubles from there.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// So many attempts, then it is given up; without it, time alone decides.
    pub attempts: Option<u32>,
}

/// An HTTP endpoint.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// Its URL; often a credential itself.
    pub url: Secret,
    /// Headers of every call.
    pub headers: Vec<(HeaderName, Secret)>,
    /// User and password.
    pub basic_auth: Option<(Secret, Secret)>,
    /// Take any certificate.
    pub insecure: bool,
}

/// Slack's API.
#[derive(Debug, Clone)]
pub struct SlackConfig {
    /// The bot's token.
    pub token: Secret,
    /// Who messages seem to come from.
    pub username: String,
    /// The picture beside them: an emoji or a URL.
    pub icon: String,
    /// The API's URL.
    pub api_url: String,
    /// Whether links are left as they are.
    pub disable_unfurl: bool,
    /// Take any certificate.
    pub insecure: bool,
}

/// A mail server.
#[derive(Debug, Clone)]
pub struct EmailConfig {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is secured.
    pub security: Security,
    /// User and password, if it asks for them.
    pub credentials: Option<(Secret, Secret)>,
    /// Who messages are from.
    pub from: String,
    /// Whether bodies are HTML.
    pub html: bool,
    /// Take any certificate.
    pub insecure: bool,
}

/// How a connection to a mail server is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// From its first byte.
    Tls,
    /// By STARTTLS, and not at all without it.
    StartTls,
    /// By STARTTLS where the server offers it. Credentials are sent over TLS only.
    Opportunistic,
    /// Never; credentials are sent all the same. For servers on this machine or inside the cluster.
    Plain,
}

/// Channels of Teams.
#[derive(Debug, Clone)]
pub struct TeamsConfig {
    /// The URL of each channel's webhook, which is a credential.
    pub urls: BTreeMap<String, Secret>,
    /// What is sent to it.
    pub card: Card,
}

/// What is sent to a channel of Teams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// A message card, for connectors (`teams`).
    Message,
    /// An adaptive card in a message, for workflows (`teams-workflows`).
    Adaptive,
    /// An adaptive card by itself, for workflows with `rawCardPayload`.
    RawAdaptive,
}

// === impl ServiceKind ===

impl ServiceKind {
    /// The type, as keys of the configuration and templates name it.
    pub fn name(&self) -> &'static str {
        match self {
            ServiceKind::Webhook(_) => "webhook",
            ServiceKind::Slack(_) => "slack",
            ServiceKind::Email(_) => "email",
            ServiceKind::Teams(TeamsConfig { card: Card::Message, .. }) => "teams",
            ServiceKind::Teams(_) => "teams-workflows",
        }
    }
}

// === impl AllowedRecipients ===

impl AllowedRecipients {
    /// Whether this one may be named. Where nothing is said everybody may, as with Argo CD.
    pub fn contains(&self, recipient: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(recipient)))
    }
}

// === impl Patience ===

impl Default for Patience {
    fn default() -> Patience {
        Patience { first: Duration::from_secs(5), longest: Duration::from_secs(15 * 60), attempts: None }
    }
}

/// Reads a service of a type. Values of the Secret are in their places already.
pub(super) fn service(document: &Document<'_>, kind: &str) -> Result<ServiceConfig, Finding> {
    let map = document.map()?;
    let kind = match kind {
        "webhook" => ServiceKind::Webhook(webhook(document, map)?),
        "slack" => ServiceKind::Slack(slack(document, map)?),
        "email" => ServiceKind::Email(email(document, map)?),
        "teams" | "teams-workflows" => ServiceKind::Teams(teams(document, map, kind)?),
        other => {
            let message =
                format!("services of the type {other} are not known; a webhook with a template can often do");
            return Err(document.error("", message));
        }
    };
    Ok(ServiceConfig { kind, patience: patience(document, map)?, allowed: allowed(document, map)? })
}

/// `allowedRecipients`: a list of globs. An empty one admits nobody.
fn allowed(document: &Document<'_>, map: &Map<String, Json>) -> Result<AllowedRecipients, Finding> {
    const NAME: &str = "allowedRecipients";
    if map.get(NAME).is_none_or(Json::is_null) {
        return Ok(AllowedRecipients::default());
    }
    let texts = document.list(map, "", NAME)?;
    let patterns = texts.iter().map(|text| gobwas::Pattern::new(text, &[]));
    let patterns: Result<Vec<_>, _> = patterns.collect();
    let wrong = |error| document.error(NAME, format!("{NAME}: {error}"));
    patterns.map(|patterns| AllowedRecipients(Some(patterns))).map_err(wrong)
}

fn webhook(document: &Document<'_>, map: &Map<String, Json>) -> Result<WebhookConfig, Finding> {
    let basic_auth = match map.get("basicAuth") {
        None | Some(Json::Null) => None,
        Some(Json::Object(auth)) => {
            let text = |name| document.text(auth, "basicAuth", name).map(Secret::new);
            Some((text("username")?, text("password")?))
        }
        Some(_) => {
            return Err(document.error("basicAuth", "basicAuth must be a map with username and password"));
        }
    };
    let mut headers = Vec::new();
    for (index, item) in map.get("headers").and_then(Json::as_array).into_iter().flatten().enumerate() {
        let path = format!("headers[{index}]");
        let Some(item) = item.as_object() else {
            return Err(document.error(&path, "a header is a map with name and value"));
        };
        headers.push(header(document, &path, item)?);
    }
    Ok(WebhookConfig {
        url: required_url(document, map, "url")?,
        headers,
        basic_auth,
        insecure: document.flag(map, "", "insecureSkipVerify")?,
    })
}

/// Headers that are set for every call, or that steer the connection.
const RESERVED: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "idempotency-key"];

fn header(
    document: &Document<'_>,
    path: &str,
    item: &Map<String, Json>,
) -> Result<(HeaderName, Secret), Finding> {
    let name = document.text(item, path, "name")?;
    let value = document.text(item, path, "value")?;
    let Ok(name) = HeaderName::from_str(&name) else {
        return Err(document.error(path, "the name is none a header can have"));
    };
    if RESERVED.contains(&name.as_str()) {
        return Err(document.error(path, format!("the header {name} is set by the call itself")));
    }
    if HeaderValue::from_str(&value).is_err() {
        return Err(
            document.error(path, format!("the value of the header {name} holds characters it may not"))
        );
    }
    Ok((name, Secret::new(value)))
}

fn slack(document: &Document<'_>, map: &Map<String, Json>) -> Result<SlackConfig, Finding> {
    let token = document.text(map, "", "token")?;
    if token.is_empty() {
        return Err(document.error("", "token is missing"));
    }
    let api_url = match document.text(map, "", "apiURL")? {
        text if text.is_empty() => "https://slack.com/api/".to_owned(),
        _ => required_url(document, map, "apiURL")?.expose().to_owned(),
    };
    Ok(SlackConfig {
        token: Secret::new(token),
        username: document.text(map, "", "username")?,
        icon: document.text(map, "", "icon")?,
        api_url,
        disable_unfurl: document.flag(map, "", "disableUnfurl")?,
        insecure: document.flag(map, "", "insecureSkipVerify")?,
    })
}

fn email(document: &Document<'_>, map: &Map<String, Json>) -> Result<EmailConfig, Finding> {
    let host = document.text(map, "", "host")?;
    if host.is_empty() || !host.chars().all(|char| char.is_ascii_alphanumeric() || "-._:[]".contains(char)) {
        return Err(document.error("host", "host must be the name or address of a mail server"));
    }
    let port = match document.text(map, "", "port")? {
        text if text.is_empty() => 587,
        text => text
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| document.error("port", "port must be a number from 1 to 65535"))?,
    };
    let security = match document.text(map, "", "security")?.as_str() {
        "" if port == 465 => Security::Tls,
        "" => Security::Opportunistic,
        "tls" => Security::Tls,
        "starttls" => Security::StartTls,
        "plain" => Security::Plain,
        _ => return Err(document.error("security", "security must be tls, starttls or plain")),
    };
    let [username, password, from] =
        ["username", "password", "from"].map(|name| document.text(map, "", name));
    let (username, password, from) = (username?, password?, from?);
    if from.parse::<lettre::message::Mailbox>().is_err() {
        return Err(document.error("from", "from must be an e-mail address"));
    }
    let insecure =
        document.flag(map, "", "insecure_skip_verify")? || document.flag(map, "", "insecureSkipVerify")?;
    let credentials = (!username.is_empty()).then(|| (Secret::new(username), Secret::new(password)));
    Ok(EmailConfig {
        host,
        port,
        security,
        credentials,
        from,
        html: document.flag(map, "", "html")?,
        insecure,
    })
}

fn teams(document: &Document<'_>, map: &Map<String, Json>, kind: &str) -> Result<TeamsConfig, Finding> {
    let Some(channels) = map.get("recipientUrls").and_then(Json::as_object) else {
        return Err(document.error("", "recipientUrls must be a map from channels to their URLs"));
    };
    let mut urls = BTreeMap::new();
    for channel in channels.keys() {
        urls.insert(channel.clone(), required_url(document, channels, channel)?);
    }
    let card = match (kind, document.flag(map, "", "rawCardPayload")?) {
        ("teams", _) => Card::Message,
        (_, false) => Card::Adaptive,
        (_, true) => Card::RawAdaptive,
    };
    Ok(TeamsConfig { urls, card })
}

/// A URL that can be called. What is wrong with it is told without it.
fn required_url(document: &Document<'_>, map: &Map<String, Json>, name: &str) -> Result<Secret, Finding> {
    let text = document.text(map, "", name)?;
    let wrong = |why: &str| Err(document.error(name, format!("{name} {why}")));
    match url::Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => wrong("must begin with http:// or https://"),
        Ok(url) if url.host_str().is_none() => wrong("has no host"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            wrong("must not hold a user or a password; use basicAuth")
        }
        Ok(_) => Ok(Secret::new(text)),
        Err(_) if text.is_empty() => wrong("is missing"),
        Err(_) => wrong("is no URL"),
    }
}

fn patience(document: &Document<'_>, map: &Map<String, Json>) -> Result<Patience, Finding> {
    let usual = Patience::default();
    let first = wait(document, map, "retryWaitMin")?.unwrap_or(usual.first);
    let longest = wait(document, map, "retryWaitMax")?.unwrap_or(usual.longest).max(first);
    let attempts = match map.get("retryMax") {
        None | Some(Json::Null) => None,
        // Those after the first.
        Some(value) => match value.as_u64().and_then(|retries| u32::try_from(retries).ok()) {
            Some(retries) => Some(retries.saturating_add(1)),
            None => return Err(document.error("retryMax", "retryMax must be a whole number")),
        },
    };
    Ok(Patience { first, longest, attempts })
}

/// A duration as text, or as Go's number of nanoseconds; between a second and a day.
fn wait(document: &Document<'_>, map: &Map<String, Json>, name: &str) -> Result<Option<Duration>, Finding> {
    let wrong = || document.error(name, format!("{name} must be a duration such as 5s"));
    let duration = match map.get(name) {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Number(number)) => Duration::from_nanos(number.as_u64().ok_or_else(wrong)?),
        Some(Json::String(text)) => {
            let duration = text.parse::<baton_grammar::duration::Duration>().map_err(|_| wrong())?;
            duration.to_std().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    Ok(Some(duration.clamp(Duration::from_secs(1), Duration::from_secs(24 * 3600))))
}
