//! Branch names made fit for labels, as gosimple/slug makes them.

/// Longest slug, in bytes; leaves room for something before or after it in a label.
const LONGEST: usize = 50;

/// Lower-case ASCII letters, digits and single dashes; cut at a dash where there is one.
pub(crate) fn slug(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for char in text.trim().chars() {
        match char {
            '_' | '‒' | '–' | '—' | '―' => push(&mut clean, '-'),
            '&' => clean.push_str("and"),
            '@' => clean.push_str("at"),
            '"' | '\'' | '’' => {}
            char if char.is_ascii() => push(&mut clean, char.to_ascii_lowercase()),
            char => ascii(char).chars().for_each(|char| push(&mut clean, char.to_ascii_lowercase())),
        }
    }
    shorten(clean.trim_matches(['-', '_'])).to_owned()
}

/// Adds a character; one that has no place in a slug is a dash, and dashes do not repeat.
fn push(clean: &mut String, char: char) {
    match char {
        'a'..='z' | '0'..='9' | '_' => clean.push(char),
        _ if clean.ends_with('-') => {}
        _ => clean.push('-'),
    }
}

/// Characters that gosimple/slug leaves out although others have a text for them: pictures, letters of rare scripts.
#[rustfmt::skip]
const SILENT: [(u32, u32); 25] = [
    (0x80, 0x9f), (0x2ff, 0x34e), (0x591, 0x5a1), (0x7ff, 0x8ff), (0x18ff, 0x1d6b), (0x1d8f, 0x1dff),
    (0x20d0, 0x20e3), (0x20ff, 0x2129), (0x23ff, 0x2426), (0x2460, 0x24cf), (0x25ff, 0x2613),
    (0x2619, 0x2671), (0x2701, 0x275e), (0x2761, 0x27af), (0x2900, 0x2c5f), (0x2c70, 0x2dff),
    (0x3190, 0x319f), (0x33ff, 0x4cff), (0xa4ff, 0xabff), (0xd7ff, 0xf8ff), (0xfb50, 0xfbb1),
    (0xfbd3, 0xfd3f), (0xfd50, 0xfd8f), (0xfd92, 0xfdc7), (0xfe76, 0xfefc),
];

/// Characters that it puts a dash for, likewise: arrows, signs of mathematics, what was unassigned.
#[rustfmt::skip]
const UNKNOWN: [(u32, u32); 58] = [
    (0x2ed, 0x2fe), (0x34f, 0x35f), (0x500, 0x530), (0x600, 0x620), (0x747, 0x77f), (0x7b1, 0x7fe),
    (0x970, 0x980), (0xb71, 0xb81), (0xbce, 0xbe5), (0xc4e, 0xc5f), (0xc70, 0xc81), (0xcce, 0xcdd),
    (0xd4e, 0xd5f), (0xd70, 0xd81), (0xde0, 0xdf1), (0xe5a, 0xe80), (0xede, 0xefe), (0xfd0, 0xffe),
    (0x105a, 0x109f), (0x137d, 0x139f), (0x1700, 0x177f), (0x17ea, 0x17fe), (0x18a9, 0x18fe),
    (0x201a, 0x2029), (0x204c, 0x2069), (0x208a, 0x209f), (0x20b0, 0x20cf), (0x20e4, 0x20fe),
    (0x213b, 0x214d), (0x2182, 0x21b6), (0x21bb, 0x21fe), (0x2200, 0x22fe), (0x2300, 0x23fe),
    (0x2427, 0x243f), (0x244b, 0x245f), (0x24eb, 0x24fe), (0x2500, 0x2572), (0x2574, 0x25bb),
    (0x25c0, 0x25ee), (0x2672, 0x26fe), (0x27bf, 0x27fe), (0x2e00, 0x2efe), (0x2f00, 0x2ffe),
    (0x31b8, 0x31fe), (0x3242, 0x325f), (0x4d00, 0x4dfe), (0x9fa6, 0x9ffe), (0xa4c7, 0xa4fe),
    (0xd7a4, 0xd7fe), (0xfa2d, 0xfafe), (0xfbb2, 0xfbd2), (0xfd40, 0xfd4f), (0xfdc8, 0xfdef),
    (0xfe00, 0xfe1f), (0xfe23, 0xfe32), (0xfe35, 0xfe48), (0xfe54, 0xfe66), (0xff00, 0xff0f),
];

/// What an ASCII writer would put for a character.
///
/// The texts are deunicode's. They are those of gosimple/slug for Latin, Greek, Cyrillic, Japanese and Korean letters
/// and nearly all of Chinese; where it knows fewer characters the tables above tell what it does.
fn ascii(char: char) -> &'static str {
    let code = u32::from(char);
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    match char {
        '€' => return "eu",
        'Є' => return "ie",
        'א' | 'ء' | 'إ' | '・' => return "",
        'し' | 'シ' => return "shi",
        'ち' | 'チ' => return "chi",
        'つ' | 'っ' | 'ツ' | 'ッ' => return "tsu",
        '一' => return "-",
        '么' => return "yao ",
        '什' => return "shi ",
        '价' => return "jie ",
        '旅' => return "lu ",
        '术' => return "zhu ",
        _ => {}
    }
    match code {
        0x10000.. => "",
        _ if within(&SILENT) => "",
        _ if within(&UNKNOWN) => "-",
        _ => deunicode::deunicode_char(char).unwrap_or("-"),
    }
}

fn shorten(text: &str) -> &str {
    if text.len() <= LONGEST {
        return text;
    }
    let end = text[..=LONGEST].rfind('-').unwrap_or(LONGEST);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each line holds a name and what gosimple/slug 1.15 made of it, run with Argo CD's settings by a Go program.
    const GOLDENS: &str = include_str!("../tests/slugs/gosimple.tsv");

    #[test]
    fn slugs_are_those_of_gosimple() {
        assert!(GOLDENS.lines().count() >= 60);
        for line in GOLDENS.lines() {
            let (name, expected) = line.rsplit_once('\t').expect("two fields");
            assert_eq!(slug(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_fits_into_a_label(text in any::<String>()) {
            let slug = slug(&text);
            prop_assert!(slug.len() <= LONGEST);
            prop_assert!(slug.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '-' | '_')), "{}", slug);
            prop_assert!(!slug.starts_with(['-', '_']) && !slug.contains("--"), "{}", slug);
        }
    }
}
