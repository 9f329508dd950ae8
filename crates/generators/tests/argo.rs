//! What Argo CD makes of an ApplicationSet, case by case: see `argo/README.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use baton_api::ApplicationSet;
use baton_generators::offline::Offline;
use baton_generators::{Generators, Settings};
use baton_grammar::duration::Duration as GoDuration;
use baton_grammar::yaml;
use baton_render::{Engine, Renderer};
use baton_scm::Hosts;
use baton_source::Repositories;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Repositories that cases name; the tree of the case is behind each of them.
const REPOSITORIES: [&str; 2] = ["https://git.example.com/config.git", "https://git.example.com/apps.git"];

/// Where Baton differs from Argo CD on purpose: case, what Argo CD writes, what Baton writes, and why.
const DIFFERENT: [(&str, &str, &str, &str); 3] = [
    ("plugin-generator-key", NO_INPUT, EMPTY_INPUT, "`.generator.input.parameters.x` is then no error"),
    ("plugin-no-input", NO_INPUT, EMPTY_INPUT, "`.generator.input.parameters.x` is then no error"),
    ("pr-go", r#""labels":null"#, r#""labels":[]"#, "templates have no list that is nil"),
];
const NO_INPUT: &str = r#""input":{"parameters":null}"#;
const EMPTY_INPUT: &str = r#""input":{"parameters":{}}"#;

/// Cases in which Argo CD makes something, or nothing, where Baton refuses, with a part of what it says: no list of
/// parameters, and no generator, is not the same as an empty one.
const REFUSED: [(&str, &str); 2] = [
    ("generator-unknown", "the entry holds no known generator"),
    ("plugin-no-output", "the answer has no output.parameters"),
];

/// Cases that run at the same time; each runs git a few times.
const AT_ONCE: usize = 4;

#[tokio::test]
async fn applications_are_those_that_argo_cd_makes() {
    all_agree("tests/argo", 50).await;
}

#[tokio::test]
async fn applications_of_hosts_are_those_that_argo_cd_makes() {
    all_agree("tests/argo-hosts", 10).await;
}

/// Checks every case of a directory that holds at least so many.
async fn all_agree(directory: &str, least: usize) {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory))
        .expect("the cases lie beside this file")
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= least, "only {} cases were found", cases.len());
    let trees = &Trees::new();
    let run = |case: PathBuf| async move {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        check(&case, trees).await.err().map(|difference| format!("== {name}\n{difference}\n"))
    };
    let report: Vec<Option<String>> = futures::stream::iter(cases).map(run).buffered(AT_ONCE).collect().await;
    let report: String = report.into_iter().flatten().collect();
    assert!(report.is_empty(), "{report}");
}

/// What came of a case: Applications, or an error and its reason.
type Outcome = Result<Vec<Value>, (String, String)>;

async fn check(case: &Path, trees: &Trees) -> Result<(), String> {
    let options = read(case, "options.yaml").map_or(Value::Null, |text| first(&text));
    let plugin = Server::plugin(&options["plugin"]).await;
    let host = Server::host(&read(case, "host.json").unwrap_or_else(|| "[]".to_owned())).await;
    let set = read(case, "appset.yaml").expect("every case has an appset.yaml").replace("{host}", &host.url);
    let world = read(case, "world.yaml").unwrap_or_default().replace("http://plugin.test", &plugin.url);
    let set: ApplicationSet =
        serde_json::from_value(first(&set)).map_err(|error| format!("the set is none: {error}"))?;
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let generators = generators(case, &options, trees, scratch.path());

    if let Some(expected) = read(case, "requeue.txt") {
        let expected: GoDuration = expected.trim().parse().expect("requeue.txt holds a duration");
        let after = generators.requeue_after(&set).unwrap_or_default();
        if Some(after) != expected.to_std() {
            return Err(format!("the generators look again after {after:?}, not {expected:?}"));
        }
    }
    let outcome = run(&set, &world, &generators).await;
    if let Some(expected) = read(case, "request.json") {
        let expected: Value = serde_json::from_str(&expected).expect("request.json is JSON");
        let asked = plugin.asked.lock().clone();
        if asked.as_ref() != Some(&expected) {
            return Err(format!("the plugin was asked {asked:?}, not {expected}"));
        }
    }
    if let Some((_, part)) = REFUSED.iter().find(|(name, _)| case.ends_with(name)) {
        return match outcome {
            Err((message, _)) if message.contains(part) => Ok(()),
            other => Err(format!("it is not refused for {part:?}: {other:?}")),
        };
    }
    match (outcome, read(case, "error.txt")) {
        (Ok(made), None) => {
            let Some(expected) = read(case, "expected.yaml") else { return Ok(()) };
            let expected =
                yaml::documents(&expected.replace("{host}", &host.url)).expect("expected.yaml is YAML");
            let mut expected: Vec<Value> =
                expected.into_iter().filter(|document| !document.is_null()).collect();
            for (_, theirs, ours, _) in DIFFERENT.iter().filter(|(name, ..)| case.ends_with(name)) {
                expected = expected.iter().map(|document| edited(document, theirs, ours)).collect();
            }
            compare(&made, &expected)
        }
        (Err((message, reason)), Some(expected)) => {
            let part = expected.lines().next().unwrap_or_default();
            if !message.contains(part) {
                return Err(format!("the error is {message:?}, which does not say {part:?}"));
            }
            match read(case, "reason.txt") {
                Some(expected) if expected.trim() != reason => {
                    Err(format!("the reason is {reason}, not {}", expected.trim()))
                }
                _ => Ok(()),
            }
        }
        (Ok(made), Some(expected)) => {
            Err(format!("{} Applications instead of the error {expected}", made.len()))
        }
        (Err((message, _)), None) => Err(format!("an error instead of Applications: {message}")),
    }
}

async fn run(set: &ApplicationSet, manifests: &str, generators: &Generators) -> Outcome {
    let mut world = Offline::new("argocd");
    world.add_yaml(manifests).expect("a usable world.yaml");
    let generated = generators
        .generate(set, &world)
        .await
        .map_err(|error| (error.to_string(), "ApplicationGenerationFromParamsError".to_owned()))?;
    let engine = Engine::of(&set.spec).map_err(rendering)?;
    let preserve = set.spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let mut made = Vec::new();
    for group in &generated.groups {
        let patch = set.spec.template_patch.as_deref();
        let renderer = Renderer::new(&engine, &group.template, patch, preserve).map_err(rendering)?;
        for params in &group.params {
            made.push(renderer.render(params, namespace).map_err(rendering)?);
        }
    }
    made.sort_by(|left, right| name(left).cmp(name(right)));
    Ok(made)
}

fn rendering(error: baton_render::RenderError) -> (String, String) {
    (error.to_string(), error.reason().to_owned())
}

fn generators(case: &Path, options: &Value, trees: &Trees, scratch: &Path) -> Generators {
    let mut source = baton_source::Settings {
        cache_dir: scratch.join("cache"),
        include_hidden_directories: options["includeHiddenDirectories"] == true,
        ..baton_source::Settings::default()
    };
    let tree = case.join("repo");
    if tree.is_dir() {
        let repository = trees.repository(&tree);
        source.local = REPOSITORIES.iter().map(|url| ((*url).to_owned(), repository.clone())).collect();
    }
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("default settings are usable");
    let settings = Settings { new_git_file_globbing: options["newGlobbing"] == true, ..Settings::default() };
    Generators::new(Repositories::new(source), hosts, settings)
}

/// Repositories made of trees. Cases with equal trees share one: git is slow to start.
struct Trees {
    directory: tempfile::TempDir,
    made: Mutex<BTreeMap<Vec<u8>, PathBuf>>,
}

impl Trees {
    fn new() -> Trees {
        Trees { directory: tempfile::tempdir().expect("a temporary directory"), made: Mutex::default() }
    }

    /// A repository with the files of `tree`.
    fn repository(&self, tree: &Path) -> PathBuf {
        let mut made = self.made.lock();
        let repository = self.directory.path().join(format!("{}.git", made.len()));
        let build = || {
            commit(tree, &repository);
            repository.clone()
        };
        made.entry(contents(tree)).or_insert_with(build).clone()
    }
}

/// Names and contents of all files, in order.
fn contents(tree: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(tree)
        .expect("a readable directory")
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    entries.sort();
    for entry in entries {
        all.extend(format!("\0{}\0", entry.file_name().unwrap_or_default().to_string_lossy()).into_bytes());
        if entry.is_symlink() {
            all.extend(
                std::fs::read_link(&entry).expect("a link").to_string_lossy().into_owned().into_bytes(),
            );
        } else if entry.is_dir() {
            all.extend(contents(&entry));
        } else {
            all.extend(std::fs::read(&entry).expect("a readable file"));
        }
    }
    all
}

/// One commit of everything in `tree`, on branch `main`, tagged `v1.2.3`.
fn commit(tree: &Path, repository: &Path) {
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .arg("--git-dir")
            .arg(repository)
            .arg("--work-tree")
            .arg(tree)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", repository.parent().unwrap_or(repository))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "Test")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "test@example.com")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z")))
            .output()
            .expect("git is installed");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all", "--force", "."]);
    git(&["commit", "--quiet", "--allow-empty", "--message=tree"]);
    git(&["tag", "v1.2.3"]);
}

fn compare(made: &[Value], expected: &[Value]) -> Result<(), String> {
    let mut report = String::new();
    for index in 0..made.len().max(expected.len()) {
        let (made, expected) = (made.get(index), expected.get(index));
        if made.map(normal) != expected.map(normal) {
            let show = |object: Option<&Value>| object.map_or("none".to_owned(), Value::to_string);
            writeln!(report, "Application {index} is\n  {}\nnot\n  {}", show(made), show(expected))
                .expect("a string takes any text");
        }
    }
    if report.is_empty() { Ok(()) } else { Err(report) }
}

/// The value with a part of its texts replaced.
fn edited(value: &Value, part: &str, by: &str) -> Value {
    match value {
        Value::String(text) => Value::from(text.replace(part, by)),
        Value::Array(items) => items.iter().map(|item| edited(item, part, by)).collect(),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), edited(value, part, by)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// Numbers as JSON readers see them: 1.0 is 1.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), normal(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A server that remembers what it was asked last.
struct Server {
    url: String,
    asked: Arc<Mutex<Option<Value>>>,
}

impl Server {
    /// A plugin that gives one answer.
    async fn plugin(options: &Value) -> Server {
        let status = status(options);
        let reply = match &options["reply"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            json => json.to_string(),
        };
        Server::start(move |_| (status, reply.clone())).await
    }

    /// A host that knows these requests.
    async fn host(rows: &str) -> Server {
        let rows: Vec<Value> = serde_json::from_str(rows).expect("host.json is a list");
        Server::start(move |path| {
            let row = rows.iter().find(|row| row["path"] == path);
            row.map_or((StatusCode::NOT_FOUND, "{}".to_owned()), |row| (status(row), row["body"].to_string()))
        })
        .await
    }

    async fn start(answer: impl Fn(&str) -> (StatusCode, String) + Clone + Send + Sync + 'static) -> Server {
        let asked: Arc<Mutex<Option<Value>>> = Arc::default();
        let memory = asked.clone();
        let router = Router::new().fallback(
            move |method: Method, uri: Uri, headers: HeaderMap, body: String| async move {
                let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
                *memory.lock() = Some(json!({
                    "method": method.as_str(),
                    "path": uri.path(),
                    "authorization": header(AUTHORIZATION),
                    "contentType": header(CONTENT_TYPE),
                    "body": serde_json::from_str::<Value>(&body).ok(),
                }));
                let (status, body) = answer(uri.path());
                (status, [(CONTENT_TYPE, "application/json")], body)
            },
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server { url, asked }
    }
}

/// `status` of an answer, 200 unless said.
fn status(answer: &Value) -> StatusCode {
    let code = answer["status"].as_u64().map_or(Ok(200), u16::try_from);
    StatusCode::from_u16(code.unwrap_or(0)).expect("a status code")
}

fn read(case: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(case.join(file)).ok()
}

fn first(text: &str) -> Value {
    yaml::first(text).expect("the file is YAML")
}

fn name(application: &Value) -> &str {
    application.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}
