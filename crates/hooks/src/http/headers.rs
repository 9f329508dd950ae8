//! The headers of a call.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::call::{Call, Request};
use crate::outcome::{Fault, Reason};

/// What every call says it is, unless its configuration says otherwise.
const USER_AGENT: HeaderValue = HeaderValue::from_static("ArgoCD-ApplicationSet-PhaseHook/1.0");

const APPSET_NAME: HeaderName = HeaderName::from_static("x-appset-name");
const APPSET_NAMESPACE: HeaderName = HeaderName::from_static("x-appset-namespace");
const HOOK_NAME: HeaderName = HeaderName::from_static("x-hook-name");
const HOOK_TYPE: HeaderName = HeaderName::from_static("x-hook-type");
const CHECK_NAME: HeaderName = HeaderName::from_static("x-check-name");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers that are set for every call and cannot be given.
const AUTOMATIC: [HeaderName; 6] =
    [APPSET_NAME, APPSET_NAMESPACE, HOOK_NAME, HOOK_TYPE, CHECK_NAME, IDEMPOTENCY_KEY];

/// Headers that steer the connection: with them a request could be made to mean two things to two readers.
const CONNECTION: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];

/// What goes along to another origin.
const HARMLESS: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];

/// Why a header cannot be given; none if it can.
pub(crate) fn reserved(name: &HeaderName) -> Option<&'static str> {
    if AUTOMATIC.contains(name) {
        return Some("is set automatically");
    }
    CONNECTION.contains(name).then_some("belongs to the connection")
}

/// All headers of a call but `Host`.
pub(super) fn all(call: &Call, request: &Request) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, USER_AGENT);
    for (name, value) in &request.headers {
        if let Some(why) = reserved(name) {
            return Err(Fault::new(Reason::Invalid, format!("the header {name} {why}")));
        }
        headers.insert(name.clone(), sensitive(name, value.expose())?);
    }
    headers.extend(automatic(call)?);
    Ok(headers)
}

/// What of a call's headers another origin may see: nothing that the configuration's author wrote for the first one.
pub(super) fn for_another_origin(call: &Call, headers: HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in HARMLESS {
        kept.extend(headers.get(&name).map(|value| (name, value.clone())));
    }
    // They were made once already.
    kept.extend(automatic(call).unwrap_or_default());
    kept
}

fn automatic(call: &Call) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        plain(&name, value).map(|value| {
            headers.insert(name, value);
        })
    };
    set(APPSET_NAME, &call.set.name)?;
    set(APPSET_NAMESPACE, &call.set.namespace)?;
    match call.role.hook_type() {
        Some(hook_type) => {
            set(HOOK_NAME, &call.name)?;
            set(HOOK_TYPE, hook_type)?;
        }
        None => set(CHECK_NAME, &call.name)?,
    }
    set(IDEMPOTENCY_KEY, &call.idempotency_key)?;
    Ok(headers)
}

fn plain(name: &HeaderName, value: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::from_str(value).map_err(|_| {
        Fault::new(Reason::Invalid, format!("the value of the header {name} holds characters it may not"))
    })
}

/// A value that HTTP libraries do not print either.
fn sensitive(name: &HeaderName, value: &str) -> Result<HeaderValue, Fault> {
    let mut value = plain(name, value)?;
    value.set_sensitive(true);
    Ok(value)
}
