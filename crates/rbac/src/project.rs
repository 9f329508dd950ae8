//! What the roles of an AppProject add to the policy, for requests in that project.

use std::sync::Arc;

use baton_api::project::{AppProject, ProjectRole};

use crate::caller::role_subject;
use crate::csv;
use crate::line::{Entry, LONGEST_FIELD, LineFault, Origin, Right};
use crate::policy::{LoadError, Policy};
use crate::request::Resource;
use crate::rules::{Bounds, Builder, Rules, refused};

/// Most text of one project's roles, in bytes.
const LARGEST: usize = 512 << 10;

/// How much they may be besides. Whoever may write a project may have less to say than whoever writes the policy.
const BOUNDS: Bounds = Bounds { lines: 5_000, expressions: 100_000 };

/// Whether tokens of programs may approve deletions in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenApproval {
    /// They may not: a deletion is approved by a person.
    #[default]
    Refused,
    /// They may, where a line allows it.
    Allowed,
}

/// A project as far as rights go.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) name: Arc<str>,
    pub(crate) token_approval: TokenApproval,
    roles: Vec<Role>,
    /// Without them the policy of the installation holds alone.
    pub(crate) rules: Result<Rules, Arc<LoadError>>,
}

/// The text of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Role {
    name: String,
    policies: Vec<String>,
    groups: Vec<String>,
}

// === impl Project ===

impl Project {
    pub(crate) fn new(project: &AppProject, token_approval: TokenApproval, policy: &Policy) -> Project {
        let name: Arc<str> = project.metadata.name.as_deref().unwrap_or_default().into();
        let roles: Vec<Role> = project.spec.roles.iter().map(Role::from).collect();
        let rules = compile(&name, &roles, policy).map_err(Arc::new);
        Project { name, token_approval, roles, rules }
    }

    /// The same under another policy.
    pub(crate) fn under(&self, policy: &Policy) -> Project {
        let rules = compile(&self.name, &self.roles, policy).map_err(Arc::new);
        Project {
            name: self.name.clone(),
            token_approval: self.token_approval,
            roles: self.roles.clone(),
            rules,
        }
    }

    /// Whether another version of the project says the same about rights.
    pub(crate) fn says(&self, project: &AppProject, token_approval: TokenApproval) -> bool {
        let same = |(held, role): (&Role, &ProjectRole)| {
            held.name == role.name && held.policies == role.policies && held.groups == role.groups
        };
        self.token_approval == token_approval
            && self.roles.len() == project.spec.roles.len()
            && self.roles.iter().zip(&project.spec.roles).all(same)
    }
}

impl From<&ProjectRole> for Role {
    fn from(role: &ProjectRole) -> Role {
        Role { name: role.name.clone(), policies: role.policies.clone(), groups: role.groups.clone() }
    }
}

fn compile(project: &Arc<str>, roles: &[Role], policy: &Policy) -> Result<Rules, LoadError> {
    let texts = roles.iter().flat_map(|role| role.policies.iter().chain(&role.groups).chain([&role.name]));
    if texts.map(String::len).sum::<usize>() > LARGEST {
        return Err(LoadError::Size { most: LARGEST });
    }
    let mut builder = Builder::new(policy.match_mode(), policy.bad_patterns(), BOUNDS, policy.rules.count);
    for (at, role) in roles.iter().enumerate() {
        let subject = role_subject(project, &role.name);
        let origin = |field: String| Origin::Project { project: project.clone(), field };
        // Whoever has a role of a project may see the project.
        let entry = Entry::Right(Right {
            subject: subject.clone(),
            resource: Resource::Projects.word().to_owned(),
            action: "get".to_owned(),
            object: project.to_string(),
            effect: "allow".to_owned(),
        });
        let text = format!("p, {subject}, projects, get, {project}, allow");
        builder.add_entry(entry, &text, origin(format!("spec.roles[{at}]")))?;
        for (index, text) in role.policies.iter().enumerate() {
            let origin = origin(format!("spec.roles[{at}].policies[{index}]"));
            if text.trim().contains('\n') {
                return Err(refused(text, origin, LineFault::Lines));
            }
            builder.add(text, origin)?;
        }
        for (index, group) in role.groups.iter().enumerate() {
            let origin = origin(format!("spec.roles[{at}].groups[{index}]"));
            let text = format!("g, {group}, {subject}");
            let member = member_of(group).map_err(|fault| refused(&text, origin.clone(), fault))?;
            builder.add_entry(Entry::Link { member, role: subject.clone() }, &text, origin)?;
        }
    }
    let (rules, _) = builder.finish(Some(&policy.rules))?;
    Ok(rules)
}

/// A group is read as the field of a line, for a name with a comma in it is written in quotes.
fn member_of(group: &str) -> Result<String, LineFault> {
    if group.contains('\n') {
        return Err(LineFault::Lines);
    }
    let fields = csv::fields(group)?;
    match <[String; 1]>::try_from(fields) {
        Ok([member]) if member.len() > LONGEST_FIELD => Err(LineFault::FieldTooLong),
        Ok([member]) => Ok(member),
        Err(fields) => Err(LineFault::Link(fields.len() + 2)),
    }
}
