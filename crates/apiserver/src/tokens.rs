//! Tokens of service accounts: signed by this server, good until they expire or their account goes.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_schema::FieldError;
use baton_store::Key;
use ring::hmac;
use serde_json::{Value, json};

use crate::auth::{Secret, User};
use crate::catalog::Resource;
use crate::cluster::{Cluster, Core};
use crate::decode;
use crate::failure::{Failure, Subject};
use crate::object;
use crate::rest::{Answer, Call};

/// Whom tokens are for where nobody says: this API. Also who issues them.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// `{"alg":"HS256","typ":"JWT"}`: the only header that is read, so no token says how it is to be judged.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
/// Seconds that a token lasts where nobody says, and the least and most that can be asked for.
const USUAL: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// Signs tokens.
pub(crate) struct TokenKey(hmac::Key);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl TokenKey {
    /// A key nobody else has.
    pub(crate) fn generate() -> Secret {
        Secret::new(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
    }

    pub(crate) fn new(secret: &Secret) -> TokenKey {
        TokenKey(hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes()))
    }

    fn sign(&self, claims: &Value) -> String {
        let signed = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// What a token says that this key signed.
    fn read(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let claims = signed.strip_prefix(HEADER)?.strip_prefix('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.0, signed.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

impl Cluster {
    /// The service account a token of this cluster was issued for, while both are good.
    pub fn authenticate(&self, token: &str) -> Option<User> {
        self.core.authenticate(token, &[ISSUER.to_owned()]).map(|(user, _)| user)
    }
}

impl Core {
    /// Whose token it is, and for which of these audiences.
    fn authenticate(&self, token: &str, audiences: &[String]) -> Option<(User, Vec<String>)> {
        let claims = self.authority.as_ref()?.tokens.read(token)?;
        let now = self.clock.now().as_second();
        if claims["iss"] != ISSUER || claims["exp"].as_i64()? <= now || claims["nbf"].as_i64()? > now {
            return None;
        }
        let meant: Vec<String> = audiences
            .iter()
            .filter(|one| {
                claims["aud"].as_array().is_some_and(|all| all.iter().any(|aud| aud == one.as_str()))
            })
            .cloned()
            .collect();
        if meant.is_empty() {
            return None;
        }
        let bound = &claims["kubernetes.io"];
        let (namespace, account) = (bound["namespace"].as_str()?, &bound["serviceaccount"]);
        let name = account["name"].as_str()?;
        // An account of the same name that was made anew is another one.
        let stored = self.store.get(&Key::new("serviceaccounts", namespace, name))?;
        (account["uid"] == object::uid(&object::read(&stored)))
            .then(|| (User::service_account(namespace, name), meant))
    }
}

/// `serviceaccounts/token`.
pub(crate) fn issue(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Answer, Failure> {
    let record = call.core.get(resource, namespace, name, &call.query)?;
    let account = object::read(&record);
    let Some(authority) = &call.core.authority else {
        // There is no one the token could be shown to.
        let why = "this API server has one user and issues no service account tokens; use the kubeconfig it wrote, or have \
                   it enforce rights with --authorization-mode rbac";
        return Err(Failure::forbidden(resource.subject(object::name(&account)), why));
    };
    let mut request = decode::document(call.content_type(), &call.body, "TokenRequest")?.value;
    if !request.is_object() {
        return Err(Failure::bad_request("a TokenRequest is wanted"));
    }
    let spec = &request["spec"];
    let lasts = spec["expirationSeconds"].as_i64().unwrap_or(USUAL);
    if let Some(error) = misfit(spec, lasts) {
        let subject = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name: "" };
        return Err(Failure::invalid(subject, &[error]));
    }
    let audiences = audiences(spec);
    let now = call.core.clock.now().as_second();
    let token = authority.tokens.sign(&json!({
        "iss": ISSUER, "sub": User::service_account(namespace, name).name, "aud": audiences,
        "iat": now, "nbf": now, "exp": now + lasts,
        "kubernetes.io": {
            "namespace": namespace, "serviceaccount": {"name": name, "uid": object::uid(&account)},
        },
    }));
    let expires = jiff::Timestamp::from_second(now + lasts).map_err(Failure::internal)?;
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["kind"] = "TokenRequest".into();
    request["metadata"] = json!({"name": name, "namespace": namespace});
    request["spec"] = json!({"audiences": audiences, "expirationSeconds": lasts});
    request["status"] = json!({"token": token, "expirationTimestamp": expires.to_string()});
    Ok(Answer::ok(request).created())
}

/// What is wrong with the wish for a token that lasts so many seconds.
fn misfit(spec: &Value, lasts: i64) -> Option<FieldError> {
    const LASTS: &str = "spec.expirationSeconds";
    if !spec["boundObjectRef"].is_null() {
        let why = "this API server binds tokens to their service accounts only";
        return Some(FieldError::forbidden("spec.boundObjectRef", why));
    }
    let why = match lasts {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return None,
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Some(FieldError::invalid(LASTS, lasts, why))
}

fn audiences(spec: &Value) -> Vec<String> {
    let said: Vec<String> = spec["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if said.is_empty() { vec![ISSUER.to_owned()] } else { said }
}

/// The answer to a TokenReview, where there are tokens.
pub(crate) fn review(core: &Core, spec: &Value) -> Option<Value> {
    core.authority.as_ref()?;
    let token = spec["token"].as_str().unwrap_or_default();
    Some(match core.authenticate(token, &audiences(spec)) {
        Some((user, audiences)) => json!({
            "authenticated": true, "audiences": audiences,
            "user": {"username": user.name, "groups": user.groups},
        }),
        None => {
            json!({"authenticated": false, "error": "the token is not one of this cluster, or no longer good"})
        }
    })
}
