//! Naming one resource of an Application on the command line.

use std::str::FromStr;

use baton_api::operation::SyncOperationResource;

/// `GROUP:KIND:NAME` or `GROUP:KIND:NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceSelector {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl FromStr for ResourceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<ResourceSelector, String> {
        let form = "write it as GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; the core group is empty, as in :Service:web";
        let mut parts = text.splitn(3, ':');
        let (Some(group), Some(kind), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(form.to_owned());
        };
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        if kind.is_empty() || name.is_empty() || name.contains('/') || group.starts_with('!') {
            return Err(form.to_owned());
        }
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        Ok(ResourceSelector { group, kind, namespace, name })
    }
}

impl From<ResourceSelector> for SyncOperationResource {
    fn from(selector: ResourceSelector) -> SyncOperationResource {
        let ResourceSelector { group, kind, namespace, name } = selector;
        SyncOperationResource { group, kind, namespace, name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_named_with_or_without_its_namespace() {
        let named = |text: &str| text.parse::<ResourceSelector>();
        let full = named("apps:Deployment:shop/web").expect("a selector");
        assert_eq!((full.namespace.as_str(), full.name.as_str()), ("shop", "web"));
        assert_eq!(named(":Service:web").expect("a selector").group, "");
        for bad in
            ["", "Service", "apps:Deployment", ":Service:", "::web", "apps:Deployment:a/b/c", "!apps:D:x"]
        {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
