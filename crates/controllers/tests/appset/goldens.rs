//! Stories told by Argo CD's own reconciler (`tests/argo`), told again by this one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use baton_apiserver::Cluster;
use baton_controllers::{Clock, Controller, ObjectKey, Policy, Settings};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde_json::{Value, json};

use crate::faults::{Call, Fault, Wire};
use crate::scene::{NAMESPACE, definitions, generators_with, prepared};

/// The uid that stories give their ApplicationSet; the API gives it another.
const TOLD_UID: &str = "11111111-0000-0000-0000-000000000001";

/// Stories that are told differently on purpose, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("list-fails", "Applications are read from a cache that a failed list leaves as it was"),
    ("project-read-fails", "projects are read from a cache"),
    ("secrets-fail", "clusters are read from a cache that a failed list leaves as it was"),
    ("namespace", "the garbage collector deletes the Application whose owner is in another namespace"),
    ("other-owner", "the garbage collector deletes the Application whose owner does not exist"),
    ("other-uid", "the garbage collector deletes the Application whose owner does not exist"),
    (
        "refresh-on-error",
        "a wish to be looked at anew is granted in vain too, so that the next one wakes the set",
    ),
    ("rolling-empty", "a RollingSync without steps says that all change at once"),
    ("terminating", "an Application that is being deleted is left alone"),
];

#[tokio::test(start_paused = true)]
async fn stories_end_as_argo_cd_tells_them() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/argo");
    let only = std::env::var("STORY").ok();
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .expect("the stories")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .filter(|name| only.as_ref().is_none_or(|only| only == name))
        .collect();
    names.sort();
    assert!(only.is_some() || names.len() >= 70, "stories are missing");
    let mut failed = Vec::new();
    let mut told = 0;
    for name in &names {
        if DIFFERENT.iter().any(|(different, _)| different == name) {
            continue;
        }
        let differences = tell(&directory.join(name)).await;
        told += 1;
        if !differences.is_empty() {
            failed.push(format!("{name}:\n  {}", differences.join("\n  ")));
        }
    }
    assert!(failed.is_empty(), "{} of {told} stories end differently:\n{}", failed.len(), failed.join("\n"));
}

/// Plays a story and tells where it differs from the one written down.
async fn tell(directory: &Path) -> Vec<String> {
    let read = |file: &str| {
        let text = std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        baton_grammar::yaml::documents(&text).unwrap_or_else(|error| panic!("{directory:?} {file}: {error}"))
    };
    let settings = settings(read("settings.yaml").first().unwrap_or(&Value::Null));
    let mut stage = Stage::new(read("world.yaml"), settings, &directory.join("repo")).await;
    let steps = read("steps.yaml").remove(0);
    let expected = read("expected.yaml").remove(0);
    let mut differences = Vec::new();
    let steps = steps.as_array().expect("a list of steps");
    for (step, expected) in steps.iter().zip(expected.as_array().expect("a list of outcomes")) {
        let seen = stage.play(step).await;
        for (aspect, wanted) in expected.as_object().expect("an outcome") {
            let wanted = comparable(aspect, wanted);
            let found = comparable(aspect, &seen[aspect.as_str()]);
            if aspect != "name" && found != wanted {
                let step = step["name"].as_str().unwrap_or("?");
                let mut places = Vec::new();
                differ(aspect, &wanted, &found, &mut places);
                differences.extend(places.iter().map(|place| format!("step {step:?}, {place}")));
            }
        }
        for aspect in ["error", "requeueAfter"] {
            if expected.get(aspect).is_none() && !seen[aspect].is_null() {
                differences.push(format!("step {:?}, {aspect}: unexpected {}", step["name"], seen[aspect]));
            }
        }
    }
    stage.end();
    differences
}

/// Empty lists and objects are as good as none.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

/// Where two values differ.
fn differ(place: &str, wanted: &Value, found: &Value, places: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                differ(&format!("{place}.{key}"), &wanted[key], &found[key], places);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{place}[{index}]"), a, b, places);
            }
        }
        _ if wanted == found || (place.ends_with(".message") && agree(wanted, found)) => {}
        _ => places.push(format!("{place}:\n    argo cd: {wanted}\n    here:    {found}")),
    }
}

/// Whether two messages say the same: here they also say where, and Go's names of types are left out.
fn agree(wanted: &Value, found: &Value) -> bool {
    let (Some(wanted), Some(found)) = (wanted.as_str(), found.as_str()) else { return false };
    let (_, said) = wanted.rsplit_once(": ").unwrap_or(("", wanted));
    found.contains(said.split(" of type ").next().unwrap_or(said))
}

/// Leaves out what two implementations may do differently without anybody noticing.
fn comparable(aspect: &str, value: &Value) -> Value {
    let mut value = without_empty(value);
    if aspect == "writes" {
        for write in value.as_array_mut().into_iter().flatten() {
            // Argo CD replaces whole objects in places; here only the difference is sent.
            if write["verb"] == "update" {
                write["verb"] = "patch".into();
            }
            if let Some(write) = write.as_object_mut() {
                // The body is judged by what it makes of the object.
                write.remove("patch");
                write.remove("type");
            }
        }
    }
    if aspect == "events"
        && let Some(events) = value.as_array_mut()
    {
        events.sort_by_key(Value::to_string);
    }
    value
}

fn settings(told: &Value) -> Settings {
    let mut settings = Settings::new(NAMESPACE);
    settings.application_set_namespaces = vec!["*".to_owned()];
    settings.scm_providers = false;
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item.as_str().expect("a string").to_owned()).collect()
    };
    for (key, value) in told.as_object().into_iter().flatten() {
        match key.as_str() {
            "policy" => {
                settings.policy = Policy::named(value.as_str().expect("a policy")).expect("a known policy");
            }
            "enablePolicyOverride" => settings.policy_override = value.as_bool(),
            "preservedAnnotations" => settings.preserved_annotations = list(value),
            "preservedLabels" => settings.preserved_labels = list(value),
            "progressiveSyncs" => settings.progressive_syncs = value == true,
            "maxResourcesStatusCount" => {
                settings.max_resources_status_count = value.as_u64().expect("a number") as usize;
            }
            other => panic!("unknown setting {other}"),
        }
    }
    Settings { clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().expect("a date")), ..settings }
}

/// A cluster, its controller, and what became of it so far.
struct Stage {
    cluster: Cluster,
    wire: Wire,
    controller: Controller,
    set: ObjectKey,
    uid: String,
    revision: u64,
    stop: tokio::sync::oneshot::Sender<()>,
    /// The repository that generators read.
    _repository: tempfile::TempDir,
}

impl Stage {
    async fn new(world: Vec<Value>, settings: Settings, repository: &Path) -> Stage {
        let cluster = prepared(definitions()).await;
        let is_set = |object: &&Value| object["kind"] == "ApplicationSet";
        let set = world.iter().find(is_set).expect("a set").clone();
        let name = set["metadata"]["name"].as_str().expect("a name").to_owned();
        let namespace = set["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
        let wire = Wire::new(cluster.clone());
        let committed = committed(repository);
        let controller = Controller::new(
            Client::new(wire.clone(), NAMESPACE),
            settings.clone(),
            generators_with(committed.path()),
        )
        .expect("settings");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let mut stage = Stage {
            cluster,
            wire,
            controller: controller.clone(),
            set: ObjectKey::new(namespace, name),
            uid: String::new(),
            revision: 0,
            stop,
            _repository: committed,
        };
        stage.put(&set).await;
        for object in world.iter().filter(|object| !is_set(object)) {
            stage.put(object).await;
        }
        tokio::spawn(async move { controller.follow(async { drop(stopped.await) }).await.expect("caches") });
        stage.rest().await;
        stage
    }

    fn end(self) {
        let _ = self.stop.send(());
    }

    /// Lets watches deliver and events be written.
    async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    async fn play(&mut self, step: &Value) -> Value {
        self.prepare(step).await;
        self.revision = self.cluster.store().revision();
        let failures = step["fail"].as_array().cloned().unwrap_or_default();
        self.wire.fail(move |_, call| {
            let failure = failures.iter().find(|failure| concerns(failure, call))?;
            let message = failure["message"].as_str().unwrap_or_default();
            Some(Fault::Refused(500, format!("Internal error occurred: {message}")))
        });
        // Work of other processes takes no virtual time: while something is always ready, the paused clock stands.
        let busy = tokio::spawn(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        let result = self.controller.pass(&self.set).await;
        busy.abort();
        self.rest().await;
        self.wire.heal();
        self.outcome(result.map_err(|error| error.to_string()))
    }

    async fn prepare(&mut self, step: &Value) {
        if step["keepTerminating"] != true {
            for application in self.objects("applications.argoproj.io") {
                if application["metadata"]["deletionTimestamp"].is_string() {
                    let patch = json!({"metadata": {"finalizers": null}});
                    self.ask(Method::PATCH, &path(&application), "", Some(&patch)).await;
                }
            }
        }
        for object in step["apply"].as_array().into_iter().flatten() {
            self.put(object).await;
        }
        for object in step["delete"].as_array().into_iter().flatten() {
            let mut object = object.clone();
            object["apiVersion"] = match object["kind"].as_str() {
                Some("Secret" | "ConfigMap") => "v1".into(),
                _ => "argoproj.io/v1alpha1".into(),
            };
            let namespace = object["namespace"].as_str().unwrap_or(NAMESPACE).to_owned();
            object["metadata"] = json!({"name": object["name"], "namespace": namespace});
            self.ask(Method::DELETE, &path(&object), "", None).await;
        }
        self.rest().await;
    }

    /// Creates an object, or replaces metadata and spec of the one that is there.
    async fn put(&mut self, object: &Value) {
        let mut object: Value =
            serde_json::from_str(&object.to_string().replace(TOLD_UID, &self.uid)).expect("JSON");
        let status = object.as_object_mut().expect("an object").remove("status");
        let (_, present) = self.ask(Method::GET, &path(&object), "", None).await;
        if present["kind"] == object["kind"] {
            object["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"].clone();
            object["metadata"]["uid"] = present["metadata"]["uid"].clone();
            if object["kind"] == "Application" {
                object["status"] = status.clone().unwrap_or_else(|| present["status"].clone());
            }
            self.ask(Method::PUT, &path(&object), "", Some(&object)).await;
        } else {
            if object["kind"] == "Application"
                && let Some(status) = &status
            {
                object["status"] = status.clone();
            }
            let path = path(&object);
            let (collection, _) = path.rsplit_once('/').expect("a path");
            let (code, answer) = self.ask(Method::POST, collection, "", Some(&object)).await;
            assert_eq!(code, 201, "{answer}");
            if object["kind"] == "ApplicationSet" {
                self.uid = answer["metadata"]["uid"].as_str().expect("a uid").to_owned();
            }
        }
        if object["kind"] == "ApplicationSet"
            && let Some(status) = status
        {
            let patch = json!({ "status": status });
            self.ask(Method::PATCH, &path(&object), "/status", Some(&patch)).await;
        }
    }

    async fn ask(&self, method: Method, path: &str, more: &str, body: Option<&Value>) -> (u16, Value) {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = body.map(|body| bytes::Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}{more}"))
            .header("content-type", content)
            .body(Full::new(bytes))
            .expect("a request");
        let response = self.cluster.handle(request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn objects(&self, resource: &str) -> Vec<Value> {
        let listing = self.cluster.store().list(resource, None, Default::default()).expect("a listing");
        listing.records.iter().map(|record| serde_json::from_slice(&record.json()).expect("JSON")).collect()
    }

    fn outcome(&self, result: Result<Option<Duration>, String>) -> Value {
        let calls = self.wire.take_calls();
        let done = calls.iter().filter(|call| !call.failed);
        let writes: Vec<Value> = done.filter_map(write).collect();
        let history = self.cluster.store().history(self.revision);
        let events = history
            .iter()
            .filter(|event| event.revision > self.revision && &*event.record.key.resource == "events");
        let events: Vec<Value> = events
            .map(|event| {
                let event: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
                let text = |field: &str| event[field].as_str().unwrap_or("?").to_owned();
                json!(format!("{} {} {}", text("type"), text("reason"), text("message")))
            })
            .collect();
        let mut outcome = json!({
            "writes": writes,
            "events": events,
            "applications": self.objects("applications.argoproj.io").into_iter().map(|o| self.shown(o)).collect::<Vec<_>>(),
            "applicationSet": self.objects("applicationsets.argoproj.io").into_iter().map(|o| self.shown(o))
                .map(|mut set| { set.as_object_mut().expect("an object").remove("spec"); set }).next(),
        });
        match result {
            Ok(None) => {}
            Ok(Some(delay)) => outcome["requeueAfter"] = go_duration(delay).into(),
            Err(error) => outcome["error"] = error.into(),
        }
        outcome
    }

    /// The object without times and what an API server fills in.
    fn shown(&self, object: Value) -> Value {
        let mut object: Value =
            serde_json::from_str(&object.to_string().replace(&self.uid, TOLD_UID)).expect("JSON");
        let kind = object["kind"].clone();
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        for field in ["resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        metadata.remove("deletionGracePeriodSeconds");
        if kind == "Application" {
            metadata.remove("uid");
        }
        if let Some(time) = metadata.get_mut("deletionTimestamp") {
            *time = "set".into();
        }
        for condition in
            object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            condition.as_object_mut().expect("a condition").remove("lastTransitionTime");
        }
        object
    }
}

/// A git repository with the files of a directory.
fn committed(files: &Path) -> tempfile::TempDir {
    let repository = tempfile::tempdir().expect("a directory");
    if !files.is_dir() {
        return repository;
    }
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com"])
            .arg("--git-dir")
            .arg(repository.path().join(".git"))
            .arg("--work-tree")
            .arg(files)
            .args(arguments)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=files"]);
    repository
}

/// Whether a failure is meant for this request.
fn concerns(failure: &Value, call: &Call) -> bool {
    let (resource, name, sub) = call.target();
    let kinds = BTreeMap::from([
        ("applications", "Application"),
        ("applicationsets", "ApplicationSet"),
        ("secrets", "Secret"),
        ("appprojects", "AppProject"),
    ]);
    let verb = match call.method {
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if name.is_empty() => "list",
        _ => "get",
    };
    let told = failure["name"].as_str().unwrap_or_default();
    let name = if verb == "create" { call.created.as_deref().unwrap_or_default() } else { name };
    let named = told.is_empty() || told == name;
    sub.is_empty()
        && failure["verb"] == verb
        && kinds.get(resource).is_some_and(|kind| failure["kind"] == *kind)
        && named
}

/// A write as stories tell it; none for reads, Events and the status.
fn write(call: &Call) -> Option<Value> {
    let (resource, name, sub) = call.target();
    let kind = match resource {
        "applications" => "Application",
        "applicationsets" => "ApplicationSet",
        _ => return None,
    };
    let verb = match call.method {
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    };
    let name = if verb == "create" { call.created.as_deref().unwrap_or_default() } else { name };
    sub.is_empty().then(|| json!({"kind": kind, "name": name, "verb": verb}))
}

fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("/apiVersion");
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let plural = format!("{}s", text("/kind").to_lowercase());
    format!(
        "/{root}/{api_version}/namespaces/{}/{plural}/{}",
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

fn go_duration(duration: Duration) -> String {
    let nanoseconds = i64::try_from(duration.as_nanos()).expect("a short time");
    baton_grammar::duration::Duration::from_nanoseconds(nanoseconds).to_string()
}
