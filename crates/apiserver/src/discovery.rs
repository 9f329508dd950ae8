//! What is served, as clients ask: group and resource lists, the aggregated form, and the version.

use serde_json::{Value, json};

use crate::catalog::{Catalog, Nature, Resource, api_version};
use crate::cluster::Core;
use crate::failure::Failure;
use crate::request::{Discovery, Shape};
use crate::rest::{Answer, Call};
use baton_kinds::Subresource;

/// The Kubernetes version clients are told. Some pick their own version by it, so it is one whose clients need nothing that is
/// not served (kubectl before 1.33 autoscales through autoscaling/v1).
const KUBERNETES_VERSION: (&str, &str) = ("1", "33");

pub(crate) fn version() -> Answer {
    let (major, minor) = KUBERNETES_VERSION;
    Answer::ok(json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("v{major}.{minor}.0+baton"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    }))
}

/// Clients know Go's names for architectures.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/healthz` and its kin: whoever can answer is well, unless the store has stopped taking writes.
pub(crate) fn health(core: &Core, uri: &http::Uri) -> Answer {
    if core.store_failed() {
        let mut answer =
            Answer::text("[-]store failed: no writes are taken until the server is started again\n");
        answer.code = http::StatusCode::INTERNAL_SERVER_ERROR;
        return answer;
    }
    if !uri.query().unwrap_or_default().contains("verbose") {
        return Answer::text("ok");
    }
    let name = uri.path().trim_matches('/').split('/').next().unwrap_or_default();
    Answer::text(format!("[+]ping ok\n[+]store ok\n{name} check passed\n"))
}

pub(crate) fn root() -> Answer {
    let paths = [
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    Answer::ok(json!({"paths": paths}))
}

pub(crate) fn answer(call: &Call, document: &Discovery) -> Result<Answer, Failure> {
    let catalog = call.core.catalog();
    let aggregated = call.representation.shape == Shape::AggregatedDiscovery;
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    Ok(match document {
        Discovery::Core if aggregated => Answer::ok(aggregate(&catalog, true)).typed(AGGREGATED),
        Discovery::Groups if aggregated => Answer::ok(aggregate(&catalog, false)).typed(AGGREGATED),
        Discovery::Core => Answer::ok(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        Discovery::Groups => {
            let groups: Vec<Value> = catalog
                .groups()
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, versions)| group(name, versions))
                .collect();
            Answer::ok(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        Discovery::Group(wanted) => {
            let groups = catalog.groups();
            let (name, versions) = groups
                .iter()
                .find(|(name, _)| !name.is_empty() && name == wanted)
                .ok_or_else(Failure::no_such_path)?;
            let mut found = group(name, versions);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Answer::ok(found)
        }
        Discovery::Version(group, version) => {
            let served = of_version(&catalog, group, version);
            if served.is_empty() {
                return Err(Failure::no_such_path());
            }
            let resources: Vec<Value> = served.into_iter().flat_map(legacy_entries).collect();
            Answer::ok(json!({
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": api_version(group, version),
                "resources": resources,
            }))
        }
    })
}

fn group(name: &str, versions: &[String]) -> Value {
    let entries: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    let preferred = entries.first().cloned().unwrap_or_default();
    json!({"name": name, "versions": entries, "preferredVersion": preferred})
}

fn of_version<'a>(catalog: &'a Catalog, group: &str, version: &str) -> Vec<&'a Resource> {
    catalog
        .resources()
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(AsRef::as_ref)
        .collect()
}

/// A resource and its subresources as `APIResource`s.
fn legacy_entries(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let mut entries = vec![entry];
    for sub in subresources(resource) {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind,
            "verbs": sub.verbs,
        });
        if (sub.group.as_str(), sub.version.as_str()) != (resource.group.as_str(), resource.version.as_str())
        {
            entry["group"] = sub.group.into();
            entry["version"] = sub.version.into();
        }
        entries.push(entry);
    }
    entries
}

struct SubEntry {
    name: &'static str,
    group: String,
    version: String,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(resource: &Resource) -> Vec<SubEntry> {
    let own = |name, verbs| SubEntry {
        name,
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        verbs,
    };
    let scale = || SubEntry {
        name: "scale",
        group: "autoscaling".into(),
        version: "v1".into(),
        kind: "Scale".into(),
        verbs: &["get", "patch", "update"],
    };
    match &resource.nature {
        Nature::BuiltIn(kind) => kind
            .subresources
            .iter()
            .map(|sub| match sub {
                Subresource::Status => own("status", sub.verbs()),
                Subresource::Scale { .. } => scale(),
                Subresource::Own { name, group, version, kind, verbs } => SubEntry {
                    name,
                    group: (*group).into(),
                    version: (*version).into(),
                    kind: (*kind).into(),
                    verbs,
                },
            })
            .collect(),
        Nature::Custom(custom) => {
            let status = custom.status.then(|| own("status", &["get", "patch", "update"]));
            status.into_iter().chain(custom.scale.as_ref().map(|_| scale())).collect()
        }
    }
}

fn aggregate(catalog: &Catalog, core: bool) -> Value {
    let items: Vec<Value> = catalog
        .groups()
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        of_version(catalog, name, version).into_iter().map(aggregated_entry).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !name.is_empty() {
                metadata["name"] = name.as_str().into();
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_entry(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": kind(&sub.group, &sub.version, &sub.kind),
                "verbs": sub.verbs,
            })
        })
        .collect();
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
