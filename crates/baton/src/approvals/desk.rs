//! Where decisions are made: at a server, or by the same code in this process with the rights of a kubeconfig.

use std::sync::Arc;

use baton_clusters::OverNetwork;
use baton_server::handlers::approvals::{Item, Verdict};
use baton_server::{Ask, Caller, Context, Decision, Gate, Parts, Proof, Server, Settings};
use clap::Args;
use serde_json::{Value, json};

use crate::app::actor;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::objects::text;
use crate::session::{Remote, Session};

/// Which server, or which control plane without one.
#[derive(Debug, Clone, Args)]
pub(super) struct Place {
    /// Use no server: the kubeconfig's own rights count, and the Kubernetes API judges them.
    #[arg(long)]
    core: bool,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    session: Session,
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// It may happen.
    Approve,
    /// It may not.
    Reject,
}

/// Where it is decided.
pub(super) enum Desk {
    Server(Remote),
    Core(Box<Core>),
}

/// The server's own code without a server.
pub(super) struct Core {
    server: Server,
    context: Context,
}

/// Leaves every decision to the Kubernetes API, which is asked with the caller's own credentials.
struct LeftToTheApi;

// === impl Desk ===

impl Desk {
    /// Does something at the place that is meant.
    pub(super) async fn at<T>(
        place: &Place,
        work: impl AsyncFnOnce(&Desk) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if !place.core && place.connection.kubeconfig.is_none() {
            return work(&Desk::Server(place.session.remote()?)).await;
        }
        let core = Core::open(&place.connection).await?;
        let follower = core.server.clone();
        let desk = Desk::Core(Box::new(core));
        tokio::select! {
            () = follower.run() => Err(Failure::api("the watches of the control plane ended")),
            done = work(&desk) => done,
        }
    }

    /// What waits, as it is now.
    pub(super) async fn waiting(&self) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => remote.get("api/v1/approvals").await?,
            Desk::Core(core) => core.server.approvals(&core.context).await.map_err(refused)?,
        };
        Ok(items(answer))
    }

    /// Decides exactly what was seen; what came of each.
    pub(super) async fn decide(
        &self,
        verb: Verb,
        seen: &[Value],
        reason: &str,
    ) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => {
                let of = |item: &Value| json!({"id": item["id"], "setHash": item["setHash"]});
                let verdict = json!({"items": seen.iter().map(of).collect::<Vec<_>>(), "reason": reason});
                let path = match verb {
                    Verb::Approve => "api/v1/approvals/approve",
                    Verb::Reject => "api/v1/approvals/reject",
                };
                remote.post(path, &verdict).await?
            }
            Desk::Core(core) => {
                let of = |item: &Value| Item { id: text(item, "/id"), set_hash: text(item, "/setHash") };
                let verdict = Verdict { items: seen.iter().map(of).collect(), reason: reason.to_owned() };
                match verb {
                    Verb::Approve => core.server.approve(&core.context, &verdict).await,
                    Verb::Reject => core.server.reject(&core.context, &verdict).await,
                }
                .map_err(refused)?
            }
        };
        Ok(items(answer))
    }
}

// === impl Core ===

impl Core {
    async fn open(connection: &Connection) -> Result<Core, Failure> {
        let parts = Parts {
            client: connection.client().await?,
            // A person runs this with their own rights, on their own machine, so programs their Secrets name are theirs.
            connect: Arc::new(OverNetwork { allow_exec: true }),
            gate: Arc::new(LeftToTheApi),
            sources: None,
        };
        // Nobody signs in here, so no password is ever compared.
        let settings = Settings { password_cost: 4, ..Settings::new(&connection.namespace) };
        let server = Server::new(parts, settings);
        let mut context = server.open_context(None, "cli").await.map_err(refused)?;
        context.caller = Caller { proof: Proof::Kubernetes, username: actor(), ..Caller::anonymous() };
        Ok(Core { server, context })
    }
}

impl Gate for LeftToTheApi {
    fn decide(&self, _: &Caller, _: &Ask<'_>) -> Decision {
        Decision::allow("the Kubernetes API judges what a kubeconfig may")
    }
}

fn items(mut answer: Value) -> Vec<Value> {
    match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn refused(error: baton_server::Error) -> Failure {
    Failure::api(error.message)
}
