//! What every call needs: clients, who may what, what the operator has set.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use baton_api::{AppProject, Application, ApplicationSet, ApplicationSpec};
use baton_clusters::Connect;
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::audit::{self, Affected, Deed, Denials};
use crate::auth::oidc::companion::Companion;
use crate::auth::oidc::issuer::Issuer;
use crate::auth::password::Decoy;
use crate::auth::token::{ISSUER, TokenError, claimed_issuer};
use crate::auth::{self, Attempts};
use crate::caller::{Caller, Proof};
use crate::configuration::{Configuration, Configured};
use crate::error::{Code, Error};
use crate::fleet::Fleet;
use crate::gate::{Ask, Gate, denied};
use crate::handlers::logs::AT_ONCE;
use crate::mirror::Mirror;
use crate::objects::{Kind, Objects, text};
use crate::rollouts::Boards;
use crate::sources::Sources;

/// Most passwords that are checked at once.
const LOGINS: usize = 50;

/// What a server is given.
pub struct Parts {
    /// Speaks to the control plane. Its requests must be bounded in time.
    pub client: Client,
    /// Speaks to member clusters.
    pub connect: Arc<dyn Connect>,
    /// Says who may do what.
    pub gate: Arc<dyn Gate>,
    /// Reads sources and runs generators; without it, what needs that answers 501.
    pub sources: Option<Arc<dyn Sources>>,
}

/// Says whether objects of people may live in a namespace.
pub type Allows = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How a server is set up.
#[derive(Clone)]
pub struct Settings {
    /// Namespace of the control plane.
    pub namespace: String,
    /// Whether Applications and sets may live in other namespaces too.
    pub other_namespaces: Option<Allows>,
    /// The present time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Whether browsers reach it over TLS: cookies are then sent over nothing else.
    pub secure: bool,
    /// How old settings, accounts and projects may be.
    pub fresh: Duration,
    /// The work of one password.
    pub password_cost: u32,
    /// Takes webhooks in at their path; without it, they are answered with 501.
    pub webhooks: Option<Router>,
}

/// The API, without any transport. Clones are the same.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) sources: Option<Arc<dyn Sources>>,
    pub(crate) settings: Settings,
    pub(crate) configured: Configured,
    pub(crate) issuer: Issuer,
    pub(crate) attempts: Attempts,
    pub(crate) decoy: Decoy,
    pub(crate) logins: Semaphore,
    /// Room for those who read logs.
    pub(crate) logs: Arc<Semaphore>,
    pub(crate) fleet: Fleet,
    pub(crate) applications: Mirror,
    pub(crate) sets: Mirror,
    pub(crate) boards: Boards,
    denials: Denials,
}

/// One call: who makes it, and what is set at its time.
#[derive(Clone)]
pub struct Context {
    /// Who.
    pub caller: Caller,
    /// Which, in records and answers.
    pub request: String,
    pub(crate) configuration: Arc<Configuration>,
    /// The sign-in by an issuer that it is part of, by which that can be ended.
    pub(crate) session: Option<String>,
    /// How often the call was written down so far.
    records: Arc<AtomicUsize>,
}

// === impl Settings ===

impl Settings {
    /// Those of a server in a namespace.
    pub fn new(namespace: impl Into<String>) -> Settings {
        Settings {
            namespace: namespace.into(),
            other_namespaces: None,
            now: Arc::new(Timestamp::now),
            secure: true,
            fresh: Duration::from_secs(1),
            password_cost: auth::password::COST,
            webhooks: None,
        }
    }

    /// Whether objects of people may live in a namespace.
    pub fn allows(&self, namespace: &str) -> bool {
        namespace == self.namespace || self.other_namespaces.as_ref().is_some_and(|allows| allows(namespace))
    }
}

// === impl Context ===

impl Context {
    fn new(caller: Caller, request: &str, configuration: Arc<Configuration>) -> Context {
        let request = request.to_owned();
        Context { caller, request, configuration, session: None, records: Arc::default() }
    }

    /// How often the call was written down so far.
    pub(crate) fn records(&self) -> usize {
        self.records.load(Ordering::Relaxed)
    }
}

// === impl Server ===

impl Server {
    /// A server that has read nothing yet: [`Server::run`] does.
    pub fn new(parts: Parts, settings: Settings) -> Server {
        let Parts { client, connect, gate, sources } = parts;
        Server(Arc::new(Inner {
            configured: Configured::new(client.clone(), &settings.namespace, settings.fresh),
            fleet: Fleet::new(client.clone(), connect, &settings.namespace),
            decoy: Decoy::new(settings.password_cost),
            attempts: Attempts::default(),
            issuer: Issuer::default(),
            logins: Semaphore::new(LOGINS),
            logs: Arc::new(Semaphore::new(AT_ONCE)),
            applications: Mirror::new::<Application>(),
            sets: Mirror::new::<ApplicationSet>(),
            boards: Boards::default(),
            denials: Denials::default(),
            client,
            gate,
            sources,
            settings,
        }))
    }

    /// Follows Applications and sets, which lists and streams show, until dropped.
    pub async fn run(&self) {
        let inner = &self.0;
        let only = inner.settings.other_namespaces.is_none().then_some(inner.settings.namespace.as_str());
        tokio::join!(
            inner.applications.run(inner.client.clone(), only),
            inner.sets.run(inner.client.clone(), only),
            inner.boards.run(&inner.sets, &inner.applications, &inner.settings),
        );
    }

    /// Every set as it was last seen, where sets may live.
    pub fn known_sets(&self) -> Vec<ApplicationSet> {
        let lives = |set: &Arc<Value>| self.0.settings.allows(text(set, "/metadata/namespace"));
        let all = self.0.sets.all().into_iter().filter(lives);
        all.filter_map(|set| ApplicationSet::deserialize(&*set).ok()).collect()
    }

    /// Namespace, name and spec of every Application as it was last seen, where Applications may live.
    pub fn known_applications(&self) -> Vec<(String, String, ApplicationSpec)> {
        let told = |one: Arc<Value>| {
            let [namespace, name] =
                ["/metadata/namespace", "/metadata/name"].map(|field| text(&one, field).to_owned());
            let lives = self.0.settings.allows(&namespace);
            let spec = lives.then(|| ApplicationSpec::deserialize(&one["spec"]).ok());
            Some((namespace, name, spec??))
        };
        self.0.applications.all().into_iter().filter_map(told).collect()
    }

    /// Waits until lists show everything there is.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn ready(&self) -> Result<(), Error> {
        self.0.applications.synced().await?;
        self.0.sets.synced().await
    }

    /// The present time.
    pub(crate) fn now(&self) -> Timestamp {
        (self.0.settings.now)()
    }

    /// The call of whoever shows this token.
    ///
    /// # Errors
    /// Nobody is known by it, and nobody in particular may not ask.
    pub async fn context(&self, token: Option<&str>, request: &str) -> Result<Context, Error> {
        let configuration = self.0.configured.get().await?;
        let anonymous = configuration.is_on("users.anonymous.enabled");
        let known = match token {
            Some(token) => Some(self.identify(&configuration, token).await),
            None => None,
        };
        let caller = match known {
            Some(Ok(caller)) => caller,
            // Of a token that does not count nothing is believed.
            _ if anonymous => Caller::anonymous(),
            Some(Err(error)) => {
                return Err(Error::new(Code::Unauthenticated, format!("invalid session: {error}")));
            }
            None => return Err(Error::new(Code::Unauthenticated, "no session information")),
        };
        Ok(Context::new(caller, request, configuration))
    }

    /// The call of whoever it may be, for what everybody may ask.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn open_context(&self, token: Option<&str>, request: &str) -> Result<Context, Error> {
        let configuration = self.0.configured.get().await?;
        let known = match token {
            Some(token) => self.identify(&configuration, token).await.ok(),
            None => None,
        };
        let caller = known.unwrap_or_else(Caller::anonymous);
        Ok(Context::new(caller, request, configuration))
    }

    /// Whom a token makes known: one of ours, or of the issuer that the operator has set.
    async fn identify(&self, configuration: &Configuration, token: &str) -> Result<Caller, TokenError> {
        let issuer = claimed_issuer(token);
        let provider = configuration.provider.as_ref().and_then(|provider| provider.as_ref().ok());
        match provider.filter(|provider| issuer.as_deref() == Some(&provider.issuer)) {
            Some(provider) if provider.issuer != ISSUER => {
                let claims = &configuration.group_claims;
                let caller = self.0.issuer.identify(provider, token, claims, None, self.now()).await?;
                if configuration.revoked.contains(&caller.token) {
                    return Err(TokenError::Revoked);
                }
                Ok(caller)
            }
            _ => auth::identify(configuration, token, self.now()),
        }
    }

    /// The call with what a sign-in by an issuer has besides its token: groups that the issuer told apart.
    pub(crate) fn with_session(&self, mut context: Context, companion: &Companion) -> Context {
        let caller = &mut context.caller;
        if caller.proof != Proof::Oidc || caller.subject != companion.subject {
            return context;
        }
        let known = companion.groups.iter().filter(|_| companion.believed > self.now().as_second());
        for group in known {
            if !caller.groups.contains(group) {
                caller.groups.push(group.clone());
            }
        }
        context.session = Some(companion.session.clone());
        context
    }

    /// The same call some time later: whether its token still counts.
    ///
    /// # Errors
    /// It does not.
    pub(crate) async fn again(&self, context: &Context) -> Result<Context, Error> {
        let configuration = self.0.configured.get().await?;
        let caller = &context.caller;
        if caller.is_known() {
            let ended = caller.expires.is_some_and(|end| end <= self.now());
            let revoked = !caller.token.is_empty() && configuration.revoked.contains(&caller.token);
            if ended || revoked || !auth::is_current(&configuration, caller) {
                return Err(Error::new(Code::Unauthenticated, "invalid session: token no longer counts"));
            }
        } else if !configuration.is_on("users.anonymous.enabled") {
            return Err(Error::new(Code::Unauthenticated, "no session information"));
        }
        Ok(Context { configuration, ..context.clone() })
    }

    pub(crate) fn objects(&self, kind: Kind, namespace: &str) -> Objects {
        Objects::new(&self.0.client, kind, namespace)
    }

    /// The namespace that is meant.
    ///
    /// # Errors
    /// Nothing may live there, which reads as if nothing did.
    pub(crate) fn namespace<'n>(&'n self, asked: &'n str) -> Result<&'n str, Error> {
        match asked {
            "" => Ok(&self.0.settings.namespace),
            asked if self.0.settings.allows(asked) => Ok(asked),
            _ => Err(Error::hidden()),
        }
    }

    /// How policies name an object of a project.
    pub(crate) fn policy_name(&self, project: &str, namespace: &str, name: &str) -> String {
        match namespace == self.0.settings.namespace {
            true => format!("{project}/{name}"),
            false => format!("{project}/{namespace}/{name}"),
        }
    }

    /// Whether the caller may.
    pub(crate) fn may(&self, context: &Context, resource: &str, action: &str, object: &str) -> bool {
        self.decision(context, resource, action, object).allowed
    }

    pub(crate) fn decision(
        &self,
        context: &Context,
        resource: &str,
        action: &str,
        object: &str,
    ) -> crate::gate::Decision {
        let ask = Ask { resource, action, object, project: project_of(context, resource, object) };
        self.0.gate.decide(&context.caller, &ask)
    }

    /// Lets the caller go on only if it may.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand(
        &self,
        context: &Context,
        resource: &str,
        action: &str,
        object: &str,
    ) -> Result<(), Error> {
        let ask = Ask { resource, action, object, project: project_of(context, resource, object) };
        match self.0.gate.decide(&context.caller, &ask).allowed {
            true => Ok(()),
            false => Err(denied(&context.caller, &ask)),
        }
    }

    /// Writes down what a call did or failed to do, and hands its result on.
    pub(crate) async fn audited<T>(
        &self,
        context: &Context,
        deed: Deed,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        let outcome = result.as_ref().map(drop).map_err(Clone::clone);
        self.record(context, &deed, &outcome).await;
        result
    }

    /// Writes down that a call was denied before it was known what it is about. The caller learns nothing by it: the Event
    /// stands beside an object that is there, for whoever may see that.
    pub(crate) async fn denied(
        &self,
        context: &Context,
        verb: &'static str,
        detail: &str,
        kind: &'static str,
        at: (&str, &str),
        error: &Error,
    ) {
        if !audit::is_denial(error) {
            return;
        }
        let deed = Deed {
            verb,
            reason: "BatonDenied",
            object: self.affected(context, kind, at),
            detail: detail.to_owned(),
            ..Deed::default()
        };
        self.record(context, &deed, &Err(error.clone())).await;
    }

    async fn record(&self, context: &Context, deed: &Deed, outcome: &Result<(), Error>) {
        context.records.fetch_add(1, Ordering::Relaxed);
        let Context { caller, request, .. } = context;
        let denied = outcome.as_ref().is_err_and(audit::is_denial);
        if denied && !self.0.denials.admit(caller.actor(), self.now()) {
            return;
        }
        audit::record(&self.0.client, self.now(), caller, request, deed, outcome).await;
    }

    /// What a call is about, as far as it is known without asking anybody: without a uid where it is not there.
    fn affected(&self, context: &Context, kind: &'static str, (namespace, name): (&str, &str)) -> Affected {
        let own = &self.0.settings.namespace;
        let namespace = if namespace.is_empty() || kind == "AppProject" { own } else { namespace };
        let known = match kind {
            "Application" => self.0.applications.get(namespace, name),
            "ApplicationSet" => self.0.sets.get(namespace, name),
            _ => None,
        };
        let known = known.filter(|_| self.0.settings.allows(namespace));
        let (uid, project) = match (kind, &known) {
            ("AppProject", _) => {
                let uid = context.configuration.projects.get(name).and_then(|one| one.metadata.uid.clone());
                (uid.unwrap_or_default(), String::new())
            }
            ("Application", Some(one)) => (
                text(one, "/metadata/uid").to_owned(),
                crate::handlers::applications::project(one).to_owned(),
            ),
            ("ApplicationSet", Some(one)) => {
                (text(one, "/metadata/uid").to_owned(), crate::handlers::sets::project(one).to_owned())
            }
            _ => (String::new(), String::new()),
        };
        Affected { kind, namespace: namespace.to_owned(), name: name.to_owned(), uid, project }
    }
}

/// The project whose roles count for an object.
fn project_of<'c>(context: &'c Context, resource: &str, object: &str) -> Option<&'c AppProject> {
    let name = match resource {
        "projects" => object,
        _ => object.split_once('/').map(|(project, _)| project)?,
    };
    context.configuration.projects.get(name).map(Arc::as_ref)
}

/// An object without the record of its writers.
pub(crate) fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    fill(&mut object);
    object
}

/// Gives an Application the parts of a status that Argo CD's answers always have: clients look into them unasked.
pub(crate) fn fill(object: &mut Value) {
    if object["kind"] != "Application" {
        return;
    }
    for part in ["health", "sourceHydrator", "summary"] {
        let known = &mut object["status"][part];
        if known.is_null() {
            *known = Value::Object(serde_json::Map::new());
        }
    }
}
