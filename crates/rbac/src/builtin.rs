//! The policy that is always there: `role:readonly`, `role:admin`, and the administrator.

use crate::line::{Entry, Origin, Right};
use crate::policy::LoadError;
use crate::request::Resource;
use crate::rules::Builder;

const READONLY: &str = "role:readonly";
const ADMIN: &str = "role:admin";

/// What may be read by `role:readonly`.
const READ: [Resource; 10] = [
    Resource::Applications,
    Resource::ApplicationSets,
    Resource::Certificates,
    Resource::Clusters,
    Resource::Repositories,
    Resource::WriteRepositories,
    Resource::Projects,
    Resource::Accounts,
    Resource::GpgKeys,
    Resource::Logs,
];

/// What `role:admin` may do besides. No role may call extensions.
const CHANGED: [(Resource, &[&str]); 10] = [
    (
        Resource::Applications,
        &["create", "update", "update/*", "delete", "delete/*", "sync", "rollback", "override", "action/*"],
    ),
    // Argo CD knows no actions on ApplicationSets.
    (Resource::ApplicationSets, &["get", "create", "update", "delete", "action/*"]),
    (Resource::Certificates, &["create", "update", "delete"]),
    (Resource::Clusters, &["create", "update", "delete"]),
    (Resource::Repositories, &["create", "update", "delete"]),
    (Resource::WriteRepositories, &["create", "update", "delete"]),
    (Resource::Projects, &["create", "update", "delete"]),
    (Resource::Accounts, &["update"]),
    (Resource::GpgKeys, &["create", "delete"]),
    (Resource::Exec, &["create"]),
];

/// Adds the built-in policy, which comes before any other.
pub(crate) fn add_to(builder: &mut Builder) -> Result<(), LoadError> {
    for resource in READ {
        right(builder, READONLY, resource, "get")?;
    }
    for (resource, actions) in CHANGED {
        for action in actions {
            right(builder, ADMIN, resource, action)?;
        }
    }
    for (member, role) in [(ADMIN, READONLY), ("admin", ADMIN)] {
        let entry = Entry::Link { member: member.to_owned(), role: role.to_owned() };
        builder.add_entry(entry, &format!("g, {member}, {role}"), Origin::BuiltIn)?;
    }
    Ok(())
}

fn right(builder: &mut Builder, role: &str, resource: Resource, action: &str) -> Result<(), LoadError> {
    // What is named after its project has a slash.
    let object = match resource {
        Resource::Applications | Resource::ApplicationSets | Resource::Logs | Resource::Exec => "*/*",
        _ => "*",
    };
    let entry = Entry::Right(Right {
        subject: role.to_owned(),
        resource: resource.word().to_owned(),
        action: action.to_owned(),
        object: object.to_owned(),
        effect: "allow".to_owned(),
    });
    builder.add_entry(entry, &format!("p, {role}, {resource}, {action}, {object}, allow"), Origin::BuiltIn)
}
