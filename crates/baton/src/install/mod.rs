//! `baton install`: everything a cluster needs, printed.

mod objects;

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::failure::Failure;
use crate::print;

/// What to install.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Nothing is asked of any cluster. CustomResourceDefinitions are too large for a client-side apply.

Examples:
  baton install | kubectl apply --server-side -f -
  baton install --ha --image registry.example.com/baton:0.1.0 | kubectl apply --server-side -f -
  baton install --settings=false | kubectl apply --server-side -f -     again, over ConfigMaps that people have changed
  baton install --only applicationset | kubectl apply --server-side -f -     beside Argo CD; see docs/install.md"
)]
pub(crate) struct Arguments {
    /// Namespace of Argo CD's objects, and of the controllers.
    #[arg(short, long, default_value = "argocd", value_name = "NAMESPACE", value_parser = namespace)]
    namespace: String,
    /// One component alone: `applicationset` is the drop-in beside Argo CD, whose settings and definitions stay as they are.
    #[arg(long, value_enum, value_name = "COMPONENT")]
    only: Option<Component>,
    /// Two replicas of each component, on different nodes where there are several.
    #[arg(long)]
    ha: bool,
    /// The image of deploy/Dockerfile, wherever you keep it.
    #[arg(long, default_value = concat!("baton:", env!("CARGO_PKG_VERSION")), value_name = "IMAGE", value_parser = image)]
    image: String,
    /// ConfigMap whose keys are the programs that phases may run; without it commands are refused.
    #[arg(long, value_name = "NAME", value_parser = name)]
    hooks_configmap: Option<String>,
    /// Secret with tls.crt and tls.key for the server; without it the server speaks plain HTTP, for an ingress to end TLS.
    #[arg(long, value_name = "NAME", value_parser = name)]
    tls_secret: Option<String>,
    /// Deploy to other clusters only: without rights on everything in this one.
    #[arg(long)]
    no_in_cluster: bool,
    /// Print the CustomResourceDefinitions: with everything, and not beside Argo CD.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    crds: Option<bool>,
    /// Print the ConfigMaps that people change: with everything, and not beside Argo CD. `false` leaves an installation's as they are.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    settings: Option<bool>,
    /// A variable of every component, in the place of what it would be otherwise. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The form to print in.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Component {
    /// ApplicationSets: Applications from generators and templates, and their rollouts.
    Applicationset,
    /// Applications: from git to clusters.
    Application,
    /// Who is told what about both.
    Notifications,
    /// The API for people and programs, and the web pages.
    Server,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

impl Component {
    fn part(self) -> &'static str {
        match self {
            Component::Applicationset => "applicationset",
            Component::Application => "application",
            Component::Notifications => "notifications",
            Component::Server => "server",
        }
    }
}

impl Arguments {
    fn plan<'a>(&'a self, environment: &'a BTreeMap<String, String>) -> objects::Plan<'a> {
        objects::Plan {
            settings: self.settings.unwrap_or(self.only.is_none()),
            environment,
            namespace: &self.namespace,
            only: self.only.map(Component::part),
            replicas: if self.ha { 2 } else { 1 },
            image: &self.image,
            hooks: self.hooks_configmap.as_deref(),
            tls: self.tls_secret.as_deref(),
            in_cluster: !self.no_in_cluster,
        }
    }

    /// What would be passed over in silence is refused.
    fn check(&self) -> Result<(), Failure> {
        let Some(only) = self.only.map(Component::part) else { return Ok(()) };
        let idle = [
            ("--hooks-configmap", &self.hooks_configmap, "hooks"),
            ("--tls-secret", &self.tls_secret, "tls"),
        ];
        for (flag, value, field) in idle {
            if value.is_some() && !objects::has(only, field) {
                return Err(Failure::usage(format!(
                    "{flag} means nothing to {only}: leave it out, or --only"
                )));
            }
        }
        Ok(())
    }

    fn objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        if self.only.is_none() {
            objects.push(objects::namespace(&self.namespace));
        }
        if self.crds.unwrap_or(self.only.is_none()) {
            objects.extend(baton_api::crds());
        }
        let environment = self.env.iter().cloned().collect();
        objects.extend(self.plan(&environment).objects());
        objects
    }
}

/// A name that a variable can have, and whatever it holds.
fn variable(text: &str) -> Result<(String, String), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.split_once('=') {
        Some((name, value))
            if !name.is_empty()
                && name.chars().all(fits)
                && !name.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// A name that a namespace can have: it goes into other names.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = (1..=63).contains(&text.len())
        && text.chars().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if good {
        Ok(text.to_owned())
    } else {
        Err("lower-case letters, digits and dashes, at most 63".to_owned())
    }
}

/// A name that a ConfigMap or a Secret can have.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |part: &str| {
        !part.is_empty() && part.chars().all(fits) && !part.starts_with('-') && !part.ends_with('-')
    };
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("lower-case letters, digits, dashes and dots, at most 253".to_owned()),
    }
}

/// Something that an image can be called by.
fn image(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_whitespace) {
        false => Ok(text.to_owned()),
        true => Err("the name of an image, without spaces".to_owned()),
    }
}

/// The rules of a component, as they stand in its Role.
pub(crate) fn rules(part: &str) -> Vec<Value> {
    objects::rules(part)
}

/// The variables of a component that come out of `argocd-cmd-params-cm`, with their keys.
pub(crate) fn keys(part: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    objects::keys(part)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.check()?;
    let objects = arguments.objects();
    let text = match arguments.output {
        Output::Yaml => print::yaml(&objects)?,
        Output::Json => print::json(&objects, false)?,
    };
    print::out(&text)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use baton_controllers::{ApplicationSettings, NotificationSettings, Settings};
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::{Cli, Command};

    /// What is read and has no key, with the reason.
    const WITHOUT_KEY: [(&str, &str); 6] = [
        ("ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_LEADER_ELECTION", "the flag --leader-elect is given"),
        ("ARGOCD_NOTIFICATIONS_CONTROLLER_DEBUG", "its level says it"),
        ("ARGOCD_APPLICATION_CONTROLLER_DEBUG", "its level says it"),
        ("BATON_HOOKS_DIR", "the flag --hooks-dir is given where there is a directory"),
        ("BATON_NOTIFICATIONS_CA", "a file, which an image or a mount of one's own brings"),
        ("BATON_LOG", "--env BATON_LOG=… says it for all"),
    ];

    /// Every variable that a component reads when it is started as it is installed.
    fn read_by(component: &Value) -> BTreeSet<String> {
        let words = component["args"].as_array().expect("a command line").iter().filter_map(Value::as_str);
        let more = ["--insecure"].into_iter().filter(|_| component["tls"] == true);
        let cli =
            Cli::try_parse_from(["baton"].into_iter().chain(words).chain(more)).expect("a command line");
        let read = RefCell::new(BTreeSet::new());
        let note = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            None
        };
        let own = match &cli.command {
            Command::Controller(arguments) => {
                arguments.log(&note).expect("nothing that cannot be read");
                "controller"
            }
            _ => "server",
        };
        match component["part"].as_str().expect("a part") {
            "applicationset" => drop(Settings::from_environment("argocd", note).expect("the defaults")),
            "application" => {
                drop(ApplicationSettings::from_environment("argocd", note).expect("the defaults"))
            }
            "notifications" => {
                // It reads where sets may live from the settings of the controller of sets.
                drop(NotificationSettings::from_environment("argocd", note).expect("the defaults"));
            }
            // Its generators are those of the controller of sets.
            _ => drop(Settings::from_environment("argocd", note).expect("the defaults")),
        }
        let command = Cli::command();
        let command = command.find_subcommand(own).expect("a command");
        // Flags are of all controllers; only that of sets has hooks, traces and a fuse.
        let named = command.get_arguments().filter_map(|flag| flag.get_env()?.to_str().map(str::to_owned));
        let mut read = read.into_inner();
        if component["part"] == "applicationset" || own == "server" {
            read.extend(named);
        }
        if component["part"] == "applicationset" {
            read.extend(crate::traces::FROM_ENVIRONMENT.map(str::to_owned));
        }
        read
    }

    #[test]
    fn every_variable_that_is_set_is_read_and_every_one_that_is_read_can_be_set() {
        for component in objects::components() {
            let part = component["part"].as_str().expect("a part");
            let set = component["environment"].as_object().expect("variables");
            let set: BTreeSet<String> = set.keys().cloned().collect();
            let read = read_by(component);
            let idle: Vec<&String> = set.difference(&read).collect();
            assert_eq!(idle, [""; 0], "{part} does not read these");
            // The controller reads the ConfigMaps of Argo CD's periods itself.
            let by_itself = |name: &str| match part {
                "application" => ApplicationSettings::is_period(name),
                // What it generates is only shown.
                "server" => name.starts_with("ARGOCD_APPLICATIONSET_CONTROLLER_"),
                _ => false,
            };
            let has_no_key = |name: &str| WITHOUT_KEY.iter().any(|(other, _)| *other == name);
            let out_of_reach: Vec<&String> =
                read.difference(&set).filter(|name| !by_itself(name) && !has_no_key(name)).collect();
            assert_eq!(out_of_reach, [""; 0], "{part} reads these, and nobody can set them");
        }
    }

    #[test]
    fn keys_of_settings_are_those_that_something_reads() {
        let keys: BTreeSet<&str> = objects::components()
            .flat_map(|component| component["environment"].as_object().expect("variables").values())
            .filter_map(Value::as_str)
            .collect();
        for key in objects::settings("argocd-cmd-params-cm") {
            assert!(keys.contains(key.as_str()), "{key} is set, and nobody reads it");
        }
    }

    #[test]
    fn variables_are_names_with_values() {
        for (text, read) in [
            ("A_1=b=c", Some(("A_1", "b=c"))),
            ("A=", Some(("A", ""))),
            ("A", None),
            ("=b", None),
            ("1A=b", None),
        ] {
            let found = variable(text).ok();
            assert_eq!(found, read.map(|(name, value)| (name.to_owned(), value.to_owned())), "{text}");
        }
    }
}
