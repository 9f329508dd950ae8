//! Helm, by the installed `helm template`.

mod archive;
mod arguments;
mod dependencies;
mod repository;
mod values;

pub(crate) use repository::{ChartRepositories, Wanted};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use baton_api::source::HelmSource;
use baton_source::Repositories;
use serde_json::Value;

use crate::checkout::Location;
use crate::documents;
use crate::environment::Environment;
use crate::error::Fault;
use crate::ground::Ground;
use crate::request::Request;
use crate::settings::Settings;
use crate::tools::{self, Job, Tools};
use crate::workshop::Workshop;

const REMEDY: &str =
    "Install helm (https://helm.sh) where Baton runs, or render the chart into the repository";

/// How helm says that a chart needs others that are not there.
const MISSING_DEPENDENCIES: &str = "but missing in charts";

/// A chart, and what its rendering depends on.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    pub(crate) ground: Ground,
    /// Where in the ground the chart is.
    pub(crate) directory: &'a str,
    pub(crate) options: &'a HelmSource,
    pub(crate) environment: &'a Environment,
    pub(crate) request: &'a Request<'a>,
    /// Repositories that value files may be taken from, by `ref`.
    pub(crate) references: &'a BTreeMap<&'a str, Location>,
    pub(crate) repositories: &'a Repositories,
}

/// Renders a chart.
pub(crate) async fn render(
    tools: &Tools,
    settings: &Settings,
    chart: &Chart<'_>,
) -> Result<Vec<Value>, Fault> {
    if !matches!(chart.options.version.as_str(), "" | "v3" | "v4") {
        return Err(Fault::Options(format!("helm version '{}' is not supported", chart.options.version)));
    }
    let program = tools::find(&settings.helm).ok_or_else(|| tools::missing(&settings.helm, REMEDY))?;
    let mut workshop = Workshop::open(settings).await?;
    let dependencies = dependencies::of(&chart.ground, chart.directory).await?;
    chart.ground.write(&mut workshop, chart.directory).await?;
    for directory in &dependencies.directories {
        chart.ground.write(&mut workshop, directory).await?;
    }
    let files = values::gathered(&workshop, chart).await?;
    let arguments = arguments::of(chart.options, chart.environment, chart.request, &files)?;
    let run = Run {
        tools,
        workshop: &workshop,
        program: &program,
        directory: workshop.repository(chart.directory),
    };
    let printed = match run.helm(arguments.clone(), false, "template").await {
        Err(Fault::Tool { complaint, .. }) if complaint.contains(MISSING_DEPENDENCIES) => {
            let network = dependencies.permitted(settings)?;
            let secrets = dependencies.credentials(chart.request, chart.options.pass_credentials)?;
            for (name, content) in secrets {
                workshop.put(name, content).await?;
            }
            run.helm(tools::words([&"dependency", &"build"]), network, "dependency build").await?;
            run.helm(arguments, false, "template").await?
        }
        other => other?,
    };
    documents::printed(printed, "helm template".to_owned()).await
}

/// Runs of helm on one chart.
struct Run<'a> {
    tools: &'a Tools,
    workshop: &'a Workshop,
    program: &'a Path,
    directory: PathBuf,
}

impl Run<'_> {
    async fn helm(&self, arguments: Vec<OsString>, network: bool, shown: &str) -> Result<String, Fault> {
        let path = |name: &str| self.workshop.path().join(name).into_os_string();
        let environment = [
            ("HELM_CONFIG_HOME", path("home/config")),
            ("HELM_CACHE_HOME", path("home/cache")),
            ("HELM_DATA_HOME", path("home/data")),
            ("HELM_REPOSITORY_CONFIG", path(dependencies::REPOSITORIES)),
            ("HELM_REGISTRY_CONFIG", path(dependencies::REGISTRIES)),
            ("HELM_PLUGINS", path("home/no-plugins")),
            ("HELM_NO_PLUGINS", "1".into()),
        ];
        let job = Job {
            program: self.program,
            arguments,
            directory: self.directory.clone(),
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
            network,
            shown: format!("helm {shown}"),
        };
        self.tools.run(self.workshop, job).await
    }
}
