//! A history told write by write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::checker::{Case, Change, Entry, Git, HookCall, Shown, violations};

pub(super) const R1: &str = "1111111111111111111111111111111111111111";
pub(super) const R2: &str = "2222222222222222222222222222222222222222";
const SERVER: &str = "https://east.example.com";

/// A history being told; each write comes a second after the one before.
pub(super) struct Story {
    now: Timestamp,
    entries: Vec<Entry>,
    git: Git,
    ended: bool,
    by_people: Vec<(Timestamp, String, String)>,
    calls: Vec<HookCall>,
    good: Vec<Entry>,
    left: bool,
}

/// One state of an Application.
#[derive(Clone)]
pub(super) struct App {
    pub(super) name: &'static str,
    pub(super) tier: &'static str,
    pub(super) sync: &'static str,
    pub(super) revision: &'static str,
    pub(super) health: &'static str,
    pub(super) phase: &'static str,
    /// Run and number of the write.
    pub(super) stamp: Option<(u64, u64)>,
    /// The revision of an operation that waits or runs.
    pub(super) operation: Option<&'static str>,
    /// The revision of the last sync.
    pub(super) synced: &'static str,
    /// When the last operation ended and the last comparison began.
    pub(super) ended: [&'static str; 2],
    pub(super) going: bool,
    /// What its source follows, and in which directory.
    pub(super) follows: &'static str,
    pub(super) path: &'static str,
    /// Who else wrote its specification.
    pub(super) writer: &'static str,
    pub(super) annotations: Value,
}

/// An Application that is done at a revision.
pub(super) fn done(name: &'static str, tier: &'static str, revision: &'static str) -> App {
    App {
        name,
        tier,
        sync: "Synced",
        revision,
        health: "Healthy",
        phase: "Succeeded",
        stamp: None,
        operation: None,
        synced: revision,
        ended: [""; 2],
        going: false,
        follows: "main",
        path: "blue",
        writer: "",
        annotations: json!({}),
    }
}

impl App {
    /// The same, differing from what git holds at another revision.
    pub(super) fn outdated(self, revision: &'static str) -> App {
        App { sync: "OutOfSync", revision, ..self }
    }

    /// The same, started at a revision in a run.
    pub(super) fn started(self, revision: &'static str, run: u64) -> App {
        App { operation: Some(revision), stamp: Some((run, run)), ..self }
    }

    fn object(&self) -> Value {
        let source = json!({"repoURL": "r", "path": format!("{}/{}", self.path, self.name), "targetRevision": self.follows});
        let destination = json!({"server": SERVER, "namespace": "demo"});
        let mut annotations = self.annotations.clone();
        if let Some((run, n)) = self.stamp {
            annotations["baton.dev/pin"] = format!("set-uid/{run}/{n}/pin").into();
        }
        let mut metadata = json!({
            "name": self.name, "uid": format!("uid-{}", self.name), "labels": {"tier": self.tier},
            "annotations": annotations,
            "ownerReferences": [{"kind": "ApplicationSet", "name": "fleet"}],
        });
        if !self.writer.is_empty() {
            metadata["managedFields"] =
                json!([{"manager": self.writer, "fieldsV1": {"f:spec": {"f:source": {}}}}]);
        }
        if self.going {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let mut object = json!({
            "metadata": metadata,
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {
                "sync": {
                    "status": self.sync, "revision": self.revision,
                    "comparedTo": {"source": source, "destination": destination},
                },
                "health": {"status": self.health}, "reconciledAt": self.ended[1],
                "operationState": {
                    "phase": self.phase, "syncResult": {"revision": self.synced},
                    "startedAt": "2026-01-01T00:00:00Z", "finishedAt": self.ended[0],
                },
                "history": [{"revision": self.synced, "source": source}],
            },
        });
        if let Some(revision) = self.operation {
            object["operation"] = json!({
                "sync": {"revision": revision}, "info": [{"name": "baton.dev/pin", "value": "x"}],
            });
        }
        object
    }
}

impl Story {
    /// A set whose Applications `a`, `b` and `c` are in these tiers, and whose strategy is this.
    pub(super) fn new(tiers: [&str; 3], strategy: Value) -> Story {
        let contents = |text: &str| {
            let shown =
                |name: &&str| Shown { object: (*name).to_owned(), text: text.to_owned(), workload: true };
            ["a", "b", "c"].iter().map(|name| (format!("blue/{name}"), shown(name))).collect()
        };
        let branch = || ("r".to_owned(), "main".to_owned());
        let git = Git {
            contents: BTreeMap::from([(R1.to_owned(), contents("one")), (R2.to_owned(), contents("two"))]),
            broken: BTreeSet::new(),
            pushes: vec![
                (Timestamp::MIN, branch(), R1.to_owned()),
                ("2026-01-01T00:04:00Z".parse().expect("a date"), branch(), R2.to_owned()),
            ],
            aliases: BTreeMap::new(),
        };
        let now = "2026-01-01T00:00:00Z".parse().expect("a date");
        let (entries, by_people, calls) = (Vec::new(), Vec::new(), Vec::new());
        let mut story =
            Story { now, entries, git, ended: false, by_people, calls, good: Vec::new(), left: false };
        story.set(&["a", "b", "c"], tiers, strategy, json!({}));
        story
    }

    /// Another version of the set.
    pub(super) fn set(&mut self, names: &[&str], tiers: [&str; 3], strategy: Value, rest: Value) {
        let element = |(name, tier): (&&str, &str)| json!({"name": name, "tier": tier});
        let elements: Vec<Value> = names.iter().zip(tiers).map(element).collect();
        let mut object = json!({
            "metadata": {"name": "fleet", "uid": "set-uid"},
            "spec": {
                "generators": [{"list": {"elements": elements}}], "strategy": strategy,
                "template": {
                    "metadata": {"name": "{{name}}", "labels": {"tier": "{{tier}}"}},
                    "spec": {
                        "project": "default",
                        "source": {"repoURL": "r", "path": "blue/{{name}}", "targetRevision": "main"},
                        "destination": {"server": SERVER, "namespace": "demo"},
                    },
                },
            },
        });
        for (key, value) in rest.as_object().into_iter().flatten() {
            match key.as_str() {
                "metadata" => {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        object["metadata"][key] = value.clone();
                    }
                }
                _ => object[key] = value.clone(),
            }
        }
        self.write("control", "applicationsets.argoproj.io", "fleet", Change::Modified, object);
    }

    pub(super) fn app(&mut self, app: App) {
        self.write("control", "applications.argoproj.io", app.name, Change::Modified, app.object());
    }

    pub(super) fn made(&mut self, app: App) {
        self.write("control", "applications.argoproj.io", app.name, Change::Added, app.object());
    }

    pub(super) fn gone(&mut self, app: App) {
        self.write("control", "applications.argoproj.io", app.name, Change::Deleted, app.object());
    }

    /// A hook is called, and answers within a second if it does so well.
    pub(super) fn calls(&mut self, phase: usize, name: &str, key: &str, well: bool) {
        self.calls_of("preHooks", phase, name, key, well);
    }

    /// The same for any list of a phase.
    pub(super) fn calls_of(&mut self, list: &'static str, phase: usize, name: &str, key: &str, well: bool) {
        self.wait(1);
        let at = self.now;
        self.wait(1);
        let passed = well.then_some(self.now);
        let (key, target, name) = (key.to_owned(), "".into(), name.into());
        self.calls.push(HookCall { at, passed, key, phase, list, target, name });
    }

    /// A good state is put on record, or taken from it.
    pub(super) fn keeps(&mut self, name: &str, change: Change, object: Value) {
        self.wait(1);
        let (cluster, resource, name) = ("control".into(), "controllerrevisions.apps".into(), name.into());
        self.good.push(Entry { at: self.now, cluster, resource, name, change, object });
    }

    /// What a member shows.
    pub(super) fn shows(&mut self, name: &str, shown: &str) {
        let map = json!({"data": {"shown": shown}});
        self.write("east", "configmaps", name, Change::Modified, map);
        let deployment = json!({
            "metadata": {"generation": 1},
            "spec": {"template": {"spec": {"containers": [{"image": format!("example.com/app:{shown}")}]}}},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        });
        self.write("east", "deployments.apps", name, Change::Modified, deployment);
    }

    /// All three are done at the first revision, as their member shows.
    pub(super) fn begun(mut self, tiers: [&'static str; 3]) -> Story {
        for (name, tier) in ["a", "b", "c"].into_iter().zip(tiers) {
            self.shows(name, "one");
            self.app(done(name, tier, R1));
        }
        self.wait(300);
        self
    }

    pub(super) fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn git(&mut self) -> &mut Git {
        &mut self.git
    }

    /// The last write was a deletion by people.
    pub(super) fn by_people(&mut self) {
        if let Some(Entry { at, cluster, name, .. }) = self.entries.last() {
            self.by_people.push((*at, cluster.to_string(), name.to_string()));
        }
    }

    /// People leave what has failed as it is.
    pub(super) fn left(mut self) -> Story {
        self.left = true;
        self.end()
    }

    /// Nothing more comes.
    pub(super) fn end(mut self) -> Story {
        self.ended = true;
        self
    }

    pub(super) fn write(&mut self, cluster: &str, resource: &str, name: &str, change: Change, object: Value) {
        self.wait(1);
        let (cluster, resource, name) = (cluster.into(), resource.into(), name.into());
        self.entries.push(Entry { at: self.now, cluster, resource, name, change, object });
    }

    /// What the judge says, without times.
    pub(super) fn judged(&self) -> Vec<String> {
        let case = Case {
            entries: &self.entries,
            git: &self.git,
            members: BTreeMap::from([(SERVER.to_owned(), "east".to_owned())]),
            set: "fleet",
            wanted: None,
            by_people: &self.by_people,
            slack: SignedDuration::from_secs(45),
            moment: SignedDuration::from_secs(2),
            apart: SignedDuration::ZERO,
            ended: self.ended,
            calls: &self.calls,
            good: &self.good,
            left: self.left,
            blind: false,
        };
        let told =
            |violation: crate::checker::Violation| format!("{}: {}", violation.invariant, violation.text);
        violations(&case).into_iter().map(told).collect()
    }
}

/// Steps for these tiers, each with this limit.
pub(super) fn rolling(tiers: &[&str], limit: Option<i64>) -> Value {
    json!({"type": "RollingSync", "rollingSync": {"steps": steps(tiers, limit)}})
}

pub(super) fn steps(tiers: &[&str], limit: Option<i64>) -> Vec<Value> {
    let step = |tier: &&str| {
        let mut step = json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": [tier]}]});
        if let Some(limit) = limit {
            step["maxUpdate"] = limit.into();
        }
        step
    };
    tiers.iter().map(step).collect()
}
