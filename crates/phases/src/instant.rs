//! Times as the status keeps them: whole seconds. What is rounded is rounded up, so that no wait ends early.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A moment as it is stored.
pub(crate) fn stored(moment: Timestamp) -> Time {
    let up = i64::from(moment.subsec_nanosecond() > 0);
    Time(Timestamp::from_second(moment.as_second() + up).unwrap_or(moment))
}

/// So much later; the end of time where that is beyond it.
pub(crate) fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// How long until then; nothing where it has passed.
pub(crate) fn until(now: Timestamp, moment: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default()
}
