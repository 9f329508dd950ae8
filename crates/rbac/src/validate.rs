//! What is wrong with the roles of an AppProject, found before it is stored.

use std::collections::HashSet;

use baton_api::project::{AppProject, ProjectRole};

use crate::action::Verb;
use crate::caller::role_subject;
use crate::finding::{Finding, shown};
use crate::line::{self, Entry, Right};
use crate::request::Resource;

/// Most roles of a project.
const MOST_ROLES: usize = 500;

/// Most policies, and most groups, of a role.
const MOST_ENTRIES: usize = 2_000;

/// The actions a policy of a project may have besides patterns of `action/…`, `update/…` and `delete/…`.
const VERBS: [Verb; 7] =
    [Verb::Get, Verb::Create, Verb::Update, Verb::Delete, Verb::Sync, Verb::Rollback, Verb::Override];

/// Everything that is wrong with the roles of a project, with the field and what to do.
pub fn validate_roles(project: &AppProject) -> Vec<Finding> {
    let name = project.metadata.name.as_deref().unwrap_or_default();
    let roles = &project.spec.roles;
    let mut findings = Vec::new();
    if roles.len() > MOST_ROLES {
        let message = format!("{} roles are more than the {MOST_ROLES} a project may have", roles.len());
        findings.push(Finding::new("spec.roles", message));
        return findings;
    }
    let mut names = HashSet::new();
    for (at, role) in roles.iter().enumerate() {
        let path = format!("spec.roles[{at}]");
        if !names.insert(&role.name) {
            let message = format!("{} is taken; names of roles must differ", shown(&role.name));
            findings.push(Finding::new(format!("{path}.name"), message));
        }
        if !is_role_name(&role.name) {
            let message = format!(
                "{} is no name of a role: use letters, digits, - and _, with a letter or digit at both ends",
                shown(&role.name)
            );
            findings.push(Finding::new(format!("{path}.name"), message));
        }
        validate_role(name, role, &path, &mut findings);
    }
    findings
}

fn validate_role(project: &str, role: &ProjectRole, path: &str, findings: &mut Vec<Finding>) {
    let mut list = |field: &str, texts: &[String], judge: &dyn Fn(&str) -> Result<(), String>| {
        if texts.len() > MOST_ENTRIES {
            let message = format!("{} are more than the {MOST_ENTRIES} a role may have", texts.len());
            findings.push(Finding::new(format!("{path}.{field}"), message));
            return;
        }
        let mut seen = HashSet::new();
        for (at, text) in texts.iter().enumerate() {
            let path = format!("{path}.{field}[{at}]");
            if !seen.insert(text) {
                findings.push(Finding::new(&path, format!("{} is there twice; remove one", shown(text))));
            }
            if let Err(message) = judge(text) {
                findings.push(Finding::new(&path, message));
            }
        }
    };
    list("policies", &role.policies, &|policy| judge_policy(project, &role.name, policy));
    list("groups", &role.groups, &judge_group);
}

fn judge_policy(project: &str, role: &str, policy: &str) -> Result<(), String> {
    if policy.contains('\n') {
        return Err(line::LineFault::Lines.to_string());
    }
    let right = match line::parse(policy) {
        Ok(Some(Entry::Right(right))) => right,
        Ok(_) => {
            return Err(format!(
                "{} gives no right: write p, {}, <resource>, <action>, {project}/<name>, <allow or deny>",
                shown(policy),
                role_subject(project, role)
            ));
        }
        Err(fault) => return Err(fault.to_string()),
    };
    let Right { subject, resource, action, object, effect } = right;
    let expected = role_subject(project, role);
    if subject != expected {
        return Err(format!(
            "the subject is {}: a policy of this role speaks of {expected}",
            shown(&subject)
        ));
    }
    let scoped = |word: &Resource| word.is_project_scoped();
    if !Resource::ALL.iter().filter(|word| scoped(word)).any(|word| word.word() == resource) {
        let words: Vec<&str> = Resource::ALL.into_iter().filter(scoped).map(Resource::word).collect();
        return Err(format!("the resource is {}: it must be one of {}", shown(&resource), words.join(", ")));
    }
    if !is_action(&action) {
        let words = VERBS.map(Verb::word).join(", ");
        return Err(format!(
            "the action is {}: it must be one of {words}, *, or begin with action/, update/ or delete/",
            shown(&action)
        ));
    }
    if !is_object(project, &object) {
        return Err(format!(
            "the object is {}: it must be {project}/<name> or {project}/<namespace>/<name>, of letters, digits, \
             -, _, . and *",
            shown(&object)
        ));
    }
    if !matches!(effect.as_str(), "allow" | "deny") {
        return Err(format!("the effect is {}: it must be allow or deny", shown(&effect)));
    }
    Ok(())
}

fn judge_group(group: &str) -> Result<(), String> {
    let trimmed = group.trim();
    let quoted = trimmed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let name = quoted.unwrap_or(trimmed);
    if name.is_empty() {
        return Err("the group is empty: name one, or remove it".to_owned());
    }
    if quoted.is_none() && name.contains(',') {
        return Err(format!("{} has a comma in it: put it into quotes", shown(group)));
    }
    if name.contains(['"', '\n', '\r', '\t']) {
        return Err(format!("{} has a quote, a tab or a line break in it: remove it", shown(group)));
    }
    if trimmed.len() != group.len() {
        return Err(format!("{} begins or ends with space: remove it", shown(group)));
    }
    if group.len() > line::LONGEST_FIELD {
        return Err(format!("the group is longer than {} bytes", line::LONGEST_FIELD));
    }
    Ok(())
}

fn is_role_name(name: &str) -> bool {
    let ends_well = |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric());
    let inside = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    ends_well(name.chars().next()) && ends_well(name.chars().next_back()) && name.chars().all(inside)
}

fn is_action(action: &str) -> bool {
    let has_prefix = ["action/", "update/", "delete/"].iter().any(|prefix| action.starts_with(prefix));
    has_prefix || action == "*" || VERBS.iter().any(|verb| verb.word() == action)
}

fn is_object(project: &str, object: &str) -> bool {
    let inside = |char: char| char.is_ascii_alphanumeric() || matches!(char, '*' | '_' | '-' | '.');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(inside);
    let rest = object.strip_prefix(project).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').count() <= 2 && rest.split('/').all(is_part))
}
