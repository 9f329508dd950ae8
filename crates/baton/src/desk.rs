//! What a server does for people, done by a server or by the same code in this process with the rights of a kubeconfig.

use std::sync::Arc;

use baton_clusters::OverNetwork;
use baton_server::{Ask, Caller, Code, Context, Decision, Error, Gate, Parts, Proof, Server, Settings};
use kube::Client;
use serde_json::Value;

use crate::app::actor;
use crate::failure::Failure;
use crate::place::{Place, Reach};
use crate::session::Remote;

/// Where it is done.
pub(crate) enum Desk {
    /// At a server.
    Server(Remote),
    /// Here.
    Core(Box<Core>),
}

/// The server's own code without a server.
pub(crate) struct Core {
    pub(crate) server: Server,
    pub(crate) context: Context,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// Leaves every decision to the Kubernetes API, which is asked with the caller's own credentials.
struct LeftToTheApi;

// === impl Desk ===

impl Desk {
    /// Does something at the place that is meant.
    pub(crate) async fn at<T>(
        place: &Place,
        work: impl AsyncFnOnce(&Desk) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = match place.reach().await? {
            Reach::Server(remote) => return work(&Desk::Server(remote)).await,
            Reach::Cluster(client) => client,
        };
        let core = Core::open(client, place.namespace()).await?;
        let follower = core.server.clone();
        let desk = Desk::Core(Box::new(core));
        tokio::select! {
            () = follower.run() => Err(Failure::api("the watches of the control plane ended")),
            done = work(&desk) => done,
        }
    }
}

// === impl Core ===

impl Core {
    async fn open(client: Client, namespace: &str) -> Result<Core, Failure> {
        let parts = Parts {
            client: client.clone(),
            // A person runs this with their own rights, on their own machine, so programs their Secrets name are theirs.
            connect: Arc::new(OverNetwork { allow_exec: true }),
            gate: Arc::new(LeftToTheApi),
            sources: None,
        };
        // Nobody signs in here, so no password is ever compared.
        let settings = Settings { password_cost: 4, ..Settings::new(namespace) };
        let server = Server::new(parts, settings);
        let mut context = server.open_context(None, "cli").await.map_err(refused)?;
        context.caller = Caller { proof: Proof::Kubernetes, username: actor(), ..Caller::anonymous() };
        Ok(Core { server, context, client, namespace: namespace.to_owned() })
    }
}

impl Gate for LeftToTheApi {
    fn decide(&self, _: &Caller, _: &Ask<'_>) -> Decision {
        Decision::allow("the Kubernetes API judges what a kubeconfig may")
    }
}

/// What the server's code says when it does not do what it is asked.
pub(crate) fn refused(error: Error) -> Failure {
    Failure::api(error.message)
}

/// What was found; none where the server's code says that there is nothing.
pub(crate) fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error == Error::hidden() || error.code == Code::NotFound => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// The items of a list, as Argo CD's API writes one: `null` is none.
pub(crate) fn items(mut answer: Value) -> Vec<Value> {
    match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}
