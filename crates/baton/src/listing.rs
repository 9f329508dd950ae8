//! Things in a table, whole, or by name. Every command that lists something prints it by this.

use serde_json::Value;

use crate::failure::Failure;
use crate::print::{self, Form};
use crate::screen::{Cell, Screen};
use crate::terminal;

/// A column of a table of `T`.
pub(crate) struct Column<T> {
    heading: &'static str,
    cell: fn(&T) -> String,
    /// Whether it is shown only to who asks for more.
    wide: bool,
}

/// How things of one kind are listed.
pub(crate) struct Listing<'a, T: 'a> {
    /// What a table shows of each.
    pub(crate) columns: &'a [Column<T>],
    /// Each as programs read it.
    pub(crate) whole: fn(&T) -> Value,
    /// Each by its name.
    pub(crate) name: fn(&T) -> String,
    /// What is said where a table would be empty.
    pub(crate) nothing: &'a str,
}

// === impl Column ===

impl<T> Column<T> {
    /// One that every table has.
    pub(crate) const fn new(heading: &'static str, cell: fn(&T) -> String) -> Column<T> {
        Column { heading, cell, wide: false }
    }

    /// One that only wide tables have.
    pub(crate) const fn wide(heading: &'static str, cell: fn(&T) -> String) -> Column<T> {
        Column { heading, cell, wide: true }
    }
}

/// Rows under headings, columns as wide as they must be. Nothing in a cell can move the cursor.
pub(crate) fn table<T>(columns: &[Column<T>], items: &[T], wide: bool) -> String {
    let shown: Vec<&Column<T>> = columns.iter().filter(|column| wide || !column.wide).collect();
    let headings: Vec<&str> = shown.iter().map(|column| column.heading).collect();
    let row = |item: &T| shown.iter().map(|column| Cell::from((column.cell)(item))).collect();
    let rows: Vec<Vec<Cell>> = items.iter().map(row).collect();
    Screen::endless().table(&headings, &rows, 0).unwrap_or_default()
}

// === impl Listing ===

impl<T> Listing<'_, T> {
    /// Prints all of them as asked.
    pub(crate) fn print(&self, items: &[T], form: Option<Form>) -> Result<(), Failure> {
        match form {
            None | Some(Form::Wide) if items.is_empty() => {
                terminal::remark(self.nothing);
                Ok(())
            }
            None | Some(Form::Wide) => print::out(&table(self.columns, items, form.is_some())),
            Some(form) => print::out(&self.written(items, form, false)?),
        }
    }

    /// Prints one as asked; for people in the words of `described`.
    pub(crate) fn print_one(
        &self,
        item: T,
        form: Option<Form>,
        described: impl FnOnce(&T, bool) -> String,
    ) -> Result<(), Failure> {
        print::out(&match form {
            None => described(&item, false),
            Some(Form::Wide) => described(&item, true),
            Some(form) => self.written(&[item], form, true)?,
        })
    }

    fn written(&self, items: &[T], form: Form, single: bool) -> Result<String, Failure> {
        let whole = || items.iter().map(self.whole).collect::<Vec<Value>>();
        match form {
            Form::Json => print::json(&whole(), single),
            Form::Yaml => print::yaml(&whole()),
            Form::Name => Ok(items.iter().map(|item| (self.name)(item) + "\n").collect()),
            Form::Wide => Ok(table(self.columns, items, true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_wide_ones_are_left_out() {
        let columns: [Column<(&str, &str)>; 3] = [
            Column::new("NAME", |one| one.0.to_owned()),
            Column::new("X", |one| one.1.to_owned()),
            Column::wide("LENGTH", |one| one.0.len().to_string()),
        ];
        let rows = [("a", "long value"), ("wider", "")];
        assert_eq!(table(&columns, &rows, false), "NAME    X\na       long value\nwider\n");
        let wide = table(&columns, &rows, true);
        assert_eq!(wide, "NAME    X            LENGTH\na       long value   1\nwider                5\n");
    }

    #[test]
    fn a_cell_cannot_move_the_cursor() {
        let columns: [Column<&str>; 1] = [Column::new("NAME", |one| (*one).to_owned())];
        assert_eq!(table(&columns, &["a\x1b[2J\nb"], false), "NAME\na [2J b\n");
    }
}
