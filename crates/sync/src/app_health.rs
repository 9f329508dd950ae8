//! The health of an Application: the worst of its resources.

use baton_api::Application;
use baton_api::application_status::HealthCode;
use baton_api::health::{Health, severity};
use baton_api::names::{GROUP, resource};
use baton_api::object::{Object, ResourceKey};
use serde_json::Value;

use crate::hooks;
use crate::observation::HealthOf;
use crate::targets::Pair;

/// How many resources are named as the cause.
const NAMED: usize = 3;

/// How an Application and its resources fare.
#[derive(Debug, Clone, PartialEq)]
pub struct AppHealth {
    /// Of the whole; its message names the cause.
    pub whole: Health,
    /// Of each pair, in their order; none where the pair does not count or its kind has no health.
    pub parts: Vec<Option<Health>>,
    /// The first resource whose health could not be told, and why.
    pub error: Option<String>,
}

/// Aggregates the health of pairs.
///
/// Hooks, skipped objects, what is annotated to be ignored and the Application itself do not count. A resource that is
/// missing is OutOfSync already and makes the whole no worse, unless nothing at all is there. A child Application that
/// is missing or unknown does not count either.
pub fn aggregate(application: &Application, pairs: &[Pair], health: HealthOf<'_>) -> AppHealth {
    let mut error = None;
    let mut code = HealthCode::Healthy;
    let mut causes: Vec<&ResourceKey> = Vec::new();
    let (mut wanted, mut present) = (false, false);
    let parts: Vec<Option<Health>> = pairs
        .iter()
        .map(|pair| {
            let (target, live) = (pair.target.as_deref(), pair.live.as_deref());
            if target.is_some_and(hooks::is_skipped) || live.is_some_and(hooks::is_hook) {
                return None;
            }
            wanted = true;
            let Some(live) = live else {
                return Some(Health::new(HealthCode::Missing, ""));
            };
            present = true;
            if live.annotation(resource::IGNORE_HEALTHCHECK) == Some("true") || is_itself(application, live) {
                return None;
            }
            let found = health(live).unwrap_or_else(|why| {
                error.get_or_insert_with(|| unhealthy(live, &why));
                Some(Health::new(HealthCode::Unknown, why))
            })?;
            if !is_child_without_word(live, &found.code) {
                if severity(&found.code) > severity(&code) {
                    code = found.code.clone();
                    causes = vec![&pair.key];
                } else if found.code == code && code != HealthCode::Healthy {
                    causes.push(&pair.key);
                }
            }
            Some(found)
        })
        .collect();
    if wanted && !present && severity(&HealthCode::Missing) > severity(&code) {
        code = HealthCode::Missing;
    }
    AppHealth { whole: Health::new(code, cause(&causes)), parts, error }
}

/// Whether an object is the Application itself, which some of them manage.
pub fn is_itself(application: &Application, live: &Value) -> bool {
    let metadata = &application.metadata;
    live.group() == GROUP
        && live.kind() == "Application"
        && Some(live.uid()) == metadata.uid.as_deref()
        && Some(live.name()) == metadata.name.as_deref()
        && live.namespace() == metadata.namespace.as_deref().unwrap_or_default()
}

fn is_child_without_word(live: &Value, code: &HealthCode) -> bool {
    live.group() == GROUP
        && live.kind() == "Application"
        && matches!(code, HealthCode::Missing | HealthCode::Unknown)
}

fn unhealthy(live: &Value, why: &str) -> String {
    let (kind, name, namespace) = (live.kind(), live.name(), live.namespace());
    format!(
        "failed to get resource health for \"{kind}\" with name \"{name}\" in namespace \"{namespace}\": {why}"
    )
}

fn cause(causes: &[&ResourceKey]) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let named = |key: &&ResourceKey| {
        let slash = |before: &str| if before.is_empty() { String::new() } else { format!("{before}/") };
        format!("{}{}:{}{}", slash(&key.group), key.kind, slash(&key.namespace), key.name)
    };
    let named: Vec<String> = causes.iter().take(NAMED).map(named).collect();
    let more = causes.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Caused by {}{rest}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn application() -> Application {
        let metadata = json!({"name": "web", "namespace": "argocd", "uid": "u1"});
        serde_json::from_value(json!({"metadata": metadata})).expect("an Application")
    }

    /// A live object whose health stands in its spec.
    fn object(kind: &str, name: &str, health: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "health": health})
    }

    fn pair(live: Value) -> Pair {
        let live = Arc::new(live);
        Pair { key: live.key(), target: Some(live.clone()), live: Some(live), modified: false }
    }

    fn missing(kind: &str) -> Pair {
        Pair { live: None, ..pair(object(kind, "x", "")) }
    }

    fn health_of(object: &Value) -> Result<Option<Health>, String> {
        match object["health"].as_str().unwrap_or_default() {
            "" => Ok(None),
            "broken" => Err("no script".to_owned()),
            word => Ok(Some(Health::new(HealthCode::from(word.to_owned()), "so"))),
        }
    }

    fn whole(pairs: &[Pair]) -> (String, String) {
        let health = aggregate(&application(), pairs, &health_of).whole;
        (health.code.to_string(), health.message)
    }

    fn with(mut object: Value, annotation: &str, value: &str) -> Value {
        object["metadata"]["annotations"] = json!({annotation: value});
        object
    }

    #[test]
    fn the_worst_of_all_counts_and_is_named() {
        let pairs: Vec<Pair> = ["Healthy", "Progressing", "Suspended", "", "Progressing"]
            .iter()
            .enumerate()
            .map(|(index, health)| pair(object("Deployment", &format!("d{index}"), health)))
            .collect();
        let expected = "Caused by apps/Deployment:n/d1, apps/Deployment:n/d4".to_owned();
        assert_eq!(whole(&pairs), ("Progressing".to_owned(), expected));
        assert_eq!(whole(&[]), ("Healthy".to_owned(), String::new()));
    }

    #[test]
    fn no_more_than_three_causes_are_named() {
        let pairs: Vec<Pair> =
            (0..5).map(|index| pair(object("Pod", &format!("p{index}"), "Degraded"))).collect();
        let (_, message) = whole(&pairs);
        assert_eq!(message, "Caused by apps/Pod:n/p0, apps/Pod:n/p1, apps/Pod:n/p2 and 2 more");
        let core =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "health": "Degraded"});
        assert_eq!(whole(&[pair(core)]).1, "Caused by Node:a");
    }

    #[test]
    fn what_is_missing_counts_only_where_nothing_is_there() {
        let healthy = pair(object("Pod", "p", "Healthy"));
        assert_eq!(whole(&[missing("Pod"), healthy]).0, "Healthy");
        assert_eq!(whole(&[missing("Pod")]), ("Missing".to_owned(), String::new()));
        let parts = aggregate(&application(), &[missing("Pod")], &health_of).parts;
        assert_eq!(parts, [Some(Health::new(HealthCode::Missing, ""))]);
    }

    #[test]
    fn some_objects_do_not_count() {
        let degraded = || object("Job", "j", "Degraded");
        let itself = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "health": "Degraded",
            "metadata": {"name": "web", "namespace": "argocd", "uid": "u1"}});
        for live in [
            with(degraded(), resource::HOOK, "PreSync"),
            with(degraded(), resource::HOOK, "unknown"),
            with(degraded(), resource::HOOK, "Skip"),
            with(degraded(), resource::IGNORE_HEALTHCHECK, "true"),
            itself,
        ] {
            let health = aggregate(&application(), &[pair(live.clone())], &health_of);
            assert_eq!(health.whole.code, HealthCode::Healthy, "{live}");
            assert_eq!(health.parts, [None]);
        }
    }

    #[test]
    fn a_child_without_word_does_not_count() {
        for (health, expected) in [("Unknown", "Healthy"), ("Missing", "Healthy"), ("Degraded", "Degraded")] {
            let child = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "health": health,
                "metadata": {"name": "child", "namespace": "argocd", "uid": "u2"}});
            assert_eq!(whole(&[pair(child)]).0, expected);
        }
    }

    #[test]
    fn health_that_cannot_be_told_is_unknown_and_an_error() {
        let health = aggregate(&application(), &[pair(object("Widget", "w", "broken"))], &health_of);
        assert_eq!(health.whole.code, HealthCode::Unknown);
        let expected =
            "failed to get resource health for \"Widget\" with name \"w\" in namespace \"n\": no script";
        assert_eq!(health.error.as_deref(), Some(expected));
    }
}
