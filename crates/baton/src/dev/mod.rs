//! `baton dev`: tools for whoever writes or tries out controllers.

mod lag_proxy;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Which tool.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:
  baton dev lag-proxy --kubeconfig .baton/kubeconfig --write-kubeconfig lag.kubeconfig"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Stand before a Kubernetes API and make what clients see late, cut and old.
    LagProxy(lag_proxy::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.tool {
        Tool::LagProxy(arguments) => lag_proxy::run(arguments).await,
    }
}
