//! `set`: what an Application says is changed, a field at a time.

use baton_api::Application;
use baton_api::application::AutomatedSync;
use baton_api::source::{DirectorySource, HelmParameter, Source};
use clap::Args;

use super::applications::Applications;
use super::create::Automation;
use super::operate::{ATTEMPTS, busy};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;
use crate::terminal;

#[derive(Debug, Args)]
#[command(
    after_help = "What is not named stays as it is, also what this version does not know. Of several sources the one of --source-position is changed.

Examples:
  baton app set web --revision v1.4.0
  baton app set web --helm-set image.tag=1.4.0 --values values-prod.yaml
  baton app set web --sync-policy automated --self-heal
  baton app set web --sync-option Replace=true --sync-option '!CreateNamespace=true'
  baton app set web --source-position 2 --path overlays/prod"
)]
pub(super) struct Set {
    /// The Application.
    name: String,
    /// The repository.
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// The directory in it.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Branch, tag, commit or range of versions.
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Which of several sources, counted from 1.
    #[arg(long, value_name = "NUMBER")]
    source_position: Option<usize>,
    /// The cluster, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "dest_server")]
    dest_name: Option<String>,
    /// The cluster, by URL.
    #[arg(long, value_name = "URL")]
    dest_server: Option<String>,
    /// The namespace of resources that name none.
    #[arg(long, value_name = "NAMESPACE")]
    dest_namespace: Option<String>,
    /// The project.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Whether it syncs by itself.
    #[arg(long, value_enum)]
    sync_policy: Option<Automation>,
    /// Delete by itself what is no longer in git.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    auto_prune: Option<bool>,
    /// Undo by itself what others change.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    self_heal: Option<bool>,
    /// Let it delete everything where git is empty.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    allow_empty: Option<bool>,
    /// A sync option; one that begins with ! is taken away. May be repeated.
    #[arg(long = "sync-option", value_name = "OPTION")]
    sync_options: Vec<String>,
    /// Read directories below the path.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    directory_recurse: Option<bool>,
    /// A value of a Helm chart; may be repeated.
    #[arg(short = 'p', long = "helm-set", visible_alias = "parameter", value_name = "NAME=VALUE")]
    helm_set: Vec<String>,
    /// A file of values of a Helm chart, instead of those it has; may be repeated.
    #[arg(long = "values", value_name = "FILE")]
    values: Vec<String>,
    /// An image of a kustomization; may be repeated.
    #[arg(long = "kustomize-image", value_name = "IMAGE")]
    kustomize_images: Vec<String>,
    #[command(flatten)]
    place: Place,
}

impl Set {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        for _ in 0..ATTEMPTS {
            let seen = applications.get(&self.name).await?;
            let mut outcome = Ok(());
            let patch =
                baton_api::edit::edit::<Application>(&seen, |application| outcome = self.change(application));
            outcome?;
            let patch = patch.map_err(|error| Failure::failed(format!("not an Application: {error}")))?;
            let Some(patch) = patch else {
                terminal::remark(&format!("{} says so already, so nothing was changed", self.name));
                return Ok(());
            };
            if applications.change(&self.name, &seen, &patch).await? {
                return print::out(&format!("application.argoproj.io/{} updated\n", self.name));
            }
        }
        Err(busy(&self.name))
    }

    fn change(&self, application: &mut Application) -> Result<(), Failure> {
        let spec = &mut application.spec;
        if let Some(project) = &self.project {
            spec.project.clone_from(project);
        }
        let destination = &mut spec.destination;
        if let Some(name) = &self.dest_name {
            (destination.name, destination.server) = (name.clone(), String::new());
        }
        if let Some(server) = &self.dest_server {
            (destination.name, destination.server) = (String::new(), server.clone());
        }
        if let Some(namespace) = &self.dest_namespace {
            destination.namespace.clone_from(namespace);
        }
        self.change_policy(application)?;
        if self.names_source() {
            self.change_source(self.source(application)?)?;
        }
        Ok(())
    }

    fn names_source(&self) -> bool {
        self.repo.is_some()
            || self.path.is_some()
            || self.revision.is_some()
            || self.directory_recurse.is_some()
            || !self.helm_set.is_empty()
            || !self.values.is_empty()
            || !self.kustomize_images.is_empty()
    }

    /// The source that is meant.
    fn source<'a>(&self, application: &'a mut Application) -> Result<&'a mut Source, Failure> {
        let spec = &mut application.spec;
        let count = spec.sources.len();
        match (count, self.source_position) {
            (0, None | Some(1)) => spec
                .source
                .as_mut()
                .ok_or_else(|| Failure::failed("the Application has no source that could be changed")),
            (_, None) => Err(Failure::usage(format!(
                "the Application has {count} sources: say which with --source-position"
            ))),
            (_, Some(position)) => {
                let place = position.checked_sub(1).filter(|place| *place < count);
                let count = count.max(1);
                let place = place.ok_or_else(|| {
                    Failure::usage(format!("--source-position: the Application has {count}, counted from 1"))
                })?;
                Ok(&mut spec.sources[place])
            }
        }
    }

    fn change_source(&self, source: &mut Source) -> Result<(), Failure> {
        for (given, field) in [
            (&self.repo, &mut source.repo_url),
            (&self.path, &mut source.path),
            (&self.revision, &mut source.target_revision),
        ] {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
        if let Some(recurse) = self.directory_recurse {
            source.directory.get_or_insert_with(DirectorySource::default).recurse = recurse;
        }
        for parameter in &self.helm_set {
            let (name, value) =
                parameter.split_once('=').ok_or_else(|| Failure::usage("write --helm-set as NAME=VALUE"))?;
            let parameters = &mut source.helm.get_or_insert_default().parameters;
            match parameters.iter_mut().find(|known| known.name == name) {
                Some(known) => known.value = value.to_owned(),
                None => parameters.push(HelmParameter {
                    name: name.to_owned(),
                    value: value.to_owned(),
                    force_string: false,
                }),
            }
        }
        if !self.values.is_empty() {
            source.helm.get_or_insert_default().value_files.clone_from(&self.values);
        }
        for image in &self.kustomize_images {
            let images = &mut source.kustomize.get_or_insert_default().images;
            images.retain(|known| replaced(known) != replaced(image));
            images.push(image.clone());
        }
        Ok(())
    }

    fn change_policy(&self, application: &mut Application) -> Result<(), Failure> {
        let given = [self.auto_prune, self.self_heal, self.allow_empty];
        if self.sync_policy.is_none() && self.sync_options.is_empty() && given.iter().all(Option::is_none) {
            return Ok(());
        }
        let policy = application.spec.sync_policy.get_or_insert_default();
        match self.sync_policy {
            Some(Automation::None) => policy.automated = None,
            Some(Automation::Automated) => drop(policy.automated.get_or_insert_with(AutomatedSync::default)),
            None => {}
        }
        if given.iter().any(Option::is_some) {
            let automated = policy.automated.as_mut().ok_or_else(|| {
                Failure::usage(
                    "--auto-prune, --self-heal and --allow-empty say how it syncs by itself: add --sync-policy automated",
                )
            })?;
            for (given, field) in given.into_iter().zip([
                &mut automated.prune,
                &mut automated.self_heal,
                &mut automated.allow_empty,
            ]) {
                *field = given.or(*field);
            }
        }
        for option in &self.sync_options {
            let (gone, option) = match option.strip_prefix('!') {
                Some(option) => (true, option),
                None => (false, option.as_str()),
            };
            let (name, _) = option.split_once('=').unwrap_or((option, ""));
            let is = |known: &String| known.split_once('=').map_or(known.as_str(), |(name, _)| name) == name;
            policy.sync_options.retain(|known| !is(known));
            if !gone {
                policy.sync_options.push(option.to_owned());
            }
        }
        Ok(())
    }
}

/// The image that an entry of a kustomization replaces: what stands before `=`, else its name without tag and digest.
fn replaced(image: &str) -> &str {
    let image = image.split_once('=').map_or(image, |(name, _)| name);
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        set: Set,
    }

    fn after(spec: Value, line: &[&str]) -> Result<Value, Failure> {
        let line = Line::try_parse_from(["x", "web"].iter().chain(line)).expect("a line");
        let mut application: Application =
            serde_json::from_value(json!({"spec": spec})).expect("an Application");
        line.set.change(&mut application)?;
        Ok(serde_json::to_value(&application).expect("JSON")["spec"].clone())
    }

    #[test]
    fn only_what_is_named_changes() {
        let spec = || {
            json!({
                "project": "default", "destination": {"name": "dev", "namespace": "web"},
                "source": {"repoURL": "r", "path": "p", "targetRevision": "main",
                    "kustomize": {"images": ["web:1", "eu.example.com:5000/db:2"]}},
                "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["A=true", "B=false"]},
            })
        };
        let mut expected = spec();
        expected["source"]["targetRevision"] = json!("v2");
        expected["destination"] = json!({"server": "https://k", "namespace": "web"});
        assert_eq!(
            after(spec(), &["--revision", "v2", "--dest-server", "https://k"]).expect("a change"),
            expected
        );
        let images = after(spec(), &["--kustomize-image", "web=mine:2"]).expect("a change");
        assert_eq!(
            images["source"]["kustomize"]["images"],
            json!(["eu.example.com:5000/db:2", "web=mine:2"])
        );
        let policy = after(spec(), &["--self-heal", "--sync-option", "!A", "--sync-option", "B=true"]);
        let expected = json!({"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["B=true"]});
        assert_eq!(policy.expect("a change")["syncPolicy"], expected);
        let manual = after(spec(), &["--sync-policy", "none"]).expect("a change");
        assert_eq!(manual["syncPolicy"], json!({"syncOptions": ["A=true", "B=false"]}));
        assert!(after(spec(), &["--sync-policy", "none", "--self-heal"]).is_err());
        let helm = after(spec(), &["-p", "a=1", "-p", "a=2"]).expect("a change");
        assert_eq!(helm["source"]["helm"]["parameters"], json!([{"name": "a", "value": "2"}]));
    }

    #[test]
    fn of_several_sources_one_is_meant() {
        let spec =
            || json!({"destination": {}, "project": "x", "sources": [{"repoURL": "a"}, {"repoURL": "b"}]});
        let changed = after(spec(), &["--source-position", "2", "--path", "p"]).expect("a change");
        assert_eq!(changed["sources"], json!([{"repoURL": "a"}, {"repoURL": "b", "path": "p"}]));
        for wrong in [&["--path", "p"][..], &["--path", "p", "--source-position", "3"]] {
            assert!(after(spec(), wrong).is_err_and(|error| error.to_string().contains("--source-position")));
        }
    }
}
