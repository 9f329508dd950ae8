//! What Argo CD's own webhook handler answered and refreshed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use baton_api::ApplicationSet;
use baton_controllers::webhook::{Candidate, Refresh, Settings, WebhookSecrets, webhooks};
use http::Request;
use serde::Deserialize;
use tower::ServiceExt;

use crate::support::secrets;

/// Sets that are refreshed though Argo CD leaves them alone, in the cases where their like is refreshed.
const MORE: [(&str, &str); 5] = [
    ("matrix-plugin-first", "a plugin may read anything, wherever it stands"),
    ("merge-plugin", "a plugin may read anything, wherever it stands"),
    ("git-trailing-slash", "a slash at the end of an address leads to the same repository"),
    ("git-semver", "a new tag may be the highest in a range"),
    ("pr-azure-case", "Azure DevOps does not tell names apart by case"),
];

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sent {
    method: String,
    headers: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Expected {
    status: u16,
    refreshed: BTreeSet<String>,
}

struct World {
    secrets: Arc<WebhookSecrets>,
    sets: Vec<Candidate>,
    refreshed: Mutex<BTreeSet<String>>,
}

impl Refresh for World {
    fn secrets(&self) -> Arc<WebhookSecrets> {
        self.secrets.clone()
    }

    async fn sets(&self) -> Result<Vec<Candidate>, String> {
        Ok(self.sets.clone())
    }

    async fn refresh(&self, _: &str, name: &str) -> Result<(), String> {
        self.refreshed.lock().expect("no test panicked").insert(name.to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn requests_are_answered_and_refresh_as_in_argo_cd() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks");
    let sets = std::fs::read_to_string(root.join("sets.yaml")).expect("the goldens are in the repository");
    let sets: Vec<Candidate> =
        baton_grammar::yaml::documents(&sets).expect("YAML").into_iter().map(candidate).collect();
    let mut compared = 0;
    let mut differences = Vec::new();
    for entry in std::fs::read_dir(&root).expect("the goldens are in the repository") {
        let case = entry.expect("an entry").path();
        if !case.is_dir() {
            continue;
        }
        compared += 1;
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (status, refreshed) = answer(&case, &sets).await;
        let expected: Expected = read(&case.join("expected.yaml"));
        let missed: Vec<_> = expected.refreshed.difference(&refreshed).collect();
        let more = |name: &&String| MORE.iter().any(|(more, _)| more == name);
        let extra: Vec<_> = refreshed.difference(&expected.refreshed).filter(|name| !more(name)).collect();
        if status != expected.status || !missed.is_empty() || !extra.is_empty() {
            differences.push(format!(
                "{name}: {status} for {}, missed {missed:?}, extra {extra:?}",
                expected.status
            ));
        }
    }
    differences.sort();
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= 50, "only {compared} cases were compared");
}

async fn answer(case: &Path, sets: &[Candidate]) -> (u16, BTreeSet<String>) {
    let sent: Sent = read(&case.join("request.yaml"));
    let pairs: Vec<(&str, &str)> =
        sent.secrets.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let world = Arc::new(World {
        secrets: Arc::new(secrets(&pairs)),
        sets: sets.to_vec(),
        refreshed: Mutex::default(),
    });
    let mut request = Request::builder().method(sent.method.as_str()).uri("/api/webhook");
    for (name, value) in &sent.headers {
        request = request.header(name, value);
    }
    let body = std::fs::read(case.join("body.json")).unwrap_or_default();
    let (router, work) = webhooks(world.clone(), &Settings::default());
    let request = request.body(Body::from(body)).expect("a request");
    let status = router.oneshot(request).await.expect("an answer").status().as_u16();
    work.run().await;
    let refreshed = std::mem::take(&mut *world.refreshed.lock().expect("no test panicked"));
    (status, refreshed)
}

/// A set, and what it has read if it names its repository by a template.
fn candidate(document: serde_json::Value) -> Candidate {
    let set: ApplicationSet = serde_json::from_value(document).expect("a set");
    let apps = "https://git.example.com/team/apps";
    let read: &[(&str, &str)] = match set.metadata.name.as_deref().unwrap_or_default() {
        "matrix-second-rendered" | "matrix-second-rendered-go" => &[(apps, "main"), ("x", "dev")],
        "matrix-second-dev" => &[(apps, "main"), (apps, "dev")],
        _ => &[],
    };
    let read = read.iter().map(|(url, revision)| ((*url).to_owned(), (*revision).to_owned())).collect();
    Candidate { set: Arc::new(set), read: Some(Arc::new(read)) }
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).expect("every case has it");
    serde_json::from_value(baton_grammar::yaml::first(&text).expect("YAML")).expect("the shape of the README")
}
