//! What befalls which watch and which list: a function of the seed, of what is asked for and of how often it was asked
//! for before. Nothing else is random, so a client that asks the same again suffers the same again.

use std::time::Duration;

/// What goes wrong, and how badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// Where all choices come from.
    pub seed: u64,
    /// Longest delay of a watch event.
    pub delay: Duration,
    /// Longest life of a watch; `None` lets them live as long as the cluster does.
    pub cut: Option<Duration>,
    /// Of a hundred watches that go on from a version, how many are refused with 410 Gone.
    pub gone: u8,
    /// Of a hundred lists that may be old, how many are.
    pub stale_lists: u8,
    /// Whether lists without a resourceVersion may be old too. No API server does that; some caches do.
    pub stale_consistent_lists: bool,
}

/// What befalls one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How late the stream is, about.
    delay: Duration,
    most: Duration,
    draw: u64,
    /// When it ends, counted from its beginning, and how.
    pub(crate) cut: Option<(Duration, Cut)>,
    /// How it is refused, if it goes on from a version.
    pub(crate) gone: Option<Gone>,
}

/// How a watch ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// In good order, without what was under way.
    Ends,
    /// Within an event, as a connection breaks.
    Breaks,
}

/// How a watch is refused; servers do it both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The answer has the code 410.
    Answer,
    /// The first event is an error with the code 410.
    Event,
}

impl Faults {
    /// The fate of the nth watch of a collection.
    pub(crate) fn watch(&self, collection: &str, nth: u64) -> Fate {
        let draw = |purpose| self.draw(purpose, collection, nth);
        // Some streams are prompt, so that others are late beside them.
        let delay = if draw("prompt") % 4 == 0 { Duration::ZERO } else { share(self.delay, draw("delay")) };
        let cut = self.cut.map(|longest| {
            let how = if draw("how") % 2 == 0 { Cut::Ends } else { Cut::Breaks };
            (share(longest, draw("life")), how)
        });
        let gone = (draw("gone") % 100 < u64::from(self.gone))
            .then(|| if draw("refusal") % 2 == 0 { Gone::Answer } else { Gone::Event });
        Fate { delay, most: self.delay, draw: draw("events"), cut, gone }
    }

    /// Whether the nth answer to a list is an old one, and which of those kept.
    pub(crate) fn list(&self, list: &str, nth: u64, is_consistent: bool, kept: usize) -> Option<usize> {
        let may = self.stale_consistent_lists || !is_consistent;
        let is_old = self.draw("old", list, nth) % 100 < u64::from(self.stale_lists);
        (may && is_old).then(|| self.draw("which", list, nth).checked_rem(kept as u64))??.try_into().ok()
    }

    fn draw(&self, purpose: &str, of: &str, nth: u64) -> u64 {
        mix(mix(self.seed ^ hash(purpose)) ^ mix(hash(of).wrapping_add(nth)))
    }
}

impl Fate {
    /// How late the nth event of the stream is, never more than the longest delay. One may be drawn shorter than that
    /// of the event before it, which it still follows: they then come together.
    pub(crate) fn delay_of(&self, nth: u64) -> Duration {
        let more = share(self.delay / 4, mix(self.draw.wrapping_add(nth)));
        (self.delay + more).min(self.most)
    }
}

/// A part of a span, drawn evenly.
fn share(span: Duration, draw: u64) -> Duration {
    // 1/1000 of the span is fine enough, and no product overflows.
    let thousandths = u32::try_from(draw % 1001).unwrap_or(1000);
    (span / 1000).saturating_mul(thousandths)
}

/// A number that belongs to a text.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = "/api/v1/pods";

    fn faults() -> Faults {
        Faults {
            seed: 7,
            delay: Duration::from_secs(5),
            cut: Some(Duration::from_secs(30)),
            gone: 25,
            stale_lists: 10,
            stale_consistent_lists: false,
        }
    }

    #[test]
    fn a_seed_repeats_every_fate_and_another_has_others() {
        let of = |faults: &Faults| (0..50).map(|nth| faults.watch(PODS, nth)).collect::<Vec<_>>();
        assert_eq!(of(&faults()), of(&faults()));
        assert_ne!(of(&faults()), of(&Faults { seed: 8, ..faults() }));
        assert_ne!(faults().watch(PODS, 0), faults().watch("/api/v1/nodes", 0));
    }

    #[test]
    fn delays_differ_between_streams_and_stay_below_the_longest() {
        let fates: Vec<Fate> = (0..1000).map(|nth| faults().watch(PODS, nth)).collect();
        let all = || fates.iter().flat_map(|fate| (0..20).map(|nth| fate.delay_of(nth)));
        assert!(all().all(|delay| delay <= faults().delay));
        assert!(all().any(|delay| delay > Duration::from_millis(4900)), "some are as late as may be");
        let prompt = fates.iter().filter(|fate| fate.delay_of(0).is_zero()).count();
        assert!((200..300).contains(&prompt), "{prompt} of 1000 are prompt");
        let still = Faults { delay: Duration::ZERO, ..faults() };
        assert!((0..100).all(|nth| still.watch(PODS, nth).delay_of(nth).is_zero()));
    }

    #[test]
    fn watches_live_for_every_part_of_the_longest_life_and_end_both_ways() {
        let cuts: Vec<(Duration, Cut)> = (0..1000).filter_map(|nth| faults().watch(PODS, nth).cut).collect();
        assert_eq!(cuts.len(), 1000);
        assert!(cuts.iter().all(|(life, _)| *life <= Duration::from_secs(30)));
        assert!(cuts.iter().any(|(life, _)| *life < Duration::from_secs(1)));
        assert!(cuts.iter().any(|(life, _)| *life > Duration::from_secs(29)));
        let breaks = cuts.iter().filter(|(_, how)| *how == Cut::Breaks).count();
        assert!((400..600).contains(&breaks), "{breaks} of 1000 break");
        assert_eq!(Faults { cut: None, ..faults() }.watch(PODS, 1).cut, None);
    }

    #[test]
    fn as_many_are_refused_as_was_asked_for() {
        let refused = |gone| {
            let faults = Faults { gone, ..faults() };
            (0..1000).filter_map(|nth| faults.watch(PODS, nth).gone).collect::<Vec<_>>()
        };
        assert_eq!((refused(0).len(), refused(100).len()), (0, 1000));
        let some = refused(25);
        assert!((200..300).contains(&some.len()), "{} of 1000", some.len());
        assert!(some.contains(&Gone::Answer) && some.contains(&Gone::Event));
    }

    #[test]
    fn a_consistent_list_is_never_old_unless_that_is_wanted() {
        let always = Faults { stale_lists: 100, ..faults() };
        let careless = Faults { stale_consistent_lists: true, ..always.clone() };
        let old = |faults: &Faults, consistent| {
            (0..100).filter_map(|nth| faults.list(PODS, nth, consistent, 3)).collect::<Vec<_>>()
        };
        assert!(old(&always, true).is_empty());
        assert_eq!((old(&always, false).len(), old(&careless, true).len()), (100, 100));
        assert!((0..3).all(|which| old(&always, false).contains(&which)));
        assert_eq!(always.list(PODS, 0, false, 0), None, "there is none to give");
        assert!(old(&Faults { stale_lists: 0, ..faults() }, false).is_empty());
    }
}
