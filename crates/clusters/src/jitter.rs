//! Pauses that differ from one another, so that those who failed together do not come back together.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A pause up to a fifth shorter or longer, which depends on who waits and for how long: it can be told ahead, which a
/// simulation needs.
pub(crate) fn jittered(pause: Duration, who: impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    (pause, who).hash(&mut hasher);
    pause.mul_f64(0.8 + (hasher.finish() % 1024) as f64 / 2560.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_by_who_waits_and_stay_within_a_fifth() {
        let pause = Duration::from_secs(10);
        let all: Vec<Duration> = (0..100).map(|who| jittered(pause, who)).collect();
        assert!(all.iter().all(|one| (8..=12).contains(&one.as_secs())), "{all:?}");
        assert!(all.iter().collect::<std::collections::BTreeSet<_>>().len() > 80, "{all:?}");
        assert_eq!(all[7], jittered(pause, 7));
    }
}
