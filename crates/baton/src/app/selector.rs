//! Naming one resource of an Application on the command line.

use std::fmt;
use std::str::FromStr;

use baton_api::application_status::ResourceStatus;
use baton_api::operation::SyncOperationResource;

/// How many resources are named to a person who named one that is not there.
const MOST_NAMED: usize = 10;

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

impl fmt::Display for ResourceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourceSelector { group, kind, namespace, name } = self;
        match namespace.as_str() {
            "" => write!(f, "{group}:{kind}:{name}"),
            namespace => write!(f, "{group}:{kind}:{namespace}/{name}"),
        }
    }
}

impl ResourceSelector {
    fn of(row: &ResourceStatus) -> ResourceSelector {
        let [group, kind, namespace, name] =
            [&row.group, &row.kind, &row.namespace, &row.name].map(String::clone);
        ResourceSelector { group, kind, namespace, name }
    }

    fn selects(&self, row: &ResourceStatus) -> bool {
        (&self.group, &self.kind, &self.name) == (&row.group, &row.kind, &row.name)
            && (self.namespace.is_empty() || self.namespace == row.namespace)
    }
}

/// Whether each selector names something a sync of some resources takes up, which hooks are not; else what it does not
/// find and what there is, in words.
pub(super) fn found(selectors: &[ResourceSelector], rows: &[ResourceStatus]) -> Result<(), String> {
    let syncable: Vec<&ResourceStatus> = rows.iter().filter(|row| !row.hook).collect();
    let missing: Vec<String> = selectors
        .iter()
        .filter(|selector| !syncable.iter().any(|row| selector.selects(row)))
        .map(ResourceSelector::to_string)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut there: Vec<String> =
        syncable.iter().take(MOST_NAMED).map(|row| ResourceSelector::of(row).to_string()).collect();
    if syncable.len() > MOST_NAMED {
        there.push(format!("and {} more", syncable.len() - MOST_NAMED));
    }
    let there = if there.is_empty() { "nothing to sync".to_owned() } else { there.join(", ") };
    Err(format!("no resource {}; there is: {there}", missing.join(", ")))
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

    fn row(group: &str, kind: &str, name: &str) -> ResourceStatus {
        ResourceStatus {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            ..ResourceStatus::default()
        }
    }

    #[test]
    fn what_names_nothing_is_told_beside_what_there_is() {
        let hook = ResourceStatus { hook: true, ..row("batch", "Job", "migrate") };
        let rows = [row("apps", "Deployment", "web"), row("", "Service", "web"), hook];
        let tried = |texts: &[&str]| {
            let selectors: Vec<ResourceSelector> =
                texts.iter().map(|text| text.parse().expect("a selector")).collect();
            found(&selectors, &rows)
        };
        assert_eq!(tried(&["apps:Deployment:web", ":Service:shop/web"]), Ok(()));
        for wrong in ["apps:Deployment:wbe", ":Deployment:web", ":Service:other/web", "batch:Job:migrate"] {
            assert_eq!(
                tried(&["apps:Deployment:web", wrong]),
                Err(format!("no resource {wrong}; there is: apps:Deployment:shop/web, :Service:shop/web"))
            );
        }
        let many: Vec<ResourceStatus> = (0..12).map(|n| row("", "Service", &n.to_string())).collect();
        let told = found(&[":Service:x".parse().expect("a selector")], &many).expect_err("it is not there");
        assert!(told.ends_with(":Service:shop/9, and 2 more"), "{told}");
        assert_eq!(found(&[], &[]), Ok(()));
    }
}
