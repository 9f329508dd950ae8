//! The calendar: days and seconds as dates and times of day, for any year.

/// A date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// From one on.
    pub(super) month: u8,
    pub(super) day: u8,
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
}

const DAY: i64 = 86_400;

/// Days in four hundred years, after which the calendar repeats itself.
const CYCLE: i64 = 146_097;

/// Days from the first of March of year zero to 1970.
const EPOCH: i64 = 719_468;

impl Civil {
    /// The date so many seconds after 1970.
    pub(super) fn from_seconds(seconds: i64) -> Civil {
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        // Years are counted from March on, so that the day a leap year has more comes last.
        let shifted = days + EPOCH;
        let (cycle, day_of_cycle) = (shifted.div_euclid(CYCLE), shifted.rem_euclid(CYCLE));
        let leap_days = day_of_cycle / 1_460 - day_of_cycle / 36_524 + day_of_cycle / (CYCLE - 1);
        let year_of_cycle = (day_of_cycle - leap_days) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Civil {
            year: year_of_cycle + cycle * 400 + i64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * march_month + 2) / 5 + 1) as u8,
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
        }
    }

    /// Seconds after 1970.
    pub(super) fn seconds(&self) -> i64 {
        let time = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        let seconds = i128::from(days(self.year, self.month, self.day)) * i128::from(DAY) + i128::from(time);
        seconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Days since Sunday.
    pub(super) fn weekday(&self) -> usize {
        // The first day of 1970 was a Thursday.
        (days(self.year, self.month, self.day) + 4).rem_euclid(7) as usize
    }

    /// From one on.
    pub(super) fn year_day(&self) -> i64 {
        days(self.year, self.month, self.day) - days(self.year, 1, 1) + 1
    }
}

/// How many days a month has.
pub(super) fn days_in(year: i64, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days after the first of 1970.
fn days(year: i64, month: u8, day: u8) -> i64 {
    let year = year - i64::from(month <= 2);
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * CYCLE + day_of_cycle - EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar_library_are_the_same_here() {
        let mut day = jiff::civil::Date::MIN;
        let first = jiff::civil::date(1970, 1, 1);
        // A prime that is no multiple of a week: every day of every month has its turn.
        while let Ok(next) = day.checked_add(jiff::Span::new().days(61)) {
            let seconds = i64::from(first.until(day).expect("within range").get_days()) * DAY;
            let here = Civil::from_seconds(seconds + 3_661);
            let parts = (here.year, here.month, here.day, here.hour, here.minute, here.second);
            assert_eq!(parts, (day.year().into(), day.month() as u8, day.day() as u8, 1, 1, 1));
            assert_eq!(here.seconds(), seconds + 3_661);
            assert_eq!(here.weekday(), day.weekday().to_sunday_zero_offset() as usize);
            assert_eq!(here.year_day(), i64::from(day.day_of_year()));
            assert_eq!(days_in(here.year, here.month), day.days_in_month() as u8);
            day = next;
        }
    }

    #[test]
    fn no_number_of_seconds_is_too_far() {
        for seconds in [i64::MIN, i64::MAX] {
            assert_eq!(Civil::from_seconds(seconds).seconds(), seconds);
        }
    }
}
