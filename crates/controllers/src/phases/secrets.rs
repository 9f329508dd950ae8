//! The Secrets that a call may use: those it declares, beside its set, that are labelled for it.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_api::names::secret::HOOKS_LABEL;
use baton_api::phases::HookSecretRef;
use baton_hooks::{Fault, Reason, Secret, Secrets, Verdict};
use k8s_openapi::api::core::v1::Secret as KubernetesSecret;
use kube::{Api, Client};

use crate::objects::ApiError;

/// Most Secrets of one call; more are refused when the set is read.
const MOST: usize = 20;
/// Pause before the API is asked again, the first time; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Reads the declared Secrets. A failing API is asked again, less and less often, until whoever waits gives up.
///
/// # Errors
/// What the call comes to without them: a Secret is not there, not labelled, or may not be read. No value is in it.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    declared: &[HookSecretRef],
) -> Result<Secrets, Verdict> {
    let mut secrets = Secrets::new();
    for reference in declared.iter().take(MOST) {
        let name = match reference.secret_name.is_empty() {
            true => &reference.name,
            false => &reference.secret_name,
        };
        let mut pause = PAUSE;
        let found = loop {
            let api = Api::<KubernetesSecret>::namespaced(client.clone(), namespace);
            match api.get_opt(name).await.map_err(ApiError::from) {
                Ok(found) => break found,
                Err(error) if error.leaves_doubt() || is_busy(&error) => {
                    tracing::warn!(%namespace, secret = %name, %error, "a Secret of a hook could not be read");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    let message =
                        format!("Secret {name:?} cannot be read: {error}; let the controller get it");
                    return Err(refused(message));
                }
            }
        };
        let Some(secret) = found else {
            return Err(refused(format!(
                "there is no Secret {name:?} in namespace {namespace:?}; create it"
            )));
        };
        let (of, at) = (secret.metadata.name.as_deref(), secret.metadata.namespace.as_deref());
        if (of, at) != (Some(name), Some(namespace)) {
            return Err(refused(format!("the API gave another Secret than {name:?} of {namespace:?}")));
        }
        secrets.insert(reference.name.clone(), values(secret, name, reference)?);
    }
    Ok(secrets)
}

fn values(
    secret: KubernetesSecret,
    name: &str,
    reference: &HookSecretRef,
) -> Result<BTreeMap<String, Secret>, Verdict> {
    let labels = secret.metadata.labels.unwrap_or_default();
    if labels.get(HOOKS_LABEL).is_none_or(|value| value != "true") {
        let message = format!("Secret {name:?} is not for hooks; label it {HOOKS_LABEL}=true if it is to be");
        return Err(refused(message));
    }
    let wanted = |key: &String| reference.keys.as_ref().is_none_or(|keys| keys.contains(key));
    let data = secret.data.unwrap_or_default().into_iter().filter(|(key, _)| wanted(key));
    // What is no text cannot stand in one; whoever uses it is told that it is not known.
    let texts = data.filter_map(|(key, value)| Some((key, Secret::new(String::from_utf8(value.0).ok()?))));
    Ok(texts.collect())
}

/// Whether the API asked to be left alone for a while.
fn is_busy(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 408 | 429, .. })
}

fn refused(message: String) -> Verdict {
    Verdict::Refused(Fault { reason: Reason::Invalid, message })
}
