//! What an operator can choose: Argo CD's flags of the application controller, by environment and by ConfigMap.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_sync::self_heal::{SelfHealBackoff, SelfHealSettings};

use crate::clock::Clock;
use crate::environment::Environment;
use crate::leader::LeaseTimes;
use crate::namespaces::AllowedNamespaces;
use crate::settings::SettingsError;

const PREFIX: &str = "ARGOCD_";
/// A limit for every duration: longer ones are mistakes.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Settings of the Application controller. Names and defaults are those of Argo CD's flags.
#[derive(Debug, Clone)]
pub struct ApplicationSettings {
    /// Argo CD's namespace: that of projects, clusters and repositories.
    pub namespace: String,
    /// Other namespaces Applications may live in: globs, and regular expressions between slashes.
    pub application_namespaces: Vec<String>,
    /// How many Applications are compared at once; together with `operation_processors` the number of workers.
    pub status_processors: usize,
    /// How many Applications are synced at once.
    pub operation_processors: usize,
    /// Labels of Applications shown in a metric.
    pub metrics_labels: Vec<String>,
    /// Conditions of Applications shown in a metric.
    pub metrics_conditions: Vec<String>,
    /// Ask for approval before each wave that needs it instead of before the first deletion of an operation.
    pub approval_by_wave: bool,
    /// Periods that the environment gives; they win over ConfigMaps.
    pub timing: BTreeMap<&'static str, String>,
    /// Health and actions from a directory; argocd-cm wins over them.
    pub customizations: baton_health::Customizations,
    /// Let only one controller act.
    pub leader_election: bool,
    /// How long it leads without being heard of.
    pub lease: LeaseTimes,
    /// Where dates come from.
    pub clock: Clock,
    /// Decides the jitter of retries and of periodic looks.
    pub seed: u64,
}

/// Periods and back-offs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// How often the newest revision is compared; zero is never.
    pub reconciliation: Duration,
    /// How often manifests are rendered anew although nothing changed; zero is never.
    pub hard_reconciliation: Duration,
    /// What is added to both at most, so that not all are due together.
    pub jitter: Duration,
    /// How long manifests that cannot be rendered are no error yet.
    pub repo_error_grace: Duration,
    /// How long a sync may run; zero is without end.
    pub sync_timeout: Duration,
    /// Pause between two waves.
    pub wave_delay: Duration,
    /// Fixed pause between two self-heals, where there is no back-off.
    pub self_heal_timeout: Duration,
    /// First pause of the back-off between self-heals; zero is no back-off.
    pub self_heal_backoff: Duration,
    /// What each pause is multiplied by.
    pub self_heal_factor: u32,
    /// Longest pause.
    pub self_heal_cap: Duration,
}

/// Where a period may be stated: environment variable, and key in argocd-cm or argocd-cmd-params-cm.
struct Place {
    variable: &'static str,
    key: &'static str,
    of_main_map: bool,
}

const fn main_map(variable: &'static str, key: &'static str) -> Place {
    Place { variable, key, of_main_map: true }
}

const fn params_map(variable: &'static str, key: &'static str) -> Place {
    Place { variable, key, of_main_map: false }
}

const RECONCILIATION: Place = main_map("RECONCILIATION_TIMEOUT", "timeout.reconciliation");
const HARD: Place = main_map("HARD_RECONCILIATION_TIMEOUT", "timeout.hard.reconciliation");
const JITTER: Place = main_map("RECONCILIATION_JITTER", "timeout.reconciliation.jitter");
const GRACE: Place =
    params_map("REPO_ERROR_GRACE_PERIOD_SECONDS", "controller.repo.error.grace.period.seconds");
const SYNC_TIMEOUT: Place =
    params_map("APPLICATION_CONTROLLER_SYNC_TIMEOUT", "controller.sync.timeout.seconds");
const WAVE_DELAY: Place = params_map("SYNC_WAVE_DELAY", "controller.sync.wave.delay.seconds");
const HEAL_TIMEOUT: Place =
    params_map("APPLICATION_CONTROLLER_SELF_HEAL_TIMEOUT_SECONDS", "controller.self.heal.timeout.seconds");
const HEAL_BACKOFF: Place = params_map(
    "APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_TIMEOUT_SECONDS",
    "controller.self.heal.backoff.timeout.seconds",
);
const HEAL_FACTOR: Place =
    params_map("APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_FACTOR", "controller.self.heal.backoff.factor");
const HEAL_CAP: Place = params_map(
    "APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_CAP_SECONDS",
    "controller.self.heal.backoff.cap.seconds",
);
const PLACES: [Place; 10] = [
    RECONCILIATION,
    HARD,
    JITTER,
    GRACE,
    SYNC_TIMEOUT,
    WAVE_DELAY,
    HEAL_TIMEOUT,
    HEAL_BACKOFF,
    HEAL_FACTOR,
    HEAL_CAP,
];

// === impl ApplicationSettings ===

impl ApplicationSettings {
    /// Argo CD's defaults.
    pub fn new(namespace: impl Into<String>) -> ApplicationSettings {
        ApplicationSettings {
            namespace: namespace.into(),
            application_namespaces: Vec::new(),
            status_processors: 20,
            operation_processors: 10,
            metrics_labels: Vec::new(),
            metrics_conditions: Vec::new(),
            approval_by_wave: false,
            timing: BTreeMap::new(),
            customizations: baton_health::Customizations::default(),
            leader_election: false,
            lease: LeaseTimes::default(),
            clock: Clock::System,
            seed: 0,
        }
    }

    /// Argo CD's defaults, changed by what `variable` finds under Argo CD's names, and `BATON_APPROVAL_SCOPE`
    /// (`operation` or `wave`).
    ///
    /// # Errors
    /// The first value that cannot be read or is out of bounds. Argo CD logs such a value and goes on with the default.
    pub fn from_environment(
        namespace: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ApplicationSettings, SettingsError> {
        let defaults = ApplicationSettings::new(namespace);
        let scope = variable("BATON_APPROVAL_SCOPE").unwrap_or_default();
        let approval_by_wave = match scope.as_str() {
            "" | "operation" => false,
            "wave" => true,
            _ => {
                let name = "BATON_APPROVAL_SCOPE".to_owned();
                let expected = "must be operation or wave".to_owned();
                return Err(SettingsError::Value { name, value: scope, expected });
            }
        };
        let environment = Environment::new(PREFIX, variable);
        let processors = |name: &str, default| {
            environment.number(&format!("APPLICATION_CONTROLLER_{name}"), default, 1, 10_000)
        };
        let timing: BTreeMap<&'static str, String> = PLACES
            .iter()
            .filter_map(|place| Some((place.variable, environment.text(place.variable)?)))
            .collect();
        if let Some((variable, value, expected)) = read_timing(&timing, &no_maps()).1.into_iter().next() {
            return Err(environment.refused(variable, value, expected));
        }
        Ok(ApplicationSettings {
            application_namespaces: environment.list("APPLICATION_NAMESPACES"),
            status_processors: processors("STATUS_PROCESSORS", defaults.status_processors)?,
            operation_processors: processors("OPERATION_PROCESSORS", defaults.operation_processors)?,
            metrics_labels: environment.list("APPLICATION_CONTROLLER_METRICS_APPLICATION_LABELS"),
            metrics_conditions: environment.list("APPLICATION_CONTROLLER_METRICS_APPLICATION_CONDITIONS"),
            approval_by_wave,
            timing,
            ..defaults
        })
    }

    /// Whether a variable states a period, for which there is a key in a ConfigMap that the controller reads itself.
    pub fn is_period(variable: &str) -> bool {
        let short = variable.strip_prefix(PREFIX);
        short.is_some_and(|short| PLACES.iter().any(|place| place.variable == short))
    }

    /// The namespaces Applications may live in.
    ///
    /// # Errors
    /// Patterns that cannot be read, or no namespace at all.
    pub fn allowed_namespaces(&self) -> Result<AllowedNamespaces, SettingsError> {
        if self.namespace.is_empty() {
            return Err(SettingsError::NoNamespace);
        }
        Ok(AllowedNamespaces::new(&self.namespace, &self.application_namespaces)?)
    }

    /// The periods that hold with these ConfigMaps, and what is wrong with the maps: a value that cannot be read
    /// counts as unset.
    pub(super) fn timing(&self, maps: &Maps<'_>) -> (Timing, Vec<String>) {
        let (timing, faults) = read_timing(&self.timing, maps);
        let faults =
            faults.into_iter().map(|(name, value, expected)| format!("{name}={value:?}: {expected}"));
        (timing, faults.collect())
    }
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timing {
            reconciliation: seconds(120),
            hard_reconciliation: Duration::ZERO,
            jitter: seconds(60),
            repo_error_grace: seconds(180),
            sync_timeout: Duration::ZERO,
            wave_delay: seconds(2),
            self_heal_timeout: Duration::ZERO,
            self_heal_backoff: seconds(2),
            self_heal_factor: 3,
            self_heal_cap: seconds(300),
        }
    }
}

impl Timing {
    pub(super) fn self_heal(&self) -> SelfHealSettings {
        let backoff = SelfHealBackoff {
            duration: self.self_heal_backoff,
            factor: self.self_heal_factor,
            longest: self.self_heal_cap,
        };
        SelfHealSettings {
            backoff: (!self.self_heal_backoff.is_zero()).then_some(backoff),
            fixed: self.self_heal_timeout,
        }
    }
}

/// Argo CD's ConfigMaps.
pub(super) struct Maps<'a> {
    /// argocd-cm.
    pub(super) main: &'a BTreeMap<String, String>,
    /// argocd-cmd-params-cm.
    pub(super) params: &'a BTreeMap<String, String>,
}

type Fault = (&'static str, String, String);

fn no_maps() -> Maps<'static> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    Maps { main: &NONE, params: &NONE }
}

fn read_timing(environment: &BTreeMap<&'static str, String>, maps: &Maps<'_>) -> (Timing, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut text = |place: &Place, fits: &dyn Fn(&str) -> Result<(), String>| {
        let map = if place.of_main_map { maps.main } else { maps.params };
        let stated = environment.get(place.variable).map(|value| (place.variable, value));
        let (name, value) = stated.or_else(|| map.get(place.key).map(|value| (place.key, value)))?;
        match fits(value) {
            Ok(()) => Some(value.clone()),
            Err(expected) => {
                faults.push((name, value.clone(), expected));
                None
            }
        }
    };
    let mut period = |place: &Place, default: Duration| {
        let value = text(place, &|value| duration(value).map(drop));
        value.and_then(|value| duration(&value).ok()).unwrap_or(default)
    };
    let defaults = Timing::default();
    let mut timing = Timing {
        reconciliation: period(&RECONCILIATION, defaults.reconciliation),
        hard_reconciliation: period(&HARD, defaults.hard_reconciliation),
        jitter: period(&JITTER, defaults.jitter),
        repo_error_grace: period(&GRACE, defaults.repo_error_grace),
        sync_timeout: period(&SYNC_TIMEOUT, defaults.sync_timeout),
        wave_delay: period(&WAVE_DELAY, defaults.wave_delay),
        self_heal_timeout: period(&HEAL_TIMEOUT, defaults.self_heal_timeout),
        self_heal_backoff: period(&HEAL_BACKOFF, defaults.self_heal_backoff),
        self_heal_cap: period(&HEAL_CAP, defaults.self_heal_cap),
        ..defaults
    };
    let whole = |value: &str| {
        value.parse::<u32>().map(drop).map_err(|_| "must be a whole number of at least 0".to_owned())
    };
    if let Some(factor) = text(&HEAL_FACTOR, &whole) {
        timing.self_heal_factor = factor.parse().unwrap_or(timing.self_heal_factor);
    }
    (timing, faults)
}

/// A Go duration, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("must be a duration from 0 s to {} s", LONGEST.as_secs());
    let read = match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            text.parse::<baton_grammar::duration::Duration>().map_err(|error| error.to_string())?.to_std()
        }
    };
    read.filter(|duration| *duration <= LONGEST).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<ApplicationSettings, SettingsError> {
        ApplicationSettings::from_environment("argocd", |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_environment_wins_over_config_maps_and_they_over_defaults() {
        let settings = read(&[
            ("ARGOCD_RECONCILIATION_TIMEOUT", "30s"),
            ("ARGOCD_APPLICATION_CONTROLLER_SYNC_TIMEOUT", "90"),
            ("ARGOCD_APPLICATION_NAMESPACES", "team-*, other"),
            ("BATON_APPROVAL_SCOPE", "wave"),
        ])
        .expect("settings");
        assert_eq!(settings.application_namespaces, ["team-*", "other"]);
        assert!(settings.approval_by_wave);
        let main = map(&[("timeout.reconciliation", "5m"), ("timeout.reconciliation.jitter", "0")]);
        let params = map(&[("controller.self.heal.backoff.factor", "2")]);
        let (timing, faults) = settings.timing(&Maps { main: &main, params: &params });
        assert_eq!(faults, [] as [String; 0]);
        let expected = Timing {
            reconciliation: Duration::from_secs(30),
            jitter: Duration::ZERO,
            sync_timeout: Duration::from_secs(90),
            self_heal_factor: 2,
            ..Timing::default()
        };
        assert_eq!(timing, expected);
    }

    #[test]
    fn a_wrong_value_is_named_and_in_a_config_map_counts_as_unset() {
        let error = read(&[("ARGOCD_RECONCILIATION_TIMEOUT", "soon")]).expect_err("refused").to_string();
        assert_eq!(error, "ARGOCD_RECONCILIATION_TIMEOUT=\"soon\": time: invalid duration \"soon\"");
        assert!(read(&[("BATON_APPROVAL_SCOPE", "all")]).is_err());
        let main = map(&[("timeout.reconciliation", "-3s")]);
        let (timing, faults) = read(&[]).expect("settings").timing(&Maps { main: &main, params: &map(&[]) });
        assert_eq!(timing, Timing::default());
        assert_eq!(faults, ["timeout.reconciliation=\"-3s\": must be a duration from 0 s to 315360000 s"]);
    }
}
