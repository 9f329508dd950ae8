//! `baton dev`: tools for whoever writes or tries out controllers.

mod hook_receiver;
mod lag_proxy;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Which tool.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  baton dev hook-receiver --host hooks.slack.com
  baton dev lag-proxy --kubeconfig .baton/kubeconfig --write-kubeconfig lag.kubeconfig"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Stand for the hosts that hooks of phased deployments call, and tell of each call.
    HookReceiver(hook_receiver::Arguments),
    /// Stand before a Kubernetes API and make what clients see late, cut and old.
    LagProxy(lag_proxy::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.tool {
        Tool::HookReceiver(arguments) => hook_receiver::run(arguments).await,
        Tool::LagProxy(arguments) => lag_proxy::run(arguments).await,
    }
}
