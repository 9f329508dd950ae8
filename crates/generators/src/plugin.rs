//! The plugin generator: an HTTP service that answers with parameters.

use std::sync::OnceLock;
use std::time::Duration;

use baton_api::generators::PluginGenerator;
use baton_render::{Engine, Params};
use baton_template::{Map, Value};
use bytes::{Bytes, BytesMut};
use serde_json::{Value as Json, json};

use crate::budget::Budget;
use crate::flat;
use crate::list;
use crate::outside::Outside;
use crate::pass::Pass;
use crate::values::Values;
use crate::world::World;

/// Secret of tokens that name no other.
const ARGOCD_SECRET: &str = "argocd-secret";

/// How long an answer may take unless the ConfigMap says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest an answer may take.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// How much of an error's body is shown.
const SHOWN: usize = 500;

/// One call of a plugin. Has no `Debug`: it holds the token.
pub(crate) struct Request<'r> {
    pub(crate) url: &'r str,
    pub(crate) token: &'r str,
    pub(crate) timeout: Duration,
    pub(crate) body: &'r Json,
}

/// Where a plugin is, as its ConfigMap says.
struct Service {
    url: String,
    /// Where the token is: name of the Secret and key in it.
    token: (String, String),
    timeout: Duration,
}

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// One set per object the plugin answers with.
    pub(crate) async fn plugin(&self, generator: &PluginGenerator) -> Result<Vec<Params>, String> {
        self.reads().plugins = true;
        let name = &generator.config_map_ref.name;
        let service = self.service(name).await.map_err(|message| format!("plugin {name}: {message}"))?;
        let token = self.token(&service).await.map_err(|message| format!("plugin {name}: {message}"))?;
        let input = json!({ "parameters": generator.input.parameters });
        let body = json!({
            "applicationSetName": self.set.metadata.name,
            "input": if generator.input.parameters.is_empty() { json!({}) } else { input.clone() },
        });
        let request = Request { url: &service.url, token: &token, timeout: service.timeout, body: &body };
        let answer = self
            .outside
            .call_plugin(request)
            .await
            .map_err(|message| format!("plugin {name}: error listing params: {message}"))?;
        let objects = read_answer(&answer, &self.budget)
            .map_err(|message| format!("plugin {name}: error listing params: {message}"))?;
        let mut values = Values::new(&self.engine, &generator.values, &self.budget);
        let mut sets = Vec::with_capacity(objects.len());
        for object in objects {
            let params = match self.engine {
                Engine::Go(_) => object,
                Engine::Fast => Map::new(
                    flat::flatten(&object).into_iter().map(|(key, value)| (key.into(), Value::from(value))),
                ),
            };
            params.insert("generator", Value::from(&json!({ "input": input })));
            values.append(&params).map_err(|message| format!("plugin {name}: {message}"))?;
            sets.push(params);
        }
        Ok(sets)
    }

    async fn service(&self, name: &str) -> Result<Service, String> {
        let data = self
            .config_map(&self.settings.argocd_namespace, name)
            .await?
            .ok_or("error fetching ConfigMap: not found")?;
        let text = |key: &str| {
            data.get(key)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("error fetching ConfigMap: {key} not found in ConfigMap"))
        };
        let base = text("baseUrl")?;
        let slash = if base.ends_with('/') { "" } else { "/" };
        Ok(Service {
            url: format!("{base}{slash}api/v1/getparams.execute"),
            token: token_place(text("token")?)?,
            timeout: data.get("requestTimeout").map_or(Ok(DEFAULT_TIMEOUT), |text| read_timeout(text))?,
        })
    }

    async fn token(&self, service: &Service) -> Result<String, String> {
        let (secret, key) = &service.token;
        let namespace = &self.settings.argocd_namespace;
        let fail = |what: &str| format!("error fetching Secret token: {what} in Secret {namespace}/{secret}");
        let found = self
            .secret(namespace, secret)
            .await
            .map_err(|message| format!("error fetching Secret token: {message}"))?
            .ok_or_else(|| format!("error fetching Secret token: Secret {namespace}/{secret} not found"))?;
        let token = found.data.get(key).ok_or_else(|| fail(&format!("no key {key:?}")))?;
        let token = std::str::from_utf8(token).map_err(|_| fail(&format!("key {key:?} is no text")))?;
        Ok(token.trim().to_owned())
    }
}

/// `$key` of Argo CD's Secret, or `$secret:key`.
fn token_place(reference: &str) -> Result<(String, String), String> {
    let name = reference
        .strip_prefix('$')
        .ok_or("error fetching Secret token: token does not reference a secret key starting with '$'")?;
    let mut parts = name.split(':');
    let place = match (parts.next().unwrap_or_default(), parts.next()) {
        (key, None) => (ARGOCD_SECRET.to_owned(), key.to_owned()),
        (secret, Some(key)) => (secret.to_owned(), key.to_owned()),
    };
    if place.0.is_empty() || place.1.is_empty() {
        return Err("error fetching Secret token: token names no secret or no key".to_owned());
    }
    Ok(place)
}

/// Whole seconds; zero is the default.
fn read_timeout(text: &str) -> Result<Duration, String> {
    let seconds: u64 = text
        .parse()
        .map_err(|_| format!("error set requestTimeout: {text:?} is no whole number of seconds"))?;
    match seconds {
        0 => Ok(DEFAULT_TIMEOUT),
        seconds => Ok(Duration::from_secs(seconds).min(LONGEST_TIMEOUT)),
    }
}

/// The objects of an answer. What follows its first value is not looked at.
///
/// An answer that does not hold the list is an error, whatever its status said: to take it for an empty list would
/// delete every Application because a plugin's backend is down.
fn read_answer(body: &[u8], budget: &Budget) -> Result<Vec<Params>, String> {
    let Some(first) = serde_json::Deserializer::from_slice(body).into_iter::<Json>().next() else {
        return Err("the answer is empty; without parameters it must hold output.parameters: []".to_owned());
    };
    let answer = first.map_err(|error| format!("the answer is no JSON: {error}"))?;
    if !matches!(answer, Json::Object(_) | Json::Null) {
        return Err("the answer is no object".to_owned());
    }
    if answer.get("output").is_some_and(|output| !matches!(output, Json::Object(_) | Json::Null)) {
        return Err("output of the answer is no object".to_owned());
    }
    let Some(parameters) = answer.pointer("/output/parameters") else {
        return Err("the answer has no output.parameters".to_owned());
    };
    let objects = parameters.as_array().ok_or("output.parameters of the answer is no list")?;
    budget.sets(objects.len())?;
    objects
        .iter()
        .map(|object| {
            list::object(object).map_err(|_| "output.parameters holds what is no object".to_owned())
        })
        .collect()
}

/// Calls plugins over HTTP.
pub(crate) struct Caller {
    /// Made with the first call: most processes never call a plugin.
    client: OnceLock<Result<reqwest::Client, String>>,
    longest_answer: usize,
}

impl Caller {
    pub(crate) fn new(longest_answer: usize) -> Caller {
        Caller { client: OnceLock::new(), longest_answer }
    }

    /// Posts a request and reads the whole answer. Redirects are not followed: they would take the token elsewhere.
    pub(crate) async fn call(&self, request: Request<'_>) -> Result<Bytes, String> {
        let client = self.client.get_or_init(client).as_ref().map_err(Clone::clone)?;
        let mut response = client
            .post(request.url)
            .bearer_auth(request.token)
            .timeout(request.timeout)
            .json(request.body)
            .send()
            .await
            .map_err(|error| told(&error))?;
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| told(&error))? {
            if body.len() + chunk.len() > self.longest_answer {
                return Err(format!("the answer is longer than {} bytes", self.longest_answer));
            }
            body.extend_from_slice(&chunk);
        }
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(format!("API error with status code {status}: {}", complaint(&body)));
        }
        Ok(body.freeze())
    }
}

fn client() -> Result<reqwest::Client, String> {
    // A program that has chosen a provider keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent("argocd-applicationset")
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| told(&error))
}

/// An error with its causes, without the URL, which may hold a password.
fn told(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else if error.is_builder() {
        "the URL cannot be called"
    } else {
        "the call failed"
    };
    let mut text = what.to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// `message` or `error` of a JSON body, else the body's beginning.
fn complaint(body: &[u8]) -> String {
    let json: Option<Json> = serde_json::from_slice(body).ok();
    let text = match &json {
        Some(json) => ["message", "error"].iter().find_map(|key| json.get(key)?.as_str()).unwrap_or_default(),
        None => &String::from_utf8_lossy(body),
    };
    text.chars().take(SHOWN).collect()
}
