//! The clusterDecisionResource generator: clusters that another resource chose.

use std::collections::BTreeMap;

use baton_api::generators::ClusterDecisionGenerator;
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use baton_render::{Engine, Params};
use baton_template::{List, Map, Value};
use serde_json::Value as Json;

use crate::outside::Outside;
use crate::pass::Pass;
use crate::selector;
use crate::world::{ClusterSecret, ResourceChoice, World};

/// What the ConfigMap says about the resource.
struct Duck {
    api_version: String,
    plural: String,
    list: String,
    match_key: String,
}

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// Parameters of the registered clusters among the decisions.
    pub(crate) async fn decision(&self, generator: &ClusterDecisionGenerator) -> Result<Vec<Params>, String> {
        let choice = choice(generator)?;
        let clusters = self.clusters().await?;
        self.reads().cluster_names = true;
        let namespace = &self.settings.argocd_namespace;
        let name = &generator.config_map_ref;
        let data = self
            .config_map(namespace, name)
            .await?
            .ok_or_else(|| format!("error reading configMapRef: configmap {namespace}/{name} not found"))?;
        let duck = Duck::read(&data)?;
        let mut resources = self.resources(&duck.api_version, &duck.plural, namespace, &choice).await?;
        if resources.is_empty() {
            return Err(format!("no clusterDecisionResources found: {} {}", duck.plural, duck.api_version));
        }
        if duck.match_key.is_empty() {
            tracing::warn!(config_map = %name, "the ConfigMap has no matchKey, so no cluster matches");
            return Ok(Vec::new());
        }
        resources.sort_by(|left, right| name_of(left).cmp(name_of(right)));
        let mut sets = Vec::new();
        for resource in &resources {
            for decision in duck.decisions(resource)? {
                sets.extend(duck.parameters(decision, &clusters, generator, &self.engine)?);
            }
        }
        Ok(sets)
    }
}

fn choice(generator: &ClusterDecisionGenerator) -> Result<ResourceChoice, String> {
    let labels = &generator.label_selector;
    let has_selector = labels.match_labels.is_some() || labels.match_expressions.is_some();
    match (generator.name.is_empty(), has_selector) {
        (false, false) => Ok(ResourceChoice::Name(generator.name.clone())),
        (true, true) => Ok(ResourceChoice::Labels(selector::of_labels(labels)?)),
        _ => Err("there is a problem with the definition of the ClusterDecisionResource generator: either name or \
                  labelSelector is wanted"
            .to_owned()),
    }
}

fn name_of(resource: &Json) -> &str {
    resource.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default()
}

impl Duck {
    fn read(data: &BTreeMap<String, String>) -> Result<Duck, String> {
        let text = |key: &str| data.get(key).cloned().unwrap_or_default();
        let (api_version, plural) = (text("apiVersion"), text("kind"));
        if plural.is_empty() || api_version.find('/').unwrap_or(0) == 0 {
            return Err("there is a problem with the apiVersion, kind or resourceName provided".to_owned());
        }
        let list = Some(text("statusListKey")).filter(|key| !key.is_empty());
        Ok(Duck {
            api_version,
            plural,
            list: list.unwrap_or_else(|| "clusters".to_owned()),
            match_key: text("matchKey"),
        })
    }

    /// What a resource decided; nothing while it has no status.
    fn decisions<'r>(&self, resource: &'r Json) -> Result<&'r [Json], String> {
        let wrong = |what: &str| format!("clusterDecisionResource {}: {what}", name_of(resource));
        match resource.get("status") {
            None | Some(Json::Null) => Ok(&[]),
            Some(Json::Object(status)) if status.is_empty() => Ok(&[]),
            Some(Json::Object(status)) => match status.get(&self.list) {
                Some(Json::Array(decisions)) => Ok(decisions),
                _ => Err(wrong(&format!("status.{} is no list", self.list))),
            },
            Some(_) => Err(wrong("status is no object")),
        }
    }

    /// Parameters for a decision, if it names a registered cluster.
    fn parameters(
        &self,
        decision: &Json,
        clusters: &[ClusterSecret],
        generator: &ClusterDecisionGenerator,
        engine: &Engine,
    ) -> Result<Option<Params>, String> {
        let decision =
            decision.as_object().ok_or_else(|| format!("an entry of status.{} is no object", self.list))?;
        let wanted =
            decision.get(&self.match_key).filter(|value| !value.is_null()).map(print).unwrap_or_default();
        let Some((name, server)) = find(clusters, &wanted) else {
            tracing::warn!(cluster = %wanted, "a decision names no registered cluster");
            return Ok(None);
        };
        let params = Map::new([("name".into(), Value::from(name)), ("server".into(), Value::from(server))]);
        for (key, value) in decision {
            params.insert(key.as_str(), Value::from(print(value)));
        }
        // Unlike those of other generators these values are not rendered.
        match engine {
            Engine::Fast => {
                for (key, value) in &generator.values {
                    params.insert(format!("values.{key}"), Value::from(value.as_str()));
                }
            }
            Engine::Go(_) if !generator.values.is_empty() => {
                params.insert("values", Value::Map(Map::strings(generator.values.clone())));
            }
            Engine::Go(_) => {}
        }
        Ok(Some(params))
    }
}

/// The first cluster of that name, without the slash its server may end with; the local one if no Secret is for it.
fn find<'a>(clusters: &'a [ClusterSecret], name: &str) -> Option<(&'a str, &'a str)> {
    if name.is_empty() {
        return None;
    }
    let server = |secret: &'a ClusterSecret| secret.server.trim_end_matches('/');
    let mut named: Vec<&ClusterSecret> = clusters.iter().filter(|secret| secret.name == name).collect();
    named.sort_by(|left, right| left.secret_name.cmp(&right.secret_name));
    if let Some(secret) = named.first() {
        return Some((secret.name.as_str(), server(secret)));
    }
    let has_local = clusters.iter().any(|secret| server(secret) == IN_CLUSTER_SERVER);
    (name == IN_CLUSTER_NAME && !has_local).then_some((IN_CLUSTER_NAME, IN_CLUSTER_SERVER))
}

/// As Go prints what it read from the API, where whole numbers are integers.
fn print(value: &Json) -> String {
    typed(value).to_string()
}

fn typed(value: &Json) -> Value {
    match value {
        Json::Number(number) if number.is_i64() => number.as_i64().map_or(Value::Nil, Value::Int),
        Json::Array(items) => Value::List(List::new(items.iter().map(typed))),
        Json::Object(entries) => {
            Value::Map(Map::new(entries.iter().map(|(key, value)| (key.as_str().into(), typed(value)))))
        }
        other => Value::from(other),
    }
}

#[cfg(test)]
mod tests {
    use baton_template::MissingKey;
    use serde_json::json;

    use super::*;

    const GO: Engine = Engine::Go(MissingKey::Default);

    fn duck() -> Duck {
        Duck {
            api_version: "example.com/v1".to_owned(),
            plural: "decisions".to_owned(),
            list: "clusters".to_owned(),
            match_key: "cluster".to_owned(),
        }
    }

    fn cluster(name: &str, server: &str) -> ClusterSecret {
        ClusterSecret { name: name.to_owned(), server: server.to_owned(), ..ClusterSecret::default() }
    }

    fn parameters(decision: Json, clusters: &[ClusterSecret], engine: &Engine) -> Option<String> {
        let generator = ClusterDecisionGenerator {
            values: [("v".to_owned(), "{{ .name }}".to_owned())].into(),
            ..ClusterDecisionGenerator::default()
        };
        let params = duck().parameters(&decision, clusters, &generator, engine).expect("a decision");
        params.map(|params| Value::Map(params).to_string())
    }

    #[test]
    fn a_decision_overrides_the_cluster_and_values_stay_as_written() {
        let clusters = [cluster("east", "https://east/")];
        let decision =
            json!({"cluster": "east", "server": "https://other", "big": 1_000_000, "half": 0.5, "on": true});
        assert_eq!(
            parameters(decision.clone(), &clusters, &GO).as_deref(),
            Some(
                "map[big:1000000 cluster:east half:0.5 name:east on:true server:https://other \
                 values:map[v:{{ .name }}]]"
            )
        );
        let fast = parameters(json!({"cluster": "east"}), &clusters, &Engine::Fast);
        assert_eq!(
            fast.as_deref(),
            Some("map[cluster:east name:east server:https://east values.v:{{ .name }}]")
        );
    }

    #[test]
    fn only_registered_clusters_count() {
        let clusters =
            [cluster("east", "https://east"), cluster("5", "https://five"), cluster("", "https://none")];
        for (decision, found) in [
            (json!({"cluster": "west"}), false),
            (json!({"cluster": null}), false),
            (json!({"cluster": ""}), false),
            (json!({}), false),
            (json!({"cluster": 5}), true),
            (json!({"cluster": "in-cluster"}), true),
        ] {
            assert_eq!(parameters(decision.clone(), &clusters, &GO).is_some(), found, "{decision}");
        }
        let own = [cluster("mine", "https://kubernetes.default.svc/")];
        assert_eq!(parameters(json!({"cluster": "in-cluster"}), &own, &GO), None);
    }

    #[test]
    fn a_status_is_read_or_complained_about() {
        for (resource, decisions) in [
            (json!({}), Some(0)),
            (json!({"status": null}), Some(0)),
            (json!({"status": {}}), Some(0)),
            (json!({"status": {"clusters": []}}), Some(0)),
            (json!({"status": {"clusters": [{}, {}]}}), Some(2)),
            (json!({"status": {"other": []}}), None),
            (json!({"status": {"clusters": null}}), None),
            (json!({"status": {"clusters": {}}}), None),
            (json!({"status": "text"}), None),
        ] {
            let read = duck().decisions(&resource).map(<[Json]>::len).ok();
            assert_eq!(read, decisions, "{resource}");
        }
        let generator = ClusterDecisionGenerator::default();
        assert!(duck().parameters(&json!("text"), &[], &generator, &GO).is_err());
    }

    #[test]
    fn the_config_map_and_the_choice_are_checked() {
        let data = |entries: &[(&str, &str)]| {
            entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let read = Duck::read(&data(&[("apiVersion", "a/v1"), ("kind", "things"), ("statusListKey", "x")]));
        assert_eq!(read.map(|duck| (duck.list, duck.match_key)), Ok(("x".to_owned(), String::new())));
        let read = Duck::read(&data(&[("apiVersion", "a/v1"), ("kind", "things")]));
        assert_eq!(read.map(|duck| duck.list), Ok("clusters".to_owned()));
        for broken in
            [&[("apiVersion", "v1"), ("kind", "things")], &[("apiVersion", "/v1"), ("kind", "things")]]
        {
            assert!(Duck::read(&data(broken)).is_err());
        }
        assert!(Duck::read(&data(&[("apiVersion", "a/v1")])).is_err());

        for (generator, allowed) in [
            (json!({"name": "x"}), true),
            (json!({"labelSelector": {"matchLabels": {"a": "b"}}}), true),
            (json!({}), false),
            (json!({"name": "x", "labelSelector": {"matchLabels": {"a": "b"}}}), false),
            (json!({"labelSelector": {"matchLabels": {"a": "not a label"}}}), false),
        ] {
            let read: ClusterDecisionGenerator =
                serde_json::from_value(generator.clone()).expect("a generator");
            assert_eq!(choice(&read).is_ok(), allowed, "{generator}");
        }
    }
}
