//! Rollouts: shown, and asked things.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::names::baton::{GUARD_SUFFIX, PIN, ROLLOUT, SET_LABEL};
use baton_rollout::explain;
use baton_rollout::fuse;
use baton_rollout::head::Head;
use baton_rollout::pin::Fingerprint;
use baton_rollout::stamp::Stamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::applications::ATTEMPTS;
use super::sets::{FoundSet, set_deed};
use crate::auth::password::random_text;
use crate::configuration::texts;
use crate::error::{Code, Error};
use crate::objects::{CONFIG_MAPS, SETS, text};
use crate::rollouts::{Action, Rollout, Summary, of_objects, preview, set_of, sort};
use crate::server::{Context, Server};

/// Under which key of a head the run is told.
const RUN: &str = "run";
/// Longest reason somebody gives.
pub(crate) const LONGEST_REASON: usize = 1000;

/// A request of a person.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Act {
    /// What.
    pub action: Action,
    /// For which Application, where it is for one.
    #[serde(default)]
    pub application: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Which run the person looked at.
    #[serde(default)]
    pub run: Option<i64>,
    /// Only tell what it would do.
    #[serde(default)]
    pub dry_run: bool,
}

impl Server {
    /// A line for every set the caller may see: who needs a person first. It is of the boards that are put together once
    /// a second for everybody, and costs nothing beside them.
    ///
    /// # Errors
    /// Not everything was seen yet.
    pub async fn rollouts(&self, context: &Context) -> Result<Value, Error> {
        self.0.boards.synced().await?;
        let seen = self.0.boards.all().into_iter().filter(|((namespace, name), board)| {
            let object = self.policy_name(&board.summary.project, namespace, name);
            self.may(context, "applicationsets", "get", &object)
        });
        let mut items: Vec<Summary> = seen.map(|(_, board)| board.summary.clone()).collect();
        sort(&mut items);
        Ok(json!({"items": items}))
    }

    /// The rollout of a set.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn rollout(&self, context: &Context, namespace: &str, name: &str) -> Result<Rollout, Error> {
        let found = self.find_set(context, namespace, name, "get").await?;
        self.rollout_of(context, &found).await
    }

    /// The phases of a set, as its status has them.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn phases(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        let found = self.find_set(context, namespace, name, "get").await?;
        Ok(json!({"generators": found.typed.status.phases}))
    }

    /// Does what a person asks of a rollout, and shows what came of it.
    ///
    /// # Errors
    /// They may not, it makes no sense now, or they looked at another run.
    pub async fn act(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        act: &Act,
    ) -> Result<Rollout, Error> {
        let found = match self.asked_of(context, namespace, name, act).await {
            Ok(found) => found,
            Err(error) => {
                let (verb, kind) = (act.action.as_str(), "ApplicationSet");
                self.denied(context, verb, &act.application, kind, (namespace, name), &error).await;
                return Err(error);
            }
        };
        let mut deed = set_deed(act.action.as_str(), act.action.reason(), &found.raw);
        deed.why.clone_from(&act.reason);
        deed.detail.clone_from(&act.application);
        let result = self.carry_word(&found, act).await;
        self.audited(context, deed, result).await?;
        let found = self.find_set(context, namespace, name, "get").await?;
        self.rollout_of(context, &found).await
    }

    /// What an action would do, for whoever may have it done. Nothing is done.
    ///
    /// # Errors
    /// As of the action itself.
    pub async fn preview(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        act: &Act,
    ) -> Result<Value, Error> {
        let found = self.asked_of(context, namespace, name, act).await?;
        let member = self.judge(&found, act)?;
        if act.action == Action::Skip {
            self.skipped(&found, act, member.as_deref()).await?;
        }
        let rollout = self.rollout_of(context, &found).await?;
        Ok(json!({"text": preview(act.action, &rollout, &act.application)}))
    }

    async fn rollout_of(&self, context: &Context, found: &FoundSet) -> Result<Rollout, Error> {
        self.0.applications.synced().await?;
        let key = crate::mirror::key(&found.raw);
        let own: Vec<Arc<Value>> =
            self.0.applications.all().into_iter().filter(|one| set_of(one).as_ref() == Some(&key)).collect();
        let rollout = of_objects(&found.raw, &own, self.now());
        let mut rollout = rollout.ok_or_else(|| Error::internal("the set cannot be read"))?;
        self.allow(context, &found.object, &mut rollout);
        Ok(rollout)
    }

    /// Tells what the caller may ask for.
    pub(super) fn allow(&self, context: &Context, object: &str, rollout: &mut Rollout) {
        for (offer, action) in rollout.actions.iter_mut().zip(Action::ALL) {
            let right = action.right();
            let decision = self.decision(context, "applicationsets", &right, object);
            offer.allowed = decision.allowed;
            if !decision.allowed {
                offer.why = format!("needs applicationsets, {right}, {object}");
            }
        }
    }

    /// The set of whom something is asked, where the caller may ask it.
    async fn asked_of(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        act: &Act,
    ) -> Result<FoundSet, Error> {
        if act.reason.len() > LONGEST_REASON {
            return Err(Error::invalid(format!("a reason has up to {LONGEST_REASON} characters")));
        }
        self.find_set(context, namespace, name, &act.action.right()).await
    }

    /// The Application that is meant, where one is, of a request that makes sense now.
    fn judge(&self, found: &FoundSet, act: &Act) -> Result<Option<Arc<Value>>, Error> {
        let (set, name) = (&found.typed, text(&found.raw, "/metadata/name"));
        let standing = explain::standing(set, None, &BTreeMap::new());
        if let Some(run) = act.run.filter(|run| *run != standing.run) {
            let message =
                format!("{name} is at run {} by now, not at run {run}: look at it again", standing.run);
            return Err(Error::new(Code::Aborted, message));
        }
        act.action.sense(set, &standing).map_err(Error::precondition)?;
        let wants_application = matches!(act.action, Action::Skip);
        if act.application.is_empty() && wants_application {
            return Err(Error::invalid("name the Application to skip"));
        }
        if !act.application.is_empty() && !matches!(act.action, Action::Skip | Action::Retry) {
            return Err(Error::invalid(format!(
                "{} is asked of the whole set, not of an Application",
                act.action
            )));
        }
        match act.application.as_str() {
            "" => Ok(None),
            member => self.member(found, member).map(Some),
        }
    }

    async fn carry_word(&self, found: &FoundSet, act: &Act) -> Result<(), Error> {
        let member = self.judge(found, act)?;
        match act.action {
            Action::Pause => {
                self.annotate(found, act.action.annotation(), Some("true"), false).await?;
                // The head is what every decision rests on: with it the pause holds before the next write.
                self.hold(found, true).await
            }
            Action::Resume => {
                // The annotation goes last: its change is what the controller sees.
                self.hold(found, false).await?;
                self.annotate(found, act.action.annotation(), None, false).await
            }
            Action::Retry if member.is_some() => {
                let request = format!("{}/{}", nonce(self.now()), act.application);
                self.annotate(found, act.action.annotation(), Some(&request), false).await
            }
            Action::Skip => {
                let pin = self.skipped(found, act, member.as_deref()).await?;
                let annotations = found.typed.metadata.annotations.as_ref();
                let there =
                    annotations.and_then(|all| all.get(act.action.annotation())).map_or("", String::as_str);
                let skipped = with_skip(there, &act.application, &pin.to_string());
                self.annotate(found, act.action.annotation(), Some(&skipped), true).await
            }
            Action::ApproveDeletion => self.pass_fuse(found, None).await,
            Action::Abort | Action::Retry | Action::Advance | Action::Rollback | Action::RollbackAll => {
                let nonce = nonce(self.now());
                self.annotate(found, act.action.annotation(), Some(&nonce), false).await
            }
        }
    }

    /// What the run asks of an Application that is to be skipped.
    async fn skipped(
        &self,
        found: &FoundSet,
        act: &Act,
        member: Option<&Value>,
    ) -> Result<Fingerprint, Error> {
        let pin = self.pin(found, member.unwrap_or(&Value::Null)).await?;
        pin.ok_or_else(|| {
            let name = &act.application;
            Error::precondition(format!("no run asks anything of {name} yet: there is nothing to skip"))
        })
    }

    /// Lets the fuse pass exactly what it holds; `expected` is what the person saw.
    pub(crate) async fn pass_fuse(&self, found: &FoundSet, expected: Option<&str>) -> Result<(), Error> {
        let held = crate::rollouts::action::held(&found.typed);
        let held = held.ok_or_else(|| Error::precondition("no mass deletion waits for approval"))?;
        let asked = fuse::asked_for(held);
        let asked = asked.ok_or_else(|| Error::internal("the set does not say what to approve"))?.to_string();
        if expected.is_some_and(|expected| expected != asked) {
            return Err(Error::new(Code::Aborted, "other Applications would go by now: look at it again"));
        }
        // Bound to the version that was read: what changed meanwhile was not approved.
        self.annotate(found, Action::ApproveDeletion.annotation(), Some(&asked), true).await
    }

    /// Writes an annotation of the set that was read, or takes it away.
    pub(crate) async fn annotate(
        &self,
        found: &FoundSet,
        key: &str,
        value: Option<&str>,
        unchanged: bool,
    ) -> Result<(), Error> {
        // Another set of this name is not what the person looked at.
        let mut patch = json!({"metadata": {"uid": found.typed.metadata.uid, "annotations": {key: value}}});
        if unchanged {
            patch["metadata"]["resourceVersion"] = found.raw["metadata"]["resourceVersion"].clone();
        }
        let sets = self.objects(SETS, text(&found.raw, "/metadata/namespace"));
        sets.merge(text(&found.raw, "/metadata/name"), &patch).await.map(drop)
    }

    fn member(&self, found: &FoundSet, name: &str) -> Result<Arc<Value>, Error> {
        let (namespace, set) = crate::mirror::key(&found.raw);
        let member = self.0.applications.get(&namespace, name);
        let member = member.filter(|one| set_of(one).as_ref() == Some(&(namespace.clone(), set.clone())));
        member.ok_or_else(|| Error::precondition(format!("{set} has no Application {name}")))
    }

    /// What the run asks of an Application: as the head records it, or as its last write was stamped.
    async fn pin(&self, found: &FoundSet, member: &Value) -> Result<Option<Fingerprint>, Error> {
        let kept = self.kept(found).await?;
        let head = kept.and_then(|(_, texts)| Head::read(&texts).ok());
        let uid = text(member, "/metadata/uid");
        let recorded = head.as_ref().and_then(|head| head.row(Fingerprint::of([uid])));
        Ok(recorded.map(|row| row.pin).or_else(|| {
            let stamp: Stamp = member["metadata"]["annotations"][PIN].as_str()?.parse().ok()?;
            (found.typed.metadata.uid.as_deref() == Some(&*stamp.set)).then_some(stamp.pin)
        }))
    }

    /// Writes the pause into the head of the rollout, or takes it away, where there is a head.
    async fn hold(&self, found: &FoundSet, paused: bool) -> Result<(), Error> {
        let (namespace, name) = crate::mirror::key(&found.raw);
        for _ in 0..ATTEMPTS {
            let Some((object, mut texts)) = self.kept(found).await? else { return Ok(()) };
            let Some(run) = texts.get(RUN).and_then(|run| held(run, paused)) else { return Ok(()) };
            let metadata = json!({"uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"]});
            let written = match object["kind"].as_str() {
                Some("ApplicationSet") => {
                    texts.insert(RUN.to_owned(), run);
                    let mut patch = json!({"metadata": metadata});
                    patch["metadata"]["annotations"] = json!({ROLLOUT: json!(texts).to_string()});
                    self.objects(SETS, &namespace).merge(&name, &patch).await
                }
                _ => {
                    let patch = json!({"metadata": metadata, "data": {RUN: run}});
                    self.objects(CONFIG_MAPS, &namespace)
                        .merge(&format!("{name}{GUARD_SUFFIX}"), &patch)
                        .await
                }
            };
            match written {
                Ok(_) => return Ok(()),
                Err(error) if error.code == Code::Aborted => {}
                // Whoever may annotate the set need not be allowed to write the head.
                Err(error) if error.code == Code::PermissionDenied => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(
            Code::Aborted,
            format!("the head of the rollout of {name} changed too often: try again"),
        ))
    }

    /// The head of a rollout as it is kept: in a ConfigMap beside the set, or in an annotation of the set.
    async fn kept(&self, found: &FoundSet) -> Result<Option<(Value, BTreeMap<String, String>)>, Error> {
        let (namespace, name) = crate::mirror::key(&found.raw);
        let map = match self.objects(CONFIG_MAPS, &namespace).find(&format!("{name}{GUARD_SUFFIX}")).await {
            Ok(map) => map,
            Err(error) if error.code == Code::PermissionDenied => None,
            Err(error) => return Err(error),
        };
        // One without the label is somebody else's.
        if let Some(map) = map.filter(|map| map["metadata"]["labels"][SET_LABEL].is_string()) {
            let texts = texts(Some(&map));
            return Ok(Some((map, texts)));
        }
        let Some(mut set) = self.objects(SETS, &namespace).find(&name).await? else { return Ok(None) };
        set["kind"] = "ApplicationSet".into();
        let texts =
            set["metadata"]["annotations"][ROLLOUT].as_str().and_then(|text| serde_json::from_str(text).ok());
        Ok(texts.map(|texts| (set, texts)))
    }
}

/// A text that was never there before.
pub(crate) fn nonce(now: jiff::Timestamp) -> String {
    format!("{}-{}", now.strftime("%Y-%m-%dT%H:%M:%SZ"), random_text::<6>().replace(['-', '_'], "0"))
}

/// The annotation of skipped Applications with one more; what cannot be read counts for nobody and goes.
fn with_skip(there: &str, name: &str, pin: &str) -> String {
    let entries = there.split(',').filter_map(|entry| entry.trim().split_once('='));
    let sound = entries.filter(|(name, pin)| !name.is_empty() && pin.parse::<Fingerprint>().is_ok());
    let mut all: BTreeMap<&str, &str> = sound.collect();
    all.insert(name, pin);
    all.iter().map(|(name, pin)| format!("{name}={pin}")).collect::<Vec<_>>().join(",")
}

/// The text of a head's run with the pause set or taken away; none where it is so already.
fn held(run: &str, paused: bool) -> Option<String> {
    let mut run: Value = serde_json::from_str(run).ok()?;
    let fields = run.as_object_mut()?;
    let before = fields.insert("paused".to_owned(), paused.into());
    (before.unwrap_or(Value::Bool(false)) != Value::Bool(paused)).then(|| run.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_added_to_those_that_can_be_read() {
        let all = with_skip("a=0123456789abcdef,broken,b=xyz", "c", "fedcba9876543210");
        assert_eq!(all, "a=0123456789abcdef,c=fedcba9876543210");
        let now = jiff::Timestamp::UNIX_EPOCH;
        assert_ne!(nonce(now), nonce(now));
    }

    #[test]
    fn the_pause_is_written_beside_what_else_the_run_says() {
        assert_eq!(held(r#"{"seq":3}"#, true).as_deref(), Some(r#"{"paused":true,"seq":3}"#));
        assert_eq!(held(r#"{"seq":3,"paused":true}"#, true), None);
        assert_eq!(held("[]", true), None);
    }
}
