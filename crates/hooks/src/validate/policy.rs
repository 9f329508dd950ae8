//! What a set may do with hooks.

use crate::http::AllowList;
use crate::limits::Limits;
use crate::settings::Settings;
use crate::text::Language;

/// Why there are no commands unless an operator asks for them.
const NO_DIRECTORY: &str = "commands are off: the operator has set no directory for them with --hooks-dir (baton install --hooks-configmap)";

/// Where a set lives, as far as hooks care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// The control plane's: calls and commands.
    ControlPlane,
    /// One the operator listed in `--hooks-namespaces`: calls, no commands.
    Listed,
    /// Any other: neither.
    Other,
}

/// What a set may do with hooks: the operator's settings, where the set lives, and how it is written.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) limits: Limits,
    pub(crate) allow: AllowList,
    pub(crate) allow_http: bool,
    pub(crate) allow_insecure_tls: bool,
    pub(crate) calls: Result<(), &'static str>,
    pub(crate) commands: Result<(), String>,
    pub(crate) language: Language,
    /// Whether texts are filled in already.
    pub(crate) filled: bool,
}

// === impl Policy ===

impl Policy {
    /// The policy for a set in such a namespace, written in this language.
    pub fn new(settings: &Settings, namespace: Namespace, language: Language) -> Policy {
        Policy {
            limits: settings.limits.clone().within_maxima(),
            allow: settings.allow.clone(),
            allow_http: settings.allow_http,
            allow_insecure_tls: settings.allow_insecure_tls,
            calls: match namespace {
                Namespace::Other => {
                    Err("the operator does not allow HTTP calls in this namespace; they can be allowed with \
                                         --hooks-namespaces")
                }
                _ => Ok(()),
            },
            commands: commands(settings, namespace),
            language,
            filled: false,
        }
    }

    /// What the most generous operator lets a set do: what is wrong here is wrong everywhere.
    pub fn widest(language: Language) -> Policy {
        Policy {
            limits: Limits::default().within_maxima(),
            allow: AllowList::everything(),
            allow_http: true,
            allow_insecure_tls: true,
            calls: Ok(()),
            commands: Ok(()),
            language,
            filled: false,
        }
    }

    /// What a set of the control plane's namespace may do where the operator has said nothing.
    pub fn usual(language: Language) -> Policy {
        Policy {
            allow: AllowList::default(),
            allow_http: false,
            allow_insecure_tls: false,
            commands: Err(NO_DIRECTORY.to_owned()),
            ..Policy::widest(language)
        }
    }

    /// How much hooks and checks may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same for texts that are filled in.
    pub(crate) fn for_filled(&self) -> Policy {
        Policy { filled: true, ..self.clone() }
    }
}

fn commands(settings: &Settings, namespace: Namespace) -> Result<(), String> {
    if namespace != Namespace::ControlPlane {
        return Err(
            "commands run only for sets in the control plane's namespace; use an HTTP call".to_owned()
        );
    }
    if settings.directory.is_none() {
        return Err(NO_DIRECTORY.to_owned());
    }
    match settings.support.missing() {
        Some(missing) if !settings.allow_unsandboxed => Err(format!(
            "commands are off: the kernel has no {missing} to hold them with; the operator can run them all \
             the same with --hooks-allow-unsandboxed"
        )),
        _ => Ok(()),
    }
}
