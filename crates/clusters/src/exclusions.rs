//! Kinds that are never looked at: Argo CD's own list, and the operator's.

use std::collections::BTreeMap;

use baton_grammar::globs::gobwas::Pattern;
use serde::Deserialize;

/// Which kinds of which clusters are looked at.
#[derive(Debug, Clone, Default)]
pub struct Exclusions {
    exclude: Vec<Rule>,
    include: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    groups: Vec<Pattern>,
    kinds: Vec<String>,
    clusters: Vec<Pattern>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawRule {
    api_groups: Vec<String>,
    kinds: Vec<String>,
    clusters: Vec<String>,
}

impl Exclusions {
    /// Reads `resource.exclusions` and `resource.inclusions` of argocd-cm.
    ///
    /// # Errors
    /// Which of the two is wrong, and why.
    pub fn read(settings: &BTreeMap<String, String>) -> Result<Exclusions, String> {
        let rules = |key: &str| match settings.get(key) {
            Some(text) => rules(text).map_err(|why| format!("{key}: {why}")),
            None => Ok(Vec::new()),
        };
        Ok(Exclusions { exclude: rules("resource.exclusions")?, include: rules("resource.inclusions")? })
    }

    /// Whether objects of this kind on this server are not looked at.
    pub fn excludes(&self, group: &str, kind: &str, server: &str) -> bool {
        let core = match group {
            "events.k8s.io" | "metrics.k8s.io" => true,
            "" => kind == "Event",
            "coordination.k8s.io" => kind == "Lease",
            _ => false,
        };
        if core || self.exclude.iter().any(|rule| rule.matches(group, kind, server)) {
            return true;
        }
        let included = self.include.iter().any(|rule| rule.matches(group, kind, server));
        !included && self.include.iter().any(|rule| rule.is_for(server))
    }
}

impl Rule {
    fn matches(&self, group: &str, kind: &str, server: &str) -> bool {
        let of_group = self.groups.is_empty() || self.groups.iter().any(|glob| glob.matches(group));
        let of_kind = self.kinds.is_empty() || self.kinds.iter().any(|known| known == "*" || known == kind);
        of_group && of_kind && self.is_for(server)
    }

    fn is_for(&self, server: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|glob| glob.matches(server))
    }
}

fn rules(text: &str) -> Result<Vec<Rule>, String> {
    let value = baton_grammar::yaml::first(text).map_err(|error| error.to_string())?;
    let raw: Option<Vec<RawRule>> = serde_json::from_value(value).map_err(|error| error.to_string())?;
    raw.unwrap_or_default().into_iter().map(rule).collect()
}

fn rule(raw: RawRule) -> Result<Rule, String> {
    let globs = |texts: Vec<String>| {
        let globs =
            texts.iter().map(|text| Pattern::new(text, &[]).map_err(|error| format!("{text:?}: {error}")));
        globs.collect::<Result<Vec<_>, _>>()
    };
    Ok(Rule { groups: globs(raw.api_groups)?, kinds: raw.kinds, clusters: globs(raw.clusters)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusions(exclude: &str, include: &str) -> Exclusions {
        let settings = [("resource.exclusions", exclude), ("resource.inclusions", include)];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Exclusions::read(&settings).expect("good rules")
    }

    #[test]
    fn high_churn_kinds_are_always_left_out() {
        let none = Exclusions::default();
        for (group, kind, out) in [
            ("", "Event", true),
            ("events.k8s.io", "Event", true),
            ("metrics.k8s.io", "PodMetrics", true),
            ("coordination.k8s.io", "Lease", true),
            ("", "Pod", false),
            ("apps", "Deployment", false),
        ] {
            assert_eq!(none.excludes(group, kind, "https://x"), out, "{group} {kind}");
        }
    }

    #[test]
    fn exclusions_beat_inclusions_and_inclusions_shut_the_rest_out() {
        let rules = exclusions(
            "- apiGroups: ['cilium.io']\n  kinds: ['*']\n  clusters: ['https://*.east']",
            "- apiGroups: ['', '*.io']\n  clusters: ['https://a.east']",
        );
        for (group, kind, server, out) in [
            ("cilium.io", "CiliumIdentity", "https://a.east", true),
            ("cilium.io", "CiliumIdentity", "https://a.west", false),
            ("", "Pod", "https://a.east", false),
            ("argoproj.io", "Rollout", "https://a.east", false),
            ("apps", "Deployment", "https://a.east", true),
            ("apps", "Deployment", "https://b.east", false),
        ] {
            assert_eq!(rules.excludes(group, kind, server), out, "{group} {kind} {server}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let settings = [("resource.exclusions".to_owned(), "a: b".to_owned())].into();
        let error = Exclusions::read(&settings).expect_err("no list");
        assert!(error.starts_with("resource.exclusions: "), "{error}");
    }
}
