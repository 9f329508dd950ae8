//! What people do to a world, and what befalls its members, git and the head of the rollout.

mod phases;

use std::collections::{BTreeMap, BTreeSet};

use baton_apiserver::Cluster;
use baton_rollout::head::Head;
use baton_rollout::pin::Fingerprint;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::action::{Action, Edit, Operation};
use crate::fleet::{Element, Fleet, Home, NAMESPACE, PINNED, SET, TARGET_NAMESPACE, VARIANTS};
use crate::repository::SHORT;
use crate::scenario::{Ending, Scenario};
use crate::world::{CONTROL, World};

/// Who writes for people.
pub(crate) const PERSON: &str = "person";
/// What drifted shows.
const DRIFTED: &str = "drifted";
/// The object that holds the head of the rollout.
const HEAD: &str = "fleet.baton-rollout";
const STAMP: &str = "baton.dev/pin";
/// How long people lie in wait for an operation.
const LURKING: std::time::Duration = std::time::Duration::from_secs(30);

/// People with a fleet in mind.
pub(crate) struct People<'w> {
    world: &'w World,
    pub(crate) fleet: Fleet,
    /// Those that left by a slip.
    gone: BTreeMap<String, Element>,
    /// By branch, the commit that was pushed last.
    pushed: Vec<usize>,
    /// Every push: when, to which branch, which commit.
    pub(crate) pushes: Vec<(Timestamp, usize, usize)>,
    deleted: bool,
    /// What they deleted themselves: when, where, and the object's name.
    pub(crate) removed: Vec<(Timestamp, String, String)>,
    /// How often they did what.
    pub(crate) tally: BTreeMap<String, u64>,
    nonce: u64,
    /// What they do in the end where a phase has failed.
    ending: Ending,
    /// What they did in the end, since the rollout waited for it.
    pub(crate) helped: Vec<(Timestamp, Action)>,
}

/// The first commit of what some have beside, as people write it where references are tags.
fn pinned(world: &World) -> Option<String> {
    let commits = world.repositories.commits(PINNED);
    commits.first().filter(|_| world.repositories.are_tagged()).map(|commit| commit[..SHORT].to_owned())
}

impl<'w> People<'w> {
    pub(crate) fn new(world: &'w World, scenario: &Scenario) -> People<'w> {
        let branches = world.repositories.branches().len();
        let pushes = (0..branches).map(|branch| (Timestamp::MIN, branch, 0)).collect();
        let pushed = vec![0; branches];
        People {
            world,
            fleet: Fleet { pinned: pinned(world), ..scenario.fleet.clone() },
            gone: BTreeMap::new(),
            pushed,
            pushes,
            deleted: false,
            removed: Vec::new(),
            tally: BTreeMap::new(),
            nonce: 0,
            ending: scenario.ending,
            helped: Vec::new(),
        }
    }

    /// Applies the set as it is wanted now.
    pub(crate) async fn apply(&self) {
        if !self.deleted {
            // A set that is going refuses nothing that is written here.
            let _ = self.world.control.apply(PERSON, &self.fleet.object()).await;
        }
    }

    /// Does what the rollout waits for, and tells of it where there was something to do.
    async fn lend(&mut self, action: Action) {
        let at = self.world.control.now();
        if self.act(&action).await {
            self.helped.push((at, action));
        }
    }

    /// Does something, and counts it where there was something to do.
    pub(crate) async fn act(&mut self, action: &Action) -> bool {
        let acted = self.attempt(action).await;
        match action.fault() {
            _ if !acted => {}
            Some(fault) => self.world.air.count(fault),
            None => *self.tally.entry(action.word()).or_default() += 1,
        }
        acted
    }

    async fn attempt(&mut self, action: &Action) -> bool {
        match action {
            Action::Push { branch, noticed } => return self.push(*branch, noticed).await,
            Action::Variant => self.fleet.variant = 1 - self.fleet.variant,
            Action::Option => self.fleet.option = !self.fleet.option,
            Action::Relabel { app, tier } => match self.fleet.elements.get_mut(app) {
                Some(element) => element.tier = *tier,
                None => return false,
            },
            Action::Join { app, tier } => {
                let member = self.world.members.keys().next().cloned().unwrap_or_default();
                let element = Element { tier: *tier, member, home: Home::Branch(0) };
                self.fleet.elements.insert(app.clone(), element);
            }
            Action::Leave { app } => drop(self.fleet.elements.remove(app)),
            Action::Pause => self.fleet.paused = true,
            Action::Resume => self.fleet.paused = false,
            Action::Abort => self.fleet.abort = Some(self.nonce()),
            Action::Retry { app } => {
                let nonce = self.nonce();
                self.fleet.retry = Some(app.as_ref().map_or(nonce.clone(), |app| format!("{nonce}/{app}")));
            }
            Action::Skip { app } => match self.pin(app) {
                Some(pin) => drop(self.fleet.skips.insert(app.clone(), pin)),
                None => return false,
            },
            Action::Advance => self.fleet.advance = Some(self.nonce()),
            Action::Rollback { all: false } => self.fleet.rollback = Some(self.nonce()),
            Action::Rollback { all: true } => self.fleet.rollback_all = Some(self.nonce()),
            Action::DropPhases if self.fleet.phased.is_none() => return false,
            Action::DropPhases => self.fleet.phased = None,
            Action::Rephase { strategy } => self.fleet.phased = Some(strategy.clone()),
            Action::Strategy { steps } => self.fleet.steps.clone_from(steps),
            Action::DeletionOrder(order) => self.fleet.deletion = order.clone(),
            Action::Flap { app } => return self.flap(app).await,
            Action::Drift { app, deletes } => return self.drift(app, *deletes).await,
            Action::Storm => {
                let names: Vec<String> = self.fleet.elements.keys().cloned().collect();
                let mut any = false;
                for name in names {
                    any |= self.drift(&name, false).await;
                }
                return any;
            }
            Action::Exodus => match self.fleet.elements.keys().nth(1).cloned() {
                Some(second) => self.gone.append(&mut self.fleet.elements.split_off(&second)),
                None => return false,
            },
            Action::Return if self.gone.is_empty() => return false,
            Action::Return => self.fleet.elements.append(&mut self.gone),
            Action::Break { slip } => self.fleet.broken = Some(*slip),
            Action::Mend => self.fleet.broken = None,
            Action::Window { time } => return self.window(*time).await,
            Action::EditSpec { app, path } => return self.edit_spec(app, *path).await,
            Action::EditLabel { app, tier } => {
                let labels = json!({"tier": format!("t{tier}")});
                return self.patch(app, &json!({"metadata": {"labels": labels}})).await;
            }
            Action::EditStamp { app, how } => return self.edit_stamp(app, *how).await,
            Action::Operate { app, how, over } => return self.operate(app, *how, *over).await,
            Action::SwitchOn { app } => {
                let automated = json!({"enabled": null, "prune": true, "selfHeal": true});
                return self.patch(app, &json!({"spec": {"syncPolicy": {"automated": automated}}})).await;
            }
            Action::Misplace { app } => {
                return self.patch(app, &json!({"spec": {"project": "nowhere"}})).await;
            }
            Action::Wipe { app } => return self.wipe(app).await,
            Action::Trim { app } => return self.trim(app).await,
            Action::Recreate { app } => return self.recreate(app).await,
            Action::SyncByHand => return self.sync_by_hand().await,
            Action::Approve => return self.approve().await,
            Action::DeleteSet { cascade } => return self.delete_set(cascade).await,
            Action::MemberAway { member, time } => {
                let (air, member, time) = (self.world.air.clone(), member.clone(), *time);
                air.set_away(&member, true);
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    air.set_away(&member, false);
                });
                return true;
            }
            Action::GitAway { branch, time } => {
                let (repositories, time) = (self.world.repositories.clone(), *time);
                let url = repositories.branches()[*branch].url.clone();
                let went = repositories.set_away(&url, true);
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    repositories.set_away(&url, false);
                });
                return went;
            }
            Action::Head(how) => return self.spoil_head(*how).await,
        }
        self.apply().await;
        !self.deleted
    }

    fn nonce(&mut self) -> String {
        self.nonce += 1;
        format!("n{}", self.nonce)
    }

    async fn push(&mut self, branch: usize, noticed: &[String]) -> bool {
        self.pushed[branch] += 1;
        self.world.push(branch, self.pushed[branch]);
        self.pushes.push((self.world.control.now(), branch, self.pushed[branch]));
        for app in noticed {
            let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
            self.patch(app, &patch).await;
        }
        true
    }

    /// What the run asks of an Application, as its head records it.
    fn pin(&self, app: &str) -> Option<String> {
        let uid = self.application(app)?["metadata"]["uid"].as_str()?.to_owned();
        let map = World::objects(&self.world.control, "configmaps").remove(HEAD)?;
        let texts = map["data"].as_object()?.iter();
        let texts = texts.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect();
        let head = Head::read(&texts).ok()?;
        Some(head.row(Fingerprint::of([uid]))?.pin.to_string())
    }

    async fn flap(&self, app: &str) -> bool {
        let mut any = false;
        for cluster in self.world.members.values() {
            for pod in World::objects(cluster, "pods").keys().filter(|pod| is_of(pod, app)) {
                let path = format!("/api/v1/namespaces/{TARGET_NAMESPACE}/pods/{pod}");
                any |= request(cluster, Method::DELETE, &path, &Value::Null).await.is_success();
            }
        }
        any
    }

    async fn drift(&mut self, app: &str, deletes: bool) -> bool {
        let Some(element) = self.fleet.elements.get(app) else { return false };
        let Some(cluster) = self.world.members.get(element.member.as_str()) else { return false };
        let path = format!("/api/v1/namespaces/{TARGET_NAMESPACE}/configmaps/{app}?fieldManager={PERSON}");
        let change = json!({"data": {"shown": DRIFTED}});
        if deletes {
            self.removed.push((self.world.control.now(), element.member.clone(), app.to_owned()));
        }
        let answer = match deletes {
            true => request(cluster, Method::DELETE, &path, &Value::Null).await,
            false => request(cluster, Method::PATCH, &path, &change).await,
        };
        answer.is_success()
    }

    async fn edit_spec(&self, app: &str, path: bool) -> bool {
        let Some(live) = self.application(app) else { return false };
        let spec = match path && live["spec"]["source"].is_object() {
            true => json!({"source": {"path": format!("{}/{app}", VARIANTS[1 - self.fleet.variant])}}),
            false => json!({"syncPolicy": {"syncOptions": ["Edited=true"]}}),
        };
        self.patch(app, &json!({"spec": spec})).await
    }

    async fn edit_stamp(&self, app: &str, how: Edit) -> bool {
        let Some(live) = self.application(app) else { return false };
        let Some(stamp) = live["metadata"]["annotations"][STAMP].as_str() else { return false };
        let parts: Vec<&str> = stamp.split('/').collect();
        let edited = match (how, parts.as_slice()) {
            (Edit::Delete, _) => Value::Null,
            (Edit::Reset, [set, _, _, pin]) => format!("{set}/1/1/{pin}").into(),
            _ => "nonsense".into(),
        };
        self.patch(app, &json!({"metadata": {"annotations": {STAMP: edited}}})).await
    }

    async fn operate(&self, app: &str, how: Operation, over: bool) -> bool {
        let Some(live) = self.application(app) else { return false };
        if !live["operation"].is_null() && !over {
            return false;
        }
        let mut sync = json!({"prune": true});
        match (how, self.fleet.elements.get(app).map(|element| element.home)) {
            (Operation::Earlier, Some(Home::Branch(branch))) => {
                sync["revision"] =
                    self.world.repositories.commits(branch)[self.pushed[branch] / 2].clone().into();
            }
            (Operation::Partial, _) => {
                sync["resources"] = json!([{"group": "", "kind": "ConfigMap", "name": app}]);
            }
            _ => {}
        }
        self.order(app, &sync).await
    }

    /// Wipes the operation of this Application, or else of the first that has one: in the middle of a rollout.
    async fn wipe(&self, app: &str) -> bool {
        match self.caught(app, |app| !app["operation"].is_null()).await {
            Some(name) => self.patch(&name, &json!({"operation": null})).await,
            None => false,
        }
    }

    /// Names the resources that an operation of a rollout is to sync, all of them, before it begins. What is selected
    /// runs no hooks.
    async fn trim(&self, app: &str) -> bool {
        let waits = |app: &Value| {
            let runs = app.pointer("/status/operationState/phase").and_then(Value::as_str) == Some("Running");
            app.pointer("/operation/info").is_some() && !runs
        };
        let Some(name) = self.caught(app, waits).await else { return false };
        let resource = |(group, kind): (&str, &str)| json!({"group": group, "kind": kind, "name": name});
        let resources = [("", "ConfigMap"), ("apps", "Deployment")].map(resource);
        self.patch(&name, &json!({"operation": {"sync": {"resources": resources}}})).await
    }

    /// This Application, or else the first, that is soon found to be such.
    async fn caught(&self, app: &str, is_such: impl Fn(&Value) -> bool) -> Option<String> {
        let (deadline, mut seen) = (Instant::now() + LURKING, 0);
        while Instant::now() < deadline {
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
            let revision = self.world.control.store().revision();
            if std::mem::replace(&mut seen, revision) == revision {
                continue;
            }
            let all = World::objects(&self.world.control, "applications.argoproj.io");
            let mut names = all.keys().filter(|name| *name == app).chain(all.keys());
            if let Some(name) = names.find(|name| is_such(&all[*name])) {
                return Some(name.clone());
            }
        }
        None
    }

    /// Nothing may sync for a while.
    async fn window(&self, time: std::time::Duration) -> bool {
        let set = async |cluster: &Cluster, windows: Value| {
            let path = format!(
                "/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/appprojects/default?fieldManager={PERSON}"
            );
            request(cluster, Method::PATCH, &path, &json!({"spec": {"syncWindows": windows}}))
                .await
                .is_success()
        };
        let deny =
            json!([{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}]);
        let control = self.world.control.clone();
        let shut = set(&control, deny).await;
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            set(&control, Value::Null).await
        });
        shut
    }

    async fn recreate(&mut self, app: &str) -> bool {
        if self.application(app).is_none() {
            return false;
        }
        self.removed.push((self.world.control.now(), CONTROL.to_owned(), app.to_owned()));
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications/{app}");
        request(&self.world.control, Method::DELETE, &path, &Value::Null).await.is_success()
    }

    async fn order(&self, app: &str, sync: &Value) -> bool {
        let mut whole = json!({"revision": null, "revisions": null, "resources": null, "syncOptions": null});
        for (key, value) in sync.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        let by = json!({"username": "someone", "automated": null});
        let operation = json!({"sync": whole, "initiatedBy": by, "info": null, "retry": null});
        self.patch(app, &json!({"operation": operation})).await
    }

    /// Syncs what differs in steps that are left to people.
    pub(crate) async fn sync_by_hand(&self) -> bool {
        let held: BTreeSet<String> = self
            .fleet
            .steps
            .iter()
            .filter(|step| step.max_update == Some(json!(0)))
            .map(|step| format!("t{}", step.tier))
            .collect();
        self.sync_those(|_, app| {
            app.pointer("/metadata/labels/tier")
                .and_then(Value::as_str)
                .is_some_and(|tier| held.contains(tier))
        })
        .await
    }

    /// Syncs what differs and is meant.
    async fn sync_those(&self, is_meant: impl Fn(&str, &Value) -> bool) -> bool {
        let mut any = false;
        for (name, app) in World::objects(&self.world.control, "applications.argoproj.io") {
            let differs = app.pointer("/status/sync/status").and_then(Value::as_str) == Some("OutOfSync");
            let stays = app["metadata"]["deletionTimestamp"].is_null();
            if differs && stays && app["operation"].is_null() && is_meant(&name, &app) {
                any |= self.order(&name, &json!({"prune": true})).await;
            }
        }
        any
    }

    /// Approves every deletion of the Applications that wait for it.
    pub(crate) async fn approve(&self) -> bool {
        let now = self.world.control.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut any = false;
        for (name, app) in World::objects(&self.world.control, "applications.argoproj.io") {
            let state = &app["status"]["operationState"];
            let runs = matches!(state["phase"].as_str(), Some("Running" | "Terminating"));
            let since = if runs { &state["startedAt"] } else { &app["metadata"]["deletionTimestamp"] };
            let given = app.pointer("/metadata/annotations/argocd.argoproj.io~1deletion-approved");
            // Times of one form and zone: the later is the greater.
            let waits = since.is_string() && given.and_then(Value::as_str) < since.as_str();
            if waits {
                let patch =
                    json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}});
                any |= self.patch(&name, &patch).await;
            }
        }
        any
    }

    /// Does what the rollout says it waits for people to do. `round` counts how often it came to rest before.
    pub(crate) async fn help(&mut self, round: usize) {
        if self.leave_it() {
            return;
        }
        self.lend(Action::Approve).await;
        self.lend(Action::SyncByHand).await;
        self.bring_back().await;
        let named = self.named();
        let says = |reason: &str| named.iter().any(|(name, _)| name == reason);
        // Of one that was done before it is told that it is so no more.
        let troubled =
            named.iter().filter(|(reason, _)| ["OrphanedOperation", "Regressed"].contains(&&**reason));
        for (_, name) in troubled {
            let app = self.application(name);
            if app.is_some_and(|app| ails(&app) == Some("OrphanedOperation")) {
                self.order(name, &json!({"prune": true})).await;
            }
        }
        let failed =
            ["SyncFailed", "OutOfSyncAfterSync", "TooManyFailures", "SpecRewritten"].into_iter().any(says);
        // Who sees nothing tries.
        let blind = self.world.air.is_blind();
        if round < 2 && (failed || blind) {
            self.lend(Action::Retry { app: None }).await;
            return;
        }
        // What drifted and is not to be healed, or was synced by somebody to something else, stays so until somebody
        // syncs it.
        if round < 6 && says("Regressed") {
            let meant: BTreeSet<String> =
                named.into_iter().filter(|(name, _)| name == "Regressed").map(|(_, object)| object).collect();
            let heals = self.fleet.automated;
            // What was never synced is for the rollout to sync.
            let was_synced = |app: &Value| app.pointer("/status/history/0").is_some();
            self.sync_those(|name, app| {
                meant.contains(name) && was_synced(app) && !(heals && is_at_last_sync(app))
            })
            .await;
            return;
        }
        // What stood in a phase's way is mended by now; that it is to be tried again is for people to say.
        if round < 8 {
            self.mend_phase(round).await;
        }
    }

    /// Brings back what was moved into a project that does not exist, where the set does not: nothing of it can be deleted.
    async fn bring_back(&self) {
        for (name, app) in World::objects(&self.world.control, "applications.argoproj.io") {
            if app["spec"]["project"] == "nowhere" && !app["metadata"]["deletionTimestamp"].is_null() {
                self.patch(&name, &json!({"spec": {"project": "default"}})).await;
            }
        }
    }

    /// What the set says it waits for: reasons and objects. Where it may show nothing, what its Applications look like.
    fn named(&self) -> Vec<(String, String)> {
        if self.world.air.is_blind() {
            let all = World::objects(&self.world.control, "applications.argoproj.io").into_iter();
            return all.filter_map(|(name, app)| Some((ails(&app)?.to_owned(), name))).collect();
        }
        let mut sets = World::objects(&self.world.control, "applicationsets.argoproj.io");
        let Some(set) = sets.remove(SET) else { return Vec::new() };
        let blockers = set.pointer("/status/rollout/blockers").and_then(Value::as_array).cloned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pair = |blocker: &Value| (text(&blocker["reason"]), text(&blocker["object"]));
        blockers.iter().flatten().map(pair).collect()
    }

    async fn delete_set(&mut self, cascade: &str) -> bool {
        self.deleted = true;
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/{SET}");
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": cascade});
        request(&self.world.control, Method::DELETE, &path, &options).await.is_success()
    }

    async fn spoil_head(&self, how: Edit) -> bool {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{HEAD}?fieldManager={PERSON}");
        let control = &self.world.control;
        let patch = match how {
            Edit::Delete => return request(control, Method::DELETE, &path, &Value::Null).await.is_success(),
            Edit::Reset => json!({"data": null}),
            Edit::Garble => json!({"data": {"run": "nonsense"}}),
        };
        request(control, Method::PATCH, &path, &patch).await.is_success()
    }

    fn application(&self, app: &str) -> Option<Value> {
        World::objects(&self.world.control, "applications.argoproj.io").remove(app)
    }

    async fn patch(&self, app: &str, patch: &Value) -> bool {
        let path = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications/{app}?fieldManager={PERSON}"
        );
        request(&self.world.control, Method::PATCH, &path, patch).await.is_success()
    }
}

/// What seems to be wrong with an Application.
fn ails(app: &Value) -> Option<&'static str> {
    let text = |pointer: &str| app.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match (text("/status/operationState/phase"), text("/status/sync/status")) {
        ("Running", _) if app["operation"].is_null() => Some("OrphanedOperation"),
        ("Failed" | "Error", _) => Some("SyncFailed"),
        (_, "OutOfSync") => Some("Regressed"),
        _ if app.pointer("/status/operationState/operation/sync/resources").is_some() => Some("SyncFailed"),
        _ => None,
    }
}

/// Whether it was last synced, as a whole, to what it is compared with.
fn is_at_last_sync(app: &Value) -> bool {
    let last = app.pointer("/status/history").and_then(Value::as_array).and_then(|all| all.last());
    let sync = &app["status"]["sync"];
    last.is_some_and(|last| {
        ["revision", "revisions"].iter().all(|field| last[field] == sync[field])
            && ["source", "sources"].iter().all(|field| last[field] == sync["comparedTo"][field])
    })
}

fn is_of(pod: &str, app: &str) -> bool {
    pod.strip_prefix(app).is_some_and(|rest| rest.starts_with('-'))
}

/// A request without faults; what it is about may be gone.
async fn request(cluster: &Cluster, method: Method, path: &str, body: &Value) -> StatusCode {
    let kind = match method == Method::PATCH {
        true => "application/merge-patch+json",
        false => "application/json",
    };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    match request.body(Full::new(body)) {
        Ok(request) => cluster.handle(request).await.status(),
        Err(_) => StatusCode::BAD_REQUEST,
    }
}
