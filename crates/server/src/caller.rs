//! Who asks.

use jiff::Timestamp;

/// Who makes a call, once it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// How it is known.
    pub proof: Proof,
    /// Whom policies name: the account, the user of an issuer, or `proj:<project>:<role>`; empty for nobody.
    pub subject: String,
    /// Whom records name.
    pub username: String,
    /// Who vouches for it: `argocd`, or the URL of an issuer.
    pub issuer: String,
    /// Groups the issuer vouches for.
    pub groups: Vec<String>,
    /// When the token was issued.
    pub issued: Option<Timestamp>,
    /// When the token ends.
    pub expires: Option<Timestamp>,
    /// Name of the token.
    pub token: String,
}

/// How a caller is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// It is not.
    Anonymous,
    /// By a password.
    Session,
    /// By a token of an account.
    ApiKey,
    /// By a token of a project's role.
    ProjectToken,
    /// By an issuer.
    Oidc,
    /// By the Kubernetes API, which is asked with the caller's own credentials.
    Kubernetes,
}

// === impl Caller ===

impl Caller {
    /// Nobody in particular.
    pub fn anonymous() -> Caller {
        Caller {
            proof: Proof::Anonymous,
            subject: String::new(),
            username: String::new(),
            issuer: String::new(),
            groups: Vec::new(),
            issued: None,
            expires: None,
            token: String::new(),
        }
    }

    /// Whether anybody vouches for it.
    pub fn is_known(&self) -> bool {
        self.proof != Proof::Anonymous
    }

    /// Whether a program rather than a person asks.
    pub fn is_program(&self) -> bool {
        matches!(self.proof, Proof::ApiKey | Proof::ProjectToken)
    }

    /// The project that a project's token is for.
    pub fn project(&self) -> Option<&str> {
        let rest = self.subject.strip_prefix("proj:").filter(|_| self.proof == Proof::ProjectToken)?;
        rest.split_once(':').map(|(project, _)| project)
    }

    /// Whom a record names, never nobody.
    pub fn actor(&self) -> &str {
        if self.username.is_empty() { "anonymous" } else { &self.username }
    }
}

// === impl Proof ===

impl Proof {
    /// As records write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Proof::Anonymous => "anonymous",
            Proof::Session => "session",
            Proof::ApiKey => "apiKey",
            Proof::ProjectToken => "projectToken",
            Proof::Oidc => "oidc",
            Proof::Kubernetes => "kubernetes",
        }
    }
}
