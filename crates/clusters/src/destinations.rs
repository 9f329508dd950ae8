//! Which cluster a destination means.

use baton_api::application::Destination;
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER};

/// A registered cluster, as far as destinations are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered<'a> {
    /// Its name.
    pub name: &'a str,
    /// URL of its API, without a slash at its end.
    pub server: &'a str,
}

/// The server of the one known cluster that the destination means.
///
/// # Errors
/// Why there is none, in Argo CD's words.
pub fn resolve<'a>(
    destination: &Destination,
    clusters: &[Registered<'a>],
    in_cluster_enabled: bool,
) -> Result<&'a str, String> {
    let (name, server) = (destination.name.as_str(), destination.server.as_str());
    match (name.is_empty(), server.is_empty()) {
        (false, false) => {
            Err(format!("application destination can't have both name and server defined: {name} {server}"))
        }
        (true, true) => Err("Destination server missing from app spec".to_owned()),
        (true, false) => known(server.trim_end_matches('/'), clusters, in_cluster_enabled)
            .map_err(|why| format!("error getting cluster by server {server:?}: {why}")),
        (false, true) => known(named(name, clusters, in_cluster_enabled)?, clusters, in_cluster_enabled)
            .map_err(|why| format!("error getting cluster by URL: {why}")),
    }
}

fn named<'a>(name: &str, clusters: &[Registered<'a>], in_cluster_enabled: bool) -> Result<&'a str, String> {
    let mut servers: Vec<&'a str> =
        clusters.iter().filter(|cluster| cluster.name == name).map(|cluster| cluster.server).collect();
    if servers.is_empty() && name == IN_CLUSTER_NAME {
        servers.push(IN_CLUSTER_SERVER);
    }
    if !in_cluster_enabled {
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

fn known<'a>(server: &str, clusters: &[Registered<'a>], in_cluster_enabled: bool) -> Result<&'a str, String> {
    // Argo CD's texts are those of a gRPC error, which users find in search engines.
    if server == IN_CLUSTER_SERVER {
        return match in_cluster_enabled {
            true => Ok(IN_CLUSTER_SERVER),
            false => Err(format!("rpc error: code = NotFound desc = cluster {server:?} is disabled")),
        };
    }
    let found = clusters.iter().find(|cluster| cluster.server == server);
    found
        .map(|cluster| cluster.server)
        .ok_or_else(|| format!("rpc error: code = NotFound desc = cluster {server:?} not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTERS: [Registered<'static>; 3] = [
        Registered { name: "east", server: "https://east" },
        Registered { name: "twin", server: "https://twin-a" },
        Registered { name: "twin", server: "https://twin-b" },
    ];

    fn found(name: &str, server: &str, in_cluster: bool) -> Result<&'static str, String> {
        let destination =
            Destination { name: name.into(), server: server.into(), namespace: "default".into() };
        resolve(&destination, &CLUSTERS, in_cluster)
    }

    #[test]
    fn a_destination_means_one_cluster() {
        assert_eq!(found("east", "", true), Ok("https://east"));
        assert_eq!(found("", "https://east//", true), Ok("https://east"));
        assert_eq!(found("in-cluster", "", true), Ok(IN_CLUSTER_SERVER));
        assert_eq!(found("", IN_CLUSTER_SERVER, true), Ok(IN_CLUSTER_SERVER));
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
