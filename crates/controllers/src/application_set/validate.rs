//! Which rendered Applications may be acted on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::desired::Desired;
use super::destinations::Destinations;

/// What is wrong, by name, and what a change of would mend it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Message by name of the Application. Of one name all Applications are faulty.
    pub(crate) by_name: BTreeMap<Arc<str>, String>,
    /// Projects that do not exist.
    pub(crate) missing_projects: BTreeSet<Arc<str>>,
    /// Whether a destination is no known cluster.
    pub(crate) unknown_clusters: bool,
}

/// Checks names, projects and destinations, in the order Applications were generated.
pub(crate) fn validate(
    set: &str,
    desired: &[Desired],
    project_exists: impl Fn(&str) -> bool,
    destinations: &Destinations,
) -> Faults {
    let mut faults = Faults::default();
    let mut names = BTreeSet::new();
    for application in desired {
        if let Err(message) = check(set, application, &mut names, &project_exists, destinations, &mut faults)
        {
            faults.by_name.insert(application.name.clone(), message);
        }
    }
    faults
}

impl Faults {
    /// The message shown for all: that of the last name, and how many more there are.
    pub(crate) fn message(&self) -> Option<String> {
        let (_, last) = self.by_name.last_key_value()?;
        Some(match self.by_name.len() {
            1 => last.clone(),
            count => format!("{last} (and {} more)", count - 1),
        })
    }
}

fn check<'a>(
    set: &str,
    application: &'a Desired,
    names: &mut BTreeSet<&'a str>,
    project_exists: &impl Fn(&str) -> bool,
    destinations: &Destinations,
    faults: &mut Faults,
) -> Result<(), String> {
    let name: &str = &application.name;
    if name.is_empty() {
        return Err(format!(
            "ApplicationSet {set} contains an application with no name; a name must be set in the template's \
             metadata.name or via a templatePatch (generateName is not supported)"
        ));
    }
    if !names.insert(name) {
        return Err(format!("ApplicationSet {set} contains applications with duplicate name: {name}"));
    }
    if !project_exists(&application.project) {
        faults.missing_projects.insert(application.project.clone());
        return Err(format!("application references project {} which does not exist", application.project));
    }
    destinations.check(&application.destination).map_err(|why| {
        faults.unknown_clusters = true;
        format!("application destination spec is invalid: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use baton_api::application::Destination;
    use serde_json::json;

    fn desired(name: &str, project: &str, cluster: &str) -> Desired {
        let destination = Destination { name: cluster.into(), ..Destination::default() };
        Desired {
            name: name.into(),
            project: project.into(),
            destination: Arc::new(destination),
            digest: Digest::of(&json!(name)),
            template: None,
            group: 0,
            params: 0,
        }
    }

    #[test]
    fn faults_are_told_in_argo_cds_words() {
        let destinations = Destinations::new(&[], true);
        let applications = [
            desired("a", "default", "in-cluster"),
            desired("", "default", "in-cluster"),
            desired("twice", "default", "in-cluster"),
            desired("twice", "default", "in-cluster"),
            desired("lost", "nowhere", "in-cluster"),
            desired("far", "default", "west"),
        ];
        let faults = validate("set", &applications, |name| name == "default", &destinations);
        let told: Vec<(&str, &str)> =
            faults.by_name.iter().map(|(name, message)| (&**name, message.as_str())).collect();
        assert_eq!(
            told,
            [
                (
                    "",
                    "ApplicationSet set contains an application with no name; a name must be set in the template's \
                     metadata.name or via a templatePatch (generateName is not supported)"
                ),
                (
                    "far",
                    "application destination spec is invalid: there are no clusters with this name: west"
                ),
                ("lost", "application references project nowhere which does not exist"),
                ("twice", "ApplicationSet set contains applications with duplicate name: twice"),
            ]
        );
        assert_eq!(
            faults.message().expect("a message"),
            "ApplicationSet set contains applications with duplicate name: twice (and 3 more)"
        );
        assert_eq!(faults.missing_projects, BTreeSet::from(["nowhere".into()]));
        assert!(faults.unknown_clusters);
    }

    #[test]
    fn without_faults_there_is_no_message() {
        let faults =
            validate("set", &[desired("a", "p", "in-cluster")], |_| true, &Destinations::new(&[], true));
        assert_eq!(faults, Faults::default());
        assert_eq!(faults.message(), None);
    }
}
