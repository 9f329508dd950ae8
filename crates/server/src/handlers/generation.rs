//! What a set's generators and template give, and what would become of its Applications by it.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::strategy::Strategy;
use baton_rollout::fuse::{self, Fuse};
use baton_rollout::plan::{self, Candidate, Change, Plan, Present, Proposal};
use serde_json::{Value, json};

use crate::error::{Code, Error};
use crate::objects::text;
use crate::server::{Context, Server};

/// The share of Applications that may go without approval where nothing else is set.
const FUSE: Fuse = Fuse::Share(50);

impl Server {
    /// The Applications that a set would have.
    ///
    /// # Errors
    /// The caller may not create such a set, or its generators fail.
    pub async fn generate(&self, context: &Context, set: Value) -> Result<Value, Error> {
        let set = super::sets::typed(&set)?;
        let asked = set.metadata.namespace.clone().unwrap_or_default();
        let namespace = self.namespace(&asked)?;
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let object = self.policy_name(&set.spec.template.spec.project, namespace, name);
        self.demand(context, "applicationsets", "create", &object)?;
        Ok(json!({"applications": self.generated(&set).await?}))
    }

    /// What a change that is wanted now would do to the Applications of a set.
    ///
    /// # Errors
    /// The caller may not see it, or its generators fail.
    pub async fn plan(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        let found = self.find_set(context, namespace, name, "get").await?;
        self.0.applications.synced().await?;
        let wanted = self.generated(&found.typed).await?;
        let key = crate::mirror::key(&found.raw);
        let all = self.0.applications.all().into_iter();
        let present = all.filter(|one| crate::rollouts::set_of(one).as_ref() == Some(&key));
        let present: BTreeMap<String, Value> =
            present.map(|one| (text(&one, "/metadata/name").to_owned(), Value::clone(&one))).collect();
        let annotations = found.typed.metadata.annotations.as_ref();
        let word = |name: &str| annotations.and_then(|all| all.get(name));
        let fuse = word(baton_api::names::baton::DELETION_FUSE).and_then(|text| text.parse().ok());
        let approval = word(baton_api::names::baton::DELETION_APPROVED).and_then(|text| text.parse().ok());
        let fuse = match fuse {
            Some(fuse) => fuse,
            None if fuse::follows_hosts_only(&found.typed.spec) => Fuse::Off,
            None => FUSE,
        };
        let plan = planned(found.typed.spec.strategy.as_ref(), &wanted, &present, fuse, approval);
        Ok(shown(name, &plan))
    }

    pub(crate) async fn generated(&self, set: &ApplicationSet) -> Result<Vec<Value>, Error> {
        let sources = self.0.sources.as_ref();
        let sources =
            sources.ok_or_else(|| Error::new(Code::Unimplemented, "this server runs no generators"))?;
        sources.generate(set).await.map_err(Error::precondition)
    }
}

fn planned(
    strategy: Option<&Strategy>,
    wanted: &[Value],
    present: &BTreeMap<String, Value>,
    fuse: Fuse,
    approval: Option<fuse::Approval>,
) -> Plan {
    let candidates: Vec<Candidate> = wanted
        .iter()
        .map(|one| {
            let name = text(one, "/metadata/name").to_owned();
            let change = present.get(&name).map_or(Change::New, |there| change(there, one));
            Candidate { labels: labels(one), name, change }
        })
        .collect();
    let present: Vec<Present> = present
        .iter()
        .map(|(name, one)| Present {
            name: name.clone(),
            labels: labels(one),
            uid: text(one, "/metadata/uid").to_owned(),
            terminating: one["metadata"]["deletionTimestamp"].is_string(),
        })
        .collect();
    plan::plan(&Proposal {
        strategy,
        wanted: &candidates,
        present: Some(&present),
        may_delete: true,
        fuse,
        approval,
    })
}

fn change(there: &Value, wanted: &Value) -> Change {
    let mut fields = Vec::new();
    differing(&there["spec"], &wanted["spec"], "spec", &mut fields);
    if !fields.is_empty() {
        return Change::Spec { fields };
    }
    for field in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
            if there["metadata"][field].get(key) != Some(value) {
                fields.push(format!("metadata.{field}.{key}"));
            }
        }
    }
    if fields.is_empty() { Change::Unchanged } else { Change::Metadata { fields } }
}

/// The fields of a wanted value that are others; what the API adds beside them is no difference.
fn differing(there: &Value, wanted: &Value, path: &str, fields: &mut Vec<String>) {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            for (name, value) in wanted {
                differing(there.get(name).unwrap_or(&Value::Null), value, &format!("{path}.{name}"), fields);
            }
            let gone = there.keys().filter(|name| !wanted.contains_key(*name) && *name != "automated");
            fields.extend(gone.map(|name| format!("{path}.{name}")));
        }
        (there, wanted) if there == wanted => {}
        _ => fields.push(path.to_owned()),
    }
}

fn labels(application: &Value) -> BTreeMap<String, String> {
    let labels = application["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn shown(set: &str, plan: &Plan) -> Value {
    let mut items: Vec<Value> = plan
        .applications
        .iter()
        .map(|one| {
            let action = match one.change {
                Change::New => "create",
                Change::Unchanged | Change::Drift => "none",
                _ => "update",
            };
            let lane = match one.step {
                Some(step) if step > 0 => format!("step-{step}"),
                Some(_) => "unmatched".to_owned(),
                None => "step-1".to_owned(),
            };
            json!({"application": one.name, "action": action, "lane": lane, "reason": one.change.to_string()})
        })
        .collect();
    let why = match &plan.deletion.verdict {
        Some(verdict) if verdict.says == "Holds" => {
            "generators no longer give it; a person must approve first"
        }
        _ => "generators no longer give it",
    };
    for stage in &plan.deletion.stages {
        let lane =
            stage.step.filter(|step| *step > 0).map_or("unmatched".to_owned(), |step| format!("step-{step}"));
        let gone =
            |name: &String| json!({"application": name, "action": "delete", "lane": lane, "reason": why});
        items.extend(stage.applications.iter().map(gone));
    }
    let count = |action: &str| items.iter().filter(|item| item["action"] == action).count();
    let mut text = format!(
        "{set}: {} created, {} updated, {} deleted, {} as they are ({}).",
        count("create"),
        count("update"),
        count("delete"),
        count("none"),
        plan.strategy
    );
    for step in &plan.steps {
        text.push_str(&format!(
            "\nStep {} ({}): {} of {} change.",
            step.step, step.selects, step.changing, step.total
        ));
    }
    for issue in &plan.issues {
        text.push_str(&format!("\n{issue}"));
    }
    json!({"text": text, "items": items})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_tells_what_becomes_of_each() {
        let application = |name: &str, revision: &str, env: &str| json!({"metadata": {"name": name, "labels": {"env": env}}, "spec": {"source": {"targetRevision": revision}}});
        let strategy: Strategy =
            serde_json::from_value(json!({"type": "RollingSync", "rollingSync": {"steps": [
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}]},
            ]}}))
            .expect("a strategy");
        let wanted =
            [application("a", "v2", "dev"), application("b", "v1", "prod"), application("c", "v2", "other")];
        let present =
            [application("a", "v1", "dev"), application("b", "v1", "prod"), application("d", "v1", "dev")];
        let present = present.into_iter().map(|one| (text(&one, "/metadata/name").to_owned(), one)).collect();
        let plan = shown("web", &planned(Some(&strategy), &wanted, &present, FUSE, None));
        let row = |name: &str| {
            let items = plan["items"].as_array().expect("items");
            let item = items.iter().find(|item| item["application"] == name).expect("an item");
            (
                item["action"].as_str().expect("text").to_owned(),
                item["lane"].as_str().expect("text").to_owned(),
            )
        };
        let pair = |action: &str, lane: &str| (action.to_owned(), lane.to_owned());
        assert_eq!(row("a"), pair("update", "step-1"));
        assert_eq!(row("b"), pair("none", "step-2"));
        assert_eq!(row("c"), pair("create", "unmatched"));
        assert_eq!(row("d").0, "delete");
        let told = plan["text"].as_str().expect("text");
        assert!(
            told.starts_with("web: 1 created, 1 updated, 1 deleted, 1 as they are (RollingSync)."),
            "{told}"
        );
    }
}
