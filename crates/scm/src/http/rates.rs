//! When a host wants to be left alone.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use parking_lot::Mutex;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::Dialect;
use super::auth::Identity;

/// What to wait when the host does not say; GitHub's advice.
const UNSAID: Duration = Duration::from_secs(60);

/// The longest wait a host may ask for: its clock may be wrong, and ours too.
const LONGEST: Duration = Duration::from_secs(2 * 60 * 60);

/// Hosts and users that are not to be asked before a time.
#[derive(Default)]
pub(super) struct Rates(Mutex<HashMap<(String, Identity), Timestamp>>);

impl Rates {
    pub(super) fn blocked(&self, authority: &str, identity: Identity, now: Timestamp) -> Option<Timestamp> {
        let blocked = self.0.lock();
        blocked.get(&(authority.to_owned(), identity)).copied().filter(|until| *until > now)
    }

    pub(super) fn block(&self, authority: &str, identity: Identity, until: Timestamp, now: Timestamp) {
        let mut blocked = self.0.lock();
        blocked.retain(|_, until| *until > now);
        blocked.insert((authority.to_owned(), identity), until);
    }
}

/// What an answer says about further requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rate {
    /// Nothing.
    Free,
    /// The answer counts, but it is the last one until then.
    Exhausted(Timestamp),
    /// The answer does not count.
    Refused(Timestamp),
}

impl Rate {
    pub(super) fn until(&self) -> Option<Timestamp> {
        match self {
            Rate::Free => None,
            Rate::Exhausted(until) | Rate::Refused(until) => Some(*until),
        }
    }
}

/// Reads an answer.
pub(super) fn read(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    dialect: Dialect,
    now: Timestamp,
) -> Rate {
    let remaining = number(headers, ["x-ratelimit-remaining", "ratelimit-remaining"]);
    let reset = number(headers, ["x-ratelimit-reset", "ratelimit-reset"]).and_then(|reset| at(reset, now));
    let retry_after = retry_after(headers, now);
    let refused = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => remaining == Some(0) || retry_after.is_some() || is_secondary(body),
        StatusCode::SERVICE_UNAVAILABLE => retry_after.is_some(),
        _ => false,
    };
    let longest = now + LONGEST;
    if refused {
        let reset = reset.filter(|_| remaining.is_none_or(|left| left == 0));
        let until = retry_after.or(reset).unwrap_or(now + UNSAID);
        return Rate::Refused(until.clamp(now, longest));
    }
    let pause = match dialect {
        Dialect::Plain => reset.filter(|_| remaining == Some(0)),
        Dialect::Azure => retry_after.filter(|_| status.is_success()),
    };
    match pause {
        Some(until) if until > now => Rate::Exhausted(until.min(longest)),
        _ => Rate::Free,
    }
}

fn number(headers: &HeaderMap, names: [&str; 2]) -> Option<i64> {
    let value = names.into_iter().find_map(|name| headers.get(name))?;
    value.to_str().ok()?.trim().parse().ok().filter(|number| *number >= 0)
}

/// A reset is a time in seconds since 1970, with some hosts seconds from now.
fn at(reset: i64, now: Timestamp) -> Option<Timestamp> {
    const YEAR_2001: i64 = 1_000_000_000;
    let second = if reset < YEAR_2001 { now.as_second().checked_add(reset)? } else { reset };
    Timestamp::from_second(second).ok()
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Timestamp::from_second(now.as_second().checked_add(seconds.into())?).ok();
    }
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// GitHub refuses too many requests at once with a plain 403 that only its text tells from others.
fn is_secondary(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_lowercase();
    head.contains("secondary rate limit")
        || head.contains("secondary-rate-limits")
        || head.contains("abuse detection")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn rate(status: u16, headers: &[(&'static str, &str)]) -> Rate {
        rate_with_body(status, headers, "")
    }

    fn rate_with_body(status: u16, headers: &[(&'static str, &str)], body: &str) -> Rate {
        let status = StatusCode::from_u16(status).expect("it is a status");
        let header = |(name, value): &(&'static str, &str)| {
            let name = reqwest::header::HeaderName::from_static(name);
            (name, value.parse().expect("it is a header"))
        };
        read(status, &headers.iter().map(header).collect(), body.as_bytes(), Dialect::Plain, NOW)
    }

    fn refused(seconds: i64) -> Rate {
        Rate::Refused(Timestamp::from_second(NOW.as_second() + seconds).expect("it is a time"))
    }

    #[test]
    fn waits_are_read_as_hosts_write_them() {
        assert_eq!(rate(429, &[]), refused(60));
        assert_eq!(rate(429, &[("retry-after", "7")]), refused(7));
        assert_eq!(rate(429, &[("retry-after", "Fri, 15 Jan 2027 08:01:40 GMT")]), refused(100));
        assert_eq!(
            rate(429, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "1800000090")]),
            refused(90)
        );
        assert_eq!(
            rate(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000030")]),
            refused(30)
        );
        assert_eq!(rate(403, &[("retry-after", "5")]), refused(5));
        assert_eq!(rate(503, &[("retry-after", "5")]), refused(5));
        assert_eq!(
            rate_with_body(403, &[], r#"{"message":"You have exceeded a secondary rate limit"}"#),
            refused(60)
        );
        assert_eq!(
            rate(429, &[("x-ratelimit-remaining", "12"), ("x-ratelimit-reset", "1800000900")]),
            refused(60)
        );
        assert_eq!(rate(429, &[("ratelimit-reset", "45")]), refused(45));
    }

    #[test]
    fn waits_that_make_no_sense_are_bounded() {
        let longest = i64::try_from(LONGEST.as_secs()).expect("it is short");
        assert_eq!(rate(429, &[("retry-after", "4294967295")]), refused(longest));
        assert_eq!(rate(429, &[("retry-after", "99999999999999999999")]), refused(60));
        assert_eq!(rate(429, &[("retry-after", "soon")]), refused(60));
        assert_eq!(rate(429, &[("retry-after", "0")]), refused(0));
        assert_eq!(rate(429, &[("ratelimit-reset", "9223372036854775807")]), refused(60));
        assert_eq!(rate(429, &[("retry-after", "Fri, 15 Jan 1999 08:00:00 GMT")]), refused(0));
    }

    #[test]
    fn other_answers_say_nothing_about_a_limit() {
        assert_eq!(rate(403, &[("x-ratelimit-remaining", "12")]), Rate::Free);
        assert_eq!(rate(404, &[("retry-after", "5")]), Rate::Free);
        assert_eq!(rate(503, &[]), Rate::Free);
        assert_eq!(rate(200, &[("x-ratelimit-remaining", "0")]), Rate::Free);
        assert_eq!(
            rate(200, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "1800000090")]),
            Rate::Free
        );
        assert_eq!(
            rate(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1799999999")]),
            Rate::Free
        );
    }

    #[test]
    fn the_last_answer_allowed_counts_and_ends_the_round() {
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000090")];
        assert_eq!(rate(200, &headers).until().map(Timestamp::as_second), Some(1_800_000_090));
        assert!(matches!(rate(200, &headers), Rate::Exhausted(_)));
    }

    #[test]
    fn azure_serves_on_when_nothing_is_left_but_asks_for_pauses() {
        let azure = |name, value| {
            let header = (
                reqwest::header::HeaderName::from_static(name),
                reqwest::header::HeaderValue::from_static(value),
            );
            read(StatusCode::OK, &HeaderMap::from_iter([header]), b"", Dialect::Azure, NOW)
        };
        assert_eq!(azure("x-ratelimit-remaining", "0"), Rate::Free);
        assert_eq!(azure("retry-after", "20"), Rate::Exhausted(NOW + Duration::from_secs(20)));
        assert_eq!(rate(200, &[("retry-after", "20")]), Rate::Free);
    }

    #[test]
    fn a_host_is_left_alone_until_its_time_and_no_longer() {
        let rates = Rates::default();
        let (one, two) = (Identity::default(), [1; 32]);
        rates.block("host", one, NOW + Duration::from_secs(10), NOW);
        assert!(rates.blocked("host", one, NOW + Duration::from_secs(9)).is_some());
        assert!(rates.blocked("host", one, NOW + Duration::from_secs(10)).is_none());
        assert!(rates.blocked("host", two, NOW).is_none());
        assert!(rates.blocked("other", one, NOW).is_none());
        rates.block("other", one, NOW + Duration::from_secs(30), NOW + Duration::from_secs(20));
        assert_eq!(rates.0.lock().len(), 1);
    }
}
