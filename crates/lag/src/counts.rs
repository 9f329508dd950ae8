//! What a proxy did, in numbers.

use std::fmt;
use std::time::Duration;

/// What happened since the proxy began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests passed on or answered.
    pub requests: u64,
    /// Watches that were opened.
    pub streams: u64,
    /// Events that were delivered.
    pub events: u64,
    /// Those of them that were held back.
    pub delayed: u64,
    /// The longest time from an event's arrival to its delivery.
    pub longest: Duration,
    /// Watches that were ended before their time.
    pub cuts: u64,
    /// Events that had arrived and were lost by that.
    pub lost: u64,
    /// Watches that were refused with 410 Gone.
    pub gone: u64,
    /// Lists that were answered with an old one.
    pub old_lists: u64,
    /// Requests without the right token.
    pub strangers: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { requests, streams, events, delayed, longest, cuts, lost, gone, old_lists, strangers } =
            self;
        write!(
            f,
            "{requests} requests, {streams} watches, {events} events ({delayed} late, by up to {:.1} s), {cuts} cuts \
             ({lost} events lost), {gone} refused with 410, {old_lists} old lists, {strangers} without the token",
            longest.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_fit_into_one_line() {
        let counts = Counts {
            requests: 9,
            streams: 4,
            events: 30,
            delayed: 20,
            longest: Duration::from_millis(4321),
            cuts: 3,
            lost: 2,
            gone: 1,
            old_lists: 5,
            strangers: 0,
        };
        assert_eq!(
            counts.to_string(),
            "9 requests, 4 watches, 30 events (20 late, by up to 4.3 s), 3 cuts (2 events lost), 1 refused with 410, \
             5 old lists, 0 without the token"
        );
    }
}
