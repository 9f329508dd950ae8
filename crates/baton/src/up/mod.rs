//! `baton up`: a whole fleet on one machine.

mod demo;
pub(crate) mod fleet;
mod objects;
mod page;
mod password;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_apiserver::{Cluster, Credentials, Server, serve_with, write_private};
use baton_clusters::{ClusterAccess, Connect, OverNetwork};
use baton_controllers::{
    ApplicationController, ApplicationSettings, Controller, NotificationController, NotificationSettings,
    RunError,
};
use baton_source::Repositories;
use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::apiserver::Simulation;
use crate::controller::{Flags, USUAL_FUSE};
use crate::failure::Failure;
use crate::hooks::HookArguments;
use crate::lock::Lock;
use crate::machinery::Controllers;
use crate::repositories::MappedRepositories;
use crate::server::{Both, Office, Transport, Workshop};
use crate::shutdown::Shutdown;
use crate::{machinery, server, terminal};
use fleet::{Member, MemberArgument};

/// What to run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton up                                                three clusters: dev, staging, prod
  baton up --clusters 12 --ephemeral                      twelve, nothing kept
  baton up --cluster dev-us-west,environment=dev,tier=1 \\
           --cluster prod-eu,environment=production,tier=2  these two

Then, in another terminal:
  baton login 127.0.0.1:8080 --plaintext --username admin --password-stdin < .baton/admin-password
  kubectl --kubeconfig .baton/kubeconfig get secrets -n argocd
  kubectl --kubeconfig .baton/clusters/dev.kubeconfig get pods -A")]
pub(crate) struct Arguments {
    /// Where kubeconfigs, credentials and objects are kept.
    #[arg(long, default_value = ".baton", value_name = "DIR")]
    data_dir: PathBuf,
    /// Address of the API for people, the web pages, webhooks and the health check.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    listen: SocketAddr,
    /// Address of the control plane's Kubernetes API; members take the ports after it.
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDR")]
    api_listen: SocketAddr,
    /// How many member clusters to run.
    #[arg(long, default_value_t = 3, value_name = "N", conflicts_with = "cluster", value_parser = clap::value_parser!(u16).range(1..=512))]
    clusters: u16,
    /// A member cluster and its labels; may be repeated.
    #[arg(long, value_name = "NAME,LABEL=VALUE…")]
    cluster: Vec<MemberArgument>,
    #[command(flatten)]
    repositories: MappedRepositories,
    /// Run the programs that Secrets of other clusters name for their credentials (execProviderConfig).
    #[arg(long)]
    allow_cluster_exec: bool,
    /// Start without the sample workload in each member (namespace demo) and without the kind that an example needs.
    #[arg(long)]
    no_demo: bool,
    /// Keep nothing but the kubeconfigs.
    #[arg(long)]
    ephemeral: bool,
    #[command(flatten)]
    simulation: Simulation,
    #[command(flatten)]
    hooks: HookArguments,
}

/// The namespace Argo CD's objects live in.
const NAMESPACE: &str = "argocd";
const MANAGER: &str = "baton-up";
/// Variable that switches ordered rollouts.
const PROGRESSIVE_SYNCS: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS";

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let members = if arguments.cluster.is_empty() {
        fleet::counted(arguments.clusters.into())
    } else {
        fleet::named(arguments.cluster.clone()).map_err(Failure::usage)?
    };
    let mut shutdown = Shutdown::listen();
    let fleet = tokio::select! {
        started = start(&arguments, &members) => Some(started?),
        () = shutdown.asked() => None,
    };
    if let Some(fleet) = fleet {
        fleet.serve(&mut shutdown).await?;
    }
    terminal::remark(if arguments.ephemeral {
        "\nStopped. No objects were kept."
    } else {
        "\nStopped. The clusters' objects are kept; `baton up` goes on with them."
    });
    Ok(())
}

/// A fleet that has been started. Dropping it closes it.
struct Fleet {
    _lock: Lock,
    _control: Running,
    _members: Vec<Running>,
    web: TcpListener,
    router: axum::Router,
    /// The API for people.
    office: Office,
    controllers: Controllers,
    webhooks: BoxFuture<'static, ()>,
    /// What people are told once it can be used.
    told: String,
}

impl Fleet {
    /// Serves the fleet until it is told to stop, and its controllers have ended.
    async fn serve(self, shutdown: &mut Shutdown) -> Result<(), Failure> {
        // What is not named here lives until the end: the clusters outlast their controllers.
        let Fleet { web, router, office, controllers, webhooks, told, _lock, _control, _members } = self;
        let serving = async {
            // Whoever reads that it is up may ask at once.
            if !office.ready().await {
                terminal::remark("The API for people has not read everything yet; it goes on trying.");
            }
            terminal::tell(&told);
            server::serve(web, Transport::Plain, router, std::future::pending()).await;
        };
        tokio::select! {
            ended = controllers.run(shutdown.asked()) => ended.map_err(|error| Failure::failed(error.to_string())),
            () = office.run() => Err(Failure::failed("the watches of the API for people ended")),
            () = serving => Err(Failure::failed("the web server ended")),
            () = webhooks => Err(Failure::failed("the webhook workers ended")),
        }
    }
}

/// Starts the fleet.
async fn start(arguments: &Arguments, members: &[Member]) -> Result<Fleet, Failure> {
    // Taken first: a second `up` must not get far enough to touch the first one's files.
    let lock = Lock::take(&arguments.data_dir)?;
    let web = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| Failure::failed(format!("cannot listen on {}: {error}", arguments.listen)))?;
    let web_address = web
        .local_addr()
        .map_err(|error| Failure::failed(format!("cannot listen on {}: {error}", arguments.listen)))?;
    let home = Home { directory: &arguments.data_dir, ephemeral: arguments.ephemeral };
    home.make()?;

    terminal::remark(&format!("Starting the control plane and {} member clusters…", members.len()));
    let control = home.cluster("control-plane", arguments.api_listen, &arguments.simulation).await?;
    home.write("kubeconfig", &control.server.credentials().kubeconfig(control.server.addr(), "baton"))?;
    objects::install(&control.cluster).await?;
    if !arguments.no_demo {
        control.cluster.apply(MANAGER, &demo::placements()).await?;
    }
    objects::provide_notifications(&control.cluster).await?;
    password::ensure(&home, &control.cluster).await?;

    let mut running = Vec::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        let address = member_address(arguments.api_listen, index);
        let place = format!("clusters/{}", member.name);
        let up = home.cluster(&place, address, &arguments.simulation).await?;
        let kubeconfig = up.server.credentials().kubeconfig(up.server.addr(), &member.name);
        home.write(&format!("clusters/{}.kubeconfig", member.name), &kubeconfig)?;
        control.cluster.apply(MANAGER, &objects::cluster_secret(member, &up.server)).await?;
        if !arguments.no_demo {
            for object in objects::demo() {
                up.cluster.apply(MANAGER, &object).await?;
            }
        }
        running.push(up);
    }
    objects::forget_others(&control.cluster, members).await?;
    home.forget_others(members)?;

    let (controllers, office, webhooks, work) = works(arguments, &control.cluster, &running)?;
    Ok(Fleet {
        _lock: lock,
        told: announcement(&home, web_address, &control.server, members),
        _control: control,
        _members: running,
        web,
        router: page::router(office.routes(), webhooks),
        office,
        controllers,
        webhooks: work.boxed(),
    })
}

/// The controllers and the API for people, which speak to all clusters without a socket; the endpoint of webhooks and
/// their work.
fn works(
    arguments: &Arguments,
    control: &Cluster,
    members: &[Running],
) -> Result<(Controllers, Office, axum::Router, impl Future<Output = ()> + use<>), Failure> {
    let mut settings = Flags::default().settings(NAMESPACE)?;
    settings.deletion_fuse = USUAL_FUSE;
    settings.hooks = arguments.hooks.settings()?;
    // Nobody here comes from an Argo CD that has them off by default.
    settings.progressive_syncs |= std::env::var_os(PROGRESSIVE_SYNCS).is_none();
    // This is the owner's own machine: paths on it may be named by any Application.
    let cache = arguments.data_dir.join("repositories");
    let repositories = Repositories::new(arguments.repositories.settings(cache, true));
    let generators = machinery::generators(&settings, repositories.clone())?;
    let asked = machinery::generators(&settings, repositories.clone())?;
    let client = kube::Client::new(control.service(), NAMESPACE);
    let workers = settings.webhook_parallelism;
    let failed = |error: RunError| Failure::failed(error.to_string());
    let sets = Controller::new(client.clone(), settings, generators).map_err(failed)?;
    let settings = ApplicationSettings::from_environment(NAMESPACE, |name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let manifests = machinery::manifests(repositories, arguments.data_dir.join("work"));
    let connect = Arc::new(InProcess {
        allow_exec: arguments.allow_cluster_exec,
        members: members.iter().map(|member| (member.url(), member.cluster.clone())).collect(),
    });
    let workshop = Workshop::new(client.clone(), NAMESPACE, connect.clone(), asked, manifests.clone());
    // Cookies that only TLS carries would never come back here.
    let for_people = baton_server::Settings { secure: false, ..baton_server::Settings::new(NAMESPACE) };
    // Webhooks are taken in beside it, for the sets by their controller itself.
    let office = Office::new(client.clone(), connect.clone(), workshop, for_people);
    let both = Both { sets: sets.clone(), applications: office.bell(NAMESPACE) };
    let (webhooks, work) = machinery::webhook_endpoint(both, workers);
    let applications =
        ApplicationController::new(client.clone(), settings, manifests, connect).map_err(failed)?;
    let settings = NotificationSettings::from_environment(NAMESPACE, |name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let notifications = NotificationController::new(client, settings).map_err(failed)?;
    let controllers = Controllers {
        sets: Some(sets),
        applications: Some(applications),
        notifications: Some(notifications),
    };
    Ok((controllers, office, webhooks, work))
}

/// Reaches the fleet's own members without a socket, and others as their Secrets say.
struct InProcess {
    allow_exec: bool,
    members: BTreeMap<String, Cluster>,
}

impl Connect for InProcess {
    fn connect(&self, cluster: &ClusterAccess) -> Result<kube::Client, String> {
        match self.members.get(&*cluster.server) {
            Some(member) => Ok(kube::Client::new(member.service(), "default")),
            None => OverNetwork { allow_exec: self.allow_exec }.connect(cluster),
        }
    }
}

fn announcement(home: &Home<'_>, web: SocketAddr, control: &Server, members: &[Member]) -> String {
    let mut lines = vec![
        "Baton is up.".to_owned(),
        format!("  page           http://{web}   (user admin, password in {})", home.shown("admin-password")),
        format!(
            "                 baton login {web} --plaintext --username admin --password-stdin < {}",
            home.shown("admin-password")
        ),
        format!("  control plane  https://{}", control.addr()),
        format!(
            "                 kubectl --kubeconfig {} get applicationsets,applications -A",
            home.shown("kubeconfig")
        ),
        format!("  members        {}", home.shown("clusters/<name>.kubeconfig")),
    ];
    for member in members {
        let labels: Vec<String> = member.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        lines.push(format!("                 {:<16} {}", member.name, labels.join(" ")));
    }
    lines.push("Press Ctrl-C to stop.".to_owned());
    lines.join("\n")
}

/// Members listen on the ports after the control plane's, or on any free ones.
fn member_address(control: SocketAddr, index: usize) -> SocketAddr {
    let port = match control.port() {
        0 => 0,
        port => u16::try_from(usize::from(port) + 1 + index).unwrap_or(0),
    };
    SocketAddr::new(control.ip(), port)
}

/// A cluster and its port. Dropping it closes both.
struct Running {
    cluster: Cluster,
    server: Server,
}

impl Running {
    /// As its Secret names it.
    fn url(&self) -> String {
        format!("https://{}", self.server.addr())
    }
}

/// The data directory.
struct Home<'a> {
    directory: &'a Path,
    ephemeral: bool,
}

impl Home<'_> {
    fn make(&self) -> Result<(), Failure> {
        let clusters = self.directory.join("clusters");
        std::fs::create_dir_all(&clusters)
            .map_err(|error| Failure::failed(format!("cannot make {}: {error}", clusters.display())))
    }

    fn shown(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        write_private(&self.directory.join(name), text)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", self.shown(name))))
    }

    async fn cluster(&self, place: &str, address: SocketAddr, how: &Simulation) -> Result<Running, Failure> {
        let directory = self.directory.join(place);
        let (cluster, credentials) = if self.ephemeral {
            (Cluster::memory(how.options()), Credentials::generate()?)
        } else {
            let cluster = Cluster::open(&directory.join("store"), how.options()).await?;
            (cluster, Credentials::load_or_generate(&directory.join("pki"))?)
        };
        let server = serve_with(cluster.clone(), address, credentials).await?;
        Ok(Running { cluster, server })
    }

    /// Takes out the kubeconfigs of members that this fleet no longer has: they lead nowhere. Their objects stay,
    /// for a fleet that has them again.
    fn forget_others(&self, members: &[Member]) -> Result<(), Failure> {
        let clusters = self.directory.join("clusters");
        let cannot = |error| Failure::failed(format!("cannot clean up {}: {error}", clusters.display()));
        for entry in std::fs::read_dir(&clusters).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let kept = |member: &Member| path.file_stem().is_some_and(|stem| stem == member.name.as_str());
            if path.extension().is_some_and(|extension| extension == "kubeconfig")
                && !members.iter().any(kept)
            {
                std::fs::remove_file(&path).map_err(cannot)?;
            }
        }
        Ok(())
    }
}
