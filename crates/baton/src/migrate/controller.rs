//! How the ApplicationSet controller of an Argo CD is started, and what of it means something else here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::{Finding, Weight};
use super::installation::{Installation, called};
use super::unheard;
use crate::install;

/// Prefix of the variables of Argo CD's controller.
pub(super) const PREFIX: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_";
/// Where keys of settings are.
pub(super) const PARAMETERS: &str = "argocd-cmd-params-cm";
/// The program, as it stands in commands and arguments.
const PROGRAM: &str = "argocd-applicationset-controller";

/// What the running controller was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// Name of its service account, where it was found.
    pub(super) account: Option<String>,
    pub(super) progressive_syncs: bool,
    pub(super) findings: Vec<Finding>,
}

/// How a controller is started.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) flags: BTreeMap<String, String>,
    pub(super) environment: BTreeMap<String, String>,
}

/// Flags that may be repeated, and then say all of it; of others the last counts.
const LISTS: [&str; 5] = [
    "applicationset-namespaces",
    "preserved-annotations",
    "preserved-labels",
    "metrics-applicationset-labels",
    "allowed-scm-providers",
];

/// Flags of Argo CD's controller that do nothing here, and what happens instead.
pub(super) const IDLE: [(&str, &str); 4] = [
    ("argocd-repo-server", "repositories are read by the controller itself, which needs a way to them"),
    ("repo-server-plaintext", "repositories are read by the controller itself"),
    ("repo-server-strict-tls", "repositories are read by the controller itself"),
    ("repo-server-timeout-seconds", "repositories are read by the controller itself"),
];

/// Finds the controller's Deployment and reads its flags and environment. Where there is none, as after an installation of Baton
/// alone, what `argocd-cmd-params-cm` says counts.
pub(super) fn settings(installation: &Installation) -> Settings {
    let mut settings = Settings::default();
    let Some((deployment, container)) = container(installation, is_controller) else {
        let message = format!(
            "no Deployment in {} runs {PROGRAM}: its settings are taken from {PARAMETERS}",
            installation.namespace
        );
        settings.findings.push(Finding::new(Weight::Note, "Deployment", "no-controller", message));
        let object = format!("ConfigMap {}/{PARAMETERS}", installation.namespace);
        let told = Told { environment: keyed(installation), ..Told::default() };
        settings.judge(installation, &object, &told);
        return settings;
    };
    let object = called(deployment);
    let pod = &deployment["spec"]["template"]["spec"];
    settings.account = Some(pod["serviceAccountName"].as_str().unwrap_or("default").to_owned());
    if deployment["spec"]["replicas"] != 0 {
        let message = format!(
            "it must not run beside Baton: kubectl -n {} scale deployment {} --replicas=0, then install Baton",
            installation.namespace,
            deployment["metadata"]["name"].as_str().unwrap_or_default()
        );
        settings.findings.push(Finding::new(Weight::Note, object.as_str(), "running", message));
    }
    let told = Told::read(installation, container, &object, &mut settings.findings);
    settings.judge(installation, &object, &told);
    settings.findings.extend(unheard::judge(installation, &object, container, &told));
    if told.value(&format!("{PREFIX}ENABLE_LEADER_ELECTION")).is_none_or(|value| value != "true") {
        let message = "leader election is off: Baton does not see by the Lease whether this one still runs, so scale it to 0 \
                       before Baton starts";
        settings.findings.push(Finding::new(Weight::Note, object.as_str(), "no-lease", message));
    }
    if told.environment.get("ARGOCD_GIT_MODULES_ENABLED").is_none_or(|value| value != "false") {
        let message = "git generators see files of submodules with Argo CD, and do not with Baton";
        settings.findings.push(Finding::new(Weight::Note, object.as_str(), "submodules", message));
    }
    settings
}

/// Other namespaces that sets may live in, by what anybody here was told: a controller of Argo CD's, one of Baton's, and
/// whatever is installed next.
pub(super) fn namespaces(installation: &Installation) -> Vec<String> {
    let running = [is_controller, is_ours].into_iter().filter_map(|which| container(installation, which));
    let told = running.map(|(deployment, container)| {
        Told::read(installation, container, &called(deployment), &mut Vec::new())
    });
    let keyed = Told { environment: keyed(installation), ..Told::default() };
    let lists = told.chain([keyed]).filter_map(|told| told.value(&format!("{PREFIX}NAMESPACES")));
    let mut all: Vec<String> =
        lists.flat_map(|list| list.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>()).collect();
    all.retain(|pattern| !pattern.is_empty());
    all.sort();
    all.dedup();
    all
}

/// Variables that an installed controller of Baton finds in `argocd-cmd-params-cm`.
pub(super) fn keyed(installation: &Installation) -> BTreeMap<String, String> {
    let found = install::keys("applicationset").filter_map(|(name, key)| {
        let value = installation.setting(PARAMETERS, key).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    });
    found.collect()
}

// === impl Settings ===

impl Settings {
    /// What follows from settings that can be read, and that some cannot.
    fn judge(&mut self, installation: &Installation, object: &str, told: &Told) {
        let read =
            baton_controllers::Settings::from_environment(&installation.namespace, |name| told.value(name));
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                let message = format!(
                    "Argo CD goes on with its default where a value cannot be read, Baton does not start: {error}"
                );
                return self.findings.push(Finding::new(Weight::Blocks, object, "bad-setting", message));
            }
        };
        self.progressive_syncs = read.progressive_syncs;
        if read.dry_run {
            let message = "dry run is on: Baton too will write nothing";
            self.findings.push(Finding::new(Weight::Note, object, "dry-run", message));
        }
        let others = &read.application_set_namespaces;
        if !others.is_empty() {
            let message = format!(
                "sets of other namespaces count ({}), and the Role that `baton install` brings is of {} alone: without rights \
                 there Baton reads no set at all, see \"Several namespaces\" in docs/install.md",
                others.join(", "),
                installation.namespace
            );
            self.findings.push(Finding::new(Weight::Blocks, object, "namespaces", message));
        }
    }
}

// === impl Told ===

impl Told {
    /// What a container says. Variables that come out of ConfigMaps are looked up.
    fn read(
        installation: &Installation,
        container: &Value,
        object: &str,
        findings: &mut Vec<Finding>,
    ) -> Told {
        Told { flags: flags(container), environment: environment(installation, container, object, findings) }
    }

    /// What a variable, or the flag in its place, says. An empty variable is as good as unset.
    pub(super) fn value(&self, variable: &str) -> Option<String> {
        let flag = self.flags.get(&flag_of(variable));
        flag.or_else(|| self.environment.get(variable).filter(|value| !value.is_empty())).cloned()
    }
}

/// The first Deployment with such a container.
fn container(installation: &Installation, which: fn(&Value) -> bool) -> Option<(&Value, &Value)> {
    installation.deployments.iter().find_map(|deployment| {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
        Some((deployment, containers.iter().find(|container| which(container))?))
    })
}

fn words(container: &Value) -> impl Iterator<Item = &str> {
    let all =
        ["command", "args"].into_iter().flat_map(|field| container[field].as_array().into_iter().flatten());
    all.filter_map(Value::as_str)
}

fn is_controller(container: &Value) -> bool {
    let named = words(container).any(|word| word.rsplit('/').next() == Some(PROGRAM));
    named || container["name"] == PROGRAM
}

/// Whether it is Baton's controller of sets.
fn is_ours(container: &Value) -> bool {
    let chosen = |word: &str| {
        word.strip_prefix("--controllers=")
            .is_some_and(|all| all.split(',').any(|one| one == "applicationset"))
    };
    words(container).any(|word| word == "controller") && words(container).any(chosen)
}

fn environment(
    installation: &Installation,
    container: &Value,
    object: &str,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for source in container["envFrom"].as_array().into_iter().flatten() {
        let name = source["configMapRef"]["name"].as_str();
        let map = installation
            .config_maps
            .iter()
            .find(|map| name.is_some_and(|name| map["metadata"]["name"] == name));
        let Some(data) = map.map(|map| map["data"].as_object().into_iter().flatten()) else {
            let message = "variables come, by envFrom, from where they could not be looked up: set those that Baton needs too";
            findings.push(Finding::new(Weight::Differs, object, "unknown-variable", message));
            continue;
        };
        let prefix = source["prefix"].as_str().unwrap_or_default();
        found.extend(
            data.filter_map(|(key, value)| Some((format!("{prefix}{key}"), value.as_str()?.to_owned()))),
        );
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let Some(name) = variable["name"].as_str() else { continue };
        let reference = &variable["valueFrom"]["configMapKeyRef"];
        let value = match (variable["value"].as_str(), reference["name"].as_str(), reference["key"].as_str())
        {
            (Some(value), ..) => Some(value),
            (None, Some(map), Some(key)) => installation.setting(map, key),
            _ if name.starts_with(PREFIX) => {
                let message =
                    format!("{name} comes from where it could not be looked up: set it for Baton too");
                findings.push(Finding::new(Weight::Differs, object, "unknown-variable", message));
                None
            }
            _ => None,
        };
        if let Some(value) = value {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found
}

/// `--name=value`, `--name value` and `--name`.
fn flags(container: &Value) -> BTreeMap<String, String> {
    let words: Vec<&str> = words(container).collect();
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (at, word) in words.iter().enumerate() {
        let flag = match *word {
            "-n" => "namespace",
            word => match word.strip_prefix("--") {
                Some(flag) => flag,
                None => continue,
            },
        };
        let (name, value) = match (flag.split_once('='), words.get(at + 1)) {
            (Some((name, value)), _) => (name, value),
            (None, Some(next)) if !next.starts_with('-') => (flag, *next),
            (None, _) => (flag, "true"),
        };
        match found.get_mut(name).filter(|_| LISTS.contains(&name)) {
            Some(list) => list.extend([",", value]),
            None => drop(found.insert(name.to_owned(), value.to_owned())),
        }
    }
    found
}

/// The flag that says what a variable says.
pub(super) fn flag_of(variable: &str) -> String {
    let short = variable.strip_prefix(PREFIX).unwrap_or(variable);
    match short {
        "NAMESPACES" => "applicationset-namespaces".to_owned(),
        "ENABLE_LEADER_ELECTION" => "enable-leader-election".to_owned(),
        "TOKENREF_STRICT_MODE" => "token-ref-strict-mode".to_owned(),
        short => short.strip_prefix("GLOBAL_").unwrap_or(short).to_lowercase().replace('_', "-"),
    }
}
