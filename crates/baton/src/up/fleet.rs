//! Which simulated clusters there are: from a count, or one by one.

use std::collections::BTreeMap;
use std::str::FromStr;

use baton_schema::names;

/// A member cluster to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
}

const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];
const REGIONS: [&str; 3] = ["us-east", "eu-west", "ap-south"];

/// `--cluster NAME,label=value…`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberArgument {
    name: String,
    labels: BTreeMap<String, String>,
}

impl FromStr for MemberArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default().to_owned();
        if let Some(why) = names::dns1123_label(&name).first() {
            return Err(format!("{name:?} is not a cluster name: {why}"));
        }
        let mut labels = BTreeMap::new();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{part:?} is not a label: write it as key=value"))?;
            if let Some(why) = names::qualified_name(key).into_iter().chain(names::label_value(value)).next()
            {
                return Err(format!("{part:?} is not a label: {why}"));
            }
            if labels.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(format!("label {key:?} is given twice"));
            }
        }
        Ok(MemberArgument { name, labels })
    }
}

/// `count` clusters spread over dev, staging and prod, the first dev and the last prod.
pub(crate) fn counted(count: usize) -> Vec<Member> {
    let environments: Vec<&str> = (0..count).map(|index| ENVIRONMENTS[position(index, count)]).collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    environments
        .iter()
        .enumerate()
        .map(|(index, environment)| {
            let alone = environments.iter().filter(|other| *other == environment).count() == 1;
            let number = seen.entry(environment).or_default();
            *number += 1;
            let name = if alone { (*environment).to_owned() } else { format!("{environment}-{number}") };
            let argument = MemberArgument { name, labels: BTreeMap::new() };
            complete(argument, index, count)
        })
        .collect()
}

/// The clusters named one by one, each with `env` and `region` where it does not say them.
pub(crate) fn named(arguments: Vec<MemberArgument>) -> Result<Vec<Member>, String> {
    let mut names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("cluster {:?} is given twice", twice[0]));
    }
    if names.contains(&"in-cluster") {
        return Err("\"in-cluster\" is the control plane's own name; choose another".to_owned());
    }
    let count = arguments.len();
    Ok(arguments.into_iter().enumerate().map(|(index, argument)| complete(argument, index, count)).collect())
}

fn complete(argument: MemberArgument, index: usize, count: usize) -> Member {
    let mut labels = argument.labels;
    let environment = labels.get("environment").map(|environment| match environment.as_str() {
        "production" => "prod".to_owned(),
        "development" => "dev".to_owned(),
        other => other.to_owned(),
    });
    labels
        .entry("env".into())
        .or_insert_with(|| environment.unwrap_or_else(|| ENVIRONMENTS[position(index, count)].into()));
    labels.entry("region".into()).or_insert_with(|| REGIONS[index % REGIONS.len()].into());
    Member { name: argument.name, labels }
}

/// Which third of the fleet a cluster is in; the last is always in the last third, the first in the first.
fn position(index: usize, count: usize) -> usize {
    match index {
        0 => 0,
        index if index + 1 == count => 2,
        index => index * 3 / count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_environments(count: usize) -> Vec<(String, String)> {
        counted(count).into_iter().map(|member| (member.name, member.labels["env"].clone())).collect()
    }

    #[test]
    fn a_counted_fleet_begins_in_dev_and_ends_in_prod() {
        let three = names_and_environments(3);
        assert_eq!(
            three,
            [("dev", "dev"), ("staging", "staging"), ("prod", "prod")].map(|(a, b)| (a.into(), b.into()))
        );
        for count in 2..40 {
            let fleet = names_and_environments(count);
            assert_eq!(fleet[0].1, "dev");
            assert_eq!(fleet[count - 1].1, "prod");
            let mut names: Vec<&String> = fleet.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn named_clusters_keep_their_labels_and_gain_the_missing_ones() {
        let argument: MemberArgument = "dev-us-west,environment=production,tier=1".parse().expect("valid");
        let fleet = named(vec![argument]).expect("valid");
        assert_eq!(fleet[0].name, "dev-us-west");
        let labels = &fleet[0].labels;
        assert_eq!((labels["environment"].as_str(), labels["tier"].as_str()), ("production", "1"));
        assert_eq!((labels["env"].as_str(), labels["region"].as_str()), ("prod", "us-east"));
    }

    #[test]
    fn bad_clusters_are_refused_with_a_reason() {
        for text in ["", "Dev", "a b", "-a", "a,b", "a,b=c,b=d", "a,/x=1", "a,x=_"] {
            assert!(text.parse::<MemberArgument>().is_err(), "{text}");
        }
        let twice = ["a", "a"].map(|text| text.parse().expect("valid")).to_vec();
        assert!(named(twice).expect_err("twice").contains("given twice"));
    }
}
