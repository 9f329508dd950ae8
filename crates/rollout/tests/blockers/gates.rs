//! What cannot be read of how a step ends keeps the next one shut.

use baton_rollout::blocker::Reason;
use serde_json::json;

use crate::stage::{FLEET, Stage};

#[test]
fn a_step_whose_end_cannot_be_read_lets_no_later_one_open() {
    for (field, value) in [
        ("waitDuration", json!("soon")),
        ("waitDuration", json!("99999999h")),
        ("progressDeadline", json!("0s")),
        ("maxFailures", json!(-1)),
        ("maxFailures", json!("200%")),
    ] {
        let mut stage = Stage::new(json!([{field: value}, {}]), &FLEET);
        stage.pass(60);
        let run = &stage.machine.head().run;
        assert_eq!((run.open, run.finished), (1, None), "{field} {value}");
        let found = stage.blockers();
        let first = found.first().expect("a wait has a name");
        assert_eq!(first.reason, Reason::InvalidRolloutConfig, "{field} {value}");
        assert!(first.message.starts_with(&format!("step 1: {field} ")), "{}", first.message);
    }
    Stage::settled(json!([{"waitDuration": "0s", "maxFailures": "100%"}, {}]), &FLEET);
}
