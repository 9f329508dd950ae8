//! How long self-heal waits before it repairs the same revision once more.

use std::time::Duration;

use jiff::Timestamp;

/// Pauses of self-heal, as the operator set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfHealSettings {
    /// A pause that grows; where there is none, `fixed` counts.
    pub backoff: Option<SelfHealBackoff>,
    /// The pause where none grows.
    pub fixed: Duration,
}

/// A pause that grows with each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfHealBackoff {
    /// The first pause.
    pub duration: Duration,
    /// What each pause is multiplied by.
    pub factor: u32,
    /// The longest pause; zero is none.
    pub longest: Duration,
}

impl Default for SelfHealSettings {
    fn default() -> SelfHealSettings {
        let backoff = SelfHealBackoff {
            duration: Duration::from_secs(2),
            factor: 3,
            longest: Duration::from_secs(300),
        };
        SelfHealSettings { backoff: Some(backoff), fixed: Duration::ZERO }
    }
}

impl SelfHealSettings {
    /// The pause after so many attempts; the first repair waits for nothing.
    pub fn pause(&self, attempts: i64) -> Duration {
        let Some(backoff) = &self.backoff else {
            return self.fixed;
        };
        if attempts <= 0 {
            return Duration::ZERO;
        }
        let mut pause = backoff.duration;
        let longest = if backoff.longest.is_zero() { Duration::MAX } else { backoff.longest };
        for _ in 1..attempts {
            let next = pause.saturating_mul(backoff.factor).min(longest);
            if next == pause {
                break;
            }
            pause = next;
        }
        pause
    }

    /// What is left of the pause since the last operation ended; zero when it is over.
    pub fn remaining(&self, attempts: i64, ended: Option<Timestamp>, now: Timestamp) -> Duration {
        let passed = ended.map_or(Duration::ZERO, |ended| {
            Duration::try_from(now.duration_since(ended)).unwrap_or(Duration::ZERO)
        });
        self.pause(attempts).saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let settings = SelfHealSettings::default();
        let pauses: Vec<u64> = (0..8).map(|attempts| settings.pause(attempts).as_secs()).collect();
        assert_eq!(pauses, [0, 2, 6, 18, 54, 162, 300, 300]);
        assert_eq!(settings.pause(i64::MAX).as_secs(), 300);
    }

    #[test]
    fn a_factor_of_one_or_none_comes_to_an_end() {
        let with = |factor| SelfHealSettings {
            backoff: Some(SelfHealBackoff {
                duration: Duration::from_secs(2),
                factor,
                longest: Duration::ZERO,
            }),
            fixed: Duration::ZERO,
        };
        assert_eq!(with(1).pause(i64::MAX), Duration::from_secs(2));
        assert_eq!(with(0).pause(i64::MAX), Duration::ZERO);
        assert_eq!(with(u32::MAX).pause(i64::MAX), Duration::MAX);
    }

    #[test]
    fn without_a_backoff_the_pause_is_fixed() {
        let settings = SelfHealSettings { backoff: None, fixed: Duration::from_secs(5) };
        assert_eq!(settings.pause(0), Duration::from_secs(5));
        assert_eq!(settings.pause(9), Duration::from_secs(5));
    }

    #[test]
    fn the_pause_counts_from_the_end_of_the_last_operation() {
        let settings = SelfHealSettings::default();
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert_eq!(settings.remaining(2, Some(at(100)), at(104)), Duration::from_secs(2));
        assert_eq!(settings.remaining(2, Some(at(100)), at(106)), Duration::ZERO);
        assert_eq!(settings.remaining(2, None, at(106)), Duration::from_secs(6));
        // A clock that went back makes it no shorter than the whole pause.
        assert_eq!(settings.remaining(2, Some(at(100)), at(0)), Duration::from_secs(6));
    }
}
