//! Operations: begun by what is in the API, carried out in the member, and ended until an answer comes.

use std::time::Duration;

use serde_json::{Value, json};

use super::Foreign;
use super::compare::{name_revisions, name_sources, revisions, sources};
use super::ground::{Pair, text};

/// How long it waits before it tries a request again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often the end of an operation is written before it is given up.
const ATTEMPTS: usize = 40;
/// The first wait before a sync that failed is tried again.
const BACKOFF: Duration = Duration::from_secs(5);

impl Foreign {
    /// Sees to the operation of an Application.
    pub(super) async fn operate(&self, name: &str) {
        if self.known(name).is_none_or(|app| app["operation"].is_null()) {
            return;
        }
        let path = self.path(name);
        let app = match self.control.get(&path).await {
            Ok(app) => app,
            Err(error) if error.is_missing() => return,
            Err(_) => return self.queue.operate(name, AGAIN),
        };
        if app["operation"].is_null() {
            return;
        }
        let state = &app["status"]["operationState"];
        let goes_on = matches!(text(state, "/phase"), "Running" | "Terminating");
        // What is under way goes on as it was begun, whatever is asked for by now.
        let (operation, started) = match goes_on {
            true => (state["operation"].clone(), state["startedAt"].clone()),
            false => (app["operation"].clone(), self.second().into()),
        };
        let retried = state["retryCount"].as_u64().filter(|_| goes_on).unwrap_or(0);
        if !goes_on {
            let begun = json!({
                "operation": operation, "phase": "Running", "startedAt": started, "finishedAt": null,
                "message": "", "retryCount": null,
            });
            if self.control.merge(&path, &json!({"status": {"operationState": begun}})).await.is_err() {
                return self.queue.operate(name, AGAIN);
            }
        }
        self.toil().await;
        let mut end = match text(state, "/phase") {
            "Terminating" => json!({"phase": "Failed", "message": "Operation terminated"}),
            _ => self.sync(name, &app, &operation, retried).await,
        };
        let most = operation["retry"]["limit"].as_u64().unwrap_or(0);
        if end["phase"] == "Failed" && text(state, "/phase") != "Terminating" && retried < most {
            let wait = BACKOFF * 2u32.saturating_pow(u32::try_from(retried).unwrap_or(0).min(4));
            let message = format!("{} Retrying attempt #{}.", text(&end, "/message"), retried + 1);
            let waiting = json!({
                "phase": "Running", "message": message, "retryCount": retried + 1, "finishedAt": self.second(),
                "syncResult": end["syncResult"],
            });
            let _ = self.control.merge(&path, &json!({"status": {"operationState": waiting}})).await;
            return self.queue.operate(name, wait);
        }
        end["operation"] = operation.clone();
        end["startedAt"] = started;
        end["finishedAt"] = self.second().into();
        if end["phase"] == "Succeeded"
            && operation["sync"]["resources"].is_null()
            && !self.note(&app, &end).await
        {
            return self.queue.operate(name, AGAIN);
        }
        self.end(name, &end).await;
        let level = if operation["initiatedBy"]["automated"] == true { 2 } else { 3 };
        self.queue.look(name, Some(level), self.lateness());
    }

    /// Syncs, and tells how that ended.
    async fn sync(&self, name: &str, app: &Value, operation: &Value, retried: u64) -> Value {
        let (sync, spec) = (&operation["sync"], &app["spec"]);
        let failed = |message: String| json!({"phase": "Failed", "message": message});
        if sync.is_null() {
            return json!({"phase": "Error", "message": "no operation specified"});
        }
        if text(app, "/spec/project") != "default" {
            return json!({"phase": "Error", "message": "the project does not exist"});
        }
        let sources = sources(spec);
        let named = revisions(sync);
        let anew = retried > 0 && operation["retry"]["refresh"] == true;
        let is_named = named.len() == sources.len() && !named.iter().any(String::is_empty) && !anew;
        let commits = match is_named {
            true => Ok(named),
            false => self.resolve_all(&sources, anew),
        };
        let wanted = commits.and_then(|commits| Ok((self.ground.wanted(&sources, &commits)?, commits)));
        let (wanted, commits) = match wanted {
            Ok(found) => found,
            Err(error) => return failed(error),
        };
        let found = match self.ground.member(app) {
            Ok(member) => self.ground.pairs(name, member, wanted).await.map(|pairs| (member, pairs)),
            Err(error) => Err(error),
        };
        let (member, pairs) = match found {
            Ok(found) => found,
            Err(error) => return failed(error),
        };
        let mut error = None;
        let mut outcomes = Vec::new();
        for pair in pairs.iter().filter(|pair| is_selected(sync, pair)) {
            if pair.wanted.is_none() && sync["prune"] != true {
                continue;
            }
            let outcome = self.ground.bring(name, member, pair).await;
            let status = if outcome.is_ok() { "Synced" } else { "SyncFailed" };
            outcomes.push(json!({
                "group": pair.group, "kind": pair.kind, "name": pair.name, "version": "v1", "namespace": "",
                "status": status, "message": outcome.as_ref().err(),
            }));
            error = error.or(outcome.err());
        }
        // As Go writes it: there, and empty where there are several.
        let mut result = json!({"resources": outcomes, "revision": ""});
        name_revisions(&mut result, spec, &commits);
        name_sources(&mut result, spec);
        match error {
            Some(error) => {
                json!({"phase": "Failed", "message": format!("one or more objects failed to apply: {error}"), "syncResult": result})
            }
            None => {
                json!({"phase": "Succeeded", "message": "successfully synced (all tasks run)", "syncResult": result})
            }
        }
    }

    /// Notes a sync of the whole in the history.
    async fn note(&self, app: &Value, end: &Value) -> bool {
        let mut history = app["status"]["history"].as_array().cloned().unwrap_or_default();
        let id = history.last().and_then(|last| last["id"].as_u64()).map_or(0, |id| id + 1);
        let result = &end["syncResult"];
        let mut entry = json!({
            "id": id, "deployedAt": end["finishedAt"], "deployStartedAt": end["startedAt"],
            "initiatedBy": end["operation"]["initiatedBy"], "source": result["source"],
        });
        for field in ["revision", "revisions", "sources"] {
            if !result[field].is_null() {
                entry[field] = result[field].clone();
            }
        }
        history.push(entry);
        let path = self.path(text(app, "/metadata/name"));
        self.control.merge(&path, &json!({"status": {"history": history}})).await.is_ok()
    }

    /// Writes the end of an operation until an answer comes, and now and then once more.
    async fn end(&self, name: &str, end: &Value) {
        let path = self.path(name);
        let patch = json!({"operation": null, "status": {"operationState": end}});
        for _ in 0..ATTEMPTS {
            match self.control.merge(&path, &patch).await {
                Ok(_) => break,
                Err(error) if error.is_missing() => return,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
        if self.temper.twice && self.chance(30) {
            tokio::time::sleep(self.up_to(Duration::from_secs(4))).await;
            let _ = self.control.merge(&path, &patch).await;
        }
    }
}

/// Whether a sync is of this object too.
fn is_selected(sync: &Value, pair: &Pair) -> bool {
    let Some(selected) = sync["resources"].as_array().filter(|all| !all.is_empty()) else { return true };
    selected.iter().any(|one| text(one, "/kind") == pair.kind && text(one, "/name") == pair.name)
}
