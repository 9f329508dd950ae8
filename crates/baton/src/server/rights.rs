//! Who may do what, as `argocd-rbac-cm` and the roles of projects say at this moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::AppProject;
use baton_api::names::baton::TOKENS_APPROVE;
use baton_rbac::{Because, LoadError, Policy, Request, Rights, TokenApproval};
use baton_server::{Ask, Caller, Decision, Gate, Proof};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt as _};
use parking_lot::RwLock;
use serde::Deserialize as _;
use tokio::sync::watch;

/// The ConfigMap with policies.
const POLICIES: &str = "argocd-rbac-cm";
/// How long the first reading may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rights that follow the ConfigMap and the projects: what is written there holds from then on.
pub(crate) struct LiveRights {
    namespace: String,
    book: RwLock<Book>,
    read: watch::Sender<bool>,
}

/// What was read so far.
struct Book {
    rights: Rights,
    policy: Reading,
    /// Names of the projects that were taken; none before they were listed.
    projects: Option<BTreeSet<String>>,
}

/// What came of reading the policy.
enum Reading {
    /// Nobody has looked yet.
    Ahead,
    /// It never was one that can be read; why not.
    Refused(String),
    /// The last one that could be read holds.
    Holds,
}

// === impl LiveRights ===

impl LiveRights {
    /// Rights that forbid everything until [`LiveRights::run`] has read what they are.
    pub(crate) fn new(namespace: &str) -> LiveRights {
        LiveRights {
            namespace: namespace.to_owned(),
            book: RwLock::new(Book::new()),
            read: watch::Sender::new(false),
        }
    }

    /// Follows the policy and the projects until dropped.
    pub(crate) async fn run(&self, client: &Client) {
        tokio::join!(self.follow_policy(client.clone()), self.follow_projects(client.clone()));
    }

    /// Waits until both were read once; whether they were.
    pub(crate) async fn ready(&self) -> bool {
        let mut read = self.read.subscribe();
        matches!(tokio::time::timeout(PATIENCE, read.wait_for(|read| *read)).await, Ok(Ok(_)))
    }

    async fn follow_policy(&self, client: Client) {
        let api: Api<ConfigMap> = Api::namespaced(client, &self.namespace);
        let only = watcher::Config::default().fields(&format!("metadata.name={POLICIES}"));
        let mut events = watcher::watcher(api, only).default_backoff().boxed();
        let mut listed = None;
        while let Some(event) = events.next().await {
            let data = match event {
                Ok(Event::Init) => {
                    listed = None;
                    continue;
                }
                Ok(Event::InitApply(map)) => {
                    listed = map.data;
                    continue;
                }
                Ok(Event::InitDone) => listed.take().unwrap_or_default(),
                Ok(Event::Apply(map)) => map.data.unwrap_or_default(),
                // Without a ConfigMap the built-in policy holds.
                Ok(Event::Delete(_)) => BTreeMap::new(),
                Err(error) => {
                    tracing::warn!(%error, "the watch of {POLICIES} failed and is tried again");
                    continue;
                }
            };
            self.write(|book| match book.take_policy(&data) {
                Ok(()) => {
                    for warning in book.rights.policy().warnings() {
                        tracing::warn!("{POLICIES}: {warning}");
                    }
                }
                Err(error) => tracing::error!(%error, "{POLICIES} cannot be read; what held before holds"),
            });
        }
    }

    async fn follow_projects(&self, client: Client) {
        let kind = ApiResource::erase::<AppProject>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &kind);
        let mut events = watcher::watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(object.name_any());
                    self.write(|book| book.take_object(&object));
                }
                Ok(Event::InitDone) => self.write(|book| book.keep_only(std::mem::take(&mut listed))),
                Ok(Event::Apply(object)) => self.write(|book| book.take_object(&object)),
                Ok(Event::Delete(object)) => self.write(|book| book.forget(&object.name_any())),
                Err(error) => tracing::warn!(%error, "the watch of projects failed and is tried again"),
            }
        }
    }

    fn write(&self, change: impl FnOnce(&mut Book)) {
        let mut book = self.book.write();
        change(&mut book);
        if book.is_read() {
            self.read.send_replace(true);
        }
    }
}

impl Gate for LiveRights {
    fn decide(&self, caller: &Caller, ask: &Ask<'_>) -> Decision {
        self.book.read().decide(caller, ask, &self.namespace)
    }
}

// === impl Book ===

impl Book {
    fn new() -> Book {
        Book { rights: Rights::new(Policy::built_in()), policy: Reading::Ahead, projects: None }
    }

    fn is_read(&self) -> bool {
        self.projects.is_some() && !matches!(self.policy, Reading::Ahead)
    }

    /// Takes another policy. One that cannot be read changes nothing: the one before it holds, if there was one.
    fn take_policy(&mut self, data: &BTreeMap<String, String>) -> Result<(), LoadError> {
        match Policy::load(data) {
            Ok(policy) => {
                self.rights.set_policy(policy);
                self.policy = Reading::Holds;
                Ok(())
            }
            Err(error) => {
                if !matches!(self.policy, Reading::Holds) {
                    self.policy = Reading::Refused(error.to_string());
                }
                Err(error)
            }
        }
    }

    /// Takes a project as the API has it. Of one that cannot be read at all, what held before holds.
    fn take_object(&mut self, object: &DynamicObject) {
        let name = object.name_any();
        let project = serde_json::to_value(object).and_then(AppProject::deserialize);
        let taken = match &project {
            Ok(project) => self.take_project(project).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = taken {
            tracing::error!(project = name, error, "the roles of a project cannot be read");
        }
    }

    fn take_project(&mut self, project: &AppProject) -> Result<(), Arc<LoadError>> {
        if let Some(projects) = &mut self.projects {
            projects.extend(project.metadata.name.clone());
        }
        self.rights.set_project(project, token_approval(project))
    }

    /// Forgets every project that is not among these.
    fn keep_only(&mut self, names: BTreeSet<String>) {
        for gone in self.projects.iter().flatten().filter(|name| !names.contains(*name)) {
            self.rights.remove_project(gone);
        }
        self.projects = Some(names);
    }

    fn forget(&mut self, name: &str) {
        self.rights.remove_project(name);
        if let Some(projects) = &mut self.projects {
            projects.remove(name);
        }
    }

    fn decide(&self, caller: &Caller, ask: &Ask<'_>, namespace: &str) -> Decision {
        match &self.policy {
            Reading::Refused(why) => {
                return Decision::forbid(format!("{POLICIES} cannot be read, so nobody may: {why}"));
            }
            Reading::Ahead => return Decision::forbid("the policy has not been read yet: try again"),
            Reading::Holds if self.projects.is_none() => {
                return Decision::forbid("projects have not been read yet: try again");
            }
            Reading::Holds => {}
        }
        let Some(caller) = subject(caller) else {
            return Decision::forbid("the caller is nobody whom policies know");
        };
        let request = match Request::parse(ask.resource, ask.action, ask.object, namespace) {
            Ok(request) => request,
            Err(error) => return Decision::refuse(error.to_string()),
        };
        let decision = self.rights.decide(&caller, &request);
        let reason = decision.because.to_string();
        match decision.because {
            _ if decision.allowed => Decision::allow(reason),
            Because::Nothing => Decision::refuse(reason),
            // A line, or what may hide one: no wider right makes up for it.
            Because::Line { .. }
            | Because::Unreadable { .. }
            | Because::TokenApproves
            | Because::ForeignToken { .. }
            | Because::ProjectUnread { .. } => Decision::forbid(reason),
        }
    }
}

/// The caller in the words of policies; nothing for whom they have none.
fn subject(caller: &Caller) -> Option<baton_rbac::Caller> {
    let subject = match caller.proof {
        Proof::Anonymous => baton_rbac::Caller::anonymous(),
        Proof::Session | Proof::Oidc => {
            baton_rbac::Caller::session(caller.subject.as_str(), caller.groups.iter().map(String::as_str))
        }
        Proof::ApiKey => baton_rbac::Caller::api_key(caller.subject.as_str()),
        Proof::ProjectToken => {
            let (project, role) = caller.subject.strip_prefix("proj:")?.split_once(':')?;
            baton_rbac::Caller::project_token(project, role)
        }
        // Policies know nobody of that kind.
        Proof::Kubernetes => return None,
    };
    Some(match caller.issued {
        Some(issued) => subject.with_issued_at(issued),
        None => subject,
    })
}

/// Whether the project lets tokens of programs approve deletions.
fn token_approval(project: &AppProject) -> TokenApproval {
    let annotations = project.metadata.annotations.as_ref();
    match annotations.and_then(|all| all.get(TOKENS_APPROVE)).map(String::as_str) {
        Some("true") => TokenApproval::Allowed,
        _ => TokenApproval::Refused,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NAMESPACE: &str = "argocd";
    const APPROVE: &str = "action/apps/Deployment/approve-deletion";

    fn policy(csv: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("policy.csv".to_owned(), csv.to_owned())])
    }

    fn project(name: &str, annotations: Value, policies: &[&str]) -> AppProject {
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"roles": [{"name": "ci", "policies": policies}]},
        });
        serde_json::from_value(project).expect("a project")
    }

    fn book(csv: &str, projects: &[AppProject]) -> Book {
        let mut book = Book::new();
        book.take_policy(&policy(csv)).expect("a policy");
        book.keep_only(BTreeSet::new());
        for project in projects {
            book.take_project(project).expect("roles");
        }
        book
    }

    fn caller(proof: Proof, subject: &str, groups: &[&str]) -> Caller {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Caller { proof, subject: subject.to_owned(), groups, ..Caller::anonymous() }
    }

    /// `yes`, `no` or `forbidden`.
    fn asked(book: &Book, caller: &Caller, action: &str, object: &str) -> &'static str {
        let ask = Ask { resource: "applications", action, object, project: None };
        let decision = book.decide(caller, &ask, NAMESPACE);
        assert!(!(decision.allowed && decision.forbidden), "{}", decision.reason);
        match decision {
            Decision { allowed: true, .. } => "yes",
            Decision { forbidden: true, .. } => "forbidden",
            _ => "no",
        }
    }

    #[test]
    fn accounts_groups_and_roles_have_what_lines_give_them() {
        let csv = "p, alice, applications, sync, shop/*, allow\n\
                   p, role:ops, applications, *, */*, allow\n\
                   g, ops-team, role:ops\n\
                   p, alice, applications, delete, shop/*, deny";
        let role = "p, proj:shop:ci, applications, sync, shop/*, allow";
        let book = book(csv, &[project("shop", json!({}), &[role]), project("pay", json!({}), &[])]);
        let alice = caller(Proof::Session, "alice", &[]);
        let ops = caller(Proof::Oidc, "bob", &["ops-team"]);
        let token = caller(Proof::ProjectToken, "proj:shop:ci", &[]);
        let nobody = Caller::anonymous();
        let admin = caller(Proof::Session, "admin", &[]);
        for (caller, action, object, expected) in [
            (&alice, "sync", "shop/web", "yes"),
            (&alice, "sync", "pay/web", "no"),
            (&alice, "delete", "shop/web", "forbidden"),
            (&ops, "delete", "pay/web", "yes"),
            (&token, "sync", "shop/web", "yes"),
            (&token, "sync", "pay/web", "forbidden"),
            (&nobody, "get", "shop/web", "no"),
            (&admin, "delete", "pay/web", "yes"),
            (&admin, "no-such-action", "pay/web", "no"),
            (&caller(Proof::ProjectToken, "proj:shop", &[]), "get", "shop/web", "forbidden"),
            (&caller(Proof::Oidc, "role:admin", &["role:admin"]), "get", "shop/web", "no"),
        ] {
            assert_eq!(
                asked(&book, caller, action, object),
                expected,
                "{} {action} {object}",
                caller.subject
            );
        }
    }

    #[test]
    fn a_token_approves_deletions_only_where_its_project_says_so() {
        let role = "p, proj:shop:ci, applications, *, shop/*, allow";
        let token = caller(Proof::ProjectToken, "proj:shop:ci", &[]);
        for (annotations, expected) in [
            (json!({}), "forbidden"),
            (json!({TOKENS_APPROVE: "yes"}), "forbidden"),
            (json!({TOKENS_APPROVE: "true"}), "yes"),
        ] {
            let book = book("", &[project("shop", annotations, &[role])]);
            assert_eq!(asked(&book, &token, APPROVE, "shop/web"), expected);
        }
        let key = caller(Proof::ApiKey, "admin", &[]);
        assert_eq!(asked(&book("", &[]), &key, APPROVE, "shop/web"), "forbidden");
    }

    #[test]
    fn nobody_may_anything_before_everything_was_read() {
        let admin = caller(Proof::Session, "admin", &[]);
        let mut book = Book::new();
        assert_eq!(asked(&book, &admin, "get", "shop/web"), "forbidden");
        book.take_policy(&BTreeMap::new()).expect("the built-in policy");
        assert!(!book.is_read());
        assert_eq!(asked(&book, &admin, "get", "shop/web"), "forbidden");
        book.keep_only(BTreeSet::new());
        assert!(book.is_read());
        assert_eq!(asked(&book, &admin, "get", "shop/web"), "yes");
    }

    #[test]
    fn a_policy_that_cannot_be_read_leaves_the_one_before_it() {
        let alice = caller(Proof::Session, "alice", &[]);
        let mut book = Book::new();
        book.keep_only(BTreeSet::new());
        let broken = policy("p, alice, applications");
        book.take_policy(&broken).expect_err("three fields");
        assert_eq!(asked(&book, &alice, "get", "shop/web"), "forbidden", "there is none to fall back to");
        book.take_policy(&policy("p, alice, applications, get, */*, allow")).expect("a policy");
        book.take_policy(&broken).expect_err("three fields");
        assert_eq!(asked(&book, &alice, "get", "shop/web"), "yes");
        book.take_policy(&BTreeMap::new()).expect("the ConfigMap is gone");
        assert_eq!(asked(&book, &alice, "get", "shop/web"), "no");
    }

    #[test]
    fn a_project_that_is_gone_takes_its_roles_along() {
        let role = "p, proj:shop:ci, applications, get, shop/*, allow";
        let token = caller(Proof::ProjectToken, "proj:shop:ci", &[]);
        let mut book = book("", &[project("shop", json!({}), &[role])]);
        assert_eq!(asked(&book, &token, "get", "shop/web"), "yes");
        book.keep_only(BTreeSet::from(["other".to_owned()]));
        assert_eq!(asked(&book, &token, "get", "shop/web"), "no");
        book.take_project(&project("shop", json!({}), &[role])).expect("roles");
        book.forget("shop");
        assert_eq!(asked(&book, &token, "get", "shop/web"), "no");
    }

    #[test]
    fn unreadable_roles_forbid_what_nothing_else_allows() {
        let mut book = book("p, alice, applications, get, shop/web, allow", &[]);
        book.take_project(&project("shop", json!({}), &["p, oops"])).expect_err("two fields");
        let alice = caller(Proof::Session, "alice", &[]);
        assert_eq!(asked(&book, &alice, "get", "shop/web"), "yes");
        assert_eq!(asked(&book, &alice, "sync", "shop/web"), "forbidden");
    }
}
