//! From a configuration to one call: templates are filled in, and what comes of it is judged again.

use std::time::Duration;

use baton_api::phases::{Check, CommandCall, ExpectedStatus, Hook, HookType, HttpCall, HttpMethod};
use baton_template::Map;
use http::{HeaderName, Method};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use url::Url;

use crate::call::{Action, Call, Invocation, Request, Role, SetName};
use crate::credential;
use crate::http::origin;
use crate::outcome::{Fault, Reason};
use crate::secret::{Redactor, Secret};
use crate::text::{self, Complaint, Secrets, Values};
use crate::validate::{Findings, Item, Policy, timeout, validate_check, validate_hook};

/// What is said in the place of an engine's words that may hold a secret.
const WITHHELD: &str = "what the template engine says is withheld, since secrets are in reach";

/// What one call is made for, and what its texts are filled in with.
#[derive(Clone, Copy)]
pub struct Occasion<'a> {
    /// The set.
    pub set: &'a SetName,
    /// The phase.
    pub phase: &'a str,
    /// The target's parameters, in the form the set's language wants; empty for a call made once for the phase.
    pub params: &'a Map,
    /// The declared Secrets.
    pub secrets: &'a Secrets,
    /// The time.
    pub now: Timestamp,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The same for every attempt.
    pub idempotency_key: &'a str,
}

/// Fills in a hook that runs before (`pre`) or after a phase.
///
/// # Errors
/// A text cannot be filled in, or what comes of it may not be. No message holds a secret.
pub fn prepare_hook(
    hook: &Hook,
    role: Role,
    occasion: &Occasion<'_>,
    policy: &Policy,
) -> Result<Call, Fault> {
    let mut filling = Filling::new(&Item::from(hook), occasion, policy);
    let mut filled = hook.clone();
    filled.http = filling.http(hook.http.as_ref())?;
    filled.command = filling.command(hook.command.as_ref())?;
    let mut findings = Findings::default();
    validate_hook(&filled, "hook", &policy.for_filled(), &mut findings);
    filling.finish(&Item::from(&filled), role, findings)
}

/// Fills in a check.
///
/// # Errors
/// As for [`prepare_hook`].
pub fn prepare_check(check: &Check, occasion: &Occasion<'_>, policy: &Policy) -> Result<Call, Fault> {
    let mut filling = Filling::new(&Item::from(check), occasion, policy);
    let mut filled = check.clone();
    filled.http = filling.http(check.http.as_ref())?;
    filled.command = filling.command(check.command.as_ref())?;
    let mut findings = Findings::default();
    validate_check(&filled, "check", &policy.for_filled(), &mut findings);
    filling.finish(&Item::from(&filled), Role::Check, findings)
}

/// Where an HTTP call goes, filled in: scheme, host and port, and nothing that could be a credential. Nothing where it cannot
/// be filled in, which the call itself tells. No secret is in reach, as none may be in a URL.
pub fn destination(call: &HttpCall, occasion: &Occasion<'_>, policy: &Policy) -> Option<String> {
    let now = occasion.now.to_zoned(TimeZone::UTC);
    let (set, phase, params) = (occasion.set, occasion.phase, occasion.params);
    let values = Values { set, phase, params, secrets: None, now: &now };
    let url = text::fill(policy.language, &call.url, &values).ok()?;
    Some(origin(&Url::parse(&url).ok()?))
}

/// One call on its way to be filled in.
struct Filling<'a> {
    occasion: &'a Occasion<'a>,
    policy: &'a Policy,
    now: Zoned,
    redactor: Redactor,
    /// Whether texts have secrets in reach.
    declares_secrets: bool,
    /// Values of headers and variables that a secret went into. A receiver may say them again, and the secret may have any
    /// form in them.
    made_of_secrets: Vec<String>,
}

/// Where a text goes, as far as secrets are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where others see it: it may use none.
    Seen,
    /// To the receiver or the program alone.
    Hidden,
    /// The same, and it is a credential by its name.
    Credential,
}

// === impl Filling ===

impl<'a> Filling<'a> {
    fn new(item: &Item<'_>, occasion: &'a Occasion<'a>, policy: &'a Policy) -> Filling<'a> {
        let credentials = credential::of_call(item.http, item.command);
        Filling {
            occasion,
            policy,
            now: occasion.now.to_zoned(TimeZone::UTC),
            redactor: redactor(occasion.secrets, &credentials),
            declares_secrets: !item.secret_refs.is_empty() || !occasion.secrets.is_empty(),
            made_of_secrets: Vec::new(),
        }
    }

    fn http(&mut self, call: Option<&HttpCall>) -> Result<Option<HttpCall>, Fault> {
        let Some(call) = call else { return Ok(None) };
        let mut filled = call.clone();
        filled.url = self.fill("http.url", &call.url, Place::Seen)?;
        filled.body = self.fill("http.body", &call.body, Place::Hidden)?;
        for (name, value) in &mut filled.headers {
            let place = Place::of_credential(credential::is_header_named(name));
            *value = self.fill_noting(&format!("http.headers[{name}]"), value, place)?;
        }
        Ok(Some(filled))
    }

    fn command(&mut self, call: Option<&CommandCall>) -> Result<Option<CommandCall>, Fault> {
        let Some(call) = call else { return Ok(None) };
        let mut filled = call.clone();
        // The first is the program, which is what is written.
        for (index, argument) in filled.command.iter_mut().enumerate().skip(1) {
            *argument = self.fill(&format!("command.command[{index}]"), argument, Place::Seen)?;
        }
        for (name, value) in &mut filled.env {
            let place = Place::of_credential(credential::is_variable(name));
            *value = self.fill_noting(&format!("command.env[{name}]"), value, place)?;
        }
        Ok(Some(filled))
    }

    fn fill_noting(&mut self, path: &str, written: &str, place: Place) -> Result<String, Fault> {
        let filled = self.fill(path, written, place)?;
        if text::mentions_secrets(written) {
            // Of a header, without the name of a scheme, which hides nothing.
            self.made_of_secrets.extend(credential::parts(&filled));
        }
        Ok(filled)
    }

    fn fill(&self, path: &str, written: &str, place: Place) -> Result<String, Fault> {
        let occasion = self.occasion;
        let values = Values {
            set: occasion.set,
            phase: occasion.phase,
            params: occasion.params,
            secrets: (place != Place::Seen).then_some(occasion.secrets),
            now: &self.now,
        };
        let used = text::keys_used(self.policy.language, written);
        let missing = used.iter().find(|(secret, key)| {
            values.secrets.and_then(|all| all.get(secret)).is_some_and(|keys| !keys.contains_key(key))
        });
        if let Some((secret, key)) = missing {
            return Err(self.fault(&format!("{path}: the Secret {secret:?} has no key {key:?}")));
        }
        let withholds = match place {
            Place::Seen => false,
            Place::Hidden => self.declares_secrets,
            Place::Credential => true,
        };
        text::fill(self.policy.language, written, &values).map_err(|complaint| match complaint {
            // Its words may hold a secret in any form, which no search would find.
            Complaint::Engine { place, .. } if withholds => {
                let at = place.map(|(line, column)| format!(" at line {line}, column {column}"));
                let at = at.unwrap_or_default();
                self.fault(&format!("{path} cannot be filled in{at}: {WITHHELD}"))
            }
            other => self.fault(&format!("{path} cannot be filled in: {other}")),
        })
    }

    fn fault(&self, message: &str) -> Fault {
        Fault::new(Reason::Invalid, self.redactor.redact(message))
    }

    /// Makes the call, if what it was filled in with is good.
    fn finish(mut self, item: &Item<'_>, role: Role, findings: Findings) -> Result<Call, Fault> {
        let mut hidden = credential::of_call(item.http, item.command);
        hidden.append(&mut self.made_of_secrets);
        self.redactor = redactor(self.occasion.secrets, &hidden);
        if let Some(finding) = findings.first_error() {
            let path = finding.path.split_once('.').map_or(finding.path.as_str(), |(_, rest)| rest);
            return Err(self.fault(&format!("{path}: {}", finding.message)));
        }
        let timeout: Duration = timeout(item, "", self.policy, &mut Findings::default());
        let action = match (item.kind, item.http, item.command) {
            (HookType::Http, Some(call), _) => Action::Http(self.request(call, role)?),
            (HookType::Command, _, Some(call)) => Action::Command(self.invocation(call)?),
            _ => return Err(self.fault("it is neither an HTTP call nor a command")),
        };
        Ok(Call {
            set: self.occasion.set.clone(),
            role,
            name: item.name.to_owned(),
            action,
            timeout,
            attempt: self.occasion.attempt,
            idempotency_key: self.occasion.idempotency_key.to_owned(),
            redactor: self.redactor,
        })
    }

    fn request(&self, call: &HttpCall, role: Role) -> Result<Request, Fault> {
        let mut headers = Vec::new();
        for (name, value) in &call.headers {
            let name = HeaderName::try_from(name.as_str());
            let name = name.map_err(|_| self.fault("http.headers: not a name of a header"))?;
            headers.push((name, Secret::new(value)));
        }
        Ok(Request {
            url: Url::parse(&call.url)
                .map_err(|fault| self.fault(&format!("http.url: is no URL: {fault}")))?,
            method: method(&call.method, role),
            headers,
            body: Secret::new(&call.body),
            expected: expected(call.expected_status.as_ref()),
            insecure: call.insecure_skip_verify,
        })
    }

    fn invocation(&self, call: &CommandCall) -> Result<Invocation, Fault> {
        let Some((program, arguments)) = call.command.split_first() else {
            return Err(self.fault("command.command: a program is needed"));
        };
        let environment = call.env.iter().map(|(name, value)| (name.clone(), Secret::new(value)));
        Ok(Invocation {
            program: program.clone(),
            arguments: arguments.to_vec(),
            environment: environment.collect(),
        })
    }
}

/// Knows the Secrets of a call, and what else in it is a credential.
fn redactor(secrets: &Secrets, credentials: &[String]) -> Redactor {
    let secrets = secrets.values().flat_map(|keys| keys.values()).map(Secret::expose);
    Redactor::new(secrets.chain(credentials.iter().map(String::as_str)))
}

// === impl Place ===

impl Place {
    fn of_credential(is_credential: bool) -> Place {
        if is_credential { Place::Credential } else { Place::Hidden }
    }
}

fn method(method: &HttpMethod, role: Role) -> Method {
    match (method, role) {
        (HttpMethod::Get, _) => Method::GET,
        (HttpMethod::Head, _) => Method::HEAD,
        (HttpMethod::Post, _) => Method::POST,
        (HttpMethod::Put, _) => Method::PUT,
        (HttpMethod::Patch, _) => Method::PATCH,
        (HttpMethod::Delete, _) => Method::DELETE,
        (HttpMethod::Options, _) => Method::OPTIONS,
        (HttpMethod::Other(_), Role::Check) => Method::GET,
        (HttpMethod::Other(_), Role::PreHook | Role::PostHook) => Method::POST,
    }
}

fn expected(expected: Option<&ExpectedStatus>) -> Vec<u16> {
    let statuses = match expected {
        None => return vec![200],
        Some(ExpectedStatus::One(status)) => std::slice::from_ref(status),
        Some(ExpectedStatus::AnyOf(statuses)) => statuses.as_slice(),
        Some(ExpectedStatus::Other(_)) => &[],
    };
    statuses.iter().filter_map(|status| u16::try_from(*status).ok()).collect()
}
