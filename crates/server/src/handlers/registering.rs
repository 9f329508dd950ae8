//! Secrets in which clusters, repositories and credentials are registered: found, made, changed and given up.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_api::names::secret::{MANAGED_BY, MANAGED_BY_ARGOCD, TYPE_LABEL};
use serde_json::{Map, Value, json};

use crate::audit::{Affected, Deed};
use crate::configuration::bytes;
use crate::error::Error;
use crate::objects::{SECRETS, encoded, text};
use crate::registered::Texts;
use crate::server::{Context, Server};

/// Something that is registered, as its Secret holds it.
pub(crate) struct Registered {
    pub(crate) raw: Value,
    pub(crate) texts: Texts,
}

/// What is written on a Secret beside what it holds; a text that is none is taken away.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) labels: BTreeMap<String, Option<String>>,
    pub(crate) annotations: BTreeMap<String, Option<String>>,
}

impl Server {
    /// What is registered of a kind.
    pub(crate) async fn registered(&self, kind: &str) -> Result<Vec<Registered>, Error> {
        let query = format!("labelSelector={}", encoded(&format!("{TYPE_LABEL}={kind}")));
        let secrets = self.objects(SECRETS, &self.0.settings.namespace).list(&query).await?;
        Ok(secrets.into_iter().map(Registered::new).collect())
    }

    /// Makes a Secret of a kind.
    pub(crate) async fn register(
        &self,
        kind: &str,
        name: &str,
        texts: &Texts,
        marks: Marks,
    ) -> Result<Value, Error> {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": name, "namespace": self.0.settings.namespace,
                "labels": marks.labels, "annotations": marks.annotations,
            },
            "data": texts.iter().map(|(key, text)| (key.clone(), coded(text))).collect::<Map<_, _>>(),
        });
        object["metadata"]["labels"][TYPE_LABEL] = kind.into();
        object["metadata"]["annotations"][MANAGED_BY] = MANAGED_BY_ARGOCD.into();
        self.objects(SECRETS, &self.0.settings.namespace).create(&object, false).await
    }

    /// Makes the Secret that was read hold other texts, and bear other marks.
    pub(crate) async fn rewrite_secret(
        &self,
        found: &Registered,
        texts: &Texts,
        marks: Marks,
    ) -> Result<Value, Error> {
        let mut data = Map::new();
        for (key, text) in texts.iter().filter(|(key, text)| found.texts.get(*key) != Some(*text)) {
            data.insert(key.clone(), coded(text));
        }
        for key in found.texts.keys().filter(|key| !texts.contains_key(*key)) {
            data.insert(key.clone(), Value::Null);
        }
        let Marks { mut labels, mut annotations } = marks;
        // What a Secret is and who keeps it is nobody's to say in a request.
        labels.remove(TYPE_LABEL);
        annotations.remove(MANAGED_BY);
        let patch = json!({
            "metadata": {
                "resourceVersion": text(&found.raw, "/metadata/resourceVersion"),
                "uid": text(&found.raw, "/metadata/uid"), "labels": labels, "annotations": annotations,
            },
            "data": data,
        });
        let secrets = self.objects(SECRETS, &self.0.settings.namespace);
        secrets.merge(text(&found.raw, "/metadata/name"), &patch).await
    }

    /// Gives up a Secret: one that was made here goes, one that a person made is only no longer registered.
    pub(crate) async fn unregister(&self, found: &Registered) -> Result<(), Error> {
        let secrets = self.objects(SECRETS, &self.0.settings.namespace);
        let (name, uid) = (text(&found.raw, "/metadata/name"), text(&found.raw, "/metadata/uid"));
        if found.raw["metadata"]["annotations"][MANAGED_BY] == MANAGED_BY_ARGOCD {
            return secrets.delete(name, "Background", uid).await;
        }
        let patch = json!({"metadata": {"uid": uid, "labels": {TYPE_LABEL: null}}});
        secrets.merge(name, &patch).await.map(drop)
    }

    /// Lets the caller go on only if it may do this to something that is there. Who may not see it cannot tell.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn permit(
        &self,
        context: &Context,
        resource: &str,
        action: &str,
        object: &str,
    ) -> Result<(), Error> {
        match self.may(context, resource, "get", object) || self.may(context, resource, action, object) {
            true => self.demand(context, resource, action, object),
            false => Err(Error::hidden()),
        }
    }

    /// What somebody is told of something that is not there: that, where they may do it to anything of that name.
    pub(crate) fn absent(&self, context: &Context, resource: &str, action: &str, name: &str) -> Error {
        match self.may(context, resource, action, name) {
            true => Error::not_found(format!("there is no {name} among the {resource}")),
            false => Error::hidden(),
        }
    }

    /// The record of something done to what is registered, which whoever may see it is told of.
    pub(crate) fn registry_deed(
        &self,
        verb: &'static str,
        secret: &str,
        right: (&'static str, String),
        detail: &str,
    ) -> Deed {
        let reason = match verb.split(' ').next() {
            Some("create") => "ResourceCreated",
            Some("delete") => "ResourceDeleted",
            _ => "ResourceUpdated",
        };
        let namespace = self.0.settings.namespace.clone();
        let object = Affected { kind: "Secret", namespace, name: secret.to_owned(), ..Affected::default() };
        let detail = crate::masking::without_credentials(detail);
        Deed { verb, reason, object, detail, right: Some(right), ..Deed::default() }
    }
}

// === impl Registered ===

impl Registered {
    fn new(raw: Value) -> Registered {
        let texts = bytes(Some(&raw)).into_iter();
        let texts = texts.map(|(key, bytes)| (key, String::from_utf8_lossy(&bytes).into_owned())).collect();
        Registered { raw, texts }
    }

    /// A text, without what surrounds it; empty where there is none.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.texts.get(key).map_or("", |text| text.trim())
    }

    pub(crate) fn name(&self) -> &str {
        text(&self.raw, "/metadata/name")
    }
}

// === impl Marks ===

impl Marks {
    /// Those that are to be there.
    pub(crate) fn of(
        labels: Option<&BTreeMap<String, String>>,
        annotations: Option<&BTreeMap<String, String>>,
    ) -> Marks {
        let some = |all: Option<&BTreeMap<String, String>>| {
            let all = all.into_iter().flatten();
            all.map(|(key, text)| (key.clone(), Some(text.clone()))).collect()
        };
        Marks { labels: some(labels), annotations: some(annotations) }
    }

    /// Takes away what a Secret bears besides.
    pub(crate) fn instead_of(mut self, raw: &Value, labels: bool, annotations: bool) -> Marks {
        let known = |field: &str| {
            let all = raw["metadata"][field].as_object().into_iter().flatten();
            all.map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        for key in known("labels").into_iter().filter(|_| labels) {
            self.labels.entry(key).or_insert(None);
        }
        for key in known("annotations").into_iter().filter(|_| annotations) {
            self.annotations.entry(key).or_insert(None);
        }
        self
    }
}

fn coded(text: &str) -> Value {
    STANDARD.encode(text).into()
}
