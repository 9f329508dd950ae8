//! What an operator can choose about notifications.

use std::path::PathBuf;

use crate::clock::Clock;
use crate::environment::Environment;
use crate::leader::LeaseTimes;
use crate::namespaces::AllowedNamespaces;
use crate::settings::SettingsError;

/// How many objects are worked on at once where nobody says otherwise.
const PROCESSORS: usize = 20;

/// Settings of the notifications controller.
#[derive(Debug, Clone)]
pub struct NotificationSettings {
    /// Argo CD's namespace: that of the configuration, of projects and of outboxes.
    pub namespace: String,
    /// Other namespaces Applications may live in: globs, and regular expressions between slashes.
    pub application_namespaces: Vec<String>,
    /// The same for ApplicationSets.
    pub application_set_namespaces: Vec<String>,
    /// How many objects are worked on at once, and so how many messages are on their way at once. One service has at most
    /// a quarter of them.
    pub processors: usize,
    /// Authorities to trust beside the machine's, in PEM.
    pub authorities: Option<PathBuf>,
    /// Let only one controller act.
    pub leader_election: bool,
    /// How long it leads without being heard of.
    pub lease: LeaseTimes,
    /// Where dates come from.
    pub clock: Clock,
    /// Decides the jitter of retries.
    pub seed: u64,
}

// === impl NotificationSettings ===

impl NotificationSettings {
    /// The defaults.
    pub fn new(namespace: impl Into<String>) -> NotificationSettings {
        NotificationSettings {
            namespace: namespace.into(),
            application_namespaces: Vec::new(),
            application_set_namespaces: Vec::new(),
            processors: PROCESSORS,
            authorities: None,
            leader_election: false,
            lease: LeaseTimes::default(),
            clock: Clock::System,
            seed: 0,
        }
    }

    /// The defaults, changed by what `variable` finds: `ARGOCD_APPLICATION_NAMESPACES`,
    /// `ARGOCD_APPLICATIONSET_CONTROLLER_NAMESPACES`, `BATON_NOTIFICATIONS_PROCESSORS` and `BATON_NOTIFICATIONS_CA`.
    ///
    /// # Errors
    /// The first value that cannot be read or is out of bounds.
    pub fn from_environment(
        namespace: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<NotificationSettings, SettingsError> {
        let argo = Environment::new("ARGOCD_", &variable);
        let baton = Environment::new("BATON_NOTIFICATIONS_", &variable);
        Ok(NotificationSettings {
            application_namespaces: argo.list("APPLICATION_NAMESPACES"),
            application_set_namespaces: argo.list("APPLICATIONSET_CONTROLLER_NAMESPACES"),
            processors: baton.number("PROCESSORS", PROCESSORS, 1, 1000)?,
            authorities: baton.text("CA").map(PathBuf::from),
            ..NotificationSettings::new(namespace)
        })
    }

    /// The namespaces of Applications, and those of ApplicationSets.
    pub(super) fn allowed(&self) -> Result<[AllowedNamespaces; 2], SettingsError> {
        if self.namespace.is_empty() {
            return Err(SettingsError::NoNamespace);
        }
        Ok([
            AllowedNamespaces::new(&self.namespace, &self.application_namespaces)?,
            AllowedNamespaces::new(&self.namespace, &self.application_set_namespaces)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_named() {
        let read = |value: &'static str| {
            NotificationSettings::from_environment("argocd", move |name| {
                (name == "BATON_NOTIFICATIONS_PROCESSORS").then(|| value.to_owned())
            })
        };
        assert_eq!(read("7").expect("settings").processors, 7);
        let error = read("0").expect_err("refused").to_string();
        assert_eq!(error, "BATON_NOTIFICATIONS_PROCESSORS=\"0\": must be a whole number from 1 to 1000");
    }
}
