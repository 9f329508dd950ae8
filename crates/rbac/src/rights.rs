//! The policy of the installation and the roles of its projects, together.

use std::collections::HashMap;
use std::sync::Arc;

use baton_api::project::AppProject;

use crate::caller::Caller;
use crate::decision::Decision;
use crate::policy::{LoadError, Policy};
use crate::project::{Project, TokenApproval};
use crate::request::{Request, RequestError};
use crate::review::Review;

/// Everything that decides who may do what. A copy costs little and does not change with the original, so a server
/// replaces one as a whole.
#[derive(Debug, Clone)]
pub struct Rights {
    pub(crate) policy: Arc<Policy>,
    projects: HashMap<Arc<str>, Arc<Project>>,
}

// === impl Rights ===

impl Rights {
    /// By a policy, without projects.
    pub fn new(policy: Policy) -> Rights {
        Rights { policy: Arc::new(policy), projects: HashMap::new() }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Takes another policy. Projects are compiled anew, for their patterns are read as the policy says.
    pub fn set_policy(&mut self, policy: Policy) {
        for project in self.projects.values_mut() {
            *project = Arc::new(project.under(&policy));
        }
        self.policy = Arc::new(policy);
    }

    /// Takes a project, or another version of it. Its roles are compiled only where they say something else.
    ///
    /// # Errors
    /// Roles that cannot be read. The project then has none: the policy of the installation holds alone for it.
    pub fn set_project(
        &mut self,
        project: &AppProject,
        token_approval: TokenApproval,
    ) -> Result<(), Arc<LoadError>> {
        let name = project.metadata.name.as_deref().unwrap_or_default();
        let held = self.projects.get(name).filter(|held| held.says(project, token_approval)).cloned();
        let project = held.unwrap_or_else(|| {
            let project = Arc::new(Project::new(project, token_approval, &self.policy));
            self.projects.insert(project.name.clone(), project.clone());
            project
        });
        project.rules.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Forgets a project.
    pub fn remove_project(&mut self, name: &str) {
        self.projects.remove(name);
    }

    /// Whether the caller may do what they ask, and why.
    pub fn decide(&self, caller: &Caller, request: &Request) -> Decision {
        self.review(caller).decide(request)
    }

    /// As [`Rights::decide`], for somebody who asks in the words of policies, `action/…` included.
    ///
    /// # Errors
    /// Words that are no resource or action, and texts that are too long.
    pub fn can_i(
        &self,
        caller: &Caller,
        resource: &str,
        action: &str,
        object: &str,
        control_namespace: &str,
    ) -> Result<Decision, RequestError> {
        Ok(self.decide(caller, &Request::parse(resource, action, object, control_namespace)?))
    }

    /// For many requests of one caller, as for a list.
    pub fn review<'a>(&'a self, caller: &'a Caller) -> Review<'a> {
        Review::new(self, caller)
    }

    pub(crate) fn project(&self, name: &str) -> Option<&Project> {
        self.projects.get(name).map(Arc::as_ref)
    }
}
