//! The clusters generator: registered clusters.

use std::collections::BTreeMap;

use baton_api::generators::ClusterGenerator;
use baton_api::names::secret::TYPE_LABEL;
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use baton_grammar::labels::{Selector, Test};
use baton_render::{Engine, Params};
use baton_template::{List, Map, Value, normalize};

use crate::budget::Budget;
use crate::selector;
use crate::values::Values;
use crate::world::ClusterSecret;

/// Which cluster Secrets a generator asks for.
///
/// # Errors
/// A selector that is none by Kubernetes' rules.
pub(crate) fn question(generator: &ClusterGenerator) -> Result<Selector, String> {
    let mut selector = selector::of_labels(&generator.selector)
        .map_err(|message| format!("error getting cluster secrets: {message}"))?;
    // Argo CD sets this label in `matchLabels`, over whatever stands there. All Secrets given here have it.
    selector.requirements.retain(|requirement| {
        !(requirement.key == TYPE_LABEL && matches!(requirement.test, Test::Equals(_)))
    });
    Ok(selector)
}

/// Parameters of the clusters that `question` selects, in the order of their names, and last of the local cluster
/// if it belongs to them.
pub(crate) fn generate(
    generator: &ClusterGenerator,
    question: &Selector,
    secrets: &[ClusterSecret],
    engine: &Engine,
    budget: &Budget,
) -> Result<Vec<Params>, String> {
    let mut values = Values::new(engine, &generator.values, budget);
    let selected = select(question, secrets);
    let mut sets = Vec::with_capacity(selected.len() + 1);
    for secret in selected.values() {
        let params = parameters(secret, engine);
        values.append(&params).map_err(|message| {
            format!("error appending templated values for cluster {:?}: {message}", secret.name)
        })?;
        sets.push(params);
    }
    // The local cluster has no labels that a selector could match.
    let has_local = selected.values().any(|secret| secret.server == IN_CLUSTER_SERVER);
    if selector::is_empty(&generator.selector) && !has_local {
        let params = local();
        values
            .append(&params)
            .map_err(|message| format!("error appending templated values for local cluster: {message}"))?;
        sets.push(params);
    }
    if generator.flat_list {
        let clusters = List::new(sets.into_iter().map(Value::Map));
        return Ok(vec![Map::new([("clusters".into(), Value::List(clusters))])]);
    }
    Ok(sets)
}

/// By name; of Secrets with one name the last counts, in the order of the Secrets' own names.
fn select<'a>(question: &Selector, secrets: &'a [ClusterSecret]) -> BTreeMap<&'a str, &'a ClusterSecret> {
    let mut selected: Vec<&ClusterSecret> = secrets
        .iter()
        .filter(|secret| question.matches(|key| secret.labels.get(key).map(String::as_str)))
        .collect();
    selected.sort_by(|left, right| left.secret_name.cmp(&right.secret_name));
    selected.into_iter().map(|secret| (secret.name.as_str(), secret)).collect()
}

fn parameters(secret: &ClusterSecret, engine: &Engine) -> Params {
    let params = named(&secret.name, &normalize(&secret.name), &secret.server, &secret.project);
    let groups = [("annotations", &secret.annotations), ("labels", &secret.labels)];
    match engine {
        Engine::Go(_) => {
            let metadata = Map::new([]);
            for (group, entries) in groups {
                if !entries.is_empty() {
                    metadata.insert(group, Value::Map(texts(entries)));
                }
            }
            params.insert("metadata", Value::Map(metadata));
        }
        Engine::Fast => {
            for (group, entries) in groups {
                for (key, value) in entries {
                    params.insert(format!("metadata.{group}.{key}"), Value::from(value.as_str()));
                }
            }
        }
    }
    params
}

fn local() -> Params {
    named(IN_CLUSTER_NAME, IN_CLUSTER_NAME, IN_CLUSTER_SERVER, "")
}

fn named(name: &str, normalized: &str, server: &str, project: &str) -> Params {
    Map::new([
        ("name".into(), Value::from(name)),
        ("nameNormalized".into(), Value::from(normalized)),
        ("server".into(), Value::from(server)),
        ("project".into(), Value::from(project)),
    ])
}

fn texts(entries: &BTreeMap<String, String>) -> Map {
    Map::strings(entries.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}

#[cfg(test)]
mod tests {
    use baton_api::names::secret::TYPE_CLUSTER;
    use baton_template::MissingKey;
    use serde_json::json;

    use super::*;
    use crate::settings::Limits;

    const GO: Engine = Engine::Go(MissingKey::Default);

    fn secret(name: &str, labels: &[(&str, &str)]) -> ClusterSecret {
        let labels = [(TYPE_LABEL, TYPE_CLUSTER)].iter().chain(labels);
        ClusterSecret {
            secret_name: format!("cluster-{name}"),
            name: name.to_owned(),
            server: format!("https://{name}"),
            labels: labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ..ClusterSecret::default()
        }
    }

    fn run(
        generator: serde_json::Value,
        secrets: &[ClusterSecret],
        engine: &Engine,
    ) -> Result<Vec<String>, String> {
        let generator: ClusterGenerator = serde_json::from_value(generator).expect("a clusters generator");
        let budget = Budget::new(Limits::default());
        let sets = generate(&generator, &question(&generator)?, secrets, engine, &budget)?;
        Ok(sets.into_iter().map(|set| Value::Map(set).to_string()).collect())
    }

    const LOCAL: &str =
        "map[name:in-cluster nameNormalized:in-cluster project: server:https://kubernetes.default.svc]";

    #[test]
    fn clusters_come_by_name_and_the_local_one_last() {
        let secrets = [secret("zoo", &[]), secret("Big_One", &[("env", "prod")])];
        let sets = run(json!({}), &secrets, &Engine::Fast).expect("parameters");
        assert_eq!(sets.len(), 3);
        assert_eq!(
            sets[0],
            "map[metadata.labels.argocd.argoproj.io/secret-type:cluster metadata.labels.env:prod name:Big_One \
             nameNormalized:big-one project: server:https://Big_One]"
        );
        assert!(sets[1].contains("name:zoo"));
        assert_eq!(sets[2], LOCAL);
    }

    #[test]
    fn go_mode_nests_metadata_and_leaves_out_what_is_empty() {
        let mut bare = secret("bare", &[]);
        bare.labels.clear();
        bare.project = "team".to_owned();
        let sets = run(json!({"values": {"x": "{{.name}}-{{.project}}"}}), &[bare], &GO).expect("parameters");
        assert_eq!(
            sets[0],
            "map[metadata:map[] name:bare nameNormalized:bare project:team server:https://bare values:map[x:bare-team]]"
        );
        assert!(sets[1].ends_with("values:map[x:in-cluster-]]"), "{}", sets[1]);
        let sets = run(json!({}), &[secret("a", &[("env", "dev")])], &GO).expect("parameters");
        assert!(sets[0].contains("metadata:map[labels:map[argocd.argoproj.io/secret-type:cluster env:dev]]"));
    }

    #[test]
    fn a_selector_leaves_the_local_cluster_out() {
        let secrets = [secret("a", &[("env", "dev")]), secret("b", &[("env", "prod")])];
        let by_label = json!({"selector": {"matchLabels": {"env": "prod"}}});
        let sets = run(by_label, &secrets, &Engine::Fast).expect("parameters");
        assert!(sets.len() == 1 && sets[0].contains("name:b"), "{sets:?}");
        let nothing = json!({"selector": {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}});
        assert_eq!(run(nothing, &secrets, &Engine::Fast), Ok(vec![]));
        assert_eq!(
            run(json!({"selector": {"matchLabels": {}}}), &[], &Engine::Fast),
            Ok(vec![LOCAL.to_owned()])
        );
    }

    #[test]
    fn the_type_label_cannot_be_asked_away() {
        let other = json!({"selector": {"matchLabels": {(TYPE_LABEL): "repository"}}});
        assert_eq!(run(other, &[secret("a", &[])], &Engine::Fast).map(|sets| sets.len()), Ok(1));
        let not =
            json!({"selector": {"matchExpressions": [{"key": TYPE_LABEL, "operator": "DoesNotExist"}]}});
        assert_eq!(run(not, &[secret("a", &[])], &Engine::Fast).map(|sets| sets.len()), Ok(0));
    }

    #[test]
    fn a_secret_for_the_local_server_stands_for_it() {
        let mut own = secret("mine", &[]);
        own.server = IN_CLUSTER_SERVER.to_owned();
        let sets = run(json!({}), &[own], &Engine::Fast).expect("parameters");
        assert!(sets.len() == 1 && sets[0].contains("name:mine"), "{sets:?}");
    }

    #[test]
    fn of_one_name_the_last_secret_counts() {
        let mut first = secret("a", &[]);
        first.secret_name = "x1".to_owned();
        let mut last = secret("a", &[]);
        last.secret_name = "x2".to_owned();
        last.server = "https://last".to_owned();
        for secrets in [[first.clone(), last.clone()], [last, first]] {
            let sets = run(json!({}), &secrets, &Engine::Fast).expect("parameters");
            assert!(sets.len() == 2 && sets[0].contains("https://last"), "{sets:?}");
        }
    }

    #[test]
    fn a_flat_list_is_one_set_even_when_empty() {
        let flat = json!({"flatList": true, "selector": {"matchLabels": {"env": "none"}}});
        assert_eq!(run(flat, &[secret("a", &[])], &GO), Ok(vec!["map[clusters:[]]".to_owned()]));
        let all =
            run(json!({"flatList": true}), &[secret("b", &[]), secret("a", &[])], &GO).expect("parameters");
        assert_eq!(all.len(), 1);
        let order = ["name:a ", "name:b ", "name:in-cluster "].map(|name| all[0].find(name));
        assert!(order.is_sorted() && order[0].is_some(), "{}", all[0]);
    }

    #[test]
    fn selectors_and_values_that_cannot_be_read_are_errors() {
        let bad = run(json!({"selector": {"matchLabels": {"env": "a b"}}}), &[], &GO);
        assert!(bad.is_err_and(|text| text.contains("error converting label selector")));
        let bad = run(json!({"values": {"x": "{{.name"}}), &[secret("a", &[])], &GO);
        assert!(bad.is_err_and(|text| text.contains("values.x") && text.contains("\"a\"")));
    }
}
