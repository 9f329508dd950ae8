//! Paths of objects and collections.
//!
//! Namespaces and names come from manifests, which must not reach another path than that of their own kind.

use std::fmt::Write;

use crate::error::ClusterError;

/// The collection of a kind, in one namespace or everywhere.
pub(crate) fn collection(api_version: &str, plural: &str, namespace: Option<&str>) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let group: Vec<String> = api_version.split('/').map(segment).collect();
    let group = group.join("/");
    match namespace {
        Some(namespace) => format!("/{root}/{group}/namespaces/{}/{plural}", segment(namespace)),
        None => format!("/{root}/{group}/{plural}"),
    }
}

/// One object of a collection.
///
/// # Errors
/// If no object can have this name.
pub(crate) fn object(collection: &str, name: &str) -> Result<String, ClusterError> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err(ClusterError::Api {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("metadata.name: Invalid value: {name:?}: no object can have this name"),
        });
    }
    Ok(format!("{collection}/{}", segment(name)))
}

/// The text as one segment of a path or one value of a query.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b':' => out.push(char::from(byte)),
            b'.' if text != "." && text != ".." => out.push('.'),
            // Writing to a text cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(collection("v1", "pods", Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(collection("apps/v1", "deployments", None), "/apis/apps/v1/deployments");
        let roles = collection("rbac.authorization.k8s.io/v1", "clusterroles", None);
        let path = object(&roles, "system:node").expect("a name");
        assert_eq!(path, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node");
    }

    #[test]
    fn no_name_leads_elsewhere() {
        let pods = collection("v1", "pods", Some("../../x?y"));
        assert_eq!(pods, "/api/v1/namespaces/..%2F..%2Fx%3Fy/pods");
        assert_eq!(collection("v1", "pods", Some("..")), "/api/v1/namespaces/%2E%2E/pods");
        for name in ["", ".", "..", "a/b"] {
            assert!(object(&pods, name).is_err(), "{name}");
        }
        assert_eq!(object("/p", "a?b#c").expect("odd, but one segment"), "/p/a%3Fb%23c");
    }
}
