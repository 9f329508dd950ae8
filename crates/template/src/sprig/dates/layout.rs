//! Go's layouts: how the reference time would be written, `Mon Jan 2 15:04:05 MST 2006`.

/// A part of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    LongYear,
    Year,
    LongMonth,
    Month,
    NumberMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    Noon { capital: bool },
    ZoneName,
    Offset { zulu: bool, form: OffsetForm },
    Fraction { digits: usize, trimmed: bool, separator: char },
}

/// How an offset from UTC is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetForm {
    Hours,
    Minutes,
    ColonMinutes,
    Seconds,
    ColonSeconds,
}

impl OffsetForm {
    pub(super) fn has_colons(self) -> bool {
        matches!(self, OffsetForm::ColonMinutes | OffsetForm::ColonSeconds)
    }

    pub(super) fn has_minutes(self) -> bool {
        self != OffsetForm::Hours
    }

    pub(super) fn has_seconds(self) -> bool {
        matches!(self, OffsetForm::Seconds | OffsetForm::ColonSeconds)
    }
}

/// Longer texts before those they start with.
const WRITTEN: [(&str, Element); 28] = [
    ("2006", Element::LongYear),
    ("06", Element::Year),
    ("January", Element::LongMonth),
    ("Jan", Element::Month),
    ("01", Element::ZeroMonth),
    ("Monday", Element::LongWeekday),
    ("Mon", Element::Weekday),
    ("MST", Element::ZoneName),
    ("__2", Element::UnderYearDay),
    ("002", Element::ZeroYearDay),
    ("_2", Element::UnderDay),
    ("02", Element::ZeroDay),
    ("2", Element::Day),
    ("15", Element::Hour),
    ("1", Element::NumberMonth),
    ("03", Element::ZeroHour12),
    ("3", Element::Hour12),
    ("04", Element::ZeroMinute),
    ("4", Element::Minute),
    ("05", Element::ZeroSecond),
    ("5", Element::Second),
    ("PM", Element::Noon { capital: true }),
    ("pm", Element::Noon { capital: false }),
    ("070000", offset(OffsetForm::Seconds)),
    ("07:00:00", offset(OffsetForm::ColonSeconds)),
    ("0700", offset(OffsetForm::Minutes)),
    ("07:00", offset(OffsetForm::ColonMinutes)),
    ("07", offset(OffsetForm::Hours)),
];

const fn offset(form: OffsetForm) -> Element {
    Element::Offset { zulu: false, form }
}

/// The first element of a layout: the text before it, itself as written, and the layout after it.
pub(super) fn next(layout: &str) -> Option<(&str, &str, Element, &str)> {
    layout.char_indices().find_map(|(at, _)| {
        let (before, rest) = layout.split_at(at);
        let (length, element) = starting(rest)?;
        Some((before, &rest[..length], element, &rest[length..]))
    })
}

fn starting(text: &str) -> Option<(usize, Element)> {
    match text.as_bytes().first()? {
        sign @ (b'-' | b'Z') => {
            let (length, element) = listed(&text[1..])?;
            let Element::Offset { form, .. } = element else { return None };
            Some((length + 1, Element::Offset { zulu: *sign == b'Z', form }))
        }
        b'.' | b',' => fraction(text),
        // An underscore and a year, where the day would be a year's first digit.
        b'_' if text.starts_with("_2006") => None,
        _ => listed(text).filter(|(_, element)| !matches!(element, Element::Offset { .. })),
    }
}

fn listed(text: &str) -> Option<(usize, Element)> {
    let (written, element) = WRITTEN.iter().find(|(written, element)| {
        let short_name = matches!(element, Element::Month | Element::Weekday);
        text.strip_prefix(written)
            .is_some_and(|after| !(short_name && after.starts_with(|c: char| c.is_ascii_lowercase())))
    })?;
    Some((written.len(), *element))
}

/// A point or comma with zeros or nines after it, and no other digit.
fn fraction(text: &str) -> Option<(usize, Element)> {
    let separator = text.chars().next()?;
    let digits = &text[1..];
    let digit = digits.chars().next().filter(|digit| matches!(digit, '0' | '9'))?;
    let count = digits.len() - digits.trim_start_matches(digit).len();
    if digits[count..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((count + 1, Element::Fraction { digits: count, trimmed: digit == '9', separator }))
}
