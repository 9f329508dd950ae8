//! Which cluster an Application's destination means.

use baton_api::application::Destination;
use baton_generators::ClusterSecret;

/// The registered clusters, and whether the controllers' own is a destination.
pub(crate) struct Destinations {
    known: baton_clusters::Destinations,
    in_cluster_enabled: bool,
}

impl Destinations {
    pub(crate) fn new(clusters: &[ClusterSecret], in_cluster_enabled: bool) -> Destinations {
        let clusters = clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.server.as_str()));
        Destinations { known: baton_clusters::Destinations::new(clusters), in_cluster_enabled }
    }

    /// Whether the destination means exactly one known cluster.
    ///
    /// # Errors
    /// Why not, in Argo CD's words.
    pub(crate) fn check(&self, destination: &Destination) -> Result<(), String> {
        self.known.resolve(destination, self.in_cluster_enabled).map(drop)
    }
}
