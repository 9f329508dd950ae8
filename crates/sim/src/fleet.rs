//! What people want of the fleet: the ApplicationSet they keep applying, and what is in git for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::repository::{BRANCHES, Files};

/// The branch of which those that follow two repositories have what they have beside.
pub(crate) const PINNED: usize = 2;

/// Namespace of the set and its Applications.
pub(crate) const NAMESPACE: &str = "argocd";
/// Name of the set.
pub(crate) const SET: &str = "fleet";
/// Namespace that Applications deploy to.
pub(crate) const TARGET_NAMESPACE: &str = "demo";
/// Directories of the repository between which the template chooses.
pub(crate) const VARIANTS: [&str; 2] = ["blue", "green"];

/// Directory of what Applications have beside.
pub(crate) const EXTRA: &str = "extra";

/// The set as people want it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) elements: BTreeMap<String, Element>,
    pub(crate) variant: usize,
    /// Whether the template has one more sync option, which changes nothing in a member.
    pub(crate) option: bool,
    pub(crate) finalizer: bool,
    pub(crate) automated: bool,
    pub(crate) paused: bool,
    /// What of it people have written wrongly.
    pub(crate) broken: Option<Slip>,
    /// The last requests to end a run, to try again, to go on, and to put back a phase or all of them.
    pub(crate) abort: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) advance: Option<String>,
    pub(crate) rollback: Option<String>,
    pub(crate) rollback_all: Option<String>,
    /// What people say counts as done, at which pin.
    pub(crate) skips: BTreeMap<String, String>,
    /// Whether Applications follow several repositories and branches.
    pub(crate) spread: bool,
    /// The beginning of a commit's id, where those that follow two repositories name a commit of the second.
    pub(crate) pinned: Option<String>,
    /// Whether syncs that fail may be tried again with what is new in git.
    pub(crate) refreshes: bool,
    pub(crate) steps: Vec<Step>,
    /// `deploymentStrategy`: the phases there are in the place of steps.
    pub(crate) phased: Option<Value>,
    pub(crate) deletion: Deletion,
    /// The set of somebody else, in the place of one that is made of all this.
    pub(crate) given: Option<Value>,
}

/// What people write wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    /// Nothing can be generated.
    Generators,
    /// How long the first step is to wait cannot be read.
    Wait,
}

/// One Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its label; the number of the step that holds it, where there is such a step.
    pub(crate) tier: usize,
    pub(crate) member: String,
    pub(crate) home: Home,
}

/// What an Application follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// One branch.
    Branch(usize),
    /// Two repositories at once.
    Both,
}

/// One step of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) tier: usize,
    pub(crate) max_update: Option<Value>,
    /// How many seconds it must have been well before the next may open.
    pub(crate) wait: Option<u64>,
    /// How many may fail.
    pub(crate) failures: Option<u64>,
}

/// The order of deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Deletion {
    #[default]
    AllAtOnce,
    Reverse,
    /// Tiers in the order they go.
    Custom(Vec<usize>),
}

/// What is put on what nobody can tell the health of.
const UNFATHOMABLE: &str = "{example.com/unfathomable: \"true\"}";

/// How a workload does in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Slow,
    Stuck,
    Failing,
    /// Its member does not take it.
    Refused,
    Suspended,
    /// A stand-in cannot tell how it is; our own controller has no such rule, and finds it well.
    Unfathomable,
}

impl Mood {
    /// Whether it never gets well by itself.
    pub(crate) fn is_bad(self) -> bool {
        !matches!(self, Mood::Good | Mood::Slow)
    }
}

/// What a commit holds for one Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    /// Tells this content from others.
    pub(crate) version: String,
    pub(crate) mood: Mood,
    /// Whether there is one more object, whose pruning people must approve.
    pub(crate) guarded: bool,
}

impl Fleet {
    /// The ApplicationSet.
    pub(crate) fn object(&self) -> Value {
        let mut metadata = json!({"name": SET, "namespace": NAMESPACE});
        let mut annotations = serde_json::Map::new();
        let skips: Vec<String> = self.skips.iter().map(|(app, pin)| format!("{app}={pin}")).collect();
        let asked = [
            ("baton.dev/paused", self.paused.then(|| "true".to_owned())),
            ("baton.dev/abort", self.abort.clone()),
            ("baton.dev/retry", self.retry.clone()),
            ("baton.dev/advance", self.advance.clone()),
            ("baton.dev/rollback", self.rollback.clone()),
            ("baton.dev/rollback-all", self.rollback_all.clone()),
            ("baton.dev/skip", (!skips.is_empty()).then(|| skips.join(","))),
        ];
        for (name, value) in asked {
            annotations.extend(value.map(|value| (name.to_owned(), value.into())));
        }
        if let Some(given) = &self.given {
            let mut object = given.clone();
            annotations.into_iter().for_each(|(name, value)| object["metadata"]["annotations"][name] = value);
            return object;
        }
        if !annotations.is_empty() {
            metadata["annotations"] = annotations.into();
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata,
            "spec": {
                "generators": self.generators(),
                "strategy": self.strategy(),
                "template": self.template(),
            },
        })
    }

    fn generators(&self) -> Value {
        let mut generators = self.lists();
        if self.broken == Some(Slip::Generators) {
            // A matrix of one is none.
            generators.push(json!({"matrix": {"generators": [{"list": {"elements": []}}]}}));
        }
        generators.into()
    }

    fn lists(&self) -> Vec<Value> {
        let list = |is_listed: &dyn Fn(Home) -> bool| -> Vec<Value> {
            let listed = self.elements.iter().filter(|(_, element)| is_listed(element.home));
            listed.map(|(name, element)| element.object(name)).collect()
        };
        if !self.spread {
            let mut only = json!({"list": {"elements": list(&|_| true)}});
            if let Some(strategy) = &self.phased {
                only["deploymentStrategy"] = strategy.clone();
            }
            return vec![only];
        }
        let own = self.source("{{repo}}", "{{branch}}");
        let beside = json!({
            "repoURL": BRANCHES[PINNED].url, "path": format!("{EXTRA}/{{{{name}}}}"),
            "targetRevision": self.pinned.as_deref().unwrap_or(&BRANCHES[PINNED].name),
        });
        let both = [self.source(&BRANCHES[0].url, &BRANCHES[0].name), beside];
        vec![
            json!({"list": {
                "elements": list(&|home| home != Home::Both),
                "template": {"metadata": {}, "spec": {"source": own}},
            }}),
            json!({"list": {
                "elements": list(&|home| home == Home::Both),
                "template": {"metadata": {}, "spec": {"sources": both}},
            }}),
        ]
    }

    fn source(&self, url: &str, branch: &str) -> Value {
        let path = format!("{}/{{{{name}}}}", VARIANTS[self.variant]);
        json!({"repoURL": url, "targetRevision": branch, "path": path})
    }

    fn template(&self) -> Value {
        let mut metadata = json!({"name": "{{name}}", "labels": {"tier": "{{tier}}"}});
        if self.finalizer {
            metadata["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        }
        let options = if self.option { vec!["ApplyOutOfSyncOnly=false"] } else { Vec::new() };
        let mut policy = json!({"syncOptions": options});
        if self.refreshes {
            policy["retry"] = json!({"limit": 3, "refresh": true, "backoff": {"duration": "5s"}});
        }
        if self.automated {
            policy["automated"] = json!({"prune": true, "selfHeal": true});
        }
        let mut template = json!({
            "metadata": metadata,
            "spec": {
                "project": "default",
                "destination": {"server": "{{server}}", "namespace": TARGET_NAMESPACE},
                "syncPolicy": policy,
            },
        });
        if !self.spread {
            template["spec"]["source"] = self.source(&BRANCHES[0].url, &BRANCHES[0].name);
        }
        template
    }

    fn strategy(&self) -> Value {
        let step = |step: &Step| {
            let mut object = match_tier(step.tier);
            if let Some(max) = &step.max_update {
                object["maxUpdate"] = max.clone();
            }
            if let Some(seconds) = step.wait {
                object["waitDuration"] = format!("{seconds}s").into();
            }
            if let Some(failures) = step.failures {
                object["maxFailures"] = failures.into();
            }
            object
        };
        let mut steps: Vec<Value> = self.steps.iter().map(step).collect();
        if self.phased.is_some() || self.steps.is_empty() {
            return Value::Null;
        }
        if self.broken == Some(Slip::Wait) {
            steps[0]["waitDuration"] = json!("soon");
        }
        let mut strategy = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
        match &self.deletion {
            Deletion::AllAtOnce => {}
            Deletion::Reverse => strategy["deletionOrder"] = json!("Reverse"),
            Deletion::Custom(tiers) => {
                strategy["deletionOrder"] = json!("Custom");
                let steps: Vec<Value> = tiers.iter().copied().map(match_tier).collect();
                strategy["deletionSync"] = json!({"steps": steps});
            }
        }
        strategy
    }
}

/// A phase for each tier, with a call before and after it.
pub(crate) fn phase_per_tier(tiers: usize) -> Value {
    let phases: Vec<Value> = (0..tiers).map(phase).collect();
    json!({"type": "phaseDeployment", "phases": phases})
}

/// The phase of a tier.
fn phase(tier: usize) -> Value {
    let hook = |name: &str| {
        json!({
            "name": format!("{name}-{tier}"), "type": "http", "timeout": "30s",
            "http": {"url": "https://hooks.example.com/"}, "retry": {"interval": "5s", "deadline": "1h"},
        })
    };
    json!({
        "name": format!("t{tier}"), "targets": [match_tier(tier)],
        "preHooks": [hook("before")], "postHooks": [hook("after")],
    })
}

pub(crate) fn match_tier(tier: usize) -> Value {
    json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": [format!("t{tier}")]}]})
}

impl Element {
    fn object(&self, name: &str) -> Value {
        let mut object =
            json!({"name": name, "tier": format!("t{}", self.tier), "server": server(&self.member)});
        if let Home::Branch(branch) = self.home {
            (object["repo"], object["branch"]) = (json!(BRANCHES[branch].url), json!(BRANCHES[branch].name));
        }
        object
    }
}

/// URL of a member's API.
pub(crate) fn server(member: &str) -> String {
    format!("https://{member}.example.com")
}

/// The files of a commit.
pub(crate) fn files(contents: &BTreeMap<String, Content>) -> Files {
    let file = |variant: &&str, (name, content): (&String, &Content)| {
        (format!("{variant}/{name}/all.yaml"), content.manifests(name, variant))
    };
    let beside =
        |(name, content): (&String, &Content)| (format!("{EXTRA}/{name}/all.yaml"), content.beside(name));
    let own = VARIANTS.iter().flat_map(|variant| contents.iter().map(move |item| file(variant, item)));
    own.chain(contents.iter().map(beside)).collect()
}

/// A name as YAML reads it for a text: `123` and `true` are others to it.
fn plain(name: &str) -> String {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase());
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if is_word && !reserved.contains(&name) { name.to_owned() } else { format!("\"{name}\"") }
}

impl Content {
    /// What a member shows once it has this content of a variant.
    pub(crate) fn shown(&self, variant: &str) -> String {
        format!("{variant}-{}", self.version)
    }

    fn beside(&self, name: &str) -> String {
        let (name, shown) = (plain(&format!("{name}-{EXTRA}")), self.shown(EXTRA));
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{shown: {shown}}}\n")
    }

    fn manifests(&self, name: &str, variant: &str) -> String {
        let (name, guarded) = (plain(name), plain(&format!("{name}-guarded")));
        let shown = self.shown(variant);
        let wish = match self.mood {
            Mood::Good | Mood::Refused | Mood::Suspended => "{}",
            Mood::Slow => "{sim.baton.dev/delay: 20s}",
            Mood::Stuck => "{sim.baton.dev/stuck: \"true\"}",
            Mood::Failing => "{sim.baton.dev/fail: CrashLoopBackOff}",
            Mood::Unfathomable => UNFATHOMABLE,
        };
        let mut text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{shown: {shown}}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, annotations: {wish}}}\n\
             spec:\n  paused: {}\n  progressDeadlineSeconds: 30\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
             metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
             containers: [{{name: main, image: \"example.com/app:{shown}\"}}]\n",
            self.mood == Mood::Suspended
        );
        if self.mood == Mood::Refused {
            text.push_str(&format!(
                "---\napiVersion: example.com/v1\nkind: Unheard\nmetadata: {{name: {name}}}\n"
            ));
        }
        if self.guarded {
            text.push_str(&format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {guarded}\n  annotations: \
                 {{argocd.argoproj.io/sync-options: \"Prune=confirm,Delete=confirm\"}}\ndata: {{kept: \"yes\"}}\n"
            ));
        }
        text
    }
}
