//! What has to be taken off an Argo CD's objects when Baton goes, and what must stay for now.

use baton_api::names::application::REFRESH;
use baton_api::names::baton::{
    ABORT, ADVANCE, COMPARED, DELETION_APPROVED, DELETION_ASKED_BY, GUARD_SUFFIX, PAUSED, PHASES_LABEL, PIN,
    RETRY, ROLLBACK, ROLLBACK_ALL, ROLLOUT, SET_LABEL, SKIP, WITNESS_SUFFIX,
};
use serde_json::{Map, Value, json};

use super::installation::{Installation, called};
use super::standing::Standing;

/// What people have asked Baton for, on a set. Nobody else reads it, and what comes back one day must not act on it.
const REQUESTS: [&str; 8] = [PAUSED, ABORT, RETRY, ADVANCE, ROLLBACK, ROLLBACK_ALL, SKIP, DELETION_APPROVED];

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// As `Application argocd/web`.
    pub(super) object: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// In words.
    pub(super) what: Vec<String>,
    /// The merge patch, under the version that was read.
    pub(super) patch: Value,
}

/// What is to be done, in this order: Applications, sets, and then what is kept beside them, which nothing needs any more.
#[derive(Debug, Default)]
pub(super) struct Parting {
    pub(super) applications: Vec<Change>,
    pub(super) sets: Vec<Change>,
    /// What a person has to know or do.
    pub(super) left: Vec<String>,
}

/// What follows from what there is, and from what is kept beside the sets.
pub(super) fn plan(installation: &Installation, kept: &[Value]) -> Parting {
    let mut parting = Parting::default();
    for application in &installation.applications {
        let is_ours = is_marked(application) || is_guarded(application);
        let set = installation.sets.iter().find(|set| owns(set, application));
        // Of an earlier run of this, which left it to a person, the marks are gone.
        let is_left = set.is_some_and(|set| is_ordered(set) && is_held(set, application));
        if !is_ours && !is_left {
            continue;
        }
        let Some(set) = set else {
            parting.left.extend(orphan(installation, application));
            continue;
        };
        let automated = automated(set, application, || Standing::of(set, kept));
        parting.applications.extend(release(application, &automated));
        if let Automated::Left(why) = automated {
            parting.left.push(format!("{} {why}", called(application)));
        }
    }
    for set in &installation.sets {
        parting.sets.extend(silence(set));
    }
    parting
}

impl Parting {
    /// Whether an Application still depends on a guard when all this is done.
    pub(super) fn leaves_guarded(&self, application: &Value) -> bool {
        let metadata = &application["metadata"];
        let is_freed = |change: &Change| {
            metadata["namespace"] == *change.namespace
                && metadata["name"] == *change.name
                && !change.patch["metadata"]["ownerReferences"].is_null()
        };
        is_guarded(application) && !self.applications.iter().any(is_freed)
    }
}

/// Without its guard it would be nobody's, and the garbage collector would take it.
fn orphan(installation: &Installation, application: &Value) -> Option<String> {
    let guard = owners(application).find(|owner| is_guard(owner))?;
    let set = guard["name"].as_str().and_then(|name| name.strip_suffix(GUARD_SUFFIX)).unwrap_or_default();
    let is_there = installation.sets.iter().any(|one| {
        one["metadata"]["name"] == set && one["metadata"]["namespace"] == application["metadata"]["namespace"]
    });
    let gone = if is_there { "no longer its owner" } else { "gone" };
    Some(format!(
        "{} is left as it is: its ApplicationSet is {gone}, and without Baton's guard it would be deleted; keep it by taking its \
         ownerReferences away, or delete it",
        called(application)
    ))
}

/// Whether an object is kept beside a set by Baton.
pub(super) fn is_kept_beside(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let owned = owners(object).any(|owner| owner["kind"] == "ApplicationSet");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    !labels[PHASES_LABEL].is_null() && owned
        || !labels[SET_LABEL].is_null()
            && [GUARD_SUFFIX, WITNESS_SUFFIX].iter().any(|end| name.ends_with(end))
}

/// Whether an Application still depends on a guard.
pub(super) fn is_guarded(application: &Value) -> bool {
    owners(application).any(is_guard)
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn is_guard(owner: &Value) -> bool {
    owner["kind"] == "ConfigMap" && owner["name"].as_str().is_some_and(|name| name.ends_with(GUARD_SUFFIX))
}

fn owns(set: &Value, application: &Value) -> bool {
    set["metadata"]["namespace"] == application["metadata"]["namespace"]
        && owners(application).any(|owner| owner["uid"] == set["metadata"]["uid"])
}

/// Whether a set decides when its Applications are synced.
fn is_ordered(set: &Value) -> bool {
    set["spec"]["strategy"]["type"] == "RollingSync"
        || set["spec"]["generators"].to_string().contains("\"deploymentStrategy\"")
}

/// Whether an Application has a mark of Baton's.
fn is_marked(application: &Value) -> bool {
    let metadata = &application["metadata"];
    !metadata["labels"][SET_LABEL].is_null() || !metadata["annotations"][PIN].is_null()
}

/// Whether automated sync is switched off in its place, or taken away where definitions know no such place.
fn is_held(set: &Value, application: &Value) -> bool {
    let live = &application["spec"]["syncPolicy"]["automated"];
    let wanted = &set["spec"]["template"]["spec"]["syncPolicy"]["automated"];
    live["enabled"] == false || live.is_null() && wanted.is_object()
}

fn change(object: &Value, what: Vec<String>, mut patch: Value) -> Option<Change> {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    patch["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    patch["metadata"]["uid"] = object["metadata"]["uid"].clone();
    Some(Change { object: called(object), namespace: text("namespace")?, name: text("name")?, what, patch })
}

/// An Application without what is Baton's.
fn release(application: &Value, automated: &Automated) -> Option<Change> {
    let mut what = Vec::new();
    let mut patch = json!({"metadata": {}});
    if is_marked(application) {
        patch["metadata"]["labels"] = json!({SET_LABEL: null});
        patch["metadata"]["annotations"] = json!({PIN: null, COMPARED: null, DELETION_ASKED_BY: null});
        what.push("its marks go".to_owned());
    }
    if owners(application).any(is_guard) {
        let rest: Vec<&Value> = owners(application).filter(|owner| !is_guard(owner)).collect();
        patch["metadata"]["ownerReferences"] = json!(rest);
        what.push("its guard goes".to_owned());
    }
    match automated {
        Automated::AsItIs => {}
        Automated::Restored(automated) => {
            patch["spec"] = json!({"syncPolicy": {"automated": automated}});
            what.push("automated is as in the template".to_owned());
        }
        // With the marks goes what is known of its commit. The next run of this goes by what it is compared with now, and with
        // automated sync off nothing comes of the comparison.
        Automated::Left(_) if is_marked(application) && !is_asked(application) => {
            patch["metadata"]["annotations"][REFRESH] = "normal".into();
            what.push("it is compared once more".to_owned());
        }
        Automated::Left(_) => {}
    }
    if what.is_empty() { None } else { change(application, what, patch) }
}

/// A set without its head, and without what was asked of Baton.
fn silence(set: &Value) -> Option<Change> {
    let annotations = &set["metadata"]["annotations"];
    let mut what = Vec::new();
    if !annotations[ROLLOUT].is_null() {
        what.push("the head of its rollout goes".to_owned());
    }
    let asked: Vec<&str> = REQUESTS.into_iter().filter(|name| !annotations[*name].is_null()).collect();
    if !asked.is_empty() {
        what.push(format!("what was asked of Baton goes ({})", asked.join(", ")));
    }
    if annotations[PAUSED] == "true" {
        what.push("it was paused, and the next controller knows of no pause".to_owned());
    }
    let gone: Map<String, Value> =
        asked.into_iter().chain([ROLLOUT]).map(|name| (name.to_owned(), Value::Null)).collect();
    let patch = json!({"metadata": {"annotations": gone}});
    if what.is_empty() { None } else { change(set, what, patch) }
}

/// What becomes of automated sync.
enum Automated {
    AsItIs,
    /// The patch that makes it as the template has it.
    Restored(Value),
    /// It stays off: why, and what to do.
    Left(String),
}

/// Makes `automated` as the template has it, where that starts nothing.
fn automated(set: &Value, application: &Value, standing: impl FnOnce() -> Standing) -> Automated {
    let live = &application["spec"]["syncPolicy"]["automated"];
    let wanted = &set["spec"]["template"]["spec"]["syncPolicy"]["automated"];
    if live == wanted || !application["metadata"]["deletionTimestamp"].is_null() {
        return Automated::AsItIs;
    }
    let elsewhere = set["spec"]["templatePatch"].as_str().is_some_and(|text| text.contains("automated"))
        || set["spec"]["generators"].to_string().contains("\"automated\"");
    if elsewhere {
        return Automated::Left(
            "keeps its automated as it is, for templatePatch or a generator's template speak of it; the next ApplicationSet \
             controller writes it"
                .to_owned(),
        );
    }
    let Some(block) = wanted.as_object() else { return Automated::AsItIs };
    let unrest = if wanted["enabled"] == false { None } else { unrest(application, standing) };
    if let Some(why) = unrest {
        return Automated::Left(format!(
            "stays without automated sync: {why}; sync it, or leave it to the next ApplicationSet controller, then run this again"
        ));
    }
    let mut patch: Map<String, Value> = block.clone();
    for key in live.as_object().into_iter().flatten().map(|(key, _)| key) {
        patch.entry(key.clone()).or_insert(Value::Null);
    }
    Automated::Restored(Value::Object(patch))
}

/// Why automated sync would start something. With it the Application is compared anew with the newest commit, whatever its status
/// says: so that must be of the commit that the rollout brought it to, and nothing may be known to wait behind that.
fn unrest(application: &Value, standing: impl FnOnce() -> Standing) -> Option<String> {
    let status = &application["status"];
    if status["sync"]["status"] != "Synced" {
        let word = status["sync"]["status"].as_str().unwrap_or("not compared");
        return Some(format!("it is {word} and would be synced at once"));
    }
    if !application["operation"].is_null() || status["operationState"]["phase"] == "Running" {
        return Some("it is being synced".to_owned());
    }
    if is_asked(application) {
        return Some("it waits for a comparison, and what comes of that would be synced at once".to_owned());
    }
    // What an earlier run of this left was compared since.
    if is_marked(application) { standing().in_the_way(application) } else { None }
}

/// Whether a comparison is asked for that was not made yet.
fn is_asked(application: &Value) -> bool {
    !application["metadata"]["annotations"][REFRESH].is_null()
}

#[cfg(test)]
mod tests {
    use baton_rollout::head::{self, Done, Head, Row, Run};
    use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};

    use super::*;

    fn set(automated: Value) -> Value {
        json!({
            "kind": "ApplicationSet", "metadata": {"name": "web", "namespace": "argocd", "uid": "s"},
            "spec": {"generators": [{"list": {}}], "template": {"spec": {"syncPolicy": {"automated": automated}}}},
        })
    }

    fn application(owners: Value, sync: &str) -> Value {
        json!({
            "kind": "Application",
            "metadata": {
                "name": "a", "namespace": "argocd", "uid": "u", "resourceVersion": "7", "ownerReferences": owners,
                "labels": {SET_LABEL: "web", "env": "dev"}, "annotations": {PIN: "s/1/1/x"},
            },
            "spec": {
                "project": "default", "destination": {"name": "in-cluster"}, "source": {"repoURL": "r", "targetRevision": "main"},
                "syncPolicy": {"automated": {"enabled": false, "prune": true}},
            },
            "status": {"sync": {"status": sync, "revision": "c"}},
        })
    }

    fn owner() -> Value {
        json!({"kind": "ApplicationSet", "name": "web", "uid": "s"})
    }

    fn guard() -> Value {
        json!({"kind": "ConfigMap", "name": "web.baton-rollout", "uid": "g"})
    }

    fn planned(sets: &[Value], application: Value, kept: &[Value]) -> Parting {
        let installation =
            Installation { sets: sets.to_vec(), applications: vec![application], ..Installation::default() };
        plan(&installation, kept)
    }

    /// The head of a run that goes by a commit, and whether it has brought the Application there.
    fn head(commit: &str, done: bool, paused: bool) -> Value {
        let key =
            SourceKey { repo: "r".into(), target: "main".into(), chart: "".into(), tag_prefix: "".into() };
        let row = Row {
            done: done.then_some(Done::Synced),
            ..Row::new(Fingerprint::of(["u"]), Fingerprint::of(["p"]))
        };
        let change = head::Change {
            run: Some(Run { set: "s".into(), seq: 2, paused, ..Run::default() }),
            revisions: Some([(key, Resolution::exact(commit))].into()),
            rows: vec![row],
            anew: true,
        };
        let mut head = Head::default();
        head.apply(&change);
        json!({
            "kind": "ConfigMap", "data": head.texts_of(&change),
            "metadata": {"name": "web.baton-rollout", "namespace": "argocd", "labels": {SET_LABEL: "web"}},
        })
    }

    fn done() -> Value {
        head("c", true, false)
    }

    #[test]
    fn marks_and_guards_go_under_the_version_that_was_read() {
        let parting = planned(
            &[set(json!({"prune": true}))],
            application(json!([owner(), guard()]), "Synced"),
            &[done()],
        );
        assert_eq!(parting.left, [""; 0]);
        assert_eq!(
            parting.applications[0].patch,
            json!({
                "metadata": {
                    "uid": "u", "resourceVersion": "7", "ownerReferences": [owner()],
                    "labels": {SET_LABEL: null},
                    "annotations": {PIN: null, COMPARED: null, DELETION_ASKED_BY: null},
                },
                "spec": {"syncPolicy": {"automated": {"prune": true, "enabled": null}}},
            })
        );
    }

    #[test]
    fn a_status_of_before_the_run_is_not_believed() {
        let automated = json!({"prune": true});
        for (kept, part) in [
            (vec![head("newer", false, false)], "run 2 of its rollout has not brought it to its commit"),
            (vec![head("c", false, false)], "has not brought it"),
            (vec![head("newer", true, false)], "has not brought it"),
            (vec![head("c", true, true)], "is paused"),
            (vec![], "nothing tells which commit"),
        ] {
            let parting = planned(&[set(automated.clone())], application(json!([owner()]), "Synced"), &kept);
            let patch = &parting.applications[0].patch;
            assert!(patch["spec"].is_null(), "{part}: {patch}");
            assert_eq!(
                patch["metadata"]["annotations"][REFRESH], "normal",
                "the next run of this knows more: {part}"
            );
            assert!(parting.left[0].contains(part), "{part}: {:?}", parting.left);
        }
        let mut paused = set(automated.clone());
        paused["metadata"]["annotations"] = json!({PAUSED: "true"});
        let parting = planned(&[paused], application(json!([owner()]), "Synced"), &[done()]);
        assert!(parting.left[0].contains("is paused"), "{:?}", parting.left);
        let mut asked = application(json!([owner()]), "Synced");
        asked["metadata"]["annotations"][REFRESH] = "normal".into();
        let parting = planned(&[set(automated)], asked, &[done()]);
        assert!(parting.left[0].contains("waits for a comparison"), "{:?}", parting.left);
    }

    #[test]
    fn what_was_asked_of_baton_goes_and_what_was_set_for_good_stays() {
        let mut asked = set(Value::Null);
        asked["metadata"]["resourceVersion"] = "9".into();
        asked["metadata"]["annotations"] = json!({
            ROLLOUT: "{}", PAUSED: "true", SKIP: "a=x", "baton.dev/deletion-fuse": "30%", "team": "a",
        });
        let installation = Installation { sets: vec![asked], ..Installation::default() };
        let parting = plan(&installation, &[]);
        let annotations = json!({ROLLOUT: null, PAUSED: null, SKIP: null});
        assert_eq!(
            parting.sets[0].patch,
            json!({"metadata": {"uid": "s", "resourceVersion": "9", "annotations": annotations}})
        );
        let told = parting.sets[0].what.join("; ");
        assert!(told.contains("baton.dev/paused, baton.dev/skip") && told.contains("no pause"), "{told}");
        let plain = Installation { sets: vec![set(Value::Null)], ..Installation::default() };
        assert!(plan(&plain, &[]).sets.is_empty());
    }

    #[test]
    fn automated_comes_back_only_where_it_starts_nothing() {
        for (wanted, sync, restored, told) in [
            (json!({"prune": true}), "Synced", true, false),
            (json!({"prune": true}), "OutOfSync", false, true),
            (json!({"prune": true, "enabled": true}), "Unknown", false, true),
            (json!({"prune": true, "enabled": false}), "OutOfSync", false, false),
            (json!({"prune": false, "enabled": false}), "OutOfSync", true, false),
            (Value::Null, "Synced", false, false),
        ] {
            let parting = planned(&[set(wanted.clone())], application(json!([owner()]), sync), &[done()]);
            let patch = &parting.applications[0].patch;
            assert_eq!(!patch["spec"].is_null(), restored, "{wanted} {sync}: {patch}");
            assert_eq!(!parting.left.is_empty(), told, "{wanted} {sync}: {:?}", parting.left);
        }
        let mut patched = set(json!({"prune": true}));
        patched["spec"]["templatePatch"] = "spec: {syncPolicy: {automated: {}}}".into();
        let parting = planned(&[patched], application(json!([owner()]), "Synced"), &[done()]);
        assert!(parting.applications[0].patch["spec"].is_null());
        assert!(parting.left[0].contains("templatePatch"));
    }

    #[test]
    fn what_an_earlier_run_has_left_to_a_person_is_finished_by_the_next() {
        let mut without_marks = application(json!([owner()]), "Synced");
        without_marks["metadata"]["labels"] = json!({"env": "dev"});
        without_marks["metadata"]["annotations"] = Value::Null;
        let plain = set(json!({"prune": true}));
        assert!(
            planned(std::slice::from_ref(&plain), without_marks.clone(), &[]).applications.is_empty(),
            "no set of ours"
        );
        let mut ordered = plain;
        ordered["spec"]["strategy"] = json!({"type": "RollingSync", "rollingSync": {"steps": []}});
        let parting = planned(&[ordered.clone()], without_marks.clone(), &[]);
        assert_eq!(parting.applications[0].what, ["automated is as in the template"]);
        // Definitions that know no `enabled` have lost the whole block.
        let mut bare = without_marks.clone();
        bare["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
        let parting = planned(&[ordered.clone()], bare.clone(), &[]);
        assert_eq!(
            parting.applications[0].patch["spec"]["syncPolicy"],
            json!({"automated": {"prune": true}})
        );
        for mut left in [without_marks, bare] {
            left["status"]["sync"]["status"] = "OutOfSync".into();
            let parting = planned(&[ordered.clone()], left, &[]);
            assert!(parting.applications.is_empty() && parting.left.len() == 1, "{:?}", parting.left);
        }
    }

    #[test]
    fn what_would_be_nobodys_is_left_alone() {
        for owners in [json!([guard()]), json!([owner(), guard()])] {
            let guarded = application(owners, "Synced");
            let parting = planned(&[], guarded.clone(), &[]);
            assert!(parting.applications.is_empty() && parting.leaves_guarded(&guarded));
            assert!(parting.left[0].contains("its ApplicationSet is gone"), "{:?}", parting.left);
        }
        // In the foreground a set is deleted after what it owns.
        let parting = planned(&[set(Value::Null)], application(json!([guard()]), "Synced"), &[]);
        assert!(parting.left[0].contains("its ApplicationSet is no longer its owner"), "{:?}", parting.left);
    }
}
