//! Which cluster a destination means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application::Destination;
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER};

/// The registered clusters by server and by name.
#[derive(Debug, Clone, Default)]
pub struct Destinations {
    servers: BTreeSet<Arc<str>>,
    /// Servers by cluster name, in the order they were given.
    names: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}

impl Destinations {
    /// Clusters by name and server, in the order of their Secrets.
    pub fn new<'a>(clusters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Destinations {
        let mut known = Destinations::default();
        for (name, server) in clusters {
            let server: Arc<str> = server.trim_end_matches('/').into();
            known.servers.insert(server.clone());
            known.names.entry(name.into()).or_default().push(server);
        }
        known
    }

    /// The server of the one known cluster that the destination means.
    ///
    /// # Errors
    /// Why there is none, in Argo CD's words.
    pub fn resolve(&self, destination: &Destination, in_cluster_enabled: bool) -> Result<Arc<str>, String> {
        let (name, server) = (destination.name.as_str(), destination.server.as_str());
        match (name.is_empty(), server.is_empty()) {
            (false, false) => Err(format!(
                "application destination can't have both name and server defined: {name} {server}"
            )),
            (true, true) => Err("Destination server missing from app spec".to_owned()),
            (true, false) => self
                .known(server.trim_end_matches('/'), in_cluster_enabled)
                .map_err(|why| format!("error getting cluster by server {server:?}: {why}")),
            (false, true) => self
                .known(&self.named(name, in_cluster_enabled)?, in_cluster_enabled)
                .map_err(|why| format!("error getting cluster by URL: {why}")),
        }
    }

    fn named(&self, name: &str, in_cluster_enabled: bool) -> Result<Arc<str>, String> {
        let mut servers = self.names.get(name).cloned().unwrap_or_default();
        if servers.is_empty() && name == IN_CLUSTER_NAME {
            servers.push(IN_CLUSTER_SERVER.into());
        }
        if !in_cluster_enabled {
            servers.retain(|server| **server != *IN_CLUSTER_SERVER);
        }
        match servers.as_slice() {
            [] => Err(format!("there are no clusters with this name: {name}")),
            [server] => Ok(server.clone()),
            several => {
                let count = several.len();
                Err(format!("there are {count} clusters with the same name: [{}]", several.join(" ")))
            }
        }
    }

    fn known(&self, server: &str, in_cluster_enabled: bool) -> Result<Arc<str>, String> {
        // Argo CD's texts are those of a gRPC error, which users find in search engines.
        if server == IN_CLUSTER_SERVER {
            return match in_cluster_enabled {
                true => Ok(server.into()),
                false => Err(format!("rpc error: code = NotFound desc = cluster {server:?} is disabled")),
            };
        }
        let found = self.servers.get(server).cloned();
        found.ok_or_else(|| format!("rpc error: code = NotFound desc = cluster {server:?} not found"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, server: &str, in_cluster: bool) -> Result<String, String> {
        let clusters = Destinations::new([
            ("east", "https://east/"),
            ("twin", "https://twin-a"),
            ("twin", "https://twin-b"),
        ]);
        let destination =
            Destination { name: name.into(), server: server.into(), namespace: "default".into() };
        clusters.resolve(&destination, in_cluster).map(|server| server.to_string())
    }

    #[test]
    fn a_destination_means_one_cluster() {
        assert_eq!(found("east", "", true), Ok("https://east".to_owned()));
        assert_eq!(found("", "https://east//", true), Ok("https://east".to_owned()));
        assert_eq!(found("in-cluster", "", true), Ok(IN_CLUSTER_SERVER.to_owned()));
        assert_eq!(found("", IN_CLUSTER_SERVER, true), Ok(IN_CLUSTER_SERVER.to_owned()));
    }

    #[test]
    fn what_means_none_is_said_in_argo_cds_words() {
        let none = "rpc error: code = NotFound desc = cluster";
        for (name, server, in_cluster, text) in [
            ("", "", true, "Destination server missing from app spec".to_owned()),
            (
                "east",
                "https://east",
                true,
                "application destination can't have both name and server defined: east https://east"
                    .to_owned(),
            ),
            ("west", "", true, "there are no clusters with this name: west".to_owned()),
            (
                "twin",
                "",
                true,
                "there are 2 clusters with the same name: [https://twin-a https://twin-b]".to_owned(),
            ),
            (
                "",
                "https://west",
                true,
                format!(
                    "error getting cluster by server \"https://west\": {none} \"https://west\" not found"
                ),
            ),
            ("in-cluster", "", false, "there are no clusters with this name: in-cluster".to_owned()),
            (
                "",
                IN_CLUSTER_SERVER,
                false,
                format!(
                    "error getting cluster by server {IN_CLUSTER_SERVER:?}: {none} {IN_CLUSTER_SERVER:?} is disabled"
                ),
            ),
        ] {
            assert_eq!(found(name, server, in_cluster), Err(text), "{name} {server}");
        }
    }
}
