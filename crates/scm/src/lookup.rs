//! Where tokens and certificates come from.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;

use baton_api::scm::{ConfigMapKeyRef, SecretRef};

use crate::error::{Kind, ScmError};
use crate::github_app::GithubApp;
use crate::secret::Secret;

const SECRET_TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";
const SECRET_TYPE: &str = "scm-creds";

/// What a generator's references point to: objects beside its ApplicationSet.
pub trait Lookup: Sync {
    /// Namespace of the ApplicationSet.
    fn namespace(&self) -> &str;

    /// Name of the ApplicationSet.
    fn name(&self) -> &str;

    /// The Secret of that name in the ApplicationSet's namespace; none if there is none.
    fn secret(&self, name: &str) -> impl Future<Output = Result<Option<SecretObject>, String>> + Send;

    /// The data of the ConfigMap of that name in the ApplicationSet's namespace; none if there is none.
    fn config_map(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<BTreeMap<String, String>>, String>> + Send;

    /// The GitHub App in the repository credentials of that name in Argo CD's namespace
    /// ([`GithubApp::read`] reads their data); none if there is none.
    fn github_app(&self, secret_name: &str)
    -> impl Future<Output = Result<Option<GithubApp>, String>> + Send;
}

/// A Secret.
#[derive(Clone, Default)]
pub struct SecretObject {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its data, decoded.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for SecretObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretObject").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// The token a reference points to; an empty one, as no reference, is nobody's.
pub(crate) async fn token(
    lookup: &impl Lookup,
    reference: Option<&SecretRef>,
    strict: bool,
) -> Result<Option<Secret>, ScmError> {
    let Some(reference) = reference else { return Ok(None) };
    let place = format!("secret {}/{}", lookup.namespace(), reference.secret_name);
    let secret = lookup
        .secret(&reference.secret_name)
        .await
        .map_err(|error| ScmError::invalid(format!("error fetching {place}: {error}")))?
        .ok_or_else(|| ScmError::invalid(format!("error fetching {place}: not found")))?;
    if strict && secret.labels.get(SECRET_TYPE_LABEL).map(String::as_str) != Some(SECRET_TYPE) {
        return Err(ScmError::new(
            Kind::NotAllowed,
            format!(
                "{place} is not a valid SCM creds secret: secret must have label \
                 {SECRET_TYPE_LABEL:?}={SECRET_TYPE:?}"
            ),
        ));
    }
    let value = secret
        .data
        .get(&reference.key)
        .ok_or_else(|| ScmError::invalid(format!("key {:?} in {place} not found", reference.key)))?;
    let text = std::str::from_utf8(value)
        .map_err(|_| ScmError::invalid(format!("key {:?} in {place} is not text", reference.key)))?;
    Ok(Some(text).filter(|text| !text.is_empty()).map(Secret::new))
}

/// The certificates a reference points to, in PEM.
pub(crate) async fn certificates(
    lookup: &impl Lookup,
    reference: Option<&ConfigMapKeyRef>,
) -> Result<Option<String>, ScmError> {
    let Some(reference) = reference else { return Ok(None) };
    let name = &reference.config_map_name;
    let failed = |why: &str| {
        ScmError::invalid(format!(
            "error fetching CA certificates from ConfigMap {}/{name}: {why}",
            lookup.namespace()
        ))
    };
    let mut data =
        lookup.config_map(name).await.map_err(|error| failed(&error))?.ok_or_else(|| failed("not found"))?;
    data.remove(&reference.key).map(Some).ok_or_else(|| failed(&format!("key {} not found", reference.key)))
}
