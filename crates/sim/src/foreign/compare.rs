//! Comparisons: when one is made, what it finds, and how that is written.

use std::time::Duration;

use serde_json::{Value, json};

use super::ground::{Pair, Requests, text};
use super::queue::Level;
use super::wording::difference;
use super::{Foreign, RESYNC};

const REFRESH: &str = "argocd.argoproj.io/refresh";
const NONCE: &str = "argocd.argoproj.io/refresh-timestamp";
/// Finalizer of Applications whose objects go with them.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// How soon it tries again what failed.
const AGAIN: Duration = Duration::from_secs(3);

/// What a comparison found.
struct Found {
    sync: &'static str,
    health: &'static str,
    revisions: Vec<String>,
    resources: Value,
    error: Option<(&'static str, String)>,
}

impl Foreign {
    /// Looks at an Application, and compares where that is due or asked for.
    pub(super) async fn refresh(&self, name: &str, asked: Option<Level>) {
        self.queue.look(name, None, RESYNC + self.up_to(RESYNC / 4));
        // All that follows is decided by what was known now.
        let Some(app) = self.known(name) else { return };
        if !app["metadata"]["deletionTimestamp"].is_null() {
            return self.finish(name, &app).await;
        }
        let Some(level) = self.level(&app, asked) else { return };
        if self.temper.normalizes && self.normalize(name, &app).await {
            // What was written comes back, and is looked at then.
            return;
        }
        let began = self.second();
        let status = &app["status"];
        self.toil().await;
        let found = self.compare(name, &app, level).await;
        self.toil().await;
        if found.sync == "OutOfSync" && level > 0 {
            self.sync_by_itself(name, &app, &found).await;
        }
        let mut next = if status.is_object() { status.clone() } else { json!({}) };
        if level > 0 {
            next["sync"] = told(&app["spec"], &found);
        }
        if text(&next, "/health/status") != found.health {
            next["health"] = json!({"status": found.health, "lastTransitionTime": began});
        }
        next["resources"] = found.resources;
        match found.error {
            // What was told before keeps its time.
            Some((kind, message))
                if text(status, "/conditions/0/type") == kind
                    && text(status, "/conditions/0/message") == message => {}
            Some((kind, message)) => {
                next["conditions"] = json!([{"type": kind, "message": message, "lastTransitionTime": began}]);
            }
            None => drop(next.as_object_mut().and_then(|fields| fields.remove("conditions"))),
        }
        let changed = difference(status, &next);
        let requested = !app["metadata"]["annotations"][REFRESH].is_null();
        // Where it looks by itself and finds nothing new, nothing is written: a world comes to rest. Argo CD's tells each time
        // when it began, which somebody waits for whose answer was lost or looked like none.
        let is_owed = level >= 2 && self.lost.lock().remove(name);
        let is_new = changed.is_some() || requested || asked.is_some() || is_owed;
        if !is_new && !status["reconciledAt"].is_null() {
            return;
        }
        if level >= 2 || status["reconciledAt"].is_null() {
            next["reconciledAt"] = began.as_str().into();
        }
        let Some(changed) = difference(status, &next).or(requested.then(|| json!({}))) else { return };
        let may_be_lost = self.temper.loses > 0 && self.temper.nonce && requested;
        let is_lost = may_be_lost && self.chance(self.temper.loses);
        // By what it tells, a comparison that began in the same second may be the one before.
        let is_vague = requested && status["reconciledAt"] == began;
        if is_lost || is_vague {
            self.lost.lock().insert(name.to_owned());
        }
        let written = self.write(name, changed, (requested && !self.temper.nonce, is_lost)).await;
        // The request goes also where what was found is lost, and nobody looks again because of it.
        let again = match requested && self.temper.nonce {
            true => !self.answer(name, &app).await,
            false => !written,
        };
        if again {
            self.queue.look(name, Some(level), AGAIN);
        }
    }

    /// At what level it is to be compared, if it is.
    fn level(&self, app: &Value, asked: Option<Level>) -> Option<Level> {
        let status = &app["status"];
        let age = text(status, "/reconciledAt").parse::<jiff::Timestamp>().ok();
        let age = age.map(|at| (self.now)().duration_since(at).unsigned_abs());
        let is_due = age.is_none_or(|age| age >= RESYNC);
        let requested = !app["metadata"]["annotations"][REFRESH].is_null();
        let other = compared_to(&app["spec"]) != status["sync"]["comparedTo"];
        let own = match () {
            () if requested || other => Some(3),
            () if is_due => Some(2),
            () => None,
        };
        asked.max(own)
    }

    async fn compare(&self, name: &str, app: &Value, level: Level) -> Found {
        let sources = sources(&app["spec"]);
        let failed = |kind: &'static str, message: String| Found {
            sync: "Unknown",
            health: "Unknown",
            revisions: Vec::new(),
            resources: json!([]),
            error: Some((kind, message)),
        };
        if text(app, "/spec/project") != "default" {
            let project = text(app, "/spec/project");
            return failed("InvalidSpecError", format!("project {project} does not exist"));
        }
        let member = match self.ground.member(app) {
            Ok(member) => member,
            Err(error) => return failed("InvalidSpecError", error),
        };
        let recent = revisions(&app["status"]["sync"]);
        let is_recent = level < 2 && recent.len() == sources.len() && !recent.iter().any(String::is_empty);
        let commits = match is_recent {
            true => Ok(recent.clone()),
            false => self.resolve_all(&sources, level >= 3),
        };
        let wanted = commits.and_then(|commits| Ok((self.ground.wanted(&sources, &commits)?, commits)));
        let (wanted, commits) = match wanted {
            Ok(found) => found,
            Err(error) => return failed("ComparisonError", format!("Failed to load target state: {error}")),
        };
        let pairs = match self.ground.pairs(name, member, wanted).await {
            Ok(pairs) => pairs,
            Err(error) => return failed("ComparisonError", format!("Failed to load live state: {error}")),
        };
        let synced = pairs.iter().all(Pair::is_synced);
        Found {
            sync: if synced { "Synced" } else { "OutOfSync" },
            health: pairs.iter().map(health).max_by_key(|health| rank(health)).unwrap_or("Healthy"),
            revisions: commits,
            resources: pairs.iter().map(row).collect(),
            error: None,
        }
    }

    pub(super) fn resolve_all(&self, sources: &[&Value], anew: bool) -> Result<Vec<String>, String> {
        let resolve =
            |source: &&Value| self.resolve(text(source, "/repoURL"), text(source, "/targetRevision"), anew);
        // Of a single source the commit is told; of several what the reference says.
        let told = |revision: String| match sources.len() {
            1 => self.ground.git().peel(&revision),
            _ => revision,
        };
        sources.iter().map(|source| resolve(source).map(told)).collect()
    }

    /// Writes what has changed, at once or in parts, and takes the request away with it where it knows no better. What is
    /// lost is all of it, or its last part.
    async fn write(&self, name: &str, mut status: Value, (answers, is_lost): (bool, bool)) -> bool {
        let path = self.path(name);
        if self.temper.split
            && let Some(sync) = status.as_object_mut().and_then(|fields| fields.remove("sync"))
        {
            if self.control.merge(&path, &json!({"status": {"sync": sync}})).await.is_err() {
                return false;
            }
            self.toil().await;
        }
        if is_lost {
            return false;
        }
        let mut patch = json!({"status": status});
        if answers {
            patch["metadata"] = json!({"annotations": {REFRESH: null}});
        }
        self.control.merge(&path, &patch).await.is_ok()
    }

    /// Takes the request away that it read, and no other.
    async fn answer(&self, name: &str, app: &Value) -> bool {
        let pointer = |annotation: &str| format!("/metadata/annotations/{}", annotation.replace('/', "~1"));
        let remove = |annotation: &str| json!({"op": "remove", "path": pointer(annotation)});
        let read = &app["metadata"]["annotations"][NONCE];
        let steps = match read.is_null() {
            true => json!([remove(REFRESH)]),
            false => {
                json!([{"op": "test", "path": pointer(NONCE), "value": read}, remove(NONCE), remove(REFRESH)])
            }
        };
        match self.control.steps(&self.path(name), &steps).await {
            // Somebody else asked meanwhile, or it is gone.
            Err(failure) => matches!(failure.code, Some(404 | 422)),
            Ok(_) => true,
        }
    }

    /// Brings a specification into its own form.
    async fn normalize(&self, name: &str, app: &Value) -> bool {
        let options = app["spec"]["syncPolicy"]["syncOptions"].as_array();
        if !options.is_some_and(Vec::is_empty) {
            return false;
        }
        let patch = json!({"spec": {"syncPolicy": {"syncOptions": null}}});
        self.control.merge(&self.path(name), &patch).await.is_ok()
    }

    /// Starts a sync where the specification, as it was read, says that it may.
    async fn sync_by_itself(&self, name: &str, app: &Value, found: &Found) {
        let automated = &app["spec"]["syncPolicy"]["automated"];
        let state = &app["status"]["operationState"];
        if automated.is_null() || automated["enabled"] == false || !app["operation"].is_null() {
            return;
        }
        let attempted = revisions(&state["syncResult"]) == found.revisions
            && ["source", "sources"].iter().all(|field| state["syncResult"][field] == app["spec"][field]);
        let heals = automated["selfHeal"] == true && state["phase"] == "Succeeded";
        if attempted && !heals {
            return;
        }
        let mut sync = json!({"prune": automated["prune"] == true});
        name_revisions(&mut sync, &app["spec"], &found.revisions);
        if attempted {
            let differing =
                found.resources.as_array().into_iter().flatten().filter(|row| row["status"] != "Synced");
            let named =
                |row: &Value| json!({"group": row["group"], "kind": row["kind"], "name": row["name"]});
            sync["resources"] = differing.map(named).collect();
        }
        let path = self.path(name);
        let Ok(live) = self.control.get(&path).await else { return };
        if !live["operation"].is_null() || !live["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let operation = json!({"sync": sync, "initiatedBy": {"automated": true}, "retry": {"limit": 2}});
        let version = &live["metadata"]["resourceVersion"];
        let patch = json!({
            "metadata": {"resourceVersion": version}, "operation": operation, "status": {"operationState": null},
        });
        // Refused where it has changed: it is looked at again then.
        let _ = self.control.merge(&path, &patch).await;
    }

    /// Deletes what an Application has, then lets it go.
    async fn finish(&self, name: &str, app: &Value) {
        let finalizers = app["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return;
        }
        self.toil().await;
        let emptied = match self.ground.member(app) {
            Ok(member) if text(app, "/spec/project") == "default" => self.empty(name, member).await,
            _ => false,
        };
        let rest: Vec<&Value> = finalizers.iter().filter(|finalizer| *finalizer != FINALIZER).collect();
        let done = emptied
            && self.control.merge(&self.path(name), &json!({"metadata": {"finalizers": rest}})).await.is_ok();
        if !done {
            self.queue.look(name, None, AGAIN);
        }
    }

    async fn empty(&self, name: &str, member: &Requests) -> bool {
        let Ok(pairs) = self.ground.pairs(name, member, Vec::new()).await else { return false };
        for pair in &pairs {
            if self.ground.bring(name, member, pair).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// The sources of a specification.
pub(super) fn sources(spec: &Value) -> Vec<&Value> {
    match spec["sources"].as_array().filter(|all| !all.is_empty()) {
        Some(several) => several.iter().collect(),
        None => vec![&spec["source"]],
    }
}

/// What was compared to: several sources are told beside an empty one.
fn compared_to(spec: &Value) -> Value {
    let mut compared = json!({"destination": spec["destination"]});
    name_sources(&mut compared, spec);
    compared
}

/// Names the sources of a specification as Go writes them: the one beside several is empty, not absent.
pub(super) fn name_sources(object: &mut Value, spec: &Value) {
    match spec["sources"].as_array().filter(|all| !all.is_empty()) {
        Some(several) => {
            object["sources"] = several.clone().into();
            object["source"] = json!({"repoURL": ""});
        }
        None => object["source"] = spec["source"].clone(),
    }
}

pub(super) fn name_revisions(object: &mut Value, spec: &Value, commits: &[String]) {
    match spec["sources"].as_array().filter(|all| !all.is_empty()) {
        Some(_) => object["revisions"] = json!(commits),
        None => object["revision"] = json!(commits.first().cloned().unwrap_or_default()),
    }
}

/// The commits an object names, one per source.
pub(super) fn revisions(object: &Value) -> Vec<String> {
    let owned = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match object["revisions"].as_array().filter(|all| !all.is_empty()) {
        Some(all) => all.iter().map(owned).collect(),
        None => vec![owned(&object["revision"])],
    }
}

fn told(spec: &Value, found: &Found) -> Value {
    let mut sync = json!({"status": found.sync, "comparedTo": compared_to(spec)});
    if !found.revisions.is_empty() {
        name_revisions(&mut sync, spec, &found.revisions);
    }
    sync
}

fn row(pair: &Pair) -> Value {
    let mut row = json!({
        "group": pair.group, "kind": pair.kind, "name": pair.name, "version": "v1",
        "status": if pair.is_synced() { "Synced" } else { "OutOfSync" },
    });
    if pair.kind == "Deployment" {
        row["health"] = json!({"status": health(pair)});
    }
    if pair.wanted.is_none() {
        row["requiresPruning"] = true.into();
    }
    row
}

/// The worse, the higher.
fn rank(health: &str) -> usize {
    ["Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown"]
        .iter()
        .position(|known| *known == health)
        .unwrap_or(0)
}

fn health(pair: &Pair) -> &'static str {
    let Some(live) = &pair.live else { return "Missing" };
    if pair.kind != "Deployment" {
        return "Healthy";
    }
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let wanted = live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let conditions = live["status"]["conditions"].as_array();
    let exceeded =
        conditions.into_iter().flatten().any(|condition| condition["reason"] == "ProgressDeadlineExceeded");
    match () {
        () if live["metadata"]["annotations"]["example.com/unfathomable"] == "true" => "Unknown",
        () if live["spec"]["paused"] == true => "Suspended",
        () if number("/status/observedGeneration") < number("/metadata/generation") => "Progressing",
        () if exceeded => "Degraded",
        () if number("/status/updatedReplicas") < wanted
            || number("/status/replicas") > number("/status/updatedReplicas")
            || number("/status/availableReplicas") < wanted =>
        {
            "Progressing"
        }
        () => "Healthy",
    }
}
