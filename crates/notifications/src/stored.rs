//! The Secret an outbox is kept in.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

use crate::outbox::{Outbox, Unreadable};
use crate::subject::About;

/// Label of every Secret that holds an outbox, with the value `true`.
pub const OUTBOX_LABEL: &str = "baton.dev/outbox";

/// Type of every Secret that holds an outbox.
pub const OUTBOX_TYPE: &str = "baton.dev/outbox";

const OUTBOX: &str = "outbox";
const ABOUT: &str = "about";

/// The name of the Secret for an object. It follows from the object's identity, so that an object of the same name that
/// comes after it has another.
pub fn outbox_name(about: &About) -> String {
    let digest = Sha256::digest(about.uid.as_bytes());
    let digits: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("baton-outbox-{digits}")
}

/// The Secret of an object's outbox. It has no owner: what is still to be said outlives what it is about.
pub fn outbox_secret(about: &About, outbox: &Outbox, namespace: &str) -> Secret {
    // Names and texts only, so this is always JSON.
    let identity = serde_json::to_vec(about).unwrap_or_default();
    let labels = BTreeMap::from([(OUTBOX_LABEL.to_owned(), "true".to_owned())]);
    Secret {
        metadata: ObjectMeta {
            name: Some(outbox_name(about)),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        type_: Some(OUTBOX_TYPE.to_owned()),
        data: Some(BTreeMap::from([
            (ABOUT.to_owned(), ByteString(identity)),
            (OUTBOX.to_owned(), ByteString(outbox.to_text().into_bytes())),
        ])),
        ..Secret::default()
    }
}

/// Reads such a Secret: what it is about, and what is to be sent.
///
/// # Errors
/// It is none, or cannot be read; then it is not taken for an empty one.
pub fn read_outbox_secret(secret: &Secret) -> Result<(About, Outbox), Unreadable> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes.0).into_owned())
    };
    let about = serde_json::from_str(&text(ABOUT)).map_err(Unreadable::new)?;
    Ok((about, Outbox::parse(&text(OUTBOX))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Kind;

    fn about(uid: &str) -> About {
        About { kind: Kind::Application, namespace: "argocd".into(), name: "web".into(), uid: uid.into() }
    }

    #[test]
    fn a_secret_holds_an_outbox_and_what_it_is_about() {
        let secret = outbox_secret(&about("u-1"), &Outbox::default(), "argocd");
        let (found, outbox) = read_outbox_secret(&secret).expect("it can be read");
        assert_eq!((found, outbox), (about("u-1"), Outbox::default()));
        assert_ne!(outbox_name(&about("u-1")), outbox_name(&about("u-2")));
        assert!(secret.metadata.owner_references.is_none());
    }

    #[test]
    fn what_cannot_be_read_is_no_empty_outbox() {
        let mut secret = outbox_secret(&about("u-1"), &Outbox::default(), "argocd");
        if let Some(data) = &mut secret.data {
            data.remove(OUTBOX);
        }
        assert!(read_outbox_secret(&secret).is_err());
        assert!(read_outbox_secret(&Secret::default()).is_err());
    }
}
