//! What a revision of a source says of itself.

use std::collections::BTreeMap;

use baton_source::Description;
use bytes::Bytes;
use serde_json::Value;

/// Longest text that is told.
const LONGEST: usize = 4096;
/// Most people who are told.
const MOST: usize = 50;

/// What a revision of a source says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// A commit.
    Commit(Description),
    /// A version of a chart.
    Chart(ChartDetails),
}

/// What a chart says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartDetails {
    /// In a sentence.
    pub description: String,
    /// Where it lives.
    pub home: String,
    /// Who cares for it, as `Name <address>`.
    pub maintainers: Vec<String>,
}

impl ChartDetails {
    /// Reads the `Chart.yaml` of a chart's files. What is missing is empty.
    pub(crate) fn read(files: &BTreeMap<String, Bytes>) -> ChartDetails {
        let chart = files.get("Chart.yaml").map(|file| String::from_utf8_lossy(file).into_owned());
        let chart = chart.and_then(|text| baton_grammar::yaml::first(&text).ok()).unwrap_or_default();
        let text =
            |value: &Value| value.as_str().unwrap_or_default().chars().take(LONGEST).collect::<String>();
        let maintainers = chart["maintainers"].as_array().into_iter().flatten().take(MOST);
        let maintainer = |one: &Value| match (text(&one["name"]), text(&one["email"])) {
            (name, email) if email.is_empty() => name,
            (name, email) => format!("{name} <{email}>").trim_start().to_owned(),
        };
        ChartDetails {
            description: text(&chart["description"]),
            home: text(&chart["home"]),
            maintainers: maintainers.map(maintainer).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_described_by_its_own_file() {
        let file = "name: web\ndescription: Serves\nhome: https://example.com\n\
            maintainers: [{name: Ann, email: ann@example.com}, {name: Bob}, 3]\n";
        let files = BTreeMap::from([("Chart.yaml".to_owned(), Bytes::from(file))]);
        let told = ChartDetails::read(&files);
        assert_eq!((told.description.as_str(), told.home.as_str()), ("Serves", "https://example.com"));
        assert_eq!(told.maintainers, ["Ann <ann@example.com>", "Bob", ""]);
        assert_eq!(ChartDetails::read(&BTreeMap::new()), ChartDetails::default());
        let broken = BTreeMap::from([("Chart.yaml".to_owned(), Bytes::from("a: ["))]);
        assert_eq!(ChartDetails::read(&broken), ChartDetails::default());
    }
}
