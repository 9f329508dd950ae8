//! What a project permits its Applications.

use baton_api::application::{Application, Destination};
use baton_api::names::finalizer::RESOURCES;
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_api::project::{AppProject, AppProjectSpec, ClusterResourceItem, GroupKind};
use baton_grammar::globs::{gobwas, path};
use baton_grammar::regexp::Regexp;
use serde_json::Value;

use crate::normalize::project_of;

/// The cluster an Application is deployed to, as it was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DestinationCluster<'a> {
    /// URL of its API.
    pub server: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A cluster that is registered for one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopedCluster {
    /// URL of its API.
    pub server: String,
    /// Its name.
    pub name: String,
    /// The namespaces it is limited to; none is all.
    pub namespaces: Vec<String>,
}

/// A project's rules, read once.
///
/// # Guarantees
/// A pattern that cannot be read permits nothing, and one that denies denies everything. (In Argo CD a denying pattern
/// that cannot be read denies nothing.)
#[derive(Debug, Clone)]
pub struct ProjectRules {
    name: String,
    spec: AppProjectSpec,
    sources: Vec<Rule>,
    destinations: Vec<DestinationRule>,
    cluster_kinds: Kinds,
    namespaced_kinds: Option<Kinds>,
    refused_cluster_kinds: Kinds,
    refused_namespaced_kinds: Kinds,
    source_namespaces: Vec<Namespaces>,
    scoped: Option<Vec<(String, String)>>,
}

/// A glob that permits, or one that denies.
#[derive(Debug, Clone)]
struct Rule {
    denies: bool,
    pattern: Option<gobwas::Pattern>,
}

#[derive(Debug, Clone)]
struct DestinationRule {
    server: Rule,
    name: Rule,
    namespace: Rule,
}

type Kinds = Vec<KindRule>;

#[derive(Debug, Clone)]
struct KindRule {
    group: path::Pattern,
    kind: path::Pattern,
    name: Option<path::Pattern>,
}

#[derive(Debug, Clone)]
enum Namespaces {
    Glob(gobwas::Pattern),
    Expression(Regexp),
}

// === impl ProjectRules ===

impl ProjectRules {
    /// Reads a project together with the clusters and repositories registered for it, and with the projects that the
    /// operator made global for it.
    pub fn new(
        project: &AppProject,
        clusters: &[ScopedCluster],
        repositories: &[String],
        globals: &[&AppProject],
    ) -> ProjectRules {
        let mut spec = project.spec.clone();
        spec.source_repos.extend(repositories.iter().cloned());
        for cluster in clusters {
            let all = ["*".to_owned()];
            let namespaces = if cluster.namespaces.is_empty() { &all[..] } else { &cluster.namespaces[..] };
            spec.destinations.extend(namespaces.iter().map(|namespace| Destination {
                server: cluster.server.clone(),
                name: String::new(),
                namespace: namespace.clone(),
            }));
        }
        for global in globals {
            add_global(&mut spec, &global.spec);
        }
        let scoped = spec
            .permit_only_project_scoped_clusters
            .then(|| clusters.iter().map(|cluster| (cluster.server.clone(), cluster.name.clone())).collect());
        ProjectRules {
            name: project.metadata.name.clone().unwrap_or_default(),
            sources: spec.source_repos.iter().map(|url| Rule::of_source(url)).collect(),
            destinations: spec.destinations.iter().map(DestinationRule::new).collect(),
            cluster_kinds: named_kinds(&spec.cluster_resource_whitelist),
            namespaced_kinds: spec.namespace_resource_whitelist.as_deref().map(kinds),
            refused_cluster_kinds: named_kinds(&spec.cluster_resource_blacklist),
            refused_namespaced_kinds: kinds(&spec.namespace_resource_blacklist),
            source_namespaces: spec
                .source_namespaces
                .iter()
                .flat_map(|text| Namespaces::read(text))
                .collect(),
            scoped,
            spec,
        }
    }

    /// The project's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the project says, with what is registered for it and with its global projects.
    pub fn spec(&self) -> &AppProjectSpec {
        &self.spec
    }

    /// Whether manifests may come from a repository.
    pub fn permits_source(&self, url: &str) -> bool {
        let url = normalised_url(url);
        let mut permitted = false;
        for rule in &self.sources {
            match (rule.holds_for(&url), rule.denies) {
                (true, _) => permitted = true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        permitted
    }

    /// Whether a namespace of a cluster may be deployed to.
    pub fn permits_destination(&self, cluster: DestinationCluster<'_>, namespace: &str) -> bool {
        let scoped = self.scoped.as_ref().is_none_or(|scoped| {
            scoped.iter().any(|(server, name)| server == cluster.server || name == cluster.name)
        });
        scoped && self.matches_destination(cluster, namespace)
    }

    fn matches_destination(&self, cluster: DestinationCluster<'_>, namespace: &str) -> bool {
        let mut permitted = false;
        for rule in &self.destinations {
            let name = !cluster.name.is_empty() && rule.name.holds_for(cluster.name);
            let server = !cluster.server.is_empty() && rule.server.holds_for(cluster.server);
            let in_namespace = rule.namespace.holds_for(namespace);
            if (server || name) && in_namespace {
                permitted = true;
            } else if (!name && rule.name.denies)
                || (!server && rule.server.denies && in_namespace)
                || (!in_namespace && rule.namespace.denies && server)
            {
                return false;
            }
        }
        permitted
    }

    /// Whether objects of a kind may be deployed.
    pub fn permits_kind(&self, group: &str, kind: &str, name: &str, namespaced: bool) -> bool {
        let listed = |rules: &Kinds| rules.iter().any(|rule| rule.holds_for(group, kind, name));
        if namespaced {
            self.namespaced_kinds.as_ref().is_none_or(listed) && !listed(&self.refused_namespaced_kinds)
        } else {
            listed(&self.cluster_kinds) && !listed(&self.refused_cluster_kinds)
        }
    }

    /// Whether an object found in the cluster is the project's business: what is not is neither compared nor deleted.
    pub fn permits_live(&self, live: &Value, cluster: DestinationCluster<'_>) -> bool {
        let namespace = live.namespace();
        self.permits_kind(live.group(), live.kind(), live.name(), !namespace.is_empty())
            && (namespace.is_empty() || self.permits_destination(cluster, namespace))
    }

    /// Whether a rendered object may be applied.
    ///
    /// # Errors
    /// Why not, in Argo CD's words.
    pub fn permits_target(
        &self,
        target: &Value,
        kind: Option<&KindInfo>,
        cluster: DestinationCluster<'_>,
    ) -> Result<(), String> {
        let (group, kind_name) = (target.group(), target.kind());
        let Some(kind) = kind else {
            return Err(format!(
                "failed to get API resource info for {group}/{kind_name}: unable to verify permissions"
            ));
        };
        if !self.permits_kind(group, kind_name, target.name(), kind.namespaced) {
            return Err(format!("resource {group}:{kind_name} is not permitted in project {}", self.name));
        }
        let namespace = target.namespace();
        if kind.namespaced && !self.permits_destination(cluster, namespace) {
            return Err(format!("namespace {namespace} is not permitted in project '{}'", self.name));
        }
        Ok(())
    }

    /// Whether an Application may use the project from where it lives.
    ///
    /// # Errors
    /// Why not, in Argo CD's words.
    pub fn permits_application(&self, application: &Application, own_namespace: &str) -> Result<(), String> {
        let namespace = application.metadata.namespace.as_deref().unwrap_or_default();
        let listed = || self.source_namespaces.iter().any(|rule| rule.contains(namespace));
        if namespace.is_empty() || namespace == own_namespace || listed() {
            return Ok(());
        }
        let name = application.metadata.name.as_deref().unwrap_or_default();
        let project = &self.name;
        Err(format!(
            "application '{name}' in namespace '{namespace}' is not permitted to use project '{project}'"
        ))
    }

    /// Whether orphans are looked for at all.
    pub fn looks_for_orphans(&self) -> bool {
        self.spec.orphaned_resources.is_some()
    }

    /// The warning that so many orphans are worth, if the project wants one.
    pub fn orphan_warning(&self, count: usize) -> Option<String> {
        let warns = self.spec.orphaned_resources.as_ref().is_some_and(|orphans| orphans.warn == Some(true));
        (warns && count > 0).then(|| format!("Application has {count} orphaned resources"))
    }

    /// Whether an object that belongs to nobody counts as an orphan. What every namespace holds does not, nor what the
    /// project ignores or does not permit.
    pub fn is_orphan(&self, key: &ResourceKey) -> bool {
        let of_cluster = key.group.is_empty()
            && match key.kind.as_str() {
                "Service" => key.namespace == "default" && key.name == "kubernetes",
                "ServiceAccount" => key.name == "default",
                "ConfigMap" => key.name == "kube-root-ca.crt",
                _ => false,
            };
        let ignore = self.spec.orphaned_resources.as_ref().map_or(&[][..], |orphans| &orphans.ignore);
        let matches = |pattern: &str, text: &str| {
            gobwas::Pattern::new(pattern, &[]).is_ok_and(|pattern| pattern.matches(text))
        };
        let ignored = ignore.iter().any(|item| {
            (item.kind.is_empty() || matches(&item.kind, &key.kind))
                && matches(&item.group, &key.group)
                && (item.name.is_empty() || matches(&item.name, &key.name))
        });
        !key.namespace.is_empty()
            && !of_cluster
            && !ignored
            && self.permits_kind(&key.group, &key.kind, &key.name, true)
    }
}

/// The finalizers that are left of a project which is being deleted, once no Application uses it any more; none while it
/// is to stay as it is.
pub fn released<'a>(
    project: &AppProject,
    applications: impl IntoIterator<Item = &'a Application>,
    own_namespace: &str,
) -> Option<Vec<String>> {
    let finalizers = project.metadata.finalizers.as_deref().unwrap_or_default();
    let held = finalizers.iter().any(|finalizer| finalizer == RESOURCES);
    if project.metadata.deletion_timestamp.is_none() || !held {
        return None;
    }
    let rules = ProjectRules::new(project, &[], &[], &[]);
    let uses = |application: &Application| {
        project_of(&application.spec) == rules.name
            && rules.permits_application(application, own_namespace).is_ok()
    };
    if applications.into_iter().any(uses) {
        return None;
    }
    Some(finalizers.iter().filter(|finalizer| *finalizer != RESOURCES).cloned().collect())
}

/// Adds what a global project says. A list of namespaced kinds that is absent stays absent beside an empty one.
fn add_global(spec: &mut AppProjectSpec, global: &AppProjectSpec) {
    spec.cluster_resource_whitelist.extend(global.cluster_resource_whitelist.iter().cloned());
    spec.cluster_resource_blacklist.extend(global.cluster_resource_blacklist.iter().cloned());
    let kinds = global.namespace_resource_whitelist.as_deref().unwrap_or_default();
    if !kinds.is_empty() {
        spec.namespace_resource_whitelist.get_or_insert_default().extend(kinds.iter().cloned());
    }
    spec.namespace_resource_blacklist.extend(global.namespace_resource_blacklist.iter().cloned());
    spec.sync_windows.extend(global.sync_windows.iter().cloned());
    spec.source_repos.extend(global.source_repos.iter().cloned());
    spec.destinations.extend(global.destinations.iter().cloned());
    spec.destination_service_accounts.extend(global.destination_service_accounts.iter().cloned());
}

/// A repository's URL as it is compared: the letters' case, the suffix `.git` and the two spellings of ssh URLs do not
/// matter.
fn normalised_url(url: &str) -> String {
    let mut url = url.trim().to_lowercase();
    let user = url.rsplit_once('@').map(|(user, _)| user);
    if user.is_some_and(|user| !user.contains(['/', ':'])) {
        url = url.replacen(':', "/", 1);
    }
    let url = url.strip_suffix(".git").unwrap_or(&url);
    url.strip_prefix("ssh://").unwrap_or(url).to_owned()
}

fn kinds(items: &[GroupKind]) -> Kinds {
    items.iter().filter_map(|item| KindRule::new(&item.group, &item.kind, "")).collect()
}

fn named_kinds(items: &[ClusterResourceItem]) -> Kinds {
    items.iter().filter_map(|item| KindRule::new(&item.group, &item.kind, &item.name)).collect()
}

// === impl Rule ===

impl Rule {
    fn new(text: &str) -> Rule {
        Rule::with_separators(text, &[])
    }

    fn of_source(text: &str) -> Rule {
        match text.strip_prefix('!') {
            Some(denied) => Rule::with_separators(&format!("!{}", normalised_url(denied)), &['/']),
            None => Rule::with_separators(&normalised_url(text), &['/']),
        }
    }

    fn with_separators(text: &str, separators: &[char]) -> Rule {
        let (denies, pattern) = match text.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, text),
        };
        // A lone star crosses separators too.
        let separators = if !denies && pattern == "*" { &[] } else { separators };
        Rule { denies, pattern: gobwas::Pattern::new(pattern, separators).ok() }
    }

    /// Whether a value is among those the rule is for: those that match, or those that do not match what it denies.
    fn holds_for(&self, value: &str) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.matches(value) != self.denies)
    }
}

impl DestinationRule {
    fn new(destination: &Destination) -> DestinationRule {
        DestinationRule {
            server: Rule::new(&destination.server),
            name: Rule::new(&destination.name),
            namespace: Rule::new(&destination.namespace),
        }
    }
}

impl KindRule {
    fn new(group: &str, kind: &str, name: &str) -> Option<KindRule> {
        let name = if name.is_empty() { None } else { Some(path::Pattern::new(name).ok()?) };
        Some(KindRule { group: path::Pattern::new(group).ok()?, kind: path::Pattern::new(kind).ok()?, name })
    }

    fn holds_for(&self, group: &str, kind: &str, name: &str) -> bool {
        self.kind.matches(kind)
            && self.group.matches(group)
            && self.name.as_ref().is_none_or(|pattern| pattern.matches(name))
    }
}

impl Namespaces {
    /// A glob, and between slashes a regular expression as well.
    fn read(text: &str) -> Vec<Namespaces> {
        let expression = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let expression = expression.and_then(|expression| Regexp::parse(expression).ok());
        let glob = gobwas::Pattern::new(text, &[]).ok();
        expression.map(Namespaces::Expression).into_iter().chain(glob.map(Namespaces::Glob)).collect()
    }

    fn contains(&self, namespace: &str) -> bool {
        match self {
            Namespaces::Glob(glob) => glob.matches(namespace),
            Namespaces::Expression(expression) => expression.is_match(namespace),
        }
    }
}

#[cfg(test)]
mod tests;
