//! Which cluster an Application's destination means.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::application::Destination;
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use baton_generators::ClusterSecret;

/// The registered clusters by server and by name.
pub(crate) struct Destinations<'a> {
    servers: BTreeSet<&'a str>,
    /// Servers by cluster name, in the order of the Secrets.
    names: BTreeMap<&'a str, Vec<&'a str>>,
    in_cluster_enabled: bool,
}

impl<'a> Destinations<'a> {
    pub(crate) fn new(clusters: &'a [ClusterSecret], in_cluster_enabled: bool) -> Destinations<'a> {
        let mut servers = BTreeSet::new();
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for cluster in clusters {
            let server = cluster.server.trim_end_matches('/');
            servers.insert(server);
            names.entry(&cluster.name).or_default().push(server);
        }
        Destinations { servers, names, in_cluster_enabled }
    }

    /// Whether the destination means exactly one known cluster.
    ///
    /// # Errors
    /// Why not, in Argo CD's words.
    pub(crate) fn check(&self, destination: &Destination) -> Result<(), String> {
        let (name, server) = (destination.name.as_str(), destination.server.as_str());
        match (name.is_empty(), server.is_empty()) {
            (false, false) => Err(format!(
                "application destination can't have both name and server defined: {name} {server}"
            )),
            (true, true) => Err("Destination server missing from app spec".to_owned()),
            (true, false) => self
                .known(server.trim_end_matches('/'))
                .map_err(|why| format!("error getting cluster by server {server:?}: {why}")),
            (false, true) => {
                let server = self.named(name)?;
                self.known(server).map_err(|why| format!("error getting cluster by URL: {why}"))
            }
        }
    }

    fn named(&self, name: &str) -> Result<&str, String> {
        let mut servers: Vec<&str> = self.names.get(name).cloned().unwrap_or_default();
        if servers.is_empty() && name == IN_CLUSTER_NAME {
            servers.push(IN_CLUSTER_SERVER);
        }
        if !self.in_cluster_enabled {
            servers.retain(|server| *server != IN_CLUSTER_SERVER);
        }
        match servers.as_slice() {
            [] => Err(format!("there are no clusters with this name: {name}")),
            [server] => Ok(server),
            several => {
                let count = several.len();
                Err(format!("there are {count} clusters with the same name: [{}]", several.join(" ")))
            }
        }
    }

    fn known(&self, server: &str) -> Result<(), String> {
        // Argo CD's texts are those of a gRPC error, which users find in search engines.
        match server {
            IN_CLUSTER_SERVER if !self.in_cluster_enabled => {
                Err(format!("rpc error: code = NotFound desc = cluster {server:?} is disabled"))
            }
            IN_CLUSTER_SERVER => Ok(()),
            _ if self.servers.contains(server) => Ok(()),
            _ => Err(format!("rpc error: code = NotFound desc = cluster {server:?} not found")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str, server: &str) -> ClusterSecret {
        ClusterSecret { name: name.into(), server: server.into(), ..ClusterSecret::default() }
    }

    #[test]
    fn destinations_are_checked_in_argo_cds_words() {
        let clusters = [
            cluster("east", "https://east/"),
            cluster("twin", "https://twin-a"),
            cluster("twin", "https://twin-b"),
        ];
        let on = Destinations::new(&clusters, true);
        let off = Destinations::new(&clusters, false);
        let none = "rpc error: code = NotFound desc = cluster";
        let cases: [(&Destinations<'_>, &str, &str, Result<(), String>); 12] = [
            (&on, "east", "", Ok(())),
            (&on, "", "https://east", Ok(())),
            (&on, "", "https://east//", Ok(())),
            (&on, "in-cluster", "", Ok(())),
            (&on, "", IN_CLUSTER_SERVER, Ok(())),
            (&on, "", "", Err("Destination server missing from app spec".into())),
            (
                &on,
                "east",
                "https://east",
                Err("application destination can't have both name and server defined: east https://east"
                    .into()),
            ),
            (&on, "west", "", Err("there are no clusters with this name: west".into())),
            (
                &on,
                "twin",
                "",
                Err("there are 2 clusters with the same name: [https://twin-a https://twin-b]".into()),
            ),
            (
                &on,
                "",
                "https://west",
                Err(format!(
                    "error getting cluster by server \"https://west\": {none} \"https://west\" not found"
                )),
            ),
            (&off, "in-cluster", "", Err("there are no clusters with this name: in-cluster".into())),
            (
                &off,
                "",
                IN_CLUSTER_SERVER,
                Err(format!(
                    "error getting cluster by server {IN_CLUSTER_SERVER:?}: {none} {IN_CLUSTER_SERVER:?} is disabled"
                )),
            ),
        ];
        for (destinations, name, server, expected) in cases {
            let destination =
                Destination { name: name.into(), server: server.into(), namespace: "default".into() };
            assert_eq!(destinations.check(&destination), expected, "{name} {server}");
        }
    }
}
