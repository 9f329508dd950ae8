//! Who may do what, by the sentences of Argo CD's model and Baton's additions.
//!
//! | what | where |
//! |---|---|
//! | reading the ConfigMap: lines, keys, modes, scopes, bounds | `loading` |
//! | words of requests and how objects are named | `words` |
//! | the order of subjects, roles, denies, the default role | `evaluation` |
//! | roles of projects and their tokens, validation | `projects` |
//! | Baton's rights and who approves deletions | `approvals` |
//! | what people are told | `explanations` |
//! | texts that mean harm | `hostile` |

mod approvals;
mod evaluation;
mod explanations;
mod hostile;
mod loading;
mod projects;
mod words;

use std::collections::BTreeMap;

use baton_api::project::{AppProject, ProjectRole};
use baton_rbac::{Caller, Decision, LoadError, Object, Policy, Request, Rights, TokenApproval};

/// The namespace of the control plane.
const CONTROL: &str = "argocd";

/// The data of a ConfigMap.
fn data(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn load(entries: &[(&str, &str)]) -> Result<Policy, LoadError> {
    Policy::load(&data(entries))
}

/// Rights by a ConfigMap with these entries.
fn rights(entries: &[(&str, &str)]) -> Rights {
    Rights::new(load(entries).expect("the policy is valid"))
}

/// Rights by `policy.csv` alone.
fn by_csv(csv: &str) -> Rights {
    rights(&[("policy.csv", csv)])
}

/// A person without groups.
fn user(id: &str) -> Caller {
    Caller::session(id, [] as [&str; 0])
}

/// A person in groups.
fn member(id: &str, groups: &[&str]) -> Caller {
    Caller::session(id, groups.iter().copied())
}

/// A request in three words: `applications sync p/web`.
fn request(text: &str) -> Request {
    let mut words = text.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (resource, action, object) = (word(), word(), word());
    Request::new(
        resource.parse().expect("a resource"),
        baton_rbac::Action::parse(action).expect("an action"),
        Object::new(object).expect("an object"),
    )
}

fn decide(rights: &Rights, caller: &Caller, text: &str) -> Decision {
    rights.decide(caller, &request(text))
}

#[track_caller]
fn may(rights: &Rights, caller: &Caller, text: &str) {
    let decision = decide(rights, caller, text);
    assert!(decision.allowed, "{text} for {caller:?}: {decision}");
}

#[track_caller]
fn may_not(rights: &Rights, caller: &Caller, text: &str) {
    let decision = decide(rights, caller, text);
    assert!(!decision.allowed, "{text} for {caller:?}: {decision}");
}

/// A role: its name, policies and groups.
type Role<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

fn project(name: &str, roles: &[Role<'_>]) -> AppProject {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let role = |(name, policies, groups): &Role<'_>| ProjectRole {
        name: (*name).to_owned(),
        policies: owned(policies),
        groups: owned(groups),
        ..ProjectRole::default()
    };
    let mut project = AppProject::default();
    project.metadata.name = Some(name.to_owned());
    project.spec.roles = roles.iter().map(role).collect();
    project
}

/// The same rights with a project.
fn with_project(mut rights: Rights, name: &str, roles: &[Role<'_>]) -> Rights {
    rights.set_project(&project(name, roles), TokenApproval::Refused).expect("the roles can be read");
    rights
}
