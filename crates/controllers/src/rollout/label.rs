//! The label by which the Applications of a set that keeps an order are listed.

use baton_api::names::baton::SET_LABEL;
use baton_rollout::pin::Fingerprint;

/// Longest value of a label.
const MOST: usize = 63;

/// The value of [`SET_LABEL`] on Applications of the set of this name: the name, or where it is too long for a label
/// its beginning and a fingerprint.
pub(crate) fn label_value(set: &str) -> String {
    if set.len() <= MOST {
        return set.to_owned();
    }
    // Names are ASCII; what is cut must not end in a dot or a dash.
    let cut: String = set.chars().take(MOST - 17).collect();
    format!("{}-{}", cut.trim_end_matches(['.', '-']), Fingerprint::of([set]))
}

/// The selector of a set's Applications.
pub(crate) fn selector(set: &str) -> String {
    format!("{SET_LABEL}={}", label_value(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_becomes_a_label_of_its_own() {
        assert_eq!(selector("web"), "baton.dev/application-set=web");
        let long = |end: &str| format!("{}.{end}", "a".repeat(45));
        let (one, two) =
            (label_value(&long("bbbbbbbbbbbbbbbbbbb")), label_value(&long("ccccccccccccccccccc")));
        assert_ne!(one, two);
        assert!(one.len() <= MOST && one.starts_with(&format!("{}-", "a".repeat(45))), "{one}");
    }
}
