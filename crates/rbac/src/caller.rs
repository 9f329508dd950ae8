//! Who asks.

use std::sync::Arc;

use jiff::Timestamp;

/// Who asks, as authentication found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    id: Arc<str>,
    groups: Vec<Arc<str>>,
    credential: Credential,
    issued_at: Option<Timestamp>,
}

/// What somebody has shown to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A person's session, of a local account or of single sign-on.
    Session,
    /// A token of a local account, made for a program.
    ApiKey,
    /// A token of a project's role.
    ProjectToken {
        /// The project.
        project: Arc<str>,
    },
    /// Nothing.
    Anonymous,
}

// === impl Caller ===

impl Caller {
    /// A person, and the groups that the claims of their token name.
    pub fn session<G: Into<Arc<str>>>(
        id: impl Into<Arc<str>>,
        groups: impl IntoIterator<Item = G>,
    ) -> Caller {
        let groups = groups.into_iter().map(Into::into).collect();
        Caller { id: id.into(), groups, credential: Credential::Session, issued_at: None }
    }

    /// A program with a token of a local account.
    pub fn api_key(account: impl Into<Arc<str>>) -> Caller {
        Caller { id: account.into(), groups: Vec::new(), credential: Credential::ApiKey, issued_at: None }
    }

    /// A program with a token of a project's role.
    pub fn project_token(project: &str, role: &str) -> Caller {
        let credential = Credential::ProjectToken { project: project.into() };
        Caller { id: role_subject(project, role).into(), groups: Vec::new(), credential, issued_at: None }
    }

    /// Somebody who has shown nothing.
    pub fn anonymous() -> Caller {
        Caller { id: "".into(), groups: Vec::new(), credential: Credential::Anonymous, issued_at: None }
    }

    /// The same, with the time its token was issued.
    pub fn with_issued_at(self, issued_at: Timestamp) -> Caller {
        Caller { issued_at: Some(issued_at), ..self }
    }

    /// The name of the person, the account or the role; empty for nobody.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The groups.
    pub fn groups(&self) -> &[Arc<str>] {
        &self.groups
    }

    /// What was shown.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// When the token was issued.
    pub fn issued_at(&self) -> Option<Timestamp> {
        self.issued_at
    }

    /// The name lines may speak of, unless it is a role's: whoever can choose a name for themselves or for a group
    /// at the identity provider must not become one that way.
    pub(crate) fn subject(&self) -> Option<&str> {
        match self.credential {
            Credential::Anonymous => None,
            Credential::ProjectToken { .. } => Some(&self.id),
            Credential::Session | Credential::ApiKey => Some(&*self.id).filter(|id| !is_role(id)),
        }
    }

    /// The groups lines may speak of.
    pub(crate) fn group_subjects(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.iter().filter(|group| !is_role(group))
    }

    /// Whether it is a program's token.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.credential, Credential::ApiKey | Credential::ProjectToken { .. })
    }
}

/// What policies call a project's role.
pub(crate) fn role_subject(project: &str, role: &str) -> String {
    format!("proj:{project}:{role}")
}

fn is_role(name: &str) -> bool {
    name.starts_with("role:") || name.starts_with("proj:")
}
