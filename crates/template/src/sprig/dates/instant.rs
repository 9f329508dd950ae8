//! A time in a zone: Go's `time.Time`.

use baton_grammar::duration::Duration;
use jiff::Zoned;

use super::civil::Civil;
use super::format::format;
use super::zone::Zone;

const NANOSECONDS: i64 = 1_000_000_000;

/// A point in time, told in a zone.
#[derive(Debug, Clone)]
pub(super) struct Instant {
    /// After 1970.
    seconds: i64,
    nanosecond: u32,
    zone: Zone,
}

impl Instant {
    /// The time a clock shows.
    pub(super) fn new(now: &Zoned) -> Instant {
        let nanoseconds = now.timestamp().as_nanosecond();
        let zone = Zone::Region(now.time_zone().clone());
        let whole = nanoseconds.div_euclid(NANOSECONDS.into()) as i64;
        Instant { seconds: whole, nanosecond: nanoseconds.rem_euclid(NANOSECONDS.into()) as u32, zone }
    }

    /// So many seconds after 1970.
    pub(super) fn from_unix(seconds: i64, zone: Zone) -> Instant {
        Instant { seconds, nanosecond: 0, zone }
    }

    /// The time of year one that Go's zero value is.
    pub(super) fn zero() -> Instant {
        Instant::from_unix(-62_135_596_800, Zone::UTC)
    }

    /// A date and time of day in a zone. One that the zone skips or repeats is read as Go reads it.
    pub(super) fn in_zone(date: Civil, nanosecond: u32, zone: Zone) -> Instant {
        let as_utc = date.seconds();
        let guess = i64::from(zone.at(as_utc).0);
        if guess == 0 {
            return Instant { seconds: as_utc, nanosecond, zone };
        }
        let offset = i64::from(zone.at(as_utc.saturating_sub(guess)).0);
        Instant { seconds: as_utc.saturating_sub(offset), nanosecond, zone }
    }

    /// Seconds after 1970.
    pub(super) fn unix(&self) -> i64 {
        self.seconds
    }

    /// Nanoseconds after 1970.
    pub(super) fn nanoseconds(&self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOSECONDS) + i128::from(self.nanosecond)
    }

    /// Nanoseconds of the second.
    pub(super) fn nanosecond(&self) -> u32 {
        self.nanosecond
    }

    /// The same time in another zone.
    pub(super) fn told_in(self, zone: Zone) -> Instant {
        Instant { zone, ..self }
    }

    /// The offset in force, in seconds, and its name.
    pub(super) fn zone_at(&self) -> (i32, String) {
        self.zone.at(self.seconds)
    }

    /// Date and time of day in the zone.
    pub(super) fn local(&self) -> Civil {
        Civil::from_seconds(self.seconds.saturating_add(self.zone_at().0.into()))
    }

    pub(super) fn plus(&self, span: Duration) -> Instant {
        let nanoseconds = i64::from(self.nanosecond) + span.nanoseconds() % NANOSECONDS;
        let seconds = span.nanoseconds() / NANOSECONDS + nanoseconds.div_euclid(NANOSECONDS);
        Instant {
            seconds: self.seconds.saturating_add(seconds),
            nanosecond: nanoseconds.rem_euclid(NANOSECONDS) as u32,
            zone: self.zone.clone(),
        }
    }

    /// So many years, months and days later; a day a month does not have runs over into the next.
    pub(super) fn plus_date(&self, years: i64, months: i64, days: i64) -> Instant {
        // Far beyond any date, and far from where numbers end.
        const END: i64 = 1_000_000_000;
        let [years, months, days] = [years, months, days].map(|count| count.clamp(-END, END));
        let local = self.local();
        let months = (local.year.clamp(-END, END) + years) * 12 + i64::from(local.month) - 1 + months;
        let month = Civil { year: months.div_euclid(12), month: months.rem_euclid(12) as u8 + 1, ..local };
        let date = Civil::from_seconds(month.seconds().saturating_add(days * 86_400));
        Instant::in_zone(date, self.nanosecond, self.zone.clone())
    }

    /// The time from another to this one, as much of it as a duration holds.
    pub(super) fn since(&self, other: &Instant) -> Duration {
        let nanoseconds = self.nanoseconds() - other.nanoseconds();
        let end = if nanoseconds < 0 { i64::MIN } else { i64::MAX };
        Duration::from_nanoseconds(i64::try_from(nanoseconds).unwrap_or(end))
    }

    pub(super) fn format(&self, layout: &str) -> String {
        format(self, layout)
    }
}

impl std::fmt::Display for Instant {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}
