//! `argocd.argoproj.io/min-version`: the least version of Argo CD that a set asks for.

use std::cmp::Ordering;

use baton_api::names::ARGO_CD_VERSION;
use baton_api::names::application_set::MIN_VERSION;
use baton_grammar::semver::Version;
use baton_rollout::steps::clipped;

/// Whether a set may be acted on, by the value of the annotation.
///
/// # Errors
/// In words, why not: the value is no version, or asks for a newer one.
pub fn check(value: Option<&str>) -> Result<(), String> {
    let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) else { return Ok(()) };
    let shown = clipped(value);
    let Ok(wanted) = Version::parse(value) else {
        return Err(format!("{MIN_VERSION}: {shown:?} is no version; write for example {ARGO_CD_VERSION}"));
    };
    let own = Version::parse(ARGO_CD_VERSION).map_err(|error| error.to_string())?;
    match wanted.compare(&own) {
        Ordering::Greater => Err(format!(
            "{MIN_VERSION}: the set asks for {shown}, and this controller is compatible with {ARGO_CD_VERSION}: nothing is \
             done for it"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_42_absent_and_older_are_fine_newer_and_unreadable_are_errors() {
        for (value, fine) in [
            (None, true),
            (Some(""), true),
            (Some("2.12.0"), true),
            (Some("v2.12"), true),
            (Some("3.6.0"), true),
            (Some("3.6.0-rc1"), true),
            (Some("3.6.1"), false),
            (Some("v4"), false),
            (Some("newest"), false),
            (Some("3.x.1"), false),
        ] {
            assert_eq!(check(value).is_ok(), fine, "{value:?}");
        }
    }
}
