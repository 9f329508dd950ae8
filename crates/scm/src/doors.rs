//! Ways into the hosts: which URL, whose credentials, which certificates.

use baton_api::scm::{BasicAuth, BearerToken, ConfigMapKeyRef, SecretRef};

use crate::error::ScmError;
use crate::github_app::Installations;
use crate::http::{Api, Auth, Http, Trust};
use crate::lookup::{self, Lookup};
use crate::secret::Secret;
use crate::{azure, bitbucket_cloud, bitbucket_server, gitea, github, gitlab};

/// The ways in for one ApplicationSet.
pub(crate) struct Doors<'a, L> {
    pub(crate) http: &'a Http,
    pub(crate) installations: &'a Installations,
    pub(crate) lookup: &'a L,
}

impl<'a, L: Lookup> Doors<'a, L> {
    /// GitHub as an app, with a token, or as nobody.
    pub(crate) async fn github(
        &self,
        api: &str,
        (app, reference): (&str, Option<&SecretRef>),
        owner: &str,
    ) -> Result<Api<'a>, ScmError> {
        let open = |api: &str, auth| {
            let api = self.http.api(github::api_url(api)?, auth, &Trust::default())?;
            Ok(github::speaking(api).counted_for(self.lookup))
        };
        if app.is_empty() {
            let token = self.token(reference, "Github token").await?;
            let auth = token.map_or(Ok(Auth::anonymous()), |token| Auth::bearer(&token))?;
            return open(api, auth);
        }
        let failed =
            |why: String| ScmError::invalid(format!("error fetching Github app secret {app}: {why}"));
        let found = self.lookup.github_app(app).await.map_err(failed)?;
        let found = found.ok_or_else(|| failed("no github app found".into()))?;
        let api = if api.is_empty() { &found.enterprise_base_url } else { api };
        self.installations.sign_in(open(api, Auth::anonymous())?, &found, owner).await
    }

    pub(crate) async fn gitlab(
        &self,
        api: &str,
        reference: Option<&SecretRef>,
        trust: (bool, Option<&ConfigMapKeyRef>),
    ) -> Result<Api<'a>, ScmError> {
        let trust = self.trust(trust).await?;
        let token = self.token(reference, "Gitlab token").await?;
        self.http.api(gitlab::api_url(api)?, gitlab::auth(token)?, &trust)
    }

    pub(crate) async fn gitea(
        &self,
        api: &str,
        reference: Option<&SecretRef>,
        insecure: bool,
    ) -> Result<Api<'a>, ScmError> {
        let token = self.token(reference, "Gitea token").await?;
        let trust = Trust { insecure, authorities: None };
        self.http.api(gitea::api_url(api)?, gitea::auth(token)?, &trust)
    }

    pub(crate) async fn bitbucket_server(
        &self,
        api: &str,
        (bearer, basic): (Option<&BearerToken>, Option<&BasicAuth>),
        trust: (bool, Option<&ConfigMapKeyRef>),
    ) -> Result<Api<'a>, ScmError> {
        let trust = self.trust(trust).await?;
        let auth = self.either(bearer, basic).await?.unwrap_or_else(Auth::anonymous);
        let api = self.http.api(bitbucket_server::api_url(api)?, auth, &trust)?;
        Ok(bitbucket_server::speaking(api))
    }

    pub(crate) fn bitbucket_cloud(&self, api: &str, auth: Auth) -> Result<Api<'a>, ScmError> {
        self.http.api(bitbucket_cloud::api_url(api)?, auth, &Trust::default())
    }

    pub(crate) fn azure(
        &self,
        api: &str,
        organization: &str,
        token: Option<Secret>,
    ) -> Result<Api<'a>, ScmError> {
        let url = azure::api_url(api, organization)?;
        Ok(azure::speaking(self.http.api(url, azure::auth(token)?, &Trust::default())?))
    }

    /// A bearer token goes before a password; a reference to an empty value is none.
    pub(crate) async fn either(
        &self,
        bearer: Option<&BearerToken>,
        basic: Option<&BasicAuth>,
    ) -> Result<Option<Auth>, ScmError> {
        if let Some(bearer) = bearer {
            let token = self.token(Some(&bearer.token_ref), "Secret Bearer token").await?;
            return token.map(|token| Auth::bearer(&token)).transpose();
        }
        let Some(basic) = basic else { return Ok(None) };
        let password = self.token(Some(&basic.password_ref), "Secret token").await?;
        password.map(|password| Auth::basic(&basic.username, &password)).transpose()
    }

    /// The token a reference points to; `what` names it in errors.
    pub(crate) async fn token(
        &self,
        reference: Option<&SecretRef>,
        what: &str,
    ) -> Result<Option<Secret>, ScmError> {
        lookup::token(self.lookup, reference, self.http.settings.strict_token_refs)
            .await
            .map_err(|error| error.context(format!("error fetching {what}")))
    }

    async fn trust(
        &self,
        (insecure, reference): (bool, Option<&ConfigMapKeyRef>),
    ) -> Result<Trust, ScmError> {
        let authorities = lookup::certificates(self.lookup, reference).await?;
        Trust::of(&self.http.settings, insecure, authorities)
    }
}
