//! Links and images of an Application, for lists of many.

use std::collections::BTreeSet;

use baton_api::application_status::ApplicationSummary;
use baton_api::names;
use baton_api::names::resource::LINK_PREFIX;
use baton_api::object::{Object, ResourceKey};
use baton_clusters::Cluster;
use baton_sync::targets::Pair;
use serde_json::Value;

/// Most links and most images that a summary lists.
const MOST: usize = 200;

/// What is told of an Application in short.
pub(super) fn of(cluster: &Cluster, pairs: &[Pair]) -> ApplicationSummary {
    let live = || pairs.iter().filter_map(|pair| pair.live.as_deref());
    let roots: Vec<ResourceKey> =
        pairs.iter().filter(|pair| pair.live.is_some()).map(|pair| pair.key.clone()).collect();
    let urls: BTreeSet<String> = live().flat_map(urls).collect();
    let is_application = |pair: &Pair| pair.key.group == names::GROUP && pair.key.kind == "Application";
    ApplicationSummary {
        external_urls: urls.into_iter().take(MOST).collect(),
        images: images(cluster, &roots),
        is_app_of_apps: pairs.iter().any(is_application),
    }
}

/// The images in use below these objects.
pub(super) fn images(cluster: &Cluster, roots: &[ResourceKey]) -> Vec<String> {
    let nodes = cluster.tree(roots).into_iter();
    let images: BTreeSet<String> = nodes.flat_map(|node| node.images).collect();
    images.into_iter().take(MOST).collect()
}

/// The addresses an object can be reached at from outside: what an Ingress routes, and what annotations name.
fn urls(object: &Value) -> Vec<String> {
    let annotations = object["metadata"]["annotations"].as_object();
    let links = annotations.into_iter().flatten().filter(|(name, _)| name.starts_with(LINK_PREFIX));
    let mut urls: Vec<String> = links.filter_map(|(_, url)| url.as_str()).map(str::to_owned).collect();
    if object.kind() == "Ingress" && matches!(object.group(), "networking.k8s.io" | "extensions") {
        urls.extend(ingress_urls(object));
    }
    urls
}

fn ingress_urls(ingress: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let spec = &ingress["spec"];
    let secured: BTreeSet<String> = list(&spec["tls"])
        .iter()
        .flat_map(|tls| list(&tls["hosts"]))
        .filter_map(|host| host.as_str().map(str::to_owned))
        .collect();
    let balancers = list(&ingress["status"]["loadBalancer"]["ingress"]);
    let fallback = balancers.iter().find_map(|balancer| {
        balancer["hostname"].as_str().or_else(|| balancer["ip"].as_str()).map(str::to_owned)
    });
    let mut urls = Vec::new();
    for rule in list(&spec["rules"]) {
        let stated = rule["host"].as_str().filter(|host| !host.is_empty()).map(str::to_owned);
        let Some(host) = stated.or_else(|| fallback.clone()) else { continue };
        let scheme = if secured.contains(&host) { "https" } else { "http" };
        let mut paths: Vec<String> = list(&rule["http"]["paths"])
            .iter()
            .map(|path| path["path"].as_str().unwrap_or("/").trim_end_matches('*').to_owned())
            .collect();
        if paths.is_empty() {
            paths.push("/".to_owned());
        }
        urls.extend(
            paths.iter().map(|path| format!("{scheme}://{host}{}", if path == "/" { "" } else { path })),
        );
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_ingress_is_reached_at_its_hosts_and_paths() {
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"annotations": {"link.argocd.argoproj.io/docs": "https://docs.example.com"}},
            "spec": {
                "tls": [{"hosts": ["a.example.com"]}],
                "rules": [
                    {"host": "a.example.com", "http": {"paths": [{"path": "/"}, {"path": "/api"}]}},
                    {"http": {"paths": [{"path": "/x"}]}},
                ],
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        assert_eq!(
            urls(&ingress),
            [
                "https://docs.example.com",
                "https://a.example.com",
                "https://a.example.com/api",
                "http://192.0.2.1/x"
            ]
        );
        assert_eq!(urls(&json!({"kind": "Ingress", "spec": 3})), [] as [String; 0]);
    }
}
