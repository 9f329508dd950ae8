//! What the running controller was told by its Deployment alone. The Deployment that `baton install` brings has the keys of
//! `argocd-cmd-params-cm` and nothing else, so whatever is said elsewhere is lost with the old one.

use serde_json::Value;

use super::controller::{IDLE, PARAMETERS, PREFIX, Told, flag_of, keyed};
use super::finding::{Finding, Weight};
use super::installation::Installation;
use crate::controller::CLIENT;
use crate::install;

/// Without these Applications are changed or deleted that were left alone, or none are looked after.
const GRAVE: [&str; 6] = [
    "POLICY",
    "ENABLE_POLICY_OVERRIDE",
    "DRY_RUN",
    "GLOBAL_PRESERVED_ANNOTATIONS",
    "GLOBAL_PRESERVED_LABELS",
    "NAMESPACES",
];

/// Where Argo CD's controller listens.
const ADDRESSES: [&str; 3] = ["metrics-addr", "probe-addr", "webhook-addr"];

const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];
/// Where Argo CD's own manifests mount files, none of which is for generators.
const MOUNTS: [&str; 2] = ["/app/config/", "/tmp"];

pub(super) fn judge(
    installation: &Installation,
    object: &str,
    container: &Value,
    told: &Told,
) -> Vec<Finding> {
    let unheard = Unheard { installation, object, container, told };
    let mut findings = unheard.settings();
    findings.extend(unheard.flags());
    findings.extend(unheard.variables());
    findings.extend(unheard.surroundings());
    findings
}

struct Unheard<'a> {
    installation: &'a Installation,
    object: &'a str,
    container: &'a Value,
    told: &'a Told,
}

impl Unheard<'_> {
    fn finding(&self, weight: Weight, rule: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(weight, self.object, rule, message)
    }

    /// Settings that mean something else to whoever reads only the ConfigMap.
    fn settings(&self) -> Vec<Finding> {
        let keyed = keyed(self.installation);
        let keys = install::keys("applicationset").filter(|(name, _)| name.starts_with(PREFIX));
        let lost = keys.filter_map(|(variable, key)| {
            let (theirs, ours) = (self.told.value(variable), keyed.get(variable));
            if meaning(variable, theirs.as_deref()) == meaning(variable, ours.map(String::as_str)) {
                return None;
            }
            let is_grave = variable.strip_prefix(PREFIX).is_some_and(|short| GRAVE.contains(&short));
            let weight = if is_grave { Weight::Blocks } else { Weight::Differs };
            let message = match theirs {
                Some(value) => {
                    let flag = flag_of(variable);
                    let source =
                        if self.told.flags.contains_key(&flag) { format!("--{flag}") } else { variable.to_owned() };
                    // What stands before a host may be a password.
                    let value = if value.contains('@') { "…".to_owned() } else { value };
                    format!(
                        "{source}={value} is said by this Deployment alone, and Baton's reads {PARAMETERS}: write it there as \
                         {key}, or baton install --env {variable}={value}"
                    )
                }
                None => format!(
                    "{PARAMETERS} says {key}={}, which this Deployment does not read and Baton's does: take it away, if it \
                     is not meant",
                    ours.map_or("", String::as_str)
                ),
            };
            Some(self.finding(weight, "setting", message))
        });
        lost.collect()
    }

    /// Flags that are no settings.
    fn flags(&self) -> Vec<Finding> {
        let settings: Vec<String> = install::keys("applicationset").map(|(name, _)| flag_of(name)).collect();
        let mut findings = Vec::new();
        for (flag, value) in &self.told.flags {
            let name = flag.as_str();
            let idle = IDLE.iter().find(|(idle, _)| *idle == name);
            findings.extend(match name {
                "enable-leader-election" => None,
                _ if settings.iter().any(|setting| setting == name) => None,
                "namespace" if *value == self.installation.namespace => None,
                "namespace" => {
                    let message = format!(
                        "--namespace={value} is another namespace than {}: look at that one, and install Baton there",
                        self.installation.namespace
                    );
                    Some(self.finding(Weight::Blocks, "other-namespace", message))
                }
                _ if ADDRESSES.contains(&name) => {
                    let message = format!(
                        "--{name}={value} is not taken over: Baton's Deployment has metrics and checks on :8082, and webhooks \
                         on :7000"
                    );
                    Some(self.finding(Weight::Differs, "address", message))
                }
                _ if CLIENT.contains(&name) => {
                    let message = format!(
                        "--{name} is about the way to the API, which Baton's Deployment finds by its ServiceAccount: what it \
                         says has to stand in a kubeconfig (baton controller --kubeconfig)"
                    );
                    Some(self.finding(Weight::Blocks, "client-flag", message))
                }
                _ => Some(match idle {
                    Some((_, instead)) => {
                        self.finding(Weight::Differs, "idle-flag", format!("--{name} does nothing here: {instead}"))
                    }
                    None => {
                        let message = format!("--{name} is not known to Baton, which does not start with it: leave it out");
                        self.finding(Weight::Blocks, "unknown-flag", message)
                    }
                }),
            });
        }
        findings
    }

    /// Variables of Argo CD's that no setting of Baton's is told by.
    fn variables(&self) -> Vec<Finding> {
        let known: Vec<&str> = install::keys("applicationset").map(|(name, _)| name).collect();
        let set = self.told.environment.iter().filter(|(name, value)| {
            name.starts_with(PREFIX) && !value.is_empty() && !known.contains(&name.as_str())
        });
        let mut findings = Vec::new();
        for (name, _) in set.filter(|(name, _)| *name != &format!("{PREFIX}ENABLE_LEADER_ELECTION")) {
            let why = match name.contains("REPO_SERVER") {
                true => "repositories are read by the controller itself",
                false => "it is not known to Baton",
            };
            findings.push(self.finding(
                Weight::Differs,
                "idle-variable",
                format!("{name} does nothing here: {why}"),
            ));
        }
        findings
    }

    /// What is around the controller.
    fn surroundings(&self) -> Vec<Finding> {
        let is_proxy = |name: &String| PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name));
        let mut findings: Vec<Finding> = Vec::new();
        for name in self.told.environment.keys().filter(|name| is_proxy(name)) {
            let message = format!("{name} is set here alone: baton install --env {name}=… says it to Baton");
            findings.push(self.finding(Weight::Note, "proxy", message));
        }
        let mounts = self.container["volumeMounts"].as_array().into_iter().flatten();
        let paths = mounts.filter_map(|mount| mount["mountPath"].as_str());
        for path in paths.filter(|path| !MOUNTS.iter().any(|usual| path.starts_with(usual))) {
            let message = format!(
                "{path} is mounted here, and not in Baton's Deployment: mount there what it needs of it"
            );
            findings.push(self.finding(Weight::Note, "mount", message));
        }
        let message = "an Ingress for webhooks that leads to the Service argocd-applicationset-controller has to lead to \
                       baton-applicationset-controller, port 7000";
        findings.push(self.finding(Weight::Note, "webhooks", message));
        findings
    }
}

/// What a variable comes to, so that a default that is written out is the default.
fn meaning(variable: &str, value: Option<&str>) -> String {
    match variable.strip_prefix(PREFIX) {
        Some("LOGLEVEL" | "LOGFORMAT") => value.unwrap_or_default().to_lowercase(),
        Some("DEBUG") => value.is_some_and(|value| value == "true").to_string(),
        _ => {
            let only = |name: &str| value.filter(|_| name == variable).map(str::to_owned);
            match baton_controllers::Settings::from_environment("argocd", only) {
                Ok(settings) => format!("{settings:?}"),
                Err(error) => error.to_string(),
            }
        }
    }
}
