//! How the ApplicationSet controller of an Argo CD is started, and what of it means something else here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::{Finding, Weight};
use super::installation::{Installation, called};

/// Prefix of the variables of Argo CD's controller.
const PREFIX: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_";
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

/// Flags of Argo CD's controller that do nothing here, and what happens instead.
const IDLE: [(&str, &str); 4] = [
    ("argocd-repo-server", "repositories are read by the controller itself, which needs a way to them"),
    ("repo-server-plaintext", "repositories are read by the controller itself"),
    ("repo-server-strict-tls", "repositories are read by the controller itself"),
    ("repo-server-timeout-seconds", "repositories are read by the controller itself"),
];

/// Finds the controller's Deployment and reads its flags and environment.
pub(super) fn settings(installation: &Installation) -> Settings {
    let mut settings = Settings::default();
    let found = installation.deployments.iter().find_map(|deployment| {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
        Some((deployment, containers.iter().find(|container| is_controller(container))?))
    });
    let Some((deployment, container)) = found else {
        let message = format!(
            "no Deployment in {} runs {PROGRAM}: its flags are taken for the usual ones",
            installation.namespace
        );
        settings.findings.push(Finding::new(Weight::Note, "Deployment", "no-controller", message));
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
    let environment = environment(installation, container, &object, &mut settings.findings);
    let flags = flags(container);
    let wanted: BTreeMap<&str, &str> = environment
        .iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let read = baton_controllers::Settings::from_environment(&installation.namespace, |name| {
        let flag = flags.get(&flag_of(name)).cloned();
        flag.or_else(|| wanted.get(name).map(|value| (*value).to_owned()))
    });
    match read {
        Ok(read) => {
            settings.progressive_syncs = read.progressive_syncs;
            if read.dry_run {
                let message = "dry run is on: Baton too will write nothing";
                settings.findings.push(Finding::new(Weight::Note, object.as_str(), "dry-run", message));
            }
            let others = &read.application_set_namespaces;
            if !others.is_empty() {
                let message = format!(
                    "sets of other namespaces count ({}), and the Role that `baton install` brings is of {} alone: without rights \
                     there Baton reads no set at all, see \"Several namespaces\" in docs/install.md",
                    others.join(", "),
                    installation.namespace
                );
                settings.findings.push(Finding::new(Weight::Blocks, object.as_str(), "namespaces", message));
            }
            if !read.leader_election {
                let message = "leader election is off: Baton does not see by the Lease whether this one still runs, so scale \
                               it to 0 before Baton starts";
                settings.findings.push(Finding::new(Weight::Note, object.as_str(), "no-lease", message));
            }
        }
        Err(error) => {
            let message = format!(
                "Argo CD goes on with its default where a value cannot be read, Baton does not start: {error}"
            );
            settings.findings.push(Finding::new(Weight::Blocks, object.as_str(), "bad-setting", message));
        }
    }
    for (flag, instead) in IDLE.into_iter().filter(|(flag, _)| flags.contains_key(*flag)) {
        let message = format!("--{flag} does nothing here: {instead}");
        settings.findings.push(Finding::new(Weight::Differs, object.as_str(), "idle-flag", message));
    }
    if environment.get("ARGOCD_GIT_MODULES_ENABLED").is_none_or(|value| value != "false") {
        let message = "git generators see files of submodules with Argo CD, and do not with Baton";
        settings.findings.push(Finding::new(Weight::Note, object.as_str(), "submodules", message));
    }
    settings
}

fn is_controller(container: &Value) -> bool {
    let words =
        ["command", "args"].into_iter().flat_map(|field| container[field].as_array().into_iter().flatten());
    let named = words.filter_map(Value::as_str).any(|word| word.rsplit('/').next() == Some(PROGRAM));
    named || container["name"] == PROGRAM
}

/// Variables and what they hold; what comes out of ConfigMaps is looked up.
fn environment(
    installation: &Installation,
    container: &Value,
    object: &str,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
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
    let words =
        ["command", "args"].into_iter().flat_map(|field| container[field].as_array().into_iter().flatten());
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let mut found = BTreeMap::new();
    for (at, word) in words.iter().enumerate() {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let (name, value) = match (flag.split_once('='), words.get(at + 1)) {
            (Some((name, value)), _) => (name, value),
            (None, Some(next)) if !next.starts_with("--") => (flag, *next),
            (None, _) => (flag, "true"),
        };
        found.insert(name.to_owned(), value.to_owned());
    }
    found
}

/// The flag that says what a variable says.
fn flag_of(variable: &str) -> String {
    let short = variable.strip_prefix(PREFIX).unwrap_or(variable);
    match short {
        "NAMESPACES" => "applicationset-namespaces".to_owned(),
        "ENABLE_LEADER_ELECTION" => "enable-leader-election".to_owned(),
        "TOKENREF_STRICT_MODE" => "token-ref-strict-mode".to_owned(),
        short => short.strip_prefix("GLOBAL_").unwrap_or(short).to_lowercase().replace('_', "-"),
    }
}
