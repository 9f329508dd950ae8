//! A host that answers from a table, over real HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use baton_scm::{GithubApp, Lookup, SecretObject};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

/// One request and what is answered to it. `{host}` stands for the server's own URL, in every text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Row {
    /// What it is there for.
    #[serde(default, rename = "about")]
    pub(crate) _about: String,
    #[serde(default = "get")]
    pub(crate) method: String,
    /// Decoded, except for slashes inside a segment, which stay `%2F`.
    pub(crate) path: String,
    /// Parameters that must be there; the row that asks for most of what is there answers.
    #[serde(default)]
    pub(crate) query: BTreeMap<String, String>,
    /// Parameters that must not be there.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Headers that must be there; without them the answer is 401.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default = "ok")]
    pub(crate) status: u16,
    /// Headers of the answer.
    #[serde(default)]
    pub(crate) reply: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: Option<Value>,
    /// A body that is not JSON.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// The connection ends after so many bytes of the body.
    #[serde(default)]
    pub(crate) cut: Option<usize>,
    /// It answers so often; then another row does.
    #[serde(default)]
    pub(crate) at_most: Option<usize>,
    /// The body is sent over and over, without a length.
    #[serde(default)]
    pub(crate) endless: bool,
    /// It never answers.
    #[serde(default)]
    pub(crate) silent: bool,
    /// How often it must be asked for; at least once if not said. 0 for rows that only other clients need.
    #[serde(default)]
    pub(crate) times: Option<usize>,
}

fn get() -> String {
    "GET".into()
}

fn ok() -> u16 {
    200
}

impl Row {
    /// A row for a GET.
    pub(crate) fn get(path: &str) -> Row {
        serde_json::from_value(serde_json::json!({"path": path})).expect("a path is a row")
    }

    pub(crate) fn query(mut self, key: &str, value: &str) -> Row {
        self.query.insert(key.into(), value.into());
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Row {
        self.headers.insert(name.into(), value.into());
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Row {
        self.status = status;
        self
    }

    pub(crate) fn reply(mut self, name: &str, value: &str) -> Row {
        self.reply.insert(name.into(), value.into());
        self
    }

    pub(crate) fn body(mut self, body: Value) -> Row {
        self.body = Some(body);
        self
    }

    pub(crate) fn text(mut self, text: &str) -> Row {
        self.text = Some(text.into());
        self
    }

    pub(crate) fn at_most(mut self, times: usize) -> Row {
        self.at_most = Some(times);
        self
    }

    pub(crate) fn endless(mut self) -> Row {
        self.endless = true;
        self
    }

    pub(crate) fn silent(mut self) -> Row {
        self.silent = true;
        self
    }

    pub(crate) fn cut(mut self, after: usize) -> Row {
        self.cut = Some(after);
        self
    }
}

/// A running server.
pub(crate) struct Host {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    rows: Vec<Row>,
    times: Vec<usize>,
    /// Every request: method, path with query, headers.
    requests: Vec<(String, HeaderMap)>,
    unknown: Vec<String>,
    /// The number of a request and the row that answers it, whatever it asks for.
    fault: Option<(usize, Row)>,
}

impl Host {
    /// Serves a table on a port of its own until the test ends.
    pub(crate) async fn start(rows: Vec<Row>) -> Host {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let host = Host { url, seen: seen.clone() };
        host.answer(rows);
        let router = Router::new().fallback(serve).with_state(seen);
        tokio::spawn(async move { axum::serve(listener, router).await });
        host
    }

    /// Answers from another table from now on.
    pub(crate) fn answer(&self, rows: Vec<Row>) {
        let mut seen = self.seen.lock();
        seen.times = vec![0; rows.len()];
        seen.rows = rows.into_iter().map(|row| self.filled(row)).collect();
    }

    fn filled(&self, mut row: Row) -> Row {
        let fill = |text: &mut String| *text = text.replace("{host}", &self.url);
        row.reply.values_mut().for_each(fill);
        row.text.as_mut().map(fill);
        if let Some(body) = &mut row.body {
            *body = self.fill(body);
        }
        row
    }

    /// A value with the server's URL in it.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        let text = value.to_string().replace("{host}", &self.url);
        serde_json::from_str(&text).expect("a URL needs no escapes")
    }

    /// Begins anew, and answers the request of that number, from 0, with this row.
    pub(crate) fn fail_at(&self, number: usize, row: Row) {
        let mut seen = self.seen.lock();
        seen.requests.clear();
        seen.times.fill(0);
        seen.fault = Some((number, row));
    }

    /// Requests so far: method, path and query.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().requests.iter().map(|(request, _)| request.clone()).collect()
    }

    /// Headers of the requests so far.
    pub(crate) fn headers(&self) -> Vec<HeaderMap> {
        self.seen.lock().requests.iter().map(|(_, headers)| headers.clone()).collect()
    }

    /// What does not fit the table: requests it does not know, rows nobody asked for.
    pub(crate) fn misfits(&self) -> Vec<String> {
        let seen = self.seen.lock();
        let mut misfits = seen.unknown.clone();
        for (row, times) in seen.rows.iter().zip(&seen.times) {
            if row.times.is_none_or(|wanted| wanted != *times) && !(row.times.is_none() && *times > 0) {
                misfits.push(format!("{} {} {:?} asked {times} times", row.method, row.path, row.query));
            }
        }
        misfits
    }
}

async fn serve(State(seen): State<Arc<Mutex<Seen>>>, request: Request) -> Response<Body> {
    match seen.lock().choose(&request) {
        Ok(row) if !row.silent => return reply(&row, request.headers()),
        Ok(_) => {}
        Err((status, text)) => return answer(status, Body::from(text)),
    }
    std::future::pending().await
}

impl Seen {
    fn choose(&mut self, request: &Request) -> Result<Row, (u16, &'static str)> {
        let path = canonical(request.uri().path());
        let query = parameters(request.uri().query().unwrap_or_default());
        let name = format!("{} {}", request.method(), request.uri());
        self.requests.push((name.clone(), request.headers().clone()));
        if let Some((number, row)) = &self.fault
            && number + 1 == self.requests.len()
        {
            return Ok(row.clone());
        }
        let fits = |(row, times): (&Row, &usize)| {
            row.method == request.method().as_str()
                && row.path == path
                && row.query.iter().all(|(key, value)| query.get(key) == Some(value))
                && !row.without.iter().any(|key| query.contains_key(key))
                && row.at_most.is_none_or(|most| *times < most)
        };
        let best = (0..self.rows.len())
            .filter(|index| fits((&self.rows[*index], &self.times[*index])))
            .max_by_key(|index| (self.rows[*index].query.len(), std::cmp::Reverse(*index)));
        let Some(index) = best else {
            self.unknown.push(format!("{name}: not in the table"));
            return Err((501, "{}"));
        };
        let row = self.rows[index].clone();
        for (header, value) in &row.headers {
            if request.headers().get(header).and_then(|value| value.to_str().ok()) != Some(value) {
                return Err((401, r#"{"message":"Requires authentication"}"#));
            }
        }
        self.times[index] += 1;
        Ok(row)
    }
}

fn reply(row: &Row, asked: &HeaderMap) -> Response<Body> {
    let etag = row.reply.get("etag").map(String::as_str);
    let known = asked.get("if-none-match").and_then(|value| value.to_str().ok());
    let unchanged = etag.is_some() && etag == known;
    let text = match (&row.text, &row.body) {
        (Some(text), _) => text.clone(),
        (None, Some(body)) => body.to_string(),
        (None, None) => String::new(),
    };
    let mut response = match row.cut {
        _ if unchanged => answer(304, Body::empty()),
        Some(after) => {
            let mut response = answer(row.status, cut_body(&text, after));
            let length = text.len().to_string().parse().expect("digits are a header");
            response.headers_mut().insert("content-length", length);
            response
        }
        None if row.endless => answer(row.status, endless_body(&text)),
        None => answer(row.status, Body::from(text)),
    };
    for (name, value) in &row.reply {
        let name: axum::http::HeaderName = name.parse().expect("the table holds header names");
        response.headers_mut().append(name, value.parse().expect("the table holds header values"));
    }
    response
}

fn cut_body(text: &str, after: usize) -> Body {
    let head = Bytes::copy_from_slice(&text.as_bytes()[..after.min(text.len())]);
    let parts = [Ok(head), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
    Body::from_stream(futures::stream::iter(parts))
}

fn endless_body(text: &str) -> Body {
    let text = Bytes::copy_from_slice(text.as_bytes());
    Body::from_stream(futures::stream::repeat_with(move || Ok::<_, std::io::Error>(text.clone())))
}

fn answer(status: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("the table holds statuses");
    response.headers_mut().insert("content-type", "application/json".parse().expect("it is a header"));
    response
}

fn canonical(path: &str) -> String {
    let kept = path.replace("%2F", "%252F").replace("%2f", "%252F");
    percent_encoding::percent_decode_str(&kept).decode_utf8_lossy().into_owned()
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (decode(key), decode(value))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Secrets and ConfigMaps of a test.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Objects {
    pub(crate) secrets: BTreeMap<String, SecretText>,
    pub(crate) config_maps: BTreeMap<String, BTreeMap<String, String>>,
    /// Repository credentials in Argo CD's namespace.
    pub(crate) github_apps: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretText {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) data: BTreeMap<String, String>,
}

impl Objects {
    /// One Secret with one token.
    pub(crate) fn token(secret: &str, key: &str, token: &str) -> Objects {
        let data = BTreeMap::from([(key.to_owned(), token.to_owned())]);
        let secret = (secret.to_owned(), SecretText { data, ..SecretText::default() });
        Objects { secrets: BTreeMap::from([secret]), ..Objects::default() }
    }
}

fn bytes(data: &BTreeMap<String, String>) -> BTreeMap<String, Vec<u8>> {
    data.iter().map(|(key, value)| (key.clone(), value.clone().into_bytes())).collect()
}

impl Lookup for Objects {
    fn namespace(&self) -> &str {
        "argocd"
    }

    fn name(&self) -> &str {
        "fleet"
    }

    async fn secret(&self, name: &str) -> Result<Option<SecretObject>, String> {
        let secret = self.secrets.get(name);
        Ok(secret.map(|secret| SecretObject { labels: secret.labels.clone(), data: bytes(&secret.data) }))
    }

    async fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        Ok(self.config_maps.get(name).cloned())
    }

    async fn github_app(&self, secret_name: &str) -> Result<Option<GithubApp>, String> {
        self.github_apps.get(secret_name).map(|data| GithubApp::read(&bytes(data))).transpose()
    }
}
