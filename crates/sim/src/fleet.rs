//! What people want of the fleet: the ApplicationSet they keep applying, and what is in git for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::repository::{BRANCH, Files, URL};

/// Namespace of the set and its Applications.
pub(crate) const NAMESPACE: &str = "argocd";
/// Name of the set.
pub(crate) const SET: &str = "fleet";
/// Namespace that Applications deploy to.
pub(crate) const TARGET_NAMESPACE: &str = "demo";
/// Directories of the repository between which the template chooses.
pub(crate) const VARIANTS: [&str; 2] = ["blue", "green"];

/// The set as people want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) elements: BTreeMap<String, Element>,
    pub(crate) variant: usize,
    /// Whether the template has one more sync option, which changes nothing in a member.
    pub(crate) option: bool,
    pub(crate) finalizer: bool,
    pub(crate) automated: bool,
    pub(crate) paused: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) deletion: Deletion,
}

/// One Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its label; the number of the step that holds it, where there is such a step.
    pub(crate) tier: usize,
    pub(crate) member: String,
}

/// One step of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) tier: usize,
    pub(crate) max_update: Option<Value>,
}

/// The order of deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deletion {
    AllAtOnce,
    Reverse,
    /// Tiers in the order they go.
    Custom(Vec<usize>),
}

/// How a workload does in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Slow,
    Stuck,
    Failing,
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
        let elements: Vec<Value> = self.elements.iter().map(|(name, element)| element.object(name)).collect();
        let mut metadata = json!({"name": SET, "namespace": NAMESPACE});
        if self.paused {
            metadata["annotations"] = json!({"baton.dev/paused": "true"});
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata,
            "spec": {
                "generators": [{"list": {"elements": elements}}],
                "strategy": self.strategy(),
                "template": self.template(),
            },
        })
    }

    fn template(&self) -> Value {
        let mut metadata = json!({"name": "{{name}}", "labels": {"tier": "{{tier}}"}});
        if self.finalizer {
            metadata["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        }
        let options = if self.option { vec!["ApplyOutOfSyncOnly=false"] } else { Vec::new() };
        let mut policy = json!({"syncOptions": options});
        if self.automated {
            policy["automated"] = json!({"prune": true, "selfHeal": true});
        }
        json!({
            "metadata": metadata,
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": URL, "targetRevision": BRANCH,
                    "path": format!("{}/{{{{name}}}}", VARIANTS[self.variant]),
                },
                "destination": {"server": "{{server}}", "namespace": TARGET_NAMESPACE},
                "syncPolicy": policy,
            },
        })
    }

    fn strategy(&self) -> Value {
        let step = |step: &Step| {
            let mut object = match_tier(step.tier);
            if let Some(max) = &step.max_update {
                object["maxUpdate"] = max.clone();
            }
            object
        };
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
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

fn match_tier(tier: usize) -> Value {
    json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": [format!("t{tier}")]}]})
}

impl Element {
    fn object(&self, name: &str) -> Value {
        json!({"name": name, "tier": format!("t{}", self.tier), "server": server(&self.member)})
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
    VARIANTS.iter().flat_map(|variant| contents.iter().map(move |item| file(variant, item))).collect()
}

impl Content {
    /// What a member shows once it has this content of a variant.
    pub(crate) fn shown(&self, variant: &str) -> String {
        format!("{variant}-{}", self.version)
    }

    fn manifests(&self, name: &str, variant: &str) -> String {
        let shown = self.shown(variant);
        let wish = match self.mood {
            Mood::Good => "{}",
            Mood::Slow => "{sim.baton.dev/delay: 20s}",
            Mood::Stuck => "{sim.baton.dev/stuck: \"true\"}",
            Mood::Failing => "{sim.baton.dev/fail: CrashLoopBackOff}",
        };
        let mut text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{shown: {shown}}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, annotations: {wish}}}\n\
             spec:\n  progressDeadlineSeconds: 30\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
             metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
             containers: [{{name: main, image: \"example.com/app:{shown}\"}}]\n"
        );
        if self.guarded {
            text.push_str(&format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-guarded\n  annotations: \
                 {{argocd.argoproj.io/sync-options: \"Prune=confirm\"}}\ndata: {{kept: \"yes\"}}\n"
            ));
        }
        text
    }
}
