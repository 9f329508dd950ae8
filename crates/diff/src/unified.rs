//! Differences as people read them: a unified diff of YAML.

use std::fmt::Write as _;

use baton_grammar::yaml;
use serde_json::Value;

use crate::masked::mask;

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// Most changed lines that are lined up with care; objects that differ more are shown as replaced.
const MOST_CHANGES: usize = 1000;

/// The change from a live object to its target, empty where there is none. `null` is no object. Values of Secrets are
/// hidden.
pub fn unified(live: &Value, target: &Value, title: &str) -> String {
    let (target, live) = mask(target, live, &[]);
    let (old, new) = (text(&live), text(&target));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = line_up(&old, &new);
    if lines.iter().all(|line| line.sign == ' ') {
        return String::new();
    }
    let mut diff = format!("--- {title} (live)\n+++ {title} (target)\n");
    for hunk in hunks(&lines) {
        write_hunk(&mut diff, &lines, hunk);
    }
    diff
}

fn text(object: &Value) -> String {
    if object.is_null() { String::new() } else { yaml::to_string(object) }
}

/// One line of a diff, with the count of old and new lines before it.
struct Line<'a> {
    sign: char,
    text: &'a str,
    old: usize,
    new: usize,
}

fn write_hunk(diff: &mut String, lines: &[Line<'_>], hunk: std::ops::Range<usize>) {
    let lines = &lines[hunk];
    let count = |other: char| lines.iter().filter(|line| line.sign != other).count();
    let (old, new) = (count('+'), count('-'));
    let start = |before: usize, length: usize| if length == 0 { before } else { before + 1 };
    // Writing to a String does not fail.
    let _ = writeln!(diff, "@@ -{},{old} +{},{new} @@", start(lines[0].old, old), start(lines[0].new, new));
    for line in lines {
        let _ = writeln!(diff, "{}{}", line.sign, line.text);
    }
}

/// Changes with the lines around them, joined where they touch.
fn hunks(lines: &[Line<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.sign != ' ') {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

fn line_up<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let middle_old = &old_rest[..old_rest.len() - tail];
    let middle_new = &new_rest[..new_rest.len() - tail];

    let kept = |text: &&'a str| (' ', *text);
    let mut signed: Vec<(char, &'a str)> = old[..head].iter().map(kept).collect();
    signed.extend(shortest(middle_old, middle_new));
    signed.extend(old_rest[old_rest.len() - tail..].iter().map(kept));

    let (mut before_old, mut before_new) = (0, 0);
    let lines = signed.into_iter().map(|(sign, text)| {
        let line = Line { sign, text, old: before_old, new: before_new };
        before_old += usize::from(sign != '+');
        before_new += usize::from(sign != '-');
        line
    });
    lines.collect()
}

/// The shortest edit from one list of lines to another, as Myers finds it.
fn shortest<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let Some(rounds) = search(old, new) else {
        let removed = old.iter().map(|text| ('-', *text));
        return removed.chain(new.iter().map(|text| ('+', *text))).collect();
    };
    let mut edit = Vec::new();
    let (mut x, mut y) = (old.len(), new.len());
    for (changes, reached) in rounds.iter().enumerate().rev() {
        let before = reached.before(x as isize - y as isize, changes);
        while x > before.0 && y > before.1 {
            (x, y) = (x - 1, y - 1);
            edit.push((' ', old[x]));
        }
        if x > before.0 {
            x -= 1;
            edit.push(('-', old[x]));
        } else if y > before.1 {
            y -= 1;
            edit.push(('+', new[y]));
        }
    }
    edit.reverse();
    edit
}

/// How far each diagonal (old lines passed less new lines passed) reaches with a number of changes, in old lines.
struct Reached {
    /// From diagonal `-changes` up, every second.
    old: Vec<usize>,
}

impl Reached {
    fn at(&self, diagonal: isize, changes: usize) -> Option<usize> {
        let index = usize::try_from(diagonal + changes as isize).ok()?;
        self.old.get(index / 2).copied()
    }

    /// Where one more change leads on a diagonal.
    fn step(&self, diagonal: isize, changes: usize) -> (usize, usize) {
        let (x, y) = self.before(diagonal, changes);
        let from = x as isize - y as isize;
        if from > diagonal { (x, y + 1) } else { (x + 1, y) }
    }

    /// The point from which the last of `changes` changes led to a diagonal; these are the reaches one change earlier.
    fn before(&self, diagonal: isize, changes: usize) -> (usize, usize) {
        let Some(earlier) = changes.checked_sub(1) else { return (0, 0) };
        let (left, right) = (self.at(diagonal - 1, earlier), self.at(diagonal + 1, earlier));
        let by_insertion = match (left, right) {
            (Some(left), Some(right)) => left < right,
            (left, _) => left.is_none(),
        };
        let (x, from) = if by_insertion { (right, diagonal + 1) } else { (left, diagonal - 1) };
        let x = x.unwrap_or_default();
        (x, usize::try_from(x as isize - from).unwrap_or_default())
    }
}

/// What was reached before each change until the ends were; `None` where that takes too many.
fn search(old: &[&str], new: &[&str]) -> Option<Vec<Reached>> {
    let mut rounds = Vec::new();
    let mut reached = Reached { old: Vec::new() };
    for changes in 0..=MOST_CHANGES.min(old.len() + new.len()) {
        let mut next = Reached { old: Vec::with_capacity(changes + 1) };
        for step in 0..=changes {
            let diagonal = 2 * step as isize - changes as isize;
            let (mut x, mut y) = if changes == 0 { (0, 0) } else { reached.step(diagonal, changes) };
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            if x >= old.len() && y >= new.len() {
                rounds.push(reached);
                return Some(rounds);
            }
            next.old.push(x);
        }
        rounds.push(std::mem::replace(&mut reached, next));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let live =
            json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": [1, 2]});
        let target =
            json!({"a": 1, "b": "two", "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": [1, 3]});
        let expected = "\
--- apps/Deployment shop/web (live)
+++ apps/Deployment shop/web (target)
@@ -1,5 +1,5 @@
 a: 1
-b: 2
+b: two
 c: 3
 d: 4
 e: 5
@@ -9,4 +9,4 @@
 i: 9
 j:
 - 1
-- 2
+- 3
";
        assert_eq!(unified(&live, &target, "apps/Deployment shop/web"), expected);
        assert_eq!(unified(&live, &live, "x"), "");
    }

    #[test]
    fn an_object_that_comes_or_goes_is_shown_whole() {
        let object = json!({"a": 1});
        assert_eq!(
            unified(&Value::Null, &object, "x"),
            "--- x (live)\n+++ x (target)\n@@ -0,0 +1,1 @@\n+a: 1\n"
        );
        assert_eq!(
            unified(&object, &Value::Null, "x"),
            "--- x (live)\n+++ x (target)\n@@ -1,1 +0,0 @@\n-a: 1\n"
        );
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        let secret =
            |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": value, "b": "x"}});
        let diff = unified(&secret("one"), &secret("three"), "x");
        assert!(diff.contains("-  a: ++++++++\n+  a: ++++++++++++\n   b: ++++++++\n"), "{diff}");
    }

    #[test]
    fn objects_that_share_nothing_end_as_well() {
        let many = |word: &str| Value::from((0..5000).map(|n| format!("{word}{n}")).collect::<Vec<_>>());
        let diff = unified(&many("a"), &many("b"), "x");
        assert_eq!(diff.lines().filter(|line| line.starts_with("-- a")).count(), 5000);
    }

    proptest! {
        #[test]
        fn old_and_new_follow_from_the_edit(
            old in prop::collection::vec("[a-d]", 0..30), new in prop::collection::vec("[a-d]", 0..30),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) = (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let lines = line_up(&old, &new);
            let side = |other: char| lines.iter().filter(|line| line.sign != other).map(|line| line.text).collect::<Vec<_>>();
            prop_assert_eq!(side('+'), old);
            prop_assert_eq!(side('-'), new);
        }
    }
}
