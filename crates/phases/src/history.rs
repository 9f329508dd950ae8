//! The good states of an Application that are kept to go back to.

use std::sync::Arc;

/// A state of an Application that has proved good: every check, hook and wait of its phase had passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoodState {
    /// Its number: a later state has a higher one.
    pub revision: i64,
    /// What the Application was.
    pub pin: Arc<str>,
}

/// What is to be done to the states on record so that one more is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keeping {
    /// The number to record it under; none where it is the newest already.
    pub record: Option<i64>,
    /// The numbers of those that are no longer kept. They go after the new one is recorded.
    pub drop: Vec<i64>,
}

/// What an Application goes back to: the newest good state that is not what the run brings.
pub fn last_good<'a>(known: &'a [GoodState], of_run: &str) -> Option<&'a GoodState> {
    known.iter().filter(|state| *state.pin != *of_run).max_by_key(|state| state.revision)
}

/// Records that a pin has proved good. Beside it, `limit` earlier ones are kept.
pub fn keep(known: &[GoodState], pin: &str, limit: usize) -> Keeping {
    let newest = known.iter().max_by_key(|state| state.revision);
    let is_newest = newest.is_some_and(|state| *state.pin == *pin);
    let next = newest.map_or(1, |state| state.revision.saturating_add(1));
    // One that was good before and is again moves to the front, and stands there once.
    let mut earlier: Vec<&GoodState> = known.iter().filter(|state| *state.pin != *pin).collect();
    earlier.sort_by_key(|state| std::cmp::Reverse(state.revision));
    let again = known.iter().filter(|state| *state.pin == *pin && !is_newest);
    let drop = again.chain(earlier.into_iter().skip(limit)).map(|state| state.revision);
    Keeping { drop: drop.collect(), record: (!is_newest).then_some(next) }
}

/// The numbers of those states that an Application was put back from: what was recorded after the newest record of the pin it
/// goes back to. Whoever withdrew them does not mean to come back to them when something later fails.
pub fn put_away(known: &[GoodState], back_to: &str) -> Vec<i64> {
    let pins = known.iter().filter(|state| *state.pin == *back_to);
    let Some(newest) = pins.map(|state| state.revision).max() else { return Vec::new() };
    known.iter().map(|state| state.revision).filter(|revision| *revision > newest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(all: &[(i64, &str)]) -> Vec<GoodState> {
        all.iter().map(|(revision, pin)| GoodState { revision: *revision, pin: (*pin).into() }).collect()
    }

    #[test]
    fn row_02_the_way_back_leads_to_the_newest_good_state_that_is_not_the_runs() {
        let known = states(&[(3, "c"), (1, "a"), (2, "b")]);
        assert_eq!(last_good(&known, "d").map(|state| &*state.pin), Some("c"));
        assert_eq!(last_good(&known, "c").map(|state| &*state.pin), Some("b"));
        assert_eq!(last_good(&states(&[(1, "a")]), "a"), None);
    }

    #[test]
    fn row_02_what_was_put_back_from_is_not_gone_back_to() {
        let known = states(&[(1, "a"), (2, "b"), (3, "c")]);
        assert_eq!(put_away(&known, "a"), [2, 3]);
        assert_eq!(put_away(&known, "c"), [0; 0]);
        assert_eq!(put_away(&known, "gone"), [0; 0], "what is not on record tells nothing");
        assert_eq!(
            put_away(&states(&[(1, "a"), (2, "b"), (3, "a")]), "a"),
            [0; 0],
            "its newest record counts"
        );
    }

    #[test]
    fn so_many_earlier_states_are_kept_beside_the_newest() {
        let known = states(&[(1, "a"), (2, "b"), (3, "c")]);
        assert_eq!(keep(&known, "d", 2), Keeping { record: Some(4), drop: vec![1] });
        assert_eq!(keep(&known, "d", 0), Keeping { record: Some(4), drop: vec![3, 2, 1] });
        assert_eq!(keep(&known, "c", 2), Keeping::default(), "it is the newest");
        assert_eq!(keep(&known, "a", 2), Keeping { record: Some(4), drop: vec![1] }, "once is enough");
        assert_eq!(keep(&[], "a", 1), Keeping { record: Some(1), drop: Vec::new() });
    }
}
