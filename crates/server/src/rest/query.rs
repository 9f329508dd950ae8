//! The part of a URL behind the `?`.

use percent_encoding::percent_decode_str;

use super::operation::Parameter;
use crate::error::Error;

/// Longest query.
const LONGEST: usize = 16 << 10;
/// Most parameters.
const MOST: usize = 500;

/// Parameters by name; one may come several times. Those that nobody knows are passed over.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// What the operation says it takes: nothing else is looked at, so that the document is whole.
    known: &'static [Parameter],
}

impl Query {
    /// # Errors
    /// It is too long, or is no text.
    pub(super) fn read(text: &str, known: &'static [Parameter]) -> Result<Query, Error> {
        if text.len() > LONGEST || text.matches('&').count() >= MOST {
            return Err(Error::invalid("the query is too long"));
        }
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        });
        Ok(Query { pairs: read.collect::<Result<_, Error>>()?, known })
    }

    /// A parameter; empty where it is absent.
    pub(crate) fn text(&self, name: &str) -> String {
        self.check(name);
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// Whether a parameter is on; off where it is absent.
    ///
    /// # Errors
    /// It is neither on nor off: what was meant must not be guessed.
    pub(crate) fn is_on(&self, name: &str) -> Result<bool, Error> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    /// A parameter that is on or off, in all the words that Argo CD takes; none where it is absent.
    ///
    /// # Errors
    /// As [`Query::is_on`].
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.check(name);
        let Some((_, value)) = self.pairs.iter().find(|(key, _)| key == name) else { return Ok(None) };
        match value.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Some(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Some(false)),
            other => Err(Error::invalid(format!("{name} is true or false, and not {other:?}"))),
        }
    }

    /// A number, where it is one.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.text(name).as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Error::invalid(format!("{name} is a number"))),
        }
    }

    /// Every value of parameters of these names.
    pub(crate) fn all(&self, names: &[&str]) -> Vec<String> {
        names.iter().for_each(|name| self.check(name));
        let meant =
            self.pairs.iter().filter(|(key, value)| names.contains(&key.as_str()) && !value.is_empty());
        meant.map(|(_, value)| value.clone()).collect()
    }

    fn check(&self, name: &str) {
        debug_assert!(self.known.iter().any(|known| known.name == name), "no document tells of {name}");
    }
}

fn decoded(text: &str) -> Result<String, Error> {
    let plain = text.replace('+', " ");
    let text = percent_decode_str(&plain).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| Error::invalid("the query is no text"))
}

#[cfg(test)]
mod tests {
    use super::super::operation::Kind;
    use super::*;

    const fn of(name: &'static str) -> Parameter {
        Parameter { name, about: "", kind: Kind::Text }
    }

    #[test]
    fn a_query_is_read_within_bounds() {
        const KNOWN: &[Parameter] = &[of("a"), of("b"), of("flag"), of("none")];
        let query = Query::read("a=1&b=x%2Fy+z&a=2&flag&&fields=-items.status", KNOWN).expect("a query");
        assert_eq!(query.text("a"), "1");
        assert_eq!(query.all(&["a"]), ["1", "2"]);
        assert_eq!(query.text("b"), "x/y z");
        assert_eq!((query.text("flag"), query.text("none")), (String::new(), String::new()));
        assert!(query.is_on("flag").is_err(), "a flag says what it is");
        assert_eq!(query.flag("none"), Ok(None));
        for (value, meant) in
            [("True", true), ("1", true), ("t", true), ("False", false), ("0", false), ("f", false)]
        {
            let query = Query::read(&format!("flag={value}"), KNOWN).expect("a query");
            assert_eq!((query.flag("flag"), query.is_on("flag")), (Ok(Some(meant)), Ok(meant)), "{value}");
        }
        for value in ["maybe", "yes", "tRUE", "2", "true%20"] {
            assert!(
                Query::read(&format!("flag={value}"), KNOWN).expect("a query").flag("flag").is_err(),
                "{value}"
            );
        }
        for text in ["a=%ff", &"a&".repeat(600), &"x".repeat(20_000)] {
            assert!(Query::read(text, KNOWN).is_err(), "{text:.10}");
        }
    }
}
