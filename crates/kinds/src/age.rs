//! How long ago something was, as `kubectl` prints it.

use jiff::Timestamp;
use serde_json::Value;

/// The time between two moments in the two most significant units that still say something: `45s`, `3m20s`, `5h`, `3d4h`,
/// `2y10d`.
pub fn human_age(from: Timestamp, now: Timestamp) -> String {
    human_duration(now.duration_since(from).as_secs())
}

/// A number of seconds in the same form. A clock may be a little off, so one second of future is none.
pub(crate) fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

/// The age of a timestamp field, or `<unknown>`.
pub(crate) fn since(value: Option<&Value>, now: Timestamp) -> String {
    match value.and_then(moment) {
        Some(from) => human_age(from, now),
        None => "<unknown>".to_owned(),
    }
}

/// A timestamp field, read.
pub(crate) fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_are_shown_while_the_smaller_one_matters() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 61, "3h1m"),
            (8 * 3600, "8h"),
            (47 * 3600 + 3599, "47h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86400, "8d"),
            (8 * 86400 + 7200, "8d"),
            (729 * 86400, "729d"),
            (730 * 86400, "2y"),
            (731 * 86400, "2y1d"),
            (8 * 365 * 86400, "8y"),
            (9 * 365 * 86400 + 86400, "9y"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn an_unreadable_time_has_no_age() {
        assert_eq!(since(Some(&"yesterday".into()), Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(since(None, Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(since(Some(&"1969-12-31T23:59:00Z".into()), Timestamp::UNIX_EPOCH), "60s");
    }
}
