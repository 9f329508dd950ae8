//! The document that describes the API, and requests made by it: sound ones, and ones that nobody should send.

use serde_json::{Map, Value, json};

use crate::canary::furnish;
use crate::scene::{CANARY, Scene, Who};

/// How many requests are made of each operation.
const REQUESTS: usize = 60;
/// Deepest value that is made up.
const DEEPEST: u64 = 6;
/// Names that something has.
const NAMES: [&str; 9] =
    ["web", "web-dev", "web-prod", "shop", "ci", "admin", "other", "argocd", "applications"];
/// Texts that nothing may trip over.
const ODD: [&str; 18] = [
    "",
    " ",
    "..",
    "a/b",
    "../../secrets/argocd-secret",
    "\r\nset-cookie: a=b",
    "\u{0}",
    "ü😀\u{202e}",
    "%",
    "%2e%2e",
    "{{ .x }}",
    "'\"<script>",
    "-1",
    "99999999999999999999",
    "null",
    "a in (",
    "-items.,.",
    "[{\"op\":\"remove\",\"path\":\"\"}]",
];

/// What often leads somewhere under a name.
fn hints(name: &str) -> &'static [&'static str] {
    match name {
        "kind" => &["Deployment", "ConfigMap", "Secret", "Application"],
        "group" => &["apps", "", "argoproj.io"],
        "version" => &["v1"],
        "namespace" => &["shop"],
        "resourceName" => &["web", "settings", "keys", "web-dev"],
        "action" => &["restart", "approve-deletion"],
        "patch" => &[
            "{}",
            "[]",
            "{\"spec\":{\"project\":\"shop\"}}",
            "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
            "null",
        ],
        "patchType" => &["merge", "json", "application/merge-patch+json", "application/json-patch+json"],
        "role" => &["ci"],
        "iat" => &["1"],
        "keyID" => &["4AEE18F83AFDEB23"],
        "repo" => &["https://git.example.com"],
        "appNamespace" | "appsetNamespace" | "appSetNamespace" => &["argocd", ""],
        _ => &[],
    }
}

/// Names of what a path is about.
fn known(path: &str) -> &'static [&'static str] {
    match path.split('/').nth(3) {
        Some("applications") => &["web-dev", "web-prod", "other"],
        Some("applicationsets") => &["web"],
        Some("projects") => &["shop", "default"],
        Some("account") => &["admin", "ci"],
        Some("clusters") => &["member", "https://member.example.com"],
        _ => &[],
    }
}

/// The same throws each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }

    fn pick<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }

    fn text(&mut self) -> String {
        match self.below(8) {
            0 => "x".repeat(300),
            1 | 2 => (*self.pick(&ODD)).to_owned(),
            _ => (*self.pick(&NAMES)).to_owned(),
        }
    }

    /// Any JSON.
    fn anything(&mut self, depth: u64) -> Value {
        match self.below(if depth > DEEPEST { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => (*self.pick(&[
                json!(0),
                json!(-1),
                json!(i64::MIN),
                json!(u64::MAX),
                json!(0.5),
                json!(1e300),
            ]))
            .clone(),
            3 | 4 => json!(self.text()),
            5 => (0..self.below(3)).map(|_| self.anything(depth + 1)).collect(),
            _ => {
                let pairs = (0..self.below(3)).map(|_| (self.text(), self.anything(depth + 1)));
                Value::Object(pairs.collect())
            }
        }
    }
}

/// Makes values of schemas.
struct Maker<'d> {
    document: &'d Value,
    dice: Dice,
    /// One in so many values is not what its schema says; none where it is 0.
    spoil: u64,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, depth: u64) -> Value {
        if self.spoil > 0 && self.dice.one_in(self.spoil) {
            return self.dice.anything(depth);
        }
        if let Some(target) = schema["$ref"].as_str() {
            let found = self.document.pointer(target.trim_start_matches('#')).expect("a schema").clone();
            return self.value(&found, depth);
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(all) = schema[several].as_array() {
                let one = self.dice.pick(all).clone();
                return self.value(&one, depth);
            }
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.dice.pick(words).clone();
        }
        if let Some(word) = schema.get("const") {
            return word.clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => self.dice.pick(kinds).clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("string") if schema["format"] == "date-time" => json!("2026-01-01T00:00:00Z"),
            Some("string") => json!(self.dice.text()),
            Some("integer") => json!(self.dice.below(1000)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(self.dice.one_in(2)),
            Some("null") => Value::Null,
            Some("array") if depth > DEEPEST => json!([]),
            Some("array") => {
                let item = schema["items"].clone();
                (0..self.dice.below(3)).map(|_| self.value(&item, depth + 1)).collect()
            }
            Some("object") => self.object(schema, depth),
            _ => self.dice.anything(depth),
        }
    }

    /// What stands under a name: often something that is there.
    fn field(&mut self, name: &str, schema: &Value, depth: u64) -> Value {
        let likely = hints(name);
        match schema["type"] == "string"
            && schema["enum"].is_null()
            && !likely.is_empty()
            && self.dice.one_in(2)
        {
            true => json!(self.dice.pick(likely)),
            false => self.value(schema, depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: u64) -> Value {
        let empty = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&empty);
        let needed = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
        };
        let mut made = Map::new();
        for (name, field) in fields {
            if needed(name) || (depth <= DEEPEST && self.dice.one_in(1 + depth)) {
                made.insert(name.clone(), self.field(name, field, depth + 1));
            }
        }
        Value::Object(made)
    }
}

/// A text as it stands in a path or a query.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A path with its parameters and a query, by what the document says of them.
fn target(maker: &mut Maker<'_>, path: &str, operation: &Value) -> String {
    let (mut path, mut query) = (path.to_owned(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("a name");
        if parameter["in"] == "path" {
            let likely = if matches!(name, "name" | "project" | "id") { known(&path) } else { hints(name) };
            let value = match likely.is_empty() || maker.dice.one_in(4) {
                true => maker.value(&parameter["schema"], 0),
                false => json!(maker.dice.pick(likely)),
            };
            path = path.replace(&format!("{{{name}}}"), &encoded(&plain(&value)));
        } else if maker.dice.one_in(2) {
            let value = maker.field(name, &parameter["schema"], 0);
            // A comparison is waited for, and no controller is here to make one.
            if name == "refresh" && matches!(plain(&value).as_str(), "normal" | "hard" | "true") {
                continue;
            }
            let values = value.as_array().cloned().unwrap_or_else(|| vec![value]);
            query.extend(values.iter().map(|value| format!("{name}={}", encoded(&plain(value)))));
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// Sends one request and judges the answer: what is wrong with it.
async fn fault(
    scene: &Scene,
    document: &Value,
    verb: &str,
    path: &str,
    operation: &Value,
    seed: u64,
) -> Option<String> {
    let mut dice = Dice(seed);
    let spoil = *dice.pick(&[0, 0, 3, 10]);
    let who = *dice.pick(&[Who::Admin, Who::Admin, Who::Admin, Who::Role, Who::Reader, Who::Nobody]);
    let broken = dice.one_in(8);
    let mut maker = Maker { document, dice, spoil };
    let target = target(&mut maker, path, operation);
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body = match (schema.is_null(), broken) {
        (true, _) => String::new(),
        (false, true) => format!("{{{}", maker.dice.text()),
        (false, false) => maker.value(schema, 0).to_string(),
    };
    let mut headers = vec![("content-type", "application/json".to_owned())];
    headers.extend(scene.token(who).map(|token| ("authorization", format!("Bearer {token}"))));
    let what = format!("{verb} {target} as {who:?} with {body:.2000}");
    let response = scene.open(&verb.to_uppercase(), &target, &headers, body).await;
    let status = response.status();
    if status.is_server_error() {
        return Some(format!("{status}: {what}"));
    }
    let endless = operation["responses"]["200"]["content"].get("text/event-stream").is_some();
    if endless && status.is_success() {
        return None;
    }
    let bytes =
        http_body_util::BodyExt::collect(response.into_body()).await.expect("a whole body").to_bytes();
    let text = String::from_utf8(bytes.to_vec()).expect("a text");
    if text.contains(CANARY) {
        return Some(format!("a secret leaves: {what}: {text}"));
    }
    if status.is_success() || status.is_redirection() {
        return None;
    }
    let error: Value = serde_json::from_str(&text).unwrap_or_default();
    // Where a stream was asked for, the error is as in the last line of one; a path may turn out to be of no call.
    let told = match &error["error"] {
        Value::Object(line) if endless => line.get("message").unwrap_or(&Value::Null),
        other => other,
    };
    if !told.is_string() || error["message"] != *told || !error["code"].is_i64() {
        return Some(format!("another shape than that of errors: {what}: {text}"));
    }
    let refused = error["message"].as_str().is_some_and(|text| text.starts_with("the body is"));
    (spoil == 0 && !broken && refused).then(|| format!("the document allows it: {what}: {text}"))
}

async fn document(scene: &Scene) -> Value {
    let answer = scene.get(Who::Nobody, "/api/v1/openapi.json").await;
    assert_eq!(answer.status, 200);
    answer.json()
}

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, verbs)| {
            let verbs = verbs.as_object().expect("operations").iter();
            verbs.map(|(verb, operation)| (verb.clone(), path.clone(), operation.clone()))
        })
        .collect()
}

#[tokio::test]
async fn the_document_is_for_everybody_and_the_same_at_both_places() {
    let scene = Scene::new().await;
    let document = document(&scene).await;
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(scene.get(Who::Nobody, "/swagger.json").await.json(), document);
    let sync = &document["paths"]["/api/v1/applications/{name}/sync"]["post"]["requestBody"];
    assert_eq!(
        sync["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/SyncRequest",
        "{sync}"
    );
    assert!(document["components"]["schemas"]["SyncRequest"]["properties"]["dryRun"].is_object());
}

#[tokio::test]
async fn no_request_by_the_document_finds_a_fault_while_reading() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let document = document(&scene).await;
    let mut faults = Vec::new();
    for (at, (verb, path, operation)) in operations(&document).iter().enumerate() {
        if verb != "get" {
            continue;
        }
        for request in 0..REQUESTS {
            let seed = (at * REQUESTS + request) as u64;
            faults.extend(fault(&scene, &document, verb, path, operation, seed).await);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn no_request_by_the_document_finds_a_fault_while_changing() {
    let mut scene = Scene::new().await;
    let document = document(&scene).await;
    let mut faults = Vec::new();
    for (at, (verb, path, operation)) in operations(&document).iter().enumerate() {
        if verb == "get" {
            continue;
        }
        // What an operation before changed or deleted is there again.
        scene = Scene::new().await;
        furnish(&scene).await;
        for request in 0..REQUESTS {
            let seed = (1_000_000 + at * REQUESTS + request) as u64;
            faults.extend(fault(&scene, &document, verb, path, operation, seed).await);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
