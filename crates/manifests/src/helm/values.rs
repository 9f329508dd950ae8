//! Value files and file parameters: found in the chart's own repository or in one named by `ref`, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::Chart;
use crate::checkout::cleaned;
use crate::error::Fault;
use crate::ground::Ground;
use crate::workshop::Workshop;

/// Most value files a source may have, globs expanded.
const MAX_FILES: usize = 1000;

/// Largest value file.
const MAX_BYTES: u64 = 10 << 20;

/// Files written for helm.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Value files, later ones win.
    pub(super) values: Vec<PathBuf>,
    /// Names of parameters, and the files that hold them.
    pub(super) parameters: Vec<(String, PathBuf)>,
}

/// A file: which ground it is in, and where.
type Place = (usize, String);

/// Finds the files a source names and writes them into the workshop.
pub(super) async fn gathered(workshop: &Workshop, chart: &Chart<'_>) -> Result<Files, Fault> {
    let mut grounds = Grounds::of(chart).await?;
    let mut files = Files::default();
    for (number, place) in grounds.value_files()?.into_iter().enumerate() {
        let content = grounds.read(&place).await?;
        files.values.push(workshop.put(&format!("values/{number}.yaml"), content).await?);
    }
    let options = chart.options;
    let own = match &options.values_object {
        Some(object) => Some(Value::Object(object.clone()).to_string()),
        None if options.values.is_empty() => None,
        None => Some(options.values.clone()),
    };
    if let Some(own) = own {
        files.values.push(workshop.put("values/own.yaml", own).await?);
    }
    for (number, parameter) in options.file_parameters.iter().enumerate() {
        let place = grounds.place(&parameter.path)?;
        if !grounds.exists(&place, &parameter.path)? {
            return Err(Fault::Options(format!(
                "file {:?} of a helm file parameter does not exist",
                parameter.path
            )));
        }
        let content = grounds.read(&place).await?;
        let written = workshop.put(&format!("values/parameter-{number}"), content).await?;
        files.parameters.push((parameter.name.clone(), written));
    }
    Ok(files)
}

/// The chart's own files and those it refers to.
struct Grounds<'a> {
    chart: &'a Chart<'a>,
    /// The chart's own first.
    all: Vec<Ground>,
    references: BTreeMap<&'a str, usize>,
}

impl<'a> Grounds<'a> {
    /// Opens the repositories that are referred to.
    async fn of(chart: &'a Chart<'a>) -> Result<Grounds<'a>, Fault> {
        let mut grounds = Grounds { chart, all: vec![chart.ground.clone()], references: BTreeMap::new() };
        let parameters = chart.options.file_parameters.iter().map(|parameter| &parameter.path);
        for text in chart.options.value_files.iter().chain(parameters) {
            if let Some((name, location)) =
                reference(text).and_then(|(name, _)| chart.references.get_key_value(name))
                && !grounds.references.contains_key(name)
            {
                let checkout = location.open(chart.repositories).await?;
                grounds.references.insert(name, grounds.all.len());
                grounds.all.push(Ground::Repository(Arc::new(checkout)));
            }
        }
        Ok(grounds)
    }

    /// The value files in order. A file named for itself stands where it is named, not where a glob finds it.
    fn value_files(&mut self) -> Result<Vec<Place>, Fault> {
        let options = self.chart.options;
        let places = options.value_files.iter().map(|text| Ok((text, self.place(text)?)));
        let places = places.collect::<Result<Vec<_>, Fault>>()?;
        let is_glob = |(_, path): &Place| path.contains(['*', '?', '[']);
        let named: BTreeSet<Place> =
            places.iter().map(|(_, place)| place).filter(|place| !is_glob(place)).cloned().collect();
        let mut found: Vec<Place> = Vec::new();
        let mut seen = BTreeSet::new();
        for (text, place) in places {
            let mut here = Vec::new();
            if is_glob(&place) {
                let matches = self.all[place.0].matching(&place.1)?;
                if matches.is_empty() && !options.ignore_missing_value_files {
                    return Err(Fault::Options(format!("values file glob {text:?} matched no files")));
                }
                here.extend(
                    matches.into_iter().map(|path| (place.0, path)).filter(|place| !named.contains(place)),
                );
            } else if self.exists(&place, text)? {
                here.push(place);
            } else if !options.ignore_missing_value_files {
                return Err(Fault::Options(format!("value file {text:?} does not exist")));
            }
            found.extend(here.into_iter().filter(|place| seen.insert(place.clone())));
            if found.len() > MAX_FILES {
                return Err(Fault::Limit(format!("the source has more than {MAX_FILES} value files")));
            }
        }
        Ok(found)
    }

    /// Where a file as written is. `$name/…` is in the repository of that `ref`; what begins with a slash is meant from
    /// the root.
    fn place(&self, text: &str) -> Result<Place, Fault> {
        let environment = self.chart.environment;
        let referred = reference(text).and_then(|(name, rest)| Some((*self.references.get(name)?, rest)));
        let (ground, directory, written) = match referred {
            Some((ground, rest)) => (ground, "", environment.expand(rest)),
            None => (0, self.chart.directory, environment.expand(text)),
        };
        if written.contains("://") {
            return Err(Fault::Unsupported(format!(
                "value file {text:?} is an address: only files of the source's repository and of those it refers to by \
                 `ref` are supported"
            )));
        }
        match cleaned(directory, &written) {
            Some(path) if !path.is_empty() => Ok((ground, path)),
            _ => Err(outside(text)),
        }
    }

    fn exists(&self, place: &Place, text: &str) -> Result<bool, Fault> {
        self.all[place.0].holds(&place.1).map_err(|_| outside(text))
    }

    async fn read(&self, place: &Place) -> Result<Vec<u8>, Fault> {
        Ok(self.all[place.0].read(&place.1, MAX_BYTES).await?.into())
    }
}

fn outside(text: &str) -> Fault {
    Fault::Options(format!("file '{text}' resolved to outside repository root"))
}

/// The name of the `ref` a path begins with, and the rest.
fn reference(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    Some(text.split_once('/').unwrap_or((text, "")))
}
