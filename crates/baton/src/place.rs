//! Where a command is carried out: at a server, or at the Kubernetes API with the rights of a kubeconfig.

use clap::Args;
use kube::Client;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::session::{Presence, Remote, Session};

/// Which server, or which control plane without one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Place {
    /// Use no server: the Kubernetes API judges what a kubeconfig may. --kubeconfig and --context mean it too, and so
    /// does a machine where nobody has signed in.
    #[arg(long)]
    pub(crate) core: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) session: Session,
}

/// Who is asked.
pub(crate) enum Reach {
    /// A server, which knows who asks and what they may.
    Server(Remote),
    /// The Kubernetes API.
    Cluster(Client),
}

// === impl Place ===

impl Place {
    /// Finds out who is to be asked. Nothing is asked yet, but for the renewal of a session.
    ///
    /// # Errors
    /// There is nobody to ask, or what says so cannot be read.
    pub(crate) async fn reach(&self) -> Result<Reach, Failure> {
        match self.presence()? {
            Presence::Server => Ok(Reach::Server(self.session.remote().await?)),
            Presence::Core => Ok(Reach::Cluster(self.connection.client().await?)),
            Presence::Nobody => self.connection.client().await.map(Reach::Cluster).map_err(|failure| {
                Failure::usage(format!("{failure}; or sign in at a server with `baton login HOST`"))
            }),
        }
    }

    /// The namespace of Argo CD's objects.
    pub(crate) fn namespace(&self) -> &str {
        self.connection.namespace()
    }

    /// The namespace that somebody has named; empty leaves it to the server.
    pub(crate) fn named_namespace(&self) -> &str {
        self.connection.namespace.as_deref().unwrap_or_default()
    }

    fn presence(&self) -> Result<Presence, Failure> {
        if self.core || self.connection.kubeconfig.is_some() || self.connection.context.is_some() {
            return Ok(Presence::Core);
        }
        self.session.presence()
    }
}
