//! The compressed list of completed indexes: `0-3,5`.

use std::collections::BTreeSet;

/// Indexes below `limit`; unreadable parts are skipped.
pub(super) fn parse(text: &str, limit: i64) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first.max(0)..last.saturating_add(1).min(limit));
        }
    }
    indexes
}

pub(super) fn print(indexes: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*index) => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let shown: Vec<_> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_compressed_and_read_back() {
        let indexes = BTreeSet::from([0, 1, 2, 5, 7, 8]);
        assert_eq!(print(&indexes), "0-2,5,7,8");
        assert_eq!(parse("0-2,5,7,8", 100), indexes);
        assert_eq!(parse("x,3-1,-4,0-999999999", 2), BTreeSet::from([0, 1]));
    }
}
