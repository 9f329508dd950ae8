//! What is wrong with a project that somebody wants to store: what says nothing there, or says it twice.
//!
//! What gets past this (by `kubectl`, or before there was this) permits nothing, and a window that cannot be read stops
//! every sync. Better to hear of it at once.

use std::collections::BTreeSet;

use baton_api::AppProject;
use baton_api::project::ProjectRole;
use baton_sync::windows::{self, Asker};
use jiff::Timestamp;

use crate::error::{Code, Error};

/// A pattern that denies everything and so means nothing.
const NOTHING: &str = "!*";

/// The first thing that is wrong with a project.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn judge(project: &AppProject, now: Timestamp) -> Result<(), Error> {
    let name = project.metadata.name.as_deref().unwrap_or_default();
    let spec = &project.spec;
    let mut seen = BTreeSet::new();
    for destination in &spec.destinations {
        let fields = [
            ("server", &destination.server),
            ("name", &destination.name),
            ("namespace", &destination.namespace),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, text)| *text == NOTHING) {
            return Err(Error::invalid(format!(
                "spec.destinations: {field} has an invalid format, '{NOTHING}'"
            )));
        }
        if !seen.insert(fields.map(|(_, text)| text)) {
            let [server, name, namespace] = fields.map(|(_, text)| text.as_str());
            let cluster = if server.is_empty() { name } else { server };
            return Err(twice(format!(
                "spec.destinations: destination '{cluster}/{namespace}' is there twice"
            )));
        }
    }
    if let Some(repository) = doubled(&spec.source_repos) {
        return Err(twice(format!("spec.sourceRepos: source repository '{repository}' is there twice")));
    }
    if spec.source_repos.iter().any(|repository| repository == NOTHING) {
        return Err(Error::invalid(format!(
            "spec.sourceRepos: source repository has an invalid format, '{NOTHING}'"
        )));
    }
    if let Some(role) = doubled(spec.roles.iter().map(|role| &role.name)) {
        return Err(twice(format!("spec.roles: role '{role}' is there twice")));
    }
    spec.roles.iter().try_for_each(|role| judge_role(name, role))?;
    for (place, window) in spec.sync_windows.iter().enumerate() {
        if !matches!(window.kind.as_str(), "allow" | "deny") {
            return Err(Error::invalid(format!(
                "spec.syncWindows[{place}]: kind is allow or deny, and not {:?}",
                window.kind
            )));
        }
        if let Some(error) = windows::judge(&[window], Asker::default(), now).error {
            return Err(Error::invalid(format!("spec.syncWindows[{place}]: {error}")));
        }
    }
    Ok(())
}

fn judge_role(project: &str, role: &ProjectRole) -> Result<(), Error> {
    let name = &role.name;
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().last().is_some_and(plain);
    if !ends || !name.bytes().all(|byte| plain(byte) || matches!(byte, b'-' | b'_')) {
        return Err(Error::invalid(format!(
            "invalid role name '{name}': it consists of letters, digits, '-' and '_', and begins and ends with a letter or digit"
        )));
    }
    if let Some(policy) = doubled(&role.policies) {
        return Err(twice(format!("policy '{policy}' is there twice in role '{name}'")));
    }
    if let Some(group) = doubled(&role.groups) {
        return Err(twice(format!("group '{group}' is there twice in role '{name}'")));
    }
    if role.groups.iter().any(|group| group.trim().is_empty() || group.contains([',', '\n', '\r', '\t'])) {
        return Err(Error::invalid(format!(
            "role '{name}' has a group without a name, or with a comma or a line break in it"
        )));
    }
    role.policies.iter().try_for_each(|policy| {
        judge_policy(project, name, policy)
            .map_err(|why| Error::invalid(format!("invalid policy rule '{policy}' of role '{name}': {why}")))
    })
}

/// What keeps a line from meaning anything in a project's role.
fn judge_policy(project: &str, role: &str, policy: &str) -> Result<(), String> {
    let parts: Vec<&str> = policy.split(',').map(str::trim).collect();
    let [p, subject, resource, action, object, effect] = parts[..] else {
        return Err("it has six parts: p, subject, resource, action, object, effect".to_owned());
    };
    if p != "p" {
        return Err("it begins with p".to_owned());
    }
    let own = format!("proj:{project}:{role}");
    if subject != own {
        return Err(format!("the subject is {own}"));
    }
    if resource.is_empty() || action.is_empty() {
        return Err("resource and action are named".to_owned());
    }
    if object.strip_prefix(project).is_none_or(|rest| rest.len() < 2 || !rest.starts_with('/')) {
        return Err(format!("the object begins with {project}/"));
    }
    match effect {
        "allow" | "deny" => Ok(()),
        _ => Err("the effect is allow or deny".to_owned()),
    }
}

fn twice(message: String) -> Error {
    Error::new(Code::AlreadyExists, message)
}

/// The first text that is there twice.
fn doubled<'a>(texts: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = BTreeSet::new();
    texts.into_iter().find(|text| !seen.insert(text.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(spec: Value) -> Result<(), Error> {
        let project = json!({"metadata": {"name": "team"}, "spec": spec});
        judge(&serde_json::from_value(project).expect("a project"), Timestamp::UNIX_EPOCH)
    }

    fn role(name: &str, policies: &[&str]) -> Value {
        json!({"roles": [{"name": name, "policies": policies, "groups": ["a", "b c"]}]})
    }

    #[test]
    fn what_means_something_is_let_through() {
        let window =
            json!({"kind": "deny", "schedule": "0 22 * * *", "duration": "8h", "applications": ["*"]});
        for good in [
            json!({}),
            json!({"sourceRepos": ["*", "!https://x"], "destinations": [
                {"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}, {"name": "dev", "namespace": "a"},
            ]}),
            role(
                "ci",
                &[
                    "p, proj:team:ci, applications, sync, team/*, allow",
                    "p,proj:team:ci,*,action/apps/Deployment/restart,team/x,deny",
                ],
            ),
            role("a_b-9", &[]),
            json!({"syncWindows": [window]}),
        ] {
            assert_eq!(judged(good.clone()), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_says_nothing_or_says_it_twice_is_refused_with_its_place() {
        let line = "p, proj:team:ci, applications, get, team/*, allow";
        for (bad, code, said) in [
            (json!({"destinations": [{"server": "!*", "namespace": "a"}]}), Code::InvalidArgument, "server"),
            (
                json!({"destinations": [{"server": "*", "namespace": "!*"}]}),
                Code::InvalidArgument,
                "namespace",
            ),
            (
                json!({"destinations": [{"server": "x", "namespace": "a"}, {"server": "x", "namespace": "a"}]}),
                Code::AlreadyExists,
                "'x/a'",
            ),
            (json!({"sourceRepos": ["a", "a"]}), Code::AlreadyExists, "'a'"),
            (json!({"sourceRepos": ["!*"]}), Code::InvalidArgument, "'!*'"),
            (json!({"roles": [{"name": "a"}, {"name": "a"}]}), Code::AlreadyExists, "'a'"),
            (json!({"roles": [{"name": "a", "groups": ["g", "g"]}]}), Code::AlreadyExists, "'g'"),
            (json!({"roles": [{"name": "a", "groups": [" "]}]}), Code::InvalidArgument, "group"),
            (role("-ci", &[]), Code::InvalidArgument, "'-ci'"),
            (role("", &[]), Code::InvalidArgument, "role name"),
            (role("ci", &[line, line]), Code::AlreadyExists, "twice"),
            (
                role("ci", &["p, proj:other:ci, applications, get, team/*, allow"]),
                Code::InvalidArgument,
                "proj:team:ci",
            ),
            (
                role("ci", &["p, proj:team:ci, applications, get, teammate/*, allow"]),
                Code::InvalidArgument,
                "team/",
            ),
            (
                role("ci", &["p, proj:team:ci, applications, get, team/, allow"]),
                Code::InvalidArgument,
                "team/",
            ),
            (
                role("ci", &["p, proj:team:ci, applications, get, team/*, maybe"]),
                Code::InvalidArgument,
                "allow or deny",
            ),
            (role("ci", &["p, proj:team:ci, applications, get"]), Code::InvalidArgument, "six parts"),
            (
                role("ci", &["g, proj:team:ci, applications, get, team/*, allow"]),
                Code::InvalidArgument,
                "begins with p",
            ),
            (
                json!({"syncWindows": [{"kind": "allow", "schedule": "nope", "duration": "1h"}]}),
                Code::InvalidArgument,
                "syncWindows[0]",
            ),
            (
                json!({"syncWindows": [{"kind": "allow", "schedule": "* * * * *", "duration": "soon"}]}),
                Code::InvalidArgument,
                "syncWindows[0]",
            ),
            (
                json!({"syncWindows": [{"kind": "maybe", "schedule": "* * * * *", "duration": "1h"}]}),
                Code::InvalidArgument,
                "allow or deny",
            ),
        ] {
            let error = judged(bad.clone()).expect_err("it is refused");
            assert_eq!(error.code, code, "{bad}");
            assert!(error.message.contains(said), "{bad}: {}", error.message);
        }
    }
}
