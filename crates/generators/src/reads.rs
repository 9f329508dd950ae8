//! What a pass read, so that a change elsewhere wakes nobody.

use std::collections::BTreeSet;

use baton_api::pull_request::PullRequestGenerator;
use baton_grammar::labels::Selector;

use crate::world::ClusterSecret;

/// Selectors kept apart before "all clusters" stands for them; a matrix may ask with one per parameter set.
const MOST_SELECTORS: usize = 1_000;

/// What generators read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reads {
    /// Which cluster Secrets were asked for, one selector per distinct question.
    pub clusters: Vec<Selector>,
    /// Whether names and servers of all clusters were read.
    pub cluster_names: bool,
    /// Repositories and the revisions asked for, as written.
    pub repositories: BTreeSet<(String, String)>,
    /// Pull request generators as they ran, parameters of a matrix filled in.
    pub pull_requests: Vec<PullRequestGenerator>,
    /// Whether repositories of a source code host were listed.
    pub hosts: bool,
    /// Whether a plugin was called.
    pub plugins: bool,
    /// ConfigMaps by namespace and name.
    pub config_maps: BTreeSet<(String, String)>,
    /// Secrets by namespace and name.
    pub secrets: BTreeSet<(String, String)>,
    /// AppProjects that had to exist.
    pub projects: BTreeSet<String>,
    /// Other resources: API version, plural name and namespace.
    pub resources: BTreeSet<(String, String, String)>,
}

impl Reads {
    /// Whether nothing was read but the set itself, cluster Secrets and projects: then the result is the same for as
    /// long as they are.
    pub fn only_clusters(&self) -> bool {
        let outside =
            self.hosts || self.plugins || !self.repositories.is_empty() || !self.pull_requests.is_empty();
        let objects = [self.config_maps.len(), self.secrets.len(), self.resources.len()];
        !outside && objects == [0; 3]
    }

    /// Whether a cluster Secret's creation, change or deletion can alter the result.
    pub fn touched_by_cluster(&self, before: Option<&ClusterSecret>, after: Option<&ClusterSecret>) -> bool {
        if before == after {
            return false;
        }
        let endpoint = |secret: Option<&ClusterSecret>| {
            secret.map(|secret| (secret.name.clone(), secret.server.clone()))
        };
        if self.cluster_names && endpoint(before) != endpoint(after) {
            return true;
        }
        let picked = |selector: &Selector, secret: Option<&ClusterSecret>| {
            secret.is_some_and(|secret| selector.matches(|key| secret.labels.get(key).map(String::as_str)))
        };
        self.clusters.iter().any(|selector| picked(selector, before) || picked(selector, after))
    }

    pub(crate) fn add_clusters(&mut self, selector: &Selector) {
        if self.clusters.iter().any(|known| known == selector || known.is_empty()) {
            return;
        }
        if self.clusters.len() >= MOST_SELECTORS || selector.is_empty() {
            self.clusters = vec![Selector::default()];
            return;
        }
        self.clusters.push(selector.clone());
    }

    pub(crate) fn add_pull_requests(&mut self, generator: &PullRequestGenerator) {
        if !self.pull_requests.contains(generator) {
            self.pull_requests.push(generator.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str, env: &str) -> ClusterSecret {
        ClusterSecret {
            name: name.to_owned(),
            server: format!("https://{name}"),
            labels: [("env".to_owned(), env.to_owned())].into(),
            ..ClusterSecret::default()
        }
    }

    fn asking(selector: &str) -> Reads {
        let mut reads = Reads::default();
        reads.add_clusters(&Selector::parse(selector).expect("a selector"));
        reads
    }

    #[test]
    fn only_clusters_that_were_or_become_selected_touch() {
        let (dev, prod) = (cluster("a", "dev"), cluster("a", "prod"));
        for (selector, before, after, expected) in [
            ("env=prod", None, Some(&prod), true),
            ("env=prod", None, Some(&dev), false),
            ("env=prod", Some(&prod), None, true),
            ("env=prod", Some(&dev), Some(&prod), true),
            ("env=prod", Some(&prod), Some(&dev), true),
            ("env=prod", Some(&prod), Some(&prod), false),
            ("", Some(&dev), None, true),
        ] {
            assert_eq!(asking(selector).touched_by_cluster(before, after), expected, "{selector} {before:?}");
        }
        assert!(!Reads::default().touched_by_cluster(None, Some(&prod)));
    }

    #[test]
    fn whoever_reads_names_only_does_not_see_labels() {
        let reads = Reads { cluster_names: true, ..Reads::default() };
        assert!(!reads.touched_by_cluster(Some(&cluster("a", "dev")), Some(&cluster("a", "prod"))));
        assert!(reads.touched_by_cluster(Some(&cluster("a", "dev")), Some(&cluster("b", "dev"))));
        assert!(reads.touched_by_cluster(None, Some(&cluster("b", "dev"))));
    }

    #[test]
    fn many_selectors_become_one_that_matches_all() {
        let mut reads = Reads::default();
        for number in 0..=MOST_SELECTORS {
            reads.add_clusters(&Selector::parse(&format!("env=e{number}")).expect("a selector"));
        }
        assert_eq!(reads.clusters, [Selector::default()]);
    }
}
