//! The environment of a command.

use std::path::Path;

use crate::call::{Call, Invocation};
use crate::outcome::{Fault, Reason};

/// Where a command looks for programs, after the operator's directory.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names that make a loader, a shell or an interpreter run or read something else than what the operator put there;
/// a final `*` stands for any rest.
const DANGEROUS: &[&str] = &[
    "BASH*",
    "CDPATH",
    "CLASSPATH",
    "DYLD_*",
    "ENV",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GIT_*",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_*",
    "LOCALDOMAIN",
    "LOCPATH",
    "MALLOC_*",
    "NIS_PATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5*",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHON*",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "TERMINFO*",
    "TMPDIR",
    "TZDIR",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Names of the controller's own settings and credentials.
const CONTROLLER: &[&str] = &["ARGOCD_*", "BATON_*", "KUBERNETES_*"];

/// Names that are set for every command.
const AUTOMATIC: &[&str] = &["APPSET_*", "HOOK_*", "IDEMPOTENCY_KEY"];

/// Whether a name is set automatically.
pub(crate) fn is_automatic(name: &str) -> bool {
    is_among(AUTOMATIC, name)
}

/// Whether a name would change what runs, or means the controller.
pub(crate) fn is_dangerous(name: &str) -> bool {
    is_among(DANGEROUS, name) || is_among(CONTROLLER, name)
}

fn is_among(patterns: &[&str], name: &str) -> bool {
    // Some programs read their variables in any case.
    let name = name.to_ascii_uppercase();
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// All variables of a command. None is this process's own.
pub(super) fn all(
    call: &Call,
    invocation: &Invocation,
    directory: &Path,
    scratch: &Path,
) -> Result<Vec<(String, String)>, Fault> {
    let invalid = |message: String| Fault::new(Reason::Invalid, message);
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| invalid(format!("the path {} is not UTF-8", path.display())))
    };
    let scratch = text(scratch)?;
    let mut variables = Vec::new();
    for (name, value) in &invocation.environment {
        if is_automatic(name) || is_dangerous(name) {
            return Err(invalid(format!("the environment variable {name} cannot be set")));
        }
        variables.push((name.clone(), value.expose().to_owned()));
    }
    let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
    set("PATH", &format!("{}:{PATH}", text(directory)?));
    set("HOME", &scratch);
    set("TMPDIR", &scratch);
    set("APPSET_NAME", &call.set.name);
    set("APPSET_NAMESPACE", &call.set.namespace);
    if let Some(hook_type) = call.role.hook_type() {
        set("HOOK_NAME", &call.name);
        set("HOOK_TYPE", hook_type);
    }
    set("IDEMPOTENCY_KEY", &call.idempotency_key);
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_change_what_runs_are_known() {
        for bad in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "BASH_ENV",
            "BASH_FUNC_x",
            "PYTHONPATH",
            "BATON_HOOKS_DIR",
            "GIT_SSH",
        ] {
            assert!(is_dangerous(bad), "{bad}");
        }
        for automatic in ["APPSET_NAME", "HOOK_TYPE", "HOOK_ANYTHING", "IDEMPOTENCY_KEY"] {
            assert!(is_automatic(automatic) && !is_dangerous(automatic), "{automatic}");
        }
        for good in ["KUBECONFIG", "TARGET_URL", "DEPLOYMENT_ENV", "PATHS", "HTTP_PROXY", "ENVIRONMENT"] {
            assert!(!is_dangerous(good) && !is_automatic(good), "{good}");
        }
    }
}
