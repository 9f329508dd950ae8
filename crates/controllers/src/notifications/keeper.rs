//! Where passes keep what they know: the outbox in a Secret of its own, what was told in the object's annotation.

use baton_api::names::API_VERSION;
use baton_api::names::application::NOTIFIED;
use baton_notifications::{
    About, Keeper, Kind, NotStored, Notified, Outbox, State, Unreadable, outbox_name, outbox_secret,
    read_outbox_secret,
};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::objects::{ApiError, Objects, Seen};

/// Name under which the API notes who wrote something.
const FIELD_MANAGER: &str = "argocd-notifications-controller";

/// How often a write of the annotation is tried where somebody else writes to the object at the same time.
const TRIES: usize = 5;

/// What is stored about one object, as it was read and as it was written since.
pub(super) struct Shelf<'a> {
    about: &'a About,
    namespace: &'a str,
    secrets: Objects,
    objects: Objects,
    /// Identity and version of the Secret; none if there is none.
    secret: Mutex<Option<(String, String)>>,
    /// The annotation; none if there is no object to have one.
    annotation: Mutex<Option<Notified>>,
}

/// What the API had when it was read.
pub(super) struct Read {
    /// The object, if it is still the one.
    pub(super) object: Option<Value>,
    pub(super) state: State,
}

/// Why what is stored is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the Secret {0} is none: {1}")]
    NoSecret(String, serde_json::Error),
    #[error("the Secret {0}: {1}")]
    Unreadable(String, Unreadable),
    #[error("the Secret {0} is an outbox of another object")]
    Foreign(String),
}

// === impl Shelf ===

impl<'a> Shelf<'a> {
    /// Reads what is stored about an object. Outboxes are in `namespace`.
    ///
    /// The outbox is read first: what is taken out of it has been noted with the object before, so that nothing is
    /// between the two.
    pub(super) async fn read(
        client: &Client,
        namespace: &'a str,
        about: &'a About,
    ) -> Result<(Shelf<'a>, Read), ReadError> {
        let secrets =
            Objects::new(client.clone(), "v1", "secrets", namespace, false).managed_by(FIELD_MANAGER);
        let plural = match about.kind {
            Kind::Application => "applications",
            Kind::ApplicationSet => "applicationsets",
        };
        let objects = Objects::new(client.clone(), API_VERSION, plural, &about.namespace, false)
            .managed_by(FIELD_MANAGER);
        let name = outbox_name(about);
        let stored = secrets.get(&name).await?;
        let outbox = match &stored {
            None => Outbox::default(),
            Some(secret) => {
                let secret =
                    Secret::deserialize(secret).map_err(|error| ReadError::NoSecret(name.clone(), error))?;
                let (of, outbox) = read_outbox_secret(&secret)
                    .map_err(|error| ReadError::Unreadable(name.clone(), error))?;
                if of != *about {
                    return Err(ReadError::Foreign(name));
                }
                outbox
            }
        };
        let object = objects.get(&about.name).await?.filter(|object| Seen::of(object).uid == about.uid);
        let notified = object.as_ref().map(Notified::of);
        let shelf = Shelf {
            about,
            namespace,
            secrets,
            objects,
            secret: Mutex::new(stored.as_ref().map(identity)),
            annotation: Mutex::new(notified.clone()),
        };
        Ok((shelf, Read { object, state: State { notified: notified.unwrap_or_default(), outbox } }))
    }

    async fn outbox(&self, outbox: &Outbox) -> Result<(), ApiError> {
        let known = self.secret.lock().clone();
        let name = outbox_name(self.about);
        let written = match &known {
            None if outbox.is_empty() => None,
            None => Some(self.secrets.create(&self.secret_of(outbox)?).await?),
            Some((uid, version)) if outbox.is_empty() => {
                self.secrets.delete(&name, Seen { uid, version: Some(version) }).await?;
                None
            }
            Some((uid, version)) => {
                let patch = json!({"data": self.secret_of(outbox)?["data"]});
                Some(self.secrets.patch(&name, patch, Seen { uid, version: Some(version) }).await?)
            }
        };
        *self.secret.lock() = written.as_ref().map(identity);
        Ok(())
    }

    fn secret_of(&self, outbox: &Outbox) -> Result<Value, ApiError> {
        let secret = outbox_secret(self.about, outbox, self.namespace);
        serde_json::to_value(secret).map_err(|error| ApiError::NoAnswer(error.to_string()))
    }

    /// Others write to the object all the time, so its version is that of just before; what must not have changed is
    /// the annotation.
    async fn annotate(&self, notified: &Notified) -> Result<(), NotStored> {
        let Some(known) = self.annotation.lock().clone() else { return Ok(()) };
        let name = self.about.name.as_str();
        for _ in 0..TRIES {
            let object = self.objects.get(name).await.map_err(not_stored)?;
            let Some(object) = object.filter(|object| Seen::of(object).uid == self.about.uid) else {
                *self.annotation.lock() = None;
                return Ok(());
            };
            if Notified::of(&object) != known {
                return Err(NotStored(format!("the annotation {NOTIFIED} was changed by somebody else")));
            }
            let patch = json!({"metadata": {"annotations": {NOTIFIED: notified.to_annotation()}}});
            match self.objects.patch(name, patch, Seen::of(&object)).await {
                Ok(_) => {
                    *self.annotation.lock() = Some(notified.clone());
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(not_stored(error)),
            }
        }
        Err(NotStored("others kept changing the object meanwhile".to_owned()))
    }
}

impl Keeper for Shelf<'_> {
    fn store_outbox<'a>(&'a self, outbox: &'a Outbox) -> BoxFuture<'a, Result<(), NotStored>> {
        Box::pin(async move { self.outbox(outbox).await.map_err(not_stored) })
    }

    fn store_notified<'a>(&'a self, notified: &'a Notified) -> BoxFuture<'a, Result<(), NotStored>> {
        Box::pin(self.annotate(notified))
    }
}

fn not_stored(error: ApiError) -> NotStored {
    NotStored(error.to_string())
}

fn identity(object: &Value) -> (String, String) {
    let seen = Seen::of(object);
    (seen.uid.to_owned(), seen.version.unwrap_or_default().to_owned())
}
