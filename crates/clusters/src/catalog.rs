//! What kinds a cluster serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::object::{KindInfo, group_version};
use serde_json::Value;

use crate::error::ClusterError;
use crate::requests::Requests;

/// Discovery in one answer where the server can, and piece by piece where not.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// More kinds than this are not believed.
const MOST_KINDS: usize = 20_000;

/// A kind, whichever version it is written in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupKind {
    pub(crate) group: String,
    pub(crate) kind: String,
}

/// A kind in the version its objects are watched in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) api_version: Arc<str>,
    pub(crate) info: KindInfo,
    /// Whether its objects can be listed and watched.
    pub(crate) watchable: bool,
}

/// Every kind of a cluster.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// In the preferred version among those that serve the kind.
    kinds: BTreeMap<GroupKind, Served>,
    /// By `apiVersion`, then kind.
    versions: BTreeMap<String, BTreeMap<String, KindInfo>>,
    /// `apiVersion` and `apiVersion/Kind` of all, as Helm's capabilities list them.
    names: Arc<[String]>,
    /// Groups that could not be asked, and why.
    pub(crate) gaps: BTreeMap<String, String>,
}

impl GroupKind {
    pub(crate) fn new(group: &str, kind: &str) -> GroupKind {
        GroupKind { group: group.to_owned(), kind: kind.to_owned() }
    }
}

impl Catalog {
    /// Asks a cluster what it serves. A group whose own server does not answer is a gap, no error.
    pub(crate) async fn discover(requests: &Requests) -> Result<Catalog, ClusterError> {
        let mut found = Catalog::default();
        let core = requests.get_as("/api", ACCEPT).await?;
        match is_aggregated(&core) {
            true => found.add_aggregated(&core),
            false => {
                for version in texts(&core["versions"]) {
                    found.add_plain(version, &requests.get(&format!("/api/{version}")).await?);
                }
            }
        }
        let groups = requests.get_as("/apis", ACCEPT).await?;
        match is_aggregated(&groups) {
            true => found.add_aggregated(&groups),
            false => {
                for version in plain_versions(&groups) {
                    match requests.get(&format!("/apis/{version}")).await {
                        Ok(list) => found.add_plain(&version, &list),
                        Err(error) if error.code() != 0 => {
                            found.gaps.insert(version, error.to_string());
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        found.name_all();
        Ok(found)
    }

    /// A kind in one version.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<&KindInfo> {
        self.versions.get(api_version)?.get(kind)
    }

    /// A kind in its preferred version.
    pub(crate) fn served(&self, kind: &GroupKind) -> Option<&Served> {
        self.kinds.get(kind)
    }

    pub(crate) fn watchable(&self) -> impl Iterator<Item = (&GroupKind, &Served)> {
        self.kinds.iter().filter(|(_, served)| served.watchable)
    }

    pub(crate) fn names(&self) -> Arc<[String]> {
        self.names.clone()
    }

    /// Takes over from before the kinds of groups that could not be asked this time.
    pub(crate) fn fill_gaps(&mut self, before: &Catalog) {
        for version in self.gaps.keys() {
            let group = group_version(version).0;
            if let Some(kinds) = before.versions.get(version) {
                self.versions.entry(version.clone()).or_insert_with(|| kinds.clone());
            }
            for (kind, served) in before.kinds.iter().filter(|(kind, _)| kind.group == group) {
                self.kinds.entry(kind.clone()).or_insert_with(|| served.clone());
            }
        }
        self.name_all();
    }

    fn add_aggregated(&mut self, list: &Value) {
        for group in array(&list["items"]) {
            let name = text(&group["metadata"]["name"]);
            for version in array(&group["versions"]) {
                let api_version = join(name, text(&version["version"]));
                if text(&version["freshness"]) == "Stale" && array(&version["resources"]).is_empty() {
                    self.gaps.insert(api_version, "its server does not answer".to_owned());
                    continue;
                }
                for resource in array(&version["resources"]) {
                    self.add(
                        &api_version,
                        resource["responseKind"]["kind"].as_str().unwrap_or_default(),
                        text(&resource["resource"]),
                        text(&resource["scope"]) == "Namespaced",
                        &texts(&resource["verbs"]),
                    );
                }
            }
        }
    }

    fn add_plain(&mut self, api_version: &str, list: &Value) {
        for resource in array(&list["resources"]) {
            let name = text(&resource["name"]);
            if name.contains('/') {
                continue;
            }
            let namespaced = resource["namespaced"].as_bool().unwrap_or(false);
            self.add(api_version, text(&resource["kind"]), name, namespaced, &texts(&resource["verbs"]));
        }
    }

    fn add(&mut self, api_version: &str, kind: &str, plural: &str, namespaced: bool, verbs: &[&str]) {
        if !is_path_segment(plural) || kind.is_empty() || self.kinds.len() >= MOST_KINDS {
            return;
        }
        let info = KindInfo { plural: plural.to_owned(), namespaced };
        self.versions
            .entry(api_version.to_owned())
            .or_default()
            .entry(kind.to_owned())
            .or_insert(info.clone());
        let watchable = ["list", "watch", "get"].iter().all(|verb| verbs.contains(verb));
        let key = GroupKind::new(group_version(api_version).0, kind);
        let served = Served { api_version: api_version.into(), info, watchable };
        // Versions come in the order of preference; one that can be watched beats one that cannot.
        match self.kinds.get(&key) {
            Some(known) if known.watchable || !watchable => {}
            _ => drop(self.kinds.insert(key, served)),
        }
    }

    fn name_all(&mut self) {
        let mut names = BTreeSet::new();
        for (api_version, kinds) in &self.versions {
            names.insert(api_version.clone());
            names.extend(kinds.keys().map(|kind| format!("{api_version}/{kind}")));
        }
        self.names = names.into_iter().collect();
    }
}

/// The versions to ask of a plain list of groups, the preferred one of each group first.
fn plain_versions(groups: &Value) -> Vec<String> {
    let mut versions = Vec::new();
    for group in array(&groups["groups"]) {
        let preferred = text(&group["preferredVersion"]["groupVersion"]);
        let all = array(&group["versions"]).iter().map(|version| text(&version["groupVersion"]));
        let others = all.filter(|version| *version != preferred);
        for version in std::iter::once(preferred).chain(others) {
            if version.split('/').count() == 2 && version.split('/').all(is_path_segment) {
                versions.push(version.to_owned());
            }
        }
    }
    versions
}

/// Whether the text can stand in a URL's path as it is. The answers of a cluster are not trusted to lead elsewhere.
pub(crate) fn is_path_segment(text: &str) -> bool {
    !text.is_empty()
        && text != "."
        && text != ".."
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

fn is_aggregated(answer: &Value) -> bool {
    answer["kind"] == "APIGroupDiscoveryList"
}

fn join(group: &str, version: &str) -> String {
    match group.is_empty() {
        true => version.to_owned(),
        false => format!("{group}/{version}"),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    array(value).iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(name: &str, kind: &str, verbs: &[&str]) -> Value {
        json!({"name": name, "kind": kind, "namespaced": true, "verbs": verbs})
    }

    #[test]
    fn the_preferred_version_that_can_be_watched_is_watched() {
        let mut catalog = Catalog::default();
        let all = ["get", "list", "watch"];
        catalog.add_plain(
            "x/v2",
            &json!({"resources": [resource("as", "A", &["create"]), resource("bs", "B", &all)]}),
        );
        catalog
            .add_plain("x/v1", &json!({"resources": [resource("as", "A", &all), resource("bs", "B", &all)]}));
        catalog.name_all();
        assert_eq!(&*catalog.served(&GroupKind::new("x", "A")).expect("served").api_version, "x/v1");
        assert_eq!(&*catalog.served(&GroupKind::new("x", "B")).expect("served").api_version, "x/v2");
        assert!(catalog.kind("x/v1", "B").is_some() && catalog.kind("x/v3", "B").is_none());
        assert_eq!(&*catalog.names(), ["x/v1", "x/v1/A", "x/v1/B", "x/v2", "x/v2/A", "x/v2/B"]);
    }

    #[test]
    fn names_that_would_lead_elsewhere_are_not_believed() {
        let mut catalog = Catalog::default();
        let odd = ["../secrets", "a?b", "", "a b", ".."]
            .map(|name| resource(name, "Odd", &["get", "list", "watch"]));
        catalog.add_plain("x/v1", &json!({"resources": odd}));
        assert_eq!(catalog.watchable().count(), 0);
        let groups = json!({"groups": [{"preferredVersion": {"groupVersion": "../api/v1"}, "versions": []}]});
        assert_eq!(plain_versions(&groups), Vec::<String>::new());
    }

    #[test]
    fn a_gap_keeps_what_was_known_before() {
        let mut before = Catalog::default();
        before.add_plain("x/v1", &json!({"resources": [resource("as", "A", &["get", "list", "watch"])]}));
        let mut now = Catalog::default();
        now.gaps.insert("x/v1".to_owned(), "503".to_owned());
        now.fill_gaps(&before);
        assert!(now.kind("x/v1", "A").is_some() && now.served(&GroupKind::new("x", "A")).is_some());
    }
}
