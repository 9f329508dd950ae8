//! String formats that schemas of custom resources may ask for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::names;

/// Whether `format` is one that is checked at all, and if so whether `value` has it. `None`: not checked.
pub(crate) fn check(format: &str, value: &str) -> Option<bool> {
    // Upstream compares names without dashes: `date-time` and `datetime` are the same.
    let name: String = format.chars().filter(|&character| character != '-').collect();
    Some(match name.as_str() {
        "bsonobjectid" => value.len() == 24 && all(value, |byte| byte.is_ascii_hexdigit()),
        "uri" => uri(value),
        "email" => email(value),
        "hostname" => hostname(value),
        "ipv4" => value.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => value.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(value),
        "mac" => mac(value),
        "uuid" => uuid(value, None),
        "uuid3" => uuid(value, Some('3')),
        "uuid4" => uuid(value, Some('4')),
        "uuid5" => uuid(value, Some('5')),
        "isbn" => isbn10(value) || isbn13(value),
        "isbn10" => isbn10(value),
        "isbn13" => isbn13(value),
        "creditcard" => credit_card(value),
        "ssn" => ssn(value),
        "hexcolor" => hex_color(value),
        "rgbcolor" => rgb_color(value),
        "byte" => base64(value),
        "password" => true,
        "date" => date(value),
        "duration" => duration(value),
        "datetime" => date_time(value),
        "k8sshortname" => names::dns1123_label(value).is_empty(),
        "k8slongname" => names::dns1123_subdomain(value).is_empty(),
        _ => return None,
    })
}

/// Whether the format is one this server knows for strings.
pub(crate) fn is_known(format: &str) -> bool {
    check(format, "").is_some()
}

fn all(value: &str, test: impl Fn(u8) -> bool) -> bool {
    value.bytes().all(test)
}

/// An absolute URI or an absolute path, as Go's `url.ParseRequestURI` reads one.
fn uri(value: &str) -> bool {
    if value.is_empty() || value.bytes().any(|byte| byte < 0x20 || byte == 0x7f) || !escapes_are_whole(value)
    {
        return false;
    }
    if value.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = value.split_once(':') else { return false };
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !all(scheme, letters) {
        return false;
    }
    match rest.strip_prefix("//") {
        None => !rest.contains(' '),
        Some(after) => {
            let host = after.split(['/', '?', '#']).next().unwrap_or_default();
            !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
        }
    }
}

fn escapes_are_whole(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// `local@domain`, optionally with a display name before it in angle brackets.
fn email(value: &str) -> bool {
    let address = match value.trim().strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((_, address)) => address,
        None => value.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte) || byte >= 0x80;
    let dots_inside = |text: &str| {
        !text.is_empty() && !text.starts_with('.') && !text.ends_with('.') && !text.contains("..")
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let bracketed = domain.starts_with('[') && domain.ends_with(']');
    (quoted || (dots_inside(local) && all(local, atom)))
        && (bracketed || (dots_inside(domain) && all(domain, atom)))
}

fn hostname(value: &str) -> bool {
    let name = value.strip_suffix('.').unwrap_or(value);
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            let bytes = label.as_bytes();
            (1..=63).contains(&bytes.len())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
                && bytes.first() != Some(&b'-')
                && bytes.last() != Some(&b'-')
        })
}

fn cidr(value: &str) -> bool {
    let Some((address, bits)) = value.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    all(bits, |byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// 6, 8 or 20 octets, in pairs with `:` or `-`, or in fours with `.`.
fn mac(value: &str) -> bool {
    let groups = |separator: char, digits: usize| {
        let parts: Vec<&str> = value.split(separator).collect();
        let whole =
            parts.iter().all(|part| part.len() == digits && all(part, |byte| byte.is_ascii_hexdigit()));
        whole && [6, 8, 20].contains(&(parts.len() * digits / 2))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

fn uuid(value: &str, version: Option<char>) -> bool {
    let mut digits = String::new();
    for (at, character) in value.chars().enumerate() {
        match character {
            // The four dashes are optional, but only in their places.
            '-' if [8, 12, 16, 20].contains(&digits.len()) && value.chars().nth(at + 1) != Some('-') => {}
            _ if character.is_ascii_hexdigit() && digits.len() < 32 => {
                digits.push(character.to_ascii_lowercase())
            }
            _ => return false,
        }
    }
    if digits.len() != 32 || value.ends_with('-') {
        return false;
    }
    let at = |index: usize| digits[index..].chars().next();
    version.is_none_or(|version| {
        at(12) == Some(version) && (version == '3' || matches!(at(16), Some('8' | '9' | 'a' | 'b')))
    })
}

fn without_separators(value: &str) -> String {
    value.chars().filter(|character| !matches!(character, '-' | ' ')).collect()
}

fn isbn10(value: &str) -> bool {
    let value = without_separators(value);
    if value.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (at, character) in value.chars().enumerate() {
        let digit = match character.to_digit(10) {
            Some(digit) => digit,
            None if at == 9 && character == 'X' => 10,
            None => return false,
        };
        sum += digit * (at as u32 + 1);
    }
    sum.is_multiple_of(11)
}

fn isbn13(value: &str) -> bool {
    let value = without_separators(value);
    if value.len() != 13 || !all(&value, |byte| byte.is_ascii_digit()) {
        return false;
    }
    let sum: u32 = value.bytes().enumerate().map(|(at, byte)| u32::from(byte - b'0') * [1, 3][at % 2]).sum();
    sum.is_multiple_of(10)
}

fn credit_card(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|character| character.to_digit(10)).collect();
    let text: String = digits.iter().map(u32::to_string).collect();
    let two: u32 = text.get(..2).and_then(|start| start.parse().ok()).unwrap_or(0);
    let brand = match digits.len() {
        13 => text.starts_with('4'),
        14 => matches!(two, 36 | 38) || (two == 30 && digits[2] <= 5),
        15 => matches!(two, 34 | 37) || text.starts_with("2131") || text.starts_with("1800"),
        16 => {
            text.starts_with('4')
                || (51..=55).contains(&two)
                || text.starts_with("6011")
                || two == 65
                || text.starts_with("35")
        }
        _ => false,
    };
    let luhn: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let doubled = digit * if at % 2 == 1 { 2 } else { 1 };
            doubled / 10 + doubled % 10
        })
        .sum();
    brand && luhn.is_multiple_of(10)
}

fn ssn(value: &str) -> bool {
    let mut digits = 0;
    for character in value.chars() {
        match character {
            '0'..='9' => digits += 1,
            '-' | ' ' if digits == 3 || digits == 5 => {}
            _ => return false,
        }
    }
    digits == 9 && value.len() <= 11
}

fn hex_color(value: &str) -> bool {
    let digits = value.strip_prefix('#').unwrap_or(value);
    matches!(digits.len(), 3 | 6) && all(digits, |byte| byte.is_ascii_hexdigit())
}

fn rgb_color(value: &str) -> bool {
    let Some(inside) = value.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            let plain = *part == "0" || !part.starts_with('0');
            plain && all(part, |byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok()
        })
}

/// Standard base64 with padding.
fn base64(value: &str) -> bool {
    let data = value.trim_end_matches('=');
    let padding = value.len() - data.len();
    !value.is_empty()
        && value.len().is_multiple_of(4)
        && padding <= 2
        && all(data, |byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// `full-date` of RFC 3339.
fn date(value: &str) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| {
        let digits = value.get(range).filter(|digits| all(digits, |byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u32>().ok())
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// `date-time` of RFC 3339.
pub(crate) fn date_time(value: &str) -> bool {
    let Some((day, time)) = value.split_at_checked(10) else { return false };
    let Some(time) = time.strip_prefix(['T', 't']) else { return false };
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    if !date(day) || !clock_time(clock) {
        return false;
    }
    let zone = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
    };
    match zone.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let pair = |first: &u8, second: &u8| {
                let digits = first.is_ascii_digit() && second.is_ascii_digit();
                digits.then(|| (first - b'0') * 10 + (second - b'0'))
            };
            pair(h1, h2).is_some_and(|hours| hours < 24) && pair(m1, m2).is_some_and(|minutes| minutes < 60)
        }
        _ => false,
    }
}

fn clock_time(value: &str) -> bool {
    let parts: Vec<&str> = value.split(':').collect();
    let below = |part: &str, limit: u8| {
        part.len() == 2
            && all(part, |byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|part| part < limit)
    };
    matches!(parts.as_slice(), [h, m, s] if below(h, 24) && below(m, 60) && below(s, 60))
}

/// Go's `time.ParseDuration`, or a count with a spelled-out unit (`3 days`).
fn duration(value: &str) -> bool {
    go_duration(value) || spelled_duration(value)
}

fn go_duration(value: &str) -> bool {
    let mut rest = value.strip_prefix(['+', '-']).unwrap_or(value);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let Some(after) = after_number(rest) else { return false };
        let Some(unit) =
            ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].into_iter().find(|unit| after.starts_with(unit))
        else {
            return false;
        };
        // `m` is a prefix of `ms`, which stands before it in the list.
        rest = &after[unit.len()..];
    }
    true
}

fn after_number(text: &str) -> Option<&str> {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let whole = digits(text);
    let mut rest = &text[whole..];
    let mut count = whole;
    if let Some(fraction) = rest.strip_prefix('.') {
        let after = digits(fraction);
        rest = &fraction[after..];
        count += after;
    }
    (count > 0).then_some(rest)
}

fn spelled_duration(value: &str) -> bool {
    let rest = value.trim_start();
    let digits = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    if digits.len() == rest.len() {
        return false;
    }
    let unit = digits.trim();
    const UNITS: [&str; 26] = [
        "ns",
        "nano",
        "us",
        "micro",
        "ms",
        "milli",
        "s",
        "sec",
        "m",
        "min",
        "h",
        "hr",
        "hour",
        "d",
        "day",
        "w",
        "wk",
        "week",
        "nanosecond",
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "nanos",
        "micros",
        "millis",
    ];
    UNITS.contains(&unit)
        || unit.strip_suffix('s').is_some_and(|singular| singular.len() > 1 && UNITS.contains(&singular))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn formats_accept_and_refuse() {
        for (format, good, bad) in [
            (
                "date-time",
                &["2026-01-02T03:04:05Z", "2024-02-29T23:59:59.123+01:30", "2026-01-02t03:04:05z"][..],
                &[
                    "",
                    "2026-01-02",
                    "2026-02-29T00:00:00Z",
                    "2026-01-02T24:00:00Z",
                    "2026-01-02T03:04:05",
                    "2026-01-02T03:04:05.Z",
                    "2026-01-02T03:04:05+25:00",
                    "ü026-01-02T03:04:05Z",
                ][..],
            ),
            ("date", &["2026-12-31"], &["2026-13-01", "2026-00-10", "26-01-01", "2026-1-1", ""]),
            (
                "duration",
                &["1h30m", "0", "-1.5s", "3 days", "2 weeks", "1µs", "100ms"],
                &["", "1", "h", "1x", "1h 30", "days"],
            ),
            ("byte", &["YWJj", "YQ==", "YWI="], &["a", "YQ=", "====", "Y!=="]),
            (
                "uri",
                &["https://a.b/c?d#e", "/path", "urn:x:y", "http://[::1]:80/"],
                &["", "a b", "no-scheme", "http://a b/", "http://a/%zz", ":x"],
            ),
            ("email", &["a@b.c", "Name <a@b.c>"], &["", "a", "@b", "a@", "a b@c"]),
            ("hostname", &["a.b", "A-1", "a."], &["", "-a", "a..b", "a_b"]),
            ("ipv4", &["1.2.3.4"], &["1.2.3", "::1", "256.0.0.1"]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", ":::"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8"]),
            (
                "mac",
                &["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab"],
                &["01:23", "0123456789ab", "g1:23:45:67:89:ab"],
            ),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &[
                    "",
                    "123e4567",
                    "123e-4567e89b12d3a456426614174000",
                    "123e4567--e89b-12d3-a456-426614174000",
                    "123e4567-e89b-12d3-a456-426614174000-",
                ],
            ),
            ("uuid3", &["123e4567-e89b-32d3-1456-426614174000"], &["123e4567-e89b-42d3-a456-426614174000"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-42d3-1456-426614174000"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044", "x"]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111111111111112", "1234"]),
            ("ssn", &["123-45-6789", "123456789"], &["12-345-6789", "1234"]),
            ("hexcolor", &["#FFF", "aabbcc"], &["#ff", "gggggg"]),
            ("rgbcolor", &["rgb(0,128, 255)"], &["rgb(256,0,0)", "0,0,0", "rgb(00,0,0)"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
            ("password", &["", "x"], &[]),
            ("k8s-short-name", &["a-b"], &["a.b", "A"]),
            ("k8s-long-name", &["a.b"], &["A", ""]),
        ] {
            for value in good {
                assert_eq!(check(format, value), Some(true), "{format} {value:?}");
            }
            for value in bad {
                assert_eq!(check(format, value), Some(false), "{format} {value:?}");
            }
        }
        assert_eq!(check("nobody-knows", "x"), None);
    }
}
