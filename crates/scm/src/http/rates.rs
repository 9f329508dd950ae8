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
        return Rate::Refused(until.clamp(now + Duration::from_secs(1), longest));
    }
    match reset {
        Some(reset) if remaining == Some(0) && dialect != Dialect::Azure && reset > now => {
            Rate::Exhausted(reset.min(longest))
        }
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
