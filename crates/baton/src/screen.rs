//! What a person sees: as wide as the terminal is, in colours only where there is one.

use std::io::IsTerminal as _;

/// Narrowest last column worth having; below that a table becomes a list.
const LEAST: usize = 18;
/// Last column in which a sentence is still read with ease.
const ROOMY: usize = 36;
/// Between columns.
const GAP: usize = 3;

/// Where text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Columns; none where nothing folds a line.
    pub(crate) width: Option<usize>,
    /// Rows of a terminal.
    pub(crate) height: Option<usize>,
    pub(crate) colours: bool,
    /// Whether rows that are too long are folded; else they are cut.
    pub(crate) folds: bool,
}

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Heading,
    Good,
    Busy,
    Bad,
    Quiet,
}

/// A text in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

// === impl Screen ===

impl Screen {
    /// Standard output. `COLUMNS` decides on its width, also where it is no terminal; `NO_COLOR` on its colours.
    pub(crate) fn of_stdout() -> Screen {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let terminal = std::io::stdout().is_terminal();
        let size = terminal_size::terminal_size_of(std::io::stdout()).filter(|_| terminal);
        let columns = set("COLUMNS").and_then(|text| text.to_str()?.parse::<usize>().ok());
        Screen {
            width: columns.or(size.map(|(width, _)| width.0.into())).filter(|width| *width > 0),
            height: size.map(|(_, height)| height.0.into()),
            colours: terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
            folds: true,
        }
    }

    /// A page without end: nothing is folded or coloured, as in a file.
    pub(crate) fn endless() -> Screen {
        Screen { width: None, height: None, colours: false, folds: true }
    }

    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.colours || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Heading => "1",
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Text in lines that fit, each after `indent` blanks; a word that fits nowhere is cut.
    pub(crate) fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(LEAST));
        folded(text, room).into_iter().map(|line| format!("{:indent$}{line}", "")).collect()
    }

    /// A label and a text beside it that keeps its column when it is folded.
    pub(crate) fn labelled(&self, label: &str, text: &str, tone: Tone, column: usize) -> String {
        let mut out = String::new();
        for (at, line) in self.wrapped(&clean(text), column).iter().enumerate() {
            let line = self.paint(tone, line.trim_start());
            let label = if at == 0 { visible(label) } else { String::new() };
            out.push_str(format!("{label:<column$}{line}").trim_end());
            out.push('\n');
        }
        out
    }

    /// Whether a person looks at it, for whom what says little may be left out.
    pub(crate) fn is_terminal(&self) -> bool {
        self.height.is_some()
    }

    /// Rows under headings. The last column is folded where it does not fit; `None` where the others leave it no room.
    pub(crate) fn table(&self, headings: &[&str], rows: &[Vec<Cell>], indent: usize) -> Option<String> {
        self.table_with(LEAST, headings, rows, indent)
    }

    /// The same with room for sentences in the last column, or `None`.
    pub(crate) fn roomy(&self, headings: &[&str], rows: &[Vec<Cell>], indent: usize) -> Option<String> {
        self.table_with(ROOMY, headings, rows, indent)
    }

    fn table_with(
        &self,
        least: usize,
        headings: &[&str],
        rows: &[Vec<Cell>],
        indent: usize,
    ) -> Option<String> {
        let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let (last, fixed) = widths.split_last()?;
        let before: usize = indent + fixed.iter().map(|width| width + GAP).sum::<usize>();
        let room = match self.width {
            Some(width) if before + last > width => {
                width.checked_sub(before).filter(|room| *room >= least.min(*last))?
            }
            _ => usize::MAX,
        };
        let heading = headings.iter().map(|heading| Cell::toned(*heading, Tone::Heading)).collect();
        let mut out = String::new();
        for row in std::iter::once(&heading).chain(rows) {
            self.row(row, &widths, indent, room, &mut out);
        }
        Some(out)
    }

    fn row(&self, row: &[Cell], widths: &[usize], indent: usize, room: usize, out: &mut String) {
        let Some((last, fixed)) = row.split_last() else { return };
        let mut line = " ".repeat(indent);
        for (cell, width) in fixed.iter().zip(widths) {
            let blanks = width.saturating_sub(cell.text.chars().count()) + GAP;
            line.push_str(&self.paint(cell.tone, &cell.text));
            line.push_str(&" ".repeat(blanks));
        }
        let before = indent + widths[..fixed.len()].iter().map(|width| width + GAP).sum::<usize>();
        let parts = if self.folds { folded(&last.text, room) } else { vec![cut(&last.text, room)] };
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                line = " ".repeat(before);
            }
            line.push_str(&self.paint(last.tone, part));
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// A text in lines of at most `room` characters; there is always one.
fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: &str = word;
        loop {
            let line = lines.last_mut().expect("there is always one");
            let used = line.chars().count();
            let gap = usize::from(used > 0);
            let count = word.chars().count();
            if used + gap + count <= room {
                line.push_str(if gap > 0 { " " } else { "" });
                line.push_str(word);
                break;
            }
            if used == 0 {
                let cut = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
                line.push_str(&word[..cut]);
                word = &word[cut..];
            }
            lines.push(String::new());
        }
    }
    lines
}

/// As much of a text as there is room for.
pub(crate) fn cut(text: &str, room: usize) -> String {
    match text.chars().count() > room {
        false => text.to_owned(),
        true => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A text of others without what could move the cursor or hide something: one line of visible characters.
pub(crate) fn clean(text: &str) -> String {
    visible(text).trim().to_owned()
}

fn visible(text: &str) -> String {
    // Marks that turn the direction of writing would let a text look like another.
    let turns = |mark: char| matches!(mark, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let marks = text.chars().filter(|mark| !turns(*mark));
    marks.map(|mark| if mark.is_control() { ' ' } else { mark }).collect()
}

/// How long ago something was, or is to come, in the largest two units.
pub(crate) fn span(from: jiff::Timestamp, to: jiff::Timestamp) -> String {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}", seconds / 60, rest(seconds % 60, "s")),
        3600..86400 => format!("{}h{}", seconds / 3600, rest(seconds % 3600 / 60, "m")),
        _ => format!("{}d{}", seconds / 86400, rest(seconds % 86400 / 3600, "h")),
    }
}

fn rest(count: i64, unit: &str) -> String {
    if count == 0 { String::new() } else { format!("{count}{unit}") }
}

// === impl Cell ===

impl Cell {
    pub(crate) fn toned(text: impl AsRef<str>, tone: Tone) -> Cell {
        Cell { text: clean(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::toned(text, Tone::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: usize) -> Screen {
        Screen { width: Some(width), height: None, colours: false, folds: true }
    }

    #[test]
    fn the_last_column_folds_and_a_table_without_room_is_none() {
        let rows = [vec![Cell::from("web"), "several words that do not fit in one line".into()]];
        let text = screen(30).table(&["NAME", "MESSAGE"], &rows, 0).expect("room");
        assert_eq!(text, "NAME   MESSAGE\nweb    several words that do\n       not fit in one line\n");
        assert_eq!(screen(20).table(&["NAME", "MESSAGE"], &rows, 0), None);
        let cut = Screen { folds: false, ..screen(30) }.table(&["NAME", "MESSAGE"], &rows, 0).expect("room");
        assert_eq!(cut, "NAME   MESSAGE\nweb    several words that do …\n");
        let wide = Screen { width: None, ..screen(0) };
        assert!(wide.table(&["NAME", "MESSAGE"], &rows, 0).expect("room").lines().count() == 2);
    }

    #[test]
    fn texts_of_others_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d\r"), "a [2Jb cd");
        assert_eq!(folded("", 5), [""]);
        assert_eq!(folded("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
    }

    #[test]
    fn spans_have_two_units_at_most() {
        let at = |second| jiff::Timestamp::from_second(second).expect("a time");
        for (seconds, text) in [
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (61, "1m1s"),
            (3600, "1h"),
            (90_000, "1d1h"),
            (3_661, "1h1m"),
        ] {
            assert_eq!(span(at(0), at(seconds)), text);
        }
    }
}
