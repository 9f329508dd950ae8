//! What people ask for, by annotations on a set.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::names::baton::{ABORT, PAUSED, RETRY, SKIP, SUPERSEDE};
use baton_rollout::machine::Control;

/// What people ask of the rollout of a set.
pub(crate) fn control_of(set: &ApplicationSet) -> Control {
    let annotation = |name: &str| {
        let text = set.metadata.annotations.as_ref()?.get(name)?;
        Some(text.trim()).filter(|text| !text.is_empty())
    };
    let request = |name: &str| annotation(name).map(Arc::from);
    Control {
        paused: annotation(PAUSED) == Some("true"),
        abort: request(ABORT),
        retry: request(RETRY),
        skip: annotation(SKIP).map(skipped).unwrap_or_default(),
        finish: annotation(SUPERSEDE).is_some_and(|word| word.eq_ignore_ascii_case("Finish")),
    }
}

/// Applications and the pins at which they are skipped. What cannot be read skips nothing.
fn skipped(text: &str) -> BTreeMap<Arc<str>, baton_rollout::pin::Fingerprint> {
    let pairs = text.split(',').filter_map(|pair| pair.trim().split_once('='));
    pairs.filter_map(|(name, pin)| Some((name.trim().into(), pin.trim().parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_say_what_people_ask_for() {
        let set: ApplicationSet = serde_json::from_value(json!({"metadata": {"annotations": {
            PAUSED: "true", ABORT: "a1", RETRY: " r1/web,db ", SUPERSEDE: "finish",
            SKIP: "web=0123456789abcdef, db=nonsense,broken",
        }}}))
        .expect("a set");
        let control = control_of(&set);
        assert!(control.paused && control.finish);
        assert_eq!((control.abort.as_deref(), control.retry.as_deref()), (Some("a1"), Some("r1/web,db")));
        let expected = BTreeMap::from([("web".into(), "0123456789abcdef".parse().expect("a pin"))]);
        assert_eq!(control.skip, expected);
        assert_eq!(control_of(&ApplicationSet::default()), Control::default());
    }
}
