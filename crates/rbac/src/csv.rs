//! One line of a policy as Go's `encoding/csv` reads it when it trims leading space.

/// Why a line is no CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CsvFault {
    /// A quote inside a field that is not quoted.
    #[error("a quote stands inside a field: put the whole field into quotes and write \"\" for a quote")]
    BareQuote,
    /// Something between a closing quote and the comma.
    #[error("text follows a closing quote: end the field there, or write \"\" for a quote")]
    AfterQuote,
    /// A quoted field without an end.
    #[error("a quote is not closed")]
    OpenQuote,
}

/// The fields of a line. Space before a field is not part of it; space after it is.
pub(crate) fn fields(line: &str) -> Result<Vec<String>, CsvFault> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let text = text.trim_start();
        let (field, after) = match text.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => bare_field(text)?,
        };
        fields.push(field);
        rest = after;
    }
    Ok(fields)
}

fn bare_field(text: &str) -> Result<(String, Option<&str>), CsvFault> {
    let (field, after) = match text.split_once(',') {
        Some((field, after)) => (field, Some(after)),
        None => (text, None),
    };
    if field.contains('"') {
        return Err(CsvFault::BareQuote);
    }
    Ok((field.to_owned(), after))
}

fn quoted_field(mut text: &str) -> Result<(String, Option<&str>), CsvFault> {
    let mut field = String::new();
    loop {
        let (before, after) = text.split_once('"').ok_or(CsvFault::OpenQuote)?;
        field.push_str(before);
        match after.chars().next() {
            None => return Ok((field, None)),
            Some(',') => return Ok((field, Some(&after[1..]))),
            Some('"') => {
                field.push('"');
                text = &after[1..];
            }
            Some(_) => return Err(CsvFault::AfterQuote),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CsvFault, fields};

    #[test]
    fn fields_are_read_as_go_reads_them() {
        let table: &[(&str, &[&str])] = &[
            ("p,a,b", &["p", "a", "b"]),
            ("p, a,\t b", &["p", "a", "b"]),
            ("p, a , b ", &["p", "a ", "b "]),
            ("g, \"a, b\", role:c", &["g", "a, b", "role:c"]),
            ("g, \"say \"\"x\"\"\", c", &["g", "say \"x\"", "c"]),
            ("g, \" a \", c", &["g", " a ", "c"]),
            ("g,,", &["g", "", ""]),
            ("", &[""]),
            ("\u{a0}p,\u{2003}a", &["p", "a"]),
            ("p,\0,ü", &["p", "\0", "ü"]),
        ];
        for (line, expected) in table {
            let expected: Vec<String> = expected.iter().map(|field| (*field).to_owned()).collect();
            assert_eq!(fields(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn quotes_that_do_not_pair_are_refused() {
        for (line, fault) in [
            ("p, a\"b, c", CsvFault::BareQuote),
            ("p, \"a\" , c", CsvFault::AfterQuote),
            ("p, \"a\"b", CsvFault::AfterQuote),
            ("p, \"a, b", CsvFault::OpenQuote),
            ("\"", CsvFault::OpenQuote),
            ("p, \"a\"\"", CsvFault::OpenQuote),
        ] {
            assert_eq!(fields(line), Err(fault), "{line:?}");
        }
    }
}
