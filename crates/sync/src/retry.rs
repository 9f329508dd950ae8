//! How long a failed operation waits before it is tried again.

use std::time::Duration;

use baton_api::application::RetryStrategy;
use baton_grammar::duration;
use jiff::{SignedDuration, Timestamp};

/// Retries of an automatic sync whose policy says nothing.
pub const AUTOMATIC_LIMIT: i64 = 5;

const DURATION: Duration = Duration::from_secs(5);
const FACTOR: i64 = 2;
const MAX_DURATION: Duration = Duration::from_secs(180);
/// Longest pause whatever is written: ten years.
const LONGEST: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

/// A pause that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse {text} as a duration")]
pub struct RetryError {
    text: String,
}

/// Whether an operation may be tried again after so many retries.
pub fn allowed(retry: &RetryStrategy, retries: i64) -> bool {
    retry.limit < 0 || retries < retry.limit
}

/// The pause before the next attempt, `earlier` retries having been made before it.
///
/// The first pause is the strategy's duration and each later one `factor` times as long, up to its longest; a longest
/// of zero is none.
///
/// # Errors
/// A duration that is neither a number of seconds nor a Go duration.
pub fn pause(retry: &RetryStrategy, earlier: i64) -> Result<Duration, RetryError> {
    let backoff = retry.backoff.as_ref();
    let text = |text: Option<&String>, default: Duration| match text.map(String::as_str) {
        None | Some("") => Ok(default.as_secs_f64()),
        Some(text) => seconds(text),
    };
    let duration = text(backoff.map(|backoff| &backoff.duration), DURATION)?;
    let longest = text(backoff.map(|backoff| &backoff.max_duration), MAX_DURATION)?;
    let factor = backoff.and_then(|backoff| backoff.factor).unwrap_or(FACTOR);
    let mut pause = duration * (factor as f64).powf(earlier.max(0) as f64);
    if longest > 0.0 {
        pause = pause.min(longest);
    }
    // A product of zero and infinity is no number, and waits for nothing.
    let pause = if pause.is_nan() { 0.0 } else { pause.clamp(0.0, LONGEST) };
    Ok(Duration::from_secs_f64(pause))
}

/// When the next attempt is due: the pause after the end of the last one.
///
/// # Errors
/// As [`pause`].
pub fn due(retry: &RetryStrategy, ended: Timestamp, earlier: i64) -> Result<Timestamp, RetryError> {
    let pause = pause(retry, earlier)?;
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    Ok(ended.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// A number of seconds, or a Go duration.
fn seconds(text: &str) -> Result<f64, RetryError> {
    let fault = || RetryError { text: text.chars().take(100).collect() };
    if let Ok(seconds) = text.parse::<i64>() {
        return Ok(seconds as f64);
    }
    let duration: duration::Duration = text.parse().map_err(|_| fault())?;
    Ok(duration.nanoseconds() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::application::Backoff;

    fn strategy(duration: &str, factor: Option<i64>, max: &str) -> RetryStrategy {
        let backoff = Backoff { duration: duration.to_owned(), factor, max_duration: max.to_owned() };
        RetryStrategy { backoff: Some(backoff), ..RetryStrategy::default() }
    }

    fn pauses(retry: &RetryStrategy, count: i64) -> Vec<u64> {
        (0..count).map(|earlier| pause(retry, earlier).expect("a pause").as_secs()).collect()
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        assert_eq!(pauses(&RetryStrategy::default(), 7), [5, 10, 20, 40, 80, 160, 180]);
        assert_eq!(pauses(&strategy("2", Some(3), "1m"), 5), [2, 6, 18, 54, 60]);
        assert_eq!(pauses(&strategy("1m", None, "0"), 3), [60, 120, 240]);
        assert_eq!(pauses(&strategy("", Some(1), ""), 3), [5, 5, 5]);
        assert_eq!(pauses(&strategy("-5s", None, ""), 2), [0, 0]);
        assert_eq!(pauses(&strategy("5s", Some(0), ""), 3), [5, 0, 0]);
    }

    #[test]
    fn no_number_breaks_the_arithmetic() {
        let endless = strategy("1h", Some(i64::MAX), "0");
        assert_eq!(pause(&endless, i64::MAX).expect("a pause").as_secs_f64(), LONGEST);
        assert_eq!(pause(&strategy("0", Some(i64::MAX), "0"), i64::MAX), Ok(Duration::ZERO));
        assert_eq!(due(&endless, Timestamp::MAX, 9), Ok(Timestamp::MAX));
    }

    #[test]
    fn a_duration_that_cannot_be_read_is_named() {
        let error = pause(&strategy("soon", None, ""), 0).expect_err("no duration");
        assert_eq!(error.to_string(), "unable to parse soon as a duration");
        assert!(pause(&strategy("", None, "later"), 0).is_err());
    }

    #[test]
    fn the_limit_counts_retries() {
        let limit = |limit| RetryStrategy { limit, ..RetryStrategy::default() };
        assert!(!allowed(&limit(0), 0));
        assert!(allowed(&limit(2), 1) && !allowed(&limit(2), 2));
        assert!(allowed(&limit(-1), i64::MAX));
    }
}
