//! `add`: the cluster of a kubeconfig's context is registered.

use std::path::PathBuf;

use baton_api::names::IN_CLUSTER_SERVER;
use clap::Args;
use serde_json::{Value, json};

use super::account;
use super::desk::{Registered, marked};
use super::kubeconfig::Context;
use crate::connection::Connection;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::objects::{agreed, can_ask};
use crate::place::Place;
use crate::print;
use crate::session::Session;

/// Where it is registered. --namespace is one of the cluster here, as for Argo CD's command line.
#[derive(Debug, Args)]
pub(super) struct Ground {
    /// Use no server: the Kubernetes API judges what a kubeconfig may. --kubeconfig and --context mean it too.
    #[arg(long)]
    core: bool,
    /// Kubeconfig of the control plane.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the control plane's kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of Argo CD's objects [default: argocd].
    #[arg(long, value_name = "NAMESPACE")]
    control_namespace: Option<String>,
    #[command(flatten)]
    session: Session,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --own-credentials, --service-account and --exec-command, an account argocd-manager with every right is made in the cluster, in its \
namespace kube-system, and registered with a token that does not end; with --namespace its rights are for these namespaces alone. --kubeconfig names the control \
plane's kubeconfig, as everywhere; the one that has CONTEXT is $KUBECONFIG, ~/.kube/config, or --cluster-kubeconfig.

Exit codes: 0 registered; 1 usage, or it is registered otherwise; 2 not confirmed; 3 the cluster gives no token; 20 an API refused or cannot be \
reached.

Examples:
  baton cluster add prod-eu
  baton cluster add prod-eu --name eu --label env=prod --yes
  baton cluster add kind-dev --own-credentials --cluster-kubeconfig dev.kubeconfig --core
  baton cluster add prod-eu --namespace shop --namespace blog"
)]
pub(super) struct Add {
    /// The context.
    #[arg(value_name = "CONTEXT")]
    of: String,
    /// Kubeconfig that has it [default: $KUBECONFIG, ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: Option<PathBuf>,
    /// Name of the cluster [default: the context].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// URL that controllers reach it by [default: that of the context].
    #[arg(long, value_name = "URL", conflicts_with = "in_cluster")]
    cluster_endpoint: Option<String>,
    /// It is the control plane's own cluster.
    #[arg(long)]
    in_cluster: bool,
    /// The only namespaces that are looked at; may be repeated.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Look at what belongs to no namespace although --namespace is given.
    #[arg(long, requires = "namespaces")]
    cluster_resources: bool,
    /// Project that the cluster belongs to.
    #[arg(long, value_name = "NAME", default_value = "")]
    project: String,
    /// A label of it; may be repeated.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// An annotation of it; may be repeated.
    #[arg(long = "annotation", value_name = "NAME=VALUE")]
    annotations: Vec<String>,
    /// Shard of the controllers that is to look after it.
    #[arg(long, value_name = "NUMBER")]
    shard: Option<u32>,
    /// Register the credentials of the context itself.
    #[arg(long, conflicts_with_all = ["service_account", "exec_command"])]
    own_credentials: bool,
    /// Register an account that is there already.
    #[arg(long, value_name = "NAME", conflicts_with = "exec_command")]
    service_account: Option<String>,
    /// Namespace of the account in the cluster.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    system_namespace: String,
    /// A program that gives controllers credentials.
    #[arg(long, value_name = "PROGRAM")]
    exec_command: Option<String>,
    /// An argument of the program; may be repeated.
    #[arg(long, value_name = "TEXT", requires = "exec_command", allow_hyphen_values = true)]
    exec_command_args: Vec<String>,
    /// A variable of the program; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "exec_command")]
    exec_command_env: Vec<String>,
    /// Version of the program's protocol.
    #[arg(long, value_name = "VERSION", default_value = "client.authentication.k8s.io/v1beta1")]
    exec_command_api_version: String,
    /// What to tell people who lack the program.
    #[arg(long, value_name = "TEXT", default_value = "")]
    exec_command_install_hint: String,
    /// Proxy on the way to it [default: that of the context].
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,
    /// Have its answers uncompressed.
    #[arg(long)]
    disable_compression: bool,
    /// Change a cluster that is registered already.
    #[arg(long)]
    upsert: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    ground: Ground,
}

// === impl Ground ===

impl Ground {
    pub(super) fn place(&self) -> Place {
        Place {
            core: self.core,
            connection: Connection {
                kubeconfig: self.kubeconfig.clone(),
                context: self.context.clone(),
                namespace: self.control_namespace.clone(),
            },
            session: self.session.clone(),
        }
    }
}

// === impl Add ===

impl Add {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let context = Context::find(self.cluster_kubeconfig.as_deref(), &self.of)?;
        let server = match (self.in_cluster, &self.cluster_endpoint) {
            (true, _) => IN_CLUSTER_SERVER.to_owned(),
            (false, Some(url)) => url.trim_end_matches('/').to_owned(),
            (false, None) => context.server()?,
        };
        let name = self.name.clone().unwrap_or_else(|| self.of.clone());
        let mut cluster = json!({
            "server": server, "name": name, "namespaces": self.namespaces, "project": self.project,
            "clusterResources": self.cluster_resources, "labels": marked(&Value::Null, &self.labels)?,
            "annotations": marked(&Value::Null, &self.annotations)?,
        });
        if let Some(shard) = self.shard {
            cluster["shard"] = shard.into();
        }
        let mut config = context.transport()?;
        if let Some(proxy) = &self.proxy_url {
            config["proxyUrl"] = proxy.as_str().into();
        }
        if self.disable_compression {
            config["disableCompression"] = true.into();
        }
        self.add_credentials(&context, &mut config).await?;
        cluster["config"] = config;
        let place = self.ground.place();
        let became = Desk::at(&place, async |desk| desk.add_cluster(&cluster, self.upsert).await).await?;
        print::out(&match became {
            Registered::Added => format!("cluster/{name} added\n"),
            Registered::Changed => format!("cluster/{name} updated\n"),
            Registered::Unchanged => format!("cluster/{name} unchanged\n"),
        })
    }

    async fn add_credentials(&self, context: &Context, config: &mut Value) -> Result<(), Failure> {
        if self.own_credentials {
            return context.own_credentials(config);
        }
        if let Some(command) = &self.exec_command {
            let mut env = serde_json::Map::new();
            for variable in &self.exec_command_env {
                let (name, value) = variable.split_once('=').ok_or_else(|| {
                    Failure::usage(format!("--exec-command-env {variable:?}: write it as NAME=VALUE"))
                })?;
                env.insert(name.to_owned(), value.into());
            }
            config["execProviderConfig"] = json!({
                "command": command, "args": self.exec_command_args, "env": env,
                "apiVersion": self.exec_command_api_version, "installHint": self.exec_command_install_hint,
            });
            return Ok(());
        }
        let client = context.client().await?;
        let account = match &self.service_account {
            Some(account) => account.as_str(),
            None => {
                self.ask_to_make()?;
                account::make(&client, &self.system_namespace, &self.namespaces).await?;
                account::ACCOUNT
            }
        };
        config["bearerToken"] = account::token(&client, &self.system_namespace, account).await?.into();
        Ok(())
    }

    /// # Errors
    /// The person does not want an account to be made.
    fn ask_to_make(&self) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let rights = match self.namespaces.is_empty() {
            true => "every right in it".to_owned(),
            false => format!("every right in its namespaces {}", self.namespaces.join(", ")),
        };
        let about = format!("An account {} with {rights} is made in cluster {}.", account::ACCOUNT, self.of);
        if can_ask().is_err() {
            return Err(Failure::usage(format!("{about} There is no terminal to ask on: add --yes")));
        }
        match agreed(&[about], "Go on?")? {
            true => Ok(()),
            false => Err(Failure::waiting("nothing was made or registered")),
        }
    }
}
