//! Repositories of charts: an index over http or https, and the archives it names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_grammar::semver::{Constraint, Version, is_constraint};
use baton_grammar::yaml;
use baton_source::{Access, Repositories};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::archive::unpacked;
use crate::error::Fault;
use crate::settings::Limits;

/// Largest index that is read.
const MAX_INDEX: u64 = yaml::MAX_BYTES as u64;

/// Largest archive that is read.
const MAX_ARCHIVE: u64 = 64 << 20;

/// Most indexes that are remembered.
const MAX_INDEXES: usize = 200;

/// How long an index is believed.
const BELIEVED: Duration = Duration::from_secs(180);

/// The versions of each chart.
type Index = BTreeMap<String, Vec<Release>>;

/// Where one index is kept. Whoever asks for it holds the lock, so that others wait for the one answer.
type Place = Arc<tokio::sync::Mutex<Option<Kept>>>;

/// An index as it was when its repository was asked.
#[derive(Debug)]
struct Kept {
    asked: Instant,
    /// Which of all askings that was: a clock may stand still between two.
    number: u64,
    index: Arc<Index>,
}

/// Reads repositories of charts.
#[derive(Debug, Default)]
pub(crate) struct ChartRepositories {
    indexes: Mutex<HashMap<(String, [u8; 32]), Place>>,
    last: AtomicU64,
}

/// One version of a chart.
#[derive(Debug, Clone, Deserialize)]
struct Release {
    #[serde(default)]
    version: String,
    #[serde(default)]
    urls: Vec<String>,
    #[serde(default)]
    digest: String,
}

/// A chart in a repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) repositories: &'a Repositories,
    pub(crate) url: &'a str,
    pub(crate) access: &'a Access,
    pub(crate) chart: &'a str,
    /// Whether credentials go wherever the index says the chart is.
    pub(crate) pass_credentials: bool,
}

impl ChartRepositories {
    /// The version a revision names: itself, or the highest within a range. Nothing is any version.
    pub(crate) async fn resolve(
        &self,
        wanted: Wanted<'_>,
        revision: &str,
        fresh: bool,
    ) -> Result<String, Fault> {
        let index = self.index(wanted, fresh).await?;
        Ok(release(&index, wanted, revision)?.version.clone())
    }

    /// The files of a version.
    pub(crate) async fn fetch(
        &self,
        wanted: Wanted<'_>,
        version: &str,
        limits: &Limits,
    ) -> Result<BTreeMap<String, Bytes>, Fault> {
        let index = self.index(wanted, false).await?;
        let release = release(&index, wanted, version)?;
        let Some(address) = release.urls.first() else {
            return Err(Fault::Options(format!(
                "{} has no archive in its repository",
                named(wanted, version)
            )));
        };
        let address = if address.contains("://") {
            address.clone()
        } else {
            format!("{}/{}", wanted.url.trim_end_matches('/'), address.trim_start_matches('/'))
        };
        let home = if wanted.pass_credentials { &address } else { wanted.url };
        let archive = wanted.repositories.download(&address, home, wanted.access, MAX_ARCHIVE).await?;
        let expected = release.digest.trim_start_matches("sha256:");
        let found: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        if !expected.is_empty() && !expected.eq_ignore_ascii_case(&found) {
            return Err(Fault::Options(format!(
                "{} is not what the index of its repository says: its digest is {found}",
                named(wanted, version)
            )));
        }
        unpacked(&archive, limits)
    }

    async fn index(&self, wanted: Wanted<'_>, fresh: bool) -> Result<Arc<Index>, Fault> {
        let scheme = wanted.url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("https" | "http")) {
            return Err(Fault::Unsupported(format!(
                "charts from OCI registries ({}) are not supported: use a repository with an index, or put the chart \
                 into git",
                wanted.url
            )));
        }
        let place = self.place((wanted.url.to_owned(), wanted.access.fingerprint()));
        let came = self.last.fetch_add(1, Ordering::Relaxed);
        let mut kept = place.lock().await;
        if let Some(kept) = kept.as_ref()
            && (kept.number > came || (!fresh && kept.asked.elapsed() < BELIEVED))
        {
            return Ok(kept.index.clone());
        }
        let (asked, number) = (Instant::now(), self.last.fetch_add(1, Ordering::Relaxed));
        let address = format!("{}/index.yaml", wanted.url.trim_end_matches('/'));
        let content = wanted.repositories.download(&address, wanted.url, wanted.access, MAX_INDEX).await?;
        let index = tokio::task::spawn_blocking(move || parsed(&content)).await;
        let index = index.map_err(|_| Fault::Machine("the rendering was given up".to_owned()))?;
        let fault = |why| {
            Fault::Options(format!("the index of chart repository {} cannot be read: {why}", wanted.url))
        };
        let index = Arc::new(index.map_err(fault)?);
        *kept = Some(Kept { asked, number, index: index.clone() });
        Ok(index)
    }

    fn place(&self, key: (String, [u8; 32])) -> Place {
        let mut indexes = self.indexes.lock();
        if indexes.len() >= MAX_INDEXES && !indexes.contains_key(&key) {
            indexes.retain(|_, place| Arc::strong_count(place) > 1);
        }
        indexes.entry(key).or_default().clone()
    }
}

fn parsed(content: &[u8]) -> Result<Index, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        entries: BTreeMap<String, Option<Vec<Release>>>,
    }
    let value = yaml::first(&String::from_utf8_lossy(content)).map_err(|error| error.to_string())?;
    let file: File = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(file.entries.into_iter().map(|(chart, releases)| (chart, releases.unwrap_or_default())).collect())
}

fn release<'a>(index: &'a Index, wanted: Wanted<'_>, revision: &str) -> Result<&'a Release, Fault> {
    let releases = index.get(wanted.chart).filter(|releases| !releases.is_empty());
    let Some(releases) = releases else {
        return Err(Fault::Options(format!("chart {:?} is not in repository {}", wanted.chart, wanted.url)));
    };
    let revision = revision.trim();
    if let Some(exact) = releases.iter().find(|release| release.version == revision) {
        return Ok(exact);
    }
    let none = || Fault::Options(format!("{} is not in repository {}", named(wanted, revision), wanted.url));
    let range = if revision.is_empty() { "*" } else { revision };
    if !is_constraint(range) {
        let version = Version::parse(range).map_err(|_| none())?;
        let is_same = |release: &&Release| {
            Version::parse(&release.version).is_ok_and(|other| other.compare(&version).is_eq())
        };
        return releases.iter().find(is_same).ok_or_else(none);
    }
    let constraint = Constraint::parse(range).map_err(|_| none())?;
    let highest = constraint.highest(releases.iter().map(|release| release.version.as_str()));
    let found = highest.and_then(|highest| releases.iter().find(|release| release.version == highest));
    found.ok_or_else(none)
}

fn named(wanted: Wanted<'_>, version: &str) -> String {
    format!("version {version:?} of chart {:?}", wanted.chart)
}
