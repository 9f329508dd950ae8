//! What a request asks for: the path, the query and the representation wanted.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::ACCEPT;
use percent_encoding::percent_decode_str;

use crate::failure::Failure;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/api`, `/apis`, `/apis/{group}`, `/apis/{group}/{version}` and the like.
    Discovery(Discovery),
    /// `/openapi/v3` and below; the rest of the path.
    OpenApi(String),
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and their parts.
    Health,
    /// A collection, an object, or a subresource of one.
    Resource(ResourcePath),
    /// `/`.
    Root,
}

/// A discovery document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1` (empty group) or `/apis/{group}/{version}`
    Version(String, String),
}

/// A path below a group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The deprecated way to ask for a watch: `/api/v1/watch/…`.
    pub(crate) watch: bool,
}

/// Reads a path; `None` where no API has such paths.
pub(crate) fn target(path: &str) -> Option<Target> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(decoded).collect::<Option<_>>()?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Some(Target::Root),
        ["version"] => Some(Target::Version),
        ["healthz" | "livez" | "readyz", ..] => Some(Target::Health),
        ["openapi", rest @ ..] => Some(Target::OpenApi(rest.join("/"))),
        ["api"] => Some(Target::Discovery(Discovery::Core)),
        ["apis"] => Some(Target::Discovery(Discovery::Groups)),
        ["apis", group] => Some(Target::Discovery(Discovery::Group((*group).into()))),
        ["api", version] => Some(Target::Discovery(Discovery::Version(String::new(), (*version).into()))),
        ["apis", group, version] => {
            Some(Target::Discovery(Discovery::Version((*group).into(), (*version).into())))
        }
        ["api", version, rest @ ..] => resource_path("", version, rest),
        ["apis", group, version, rest @ ..] => resource_path(group, version, rest),
        _ => None,
    }
}

fn resource_path(group: &str, version: &str, rest: &[&str]) -> Option<Target> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    // `/namespaces/a/finalize` and `/namespaces/a/status` are subresources of the namespace, not resources in it.
    let (namespace, rest) = match rest {
        ["namespaces", namespace, resource, rest @ ..]
            if !(group.is_empty() && rest.is_empty() && matches!(*resource, "status" | "finalize")) =>
        {
            (Some((*namespace).to_owned()), [&[*resource], rest].concat())
        }
        rest => (None, rest.to_vec()),
    };
    let (resource, name, subresource) = match rest.as_slice() {
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(*name), None),
        [resource, name, subresource @ ..] => (*resource, Some(*name), Some(subresource.join("/"))),
        [] => return None,
    };
    Some(Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        resource: resource.to_owned(),
        name: name.map(str::to_owned),
        subresource,
        watch,
    }))
}

/// The query of a request; the last of repeated keys counts, except where [`Query::all`] is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: BTreeMap<String, Vec<String>>,
}

impl Query {
    pub(crate) fn parse(query: &str) -> Query {
        let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode =
                |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
            pairs.entry(decode(key)).or_default().push(decode(value));
        }
        Query { pairs }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs
            .get(key)
            .and_then(|values| values.last())
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.contains_key(key)
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.pairs.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    /// Go reads `1`, `t`, `true` and their capitals; anything else is false.
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, Failure> {
        self.get(key)
            .map(|text| {
                text.parse().map_err(|_| {
                    Failure::bad_request(format!("{key}: Invalid value: {text:?}: must be a whole number"))
                })
            })
            .transpose()
    }
}

/// How the answer is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Shape,
}

/// The text form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// What is shown of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Whole objects.
    Whole,
    /// `as=Table`.
    Table,
    /// `as=PartialObjectMetadata` and its list.
    Metadata,
    /// `as=APIGroupDiscoveryList`.
    AggregatedDiscovery,
}

/// Picks the first representation in `Accept` that is served. Quality values do not occur in practice: clients order
/// their wishes.
pub(crate) fn representation(headers: &HeaderMap) -> Result<Representation, Failure> {
    let plain = Representation { encoding: Encoding::Json, shape: Shape::Whole };
    let wishes: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|wish| !wish.is_empty())
        .collect();
    if wishes.is_empty() {
        return Ok(plain);
    }
    wishes.iter().find_map(|wish| read_wish(wish)).ok_or_else(Failure::not_acceptable)
}

fn read_wish(wish: &str) -> Option<Representation> {
    let mut parts = wish.split(';').map(str::trim);
    let encoding = match parts.next()?.to_ascii_lowercase().as_str() {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
    let group = parameters.get("g").copied().unwrap_or_default();
    let version = parameters.get("v").copied().unwrap_or_default();
    let shape = match parameters.get("as").copied() {
        None => Shape::Whole,
        Some("Table") if group == "meta.k8s.io" && matches!(version, "v1" | "v1beta1") => Shape::Table,
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") if group == "meta.k8s.io" => {
            Shape::Metadata
        }
        Some("APIGroupDiscoveryList") if group == "apidiscovery.k8s.io" && version == "v2" => {
            Shape::AggregatedDiscovery
        }
        Some(_) => return None,
    };
    Some(Representation { encoding, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match target(path) {
            Some(Target::Resource(found)) => found,
            other => panic!("{path} leads to {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_collections_objects_and_subresources() {
        let pods = resource("/api/v1/namespaces/a/pods");
        assert_eq!((pods.namespace.as_deref(), pods.resource.as_str(), pods.name), (Some("a"), "pods", None));
        let status = resource("/apis/apps/v1/namespaces/a/deployments/web/status");
        assert_eq!(status.group, "apps");
        assert_eq!((status.name.as_deref(), status.subresource.as_deref()), (Some("web"), Some("status")));
        let namespace = resource("/api/v1/namespaces/a");
        assert_eq!((namespace.namespace, namespace.name.as_deref()), (None, Some("a")));
        let finalize = resource("/api/v1/namespaces/a/finalize");
        assert_eq!(
            (finalize.resource.as_str(), finalize.subresource.as_deref()),
            ("namespaces", Some("finalize"))
        );
        let everywhere = resource("/apis/argoproj.io/v1alpha1/applications");
        assert_eq!((everywhere.namespace, everywhere.name), (None, None));
        let escaped = resource("/api/v1/namespaces/a/configmaps/b%3Ac");
        assert_eq!(escaped.name.as_deref(), Some("b:c"));
        assert_eq!(
            target("/apis/apps/v1"),
            Some(Target::Discovery(Discovery::Version("apps".into(), "v1".into())))
        );
        assert_eq!(target("/nothing/here"), None);
    }

    #[test]
    fn the_first_served_wish_is_granted() {
        let ask = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().expect("header"));
            representation(&headers)
        };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        assert_eq!(ask(kubectl).map(|r| r.shape), Ok(Shape::Table));
        assert_eq!(
            ask("application/vnd.kubernetes.protobuf,application/json").map(|r| r.shape),
            Ok(Shape::Whole)
        );
        assert_eq!(ask("application/yaml").map(|r| r.encoding), Ok(Encoding::Yaml));
        assert_eq!(ask("text/html").expect_err("not served").code.as_u16(), 406);
        assert_eq!(ask("*/*").map(|r| r.encoding), Ok(Encoding::Json));
    }

    #[test]
    fn queries_decode_and_tolerate_stray_ampersands() {
        let query = Query::parse("&limit=500&labelSelector=a%3Db%2Cc&watch=true&dryRun=All&dryRun=All");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.number::<usize>("limit"), Ok(Some(500)));
        assert!(query.flag("watch"));
        assert_eq!(query.all("dryRun").len(), 2);
        assert!(Query::parse("limit=x").number::<usize>("limit").is_err());
    }
}
