//! Time zones.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Where a time is told.
#[derive(Debug, Clone)]
pub(super) enum Zone {
    /// With the rules of a region, UTC among them.
    Region(TimeZone),
    /// A distance from UTC, with the name it was given; none of its own.
    Fixed { seconds: i32, name: Arc<str> },
}

impl Zone {
    pub(super) const UTC: Zone = Zone::Region(TimeZone::UTC);

    /// The zone of a name; `None` for a name nobody knows. Names are as in the tz database, its own spelling only.
    pub(super) fn named(name: &str, local: &TimeZone) -> Option<Zone> {
        match name {
            "" | "UTC" => Some(Zone::UTC),
            "Local" => Some(Zone::Region(local.clone())),
            // The data built in, not the machine's: what a template makes must not depend on where it is made.
            name => {
                static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
                let zone = ZONES.get(name).ok()?;
                (zone.iana_name() == Some(name)).then_some(Zone::Region(zone))
            }
        }
    }

    /// The offset in force so many seconds after 1970, in seconds, and its name. Rules do not change before and after
    /// the years the database's library knows, up to 9999.
    pub(super) fn at(&self, seconds: i64) -> (i32, String) {
        match self {
            Zone::Region(zone) => {
                let end = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
                let at = Timestamp::from_second(seconds).unwrap_or(end);
                let info = zone.to_offset_info(at);
                (info.offset().seconds(), info.abbreviation().to_owned())
            }
            Zone::Fixed { seconds, name } => (*seconds, name.to_string()),
        }
    }
}
