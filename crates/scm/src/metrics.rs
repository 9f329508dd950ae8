//! Calls to GitHub, counted.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::HeaderMap;

/// Upper bounds of the duration buckets, in seconds; Prometheus' customary ones.
pub const DURATION_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Paths hold names of repositories and branches: past this many, calls are counted together.
const MAX_SERIES: usize = 5_000;
const OTHER: &str = "other";

/// The calls of one ApplicationSet to one path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GithubCalls {
    /// Namespace of the ApplicationSet.
    pub namespace: String,
    /// Name of the ApplicationSet.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path of the request.
    pub endpoint: String,
    /// Calls by status; 0 stands for no answer.
    pub requests: BTreeMap<u16, u64>,
    /// How long they took.
    pub durations: Durations,
    /// What the host last said about its limit.
    pub rate_limit: Option<RateLimit>,
}

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations {
    /// Calls at most as long as the bound of the same index in [`DURATION_BUCKETS`], and no shorter bound.
    pub buckets: [u64; DURATION_BUCKETS.len()],
    /// All calls, the longest ones included.
    pub count: u64,
    /// Seconds of all together.
    pub sum: f64,
}

/// What the host said about its limit; a number it did not give is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Which limit it is.
    pub resource: String,
    /// Calls left in the window.
    pub remaining: Option<i64>,
    /// Calls allowed in a window.
    pub limit: Option<i64>,
    /// Calls made in the window.
    pub used: Option<i64>,
    /// When the window ends, in seconds since 1970.
    pub reset: Option<i64>,
}

#[derive(Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<Series, GithubCalls>>);

/// Namespace, name, method, endpoint.
type Series = (String, String, String, String);

impl Metrics {
    /// Counts a call; `answer` is its status and headers.
    pub(crate) fn note(
        &self,
        namespace: &str,
        name: &str,
        method: &str,
        endpoint: &str,
        took: Duration,
        answer: Option<(u16, &HeaderMap)>,
    ) {
        let mut all = self.0.lock();
        let mut series = (namespace.into(), name.into(), method.into(), endpoint.to_owned());
        if all.len() >= MAX_SERIES && !all.contains_key(&series) {
            series.3 = OTHER.into();
        }
        let calls = all.entry(series).or_insert_with_key(|(namespace, name, method, endpoint)| GithubCalls {
            namespace: namespace.clone(),
            name: name.clone(),
            method: method.clone(),
            endpoint: endpoint.clone(),
            ..GithubCalls::default()
        });
        *calls.requests.entry(answer.map_or(0, |(status, _)| status)).or_default() += 1;
        calls.durations.note(took.as_secs_f64());
        if let Some(limit) = answer.and_then(|(_, headers)| RateLimit::read(headers)) {
            calls.rate_limit = Some(limit);
        }
    }

    pub(crate) fn all(&self) -> Vec<GithubCalls> {
        self.0.lock().values().cloned().collect()
    }

    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        self.0
            .lock()
            .retain(|(own_namespace, own_name, ..), _| own_namespace != namespace || own_name != name);
    }
}

impl Durations {
    fn note(&mut self, seconds: f64) {
        if let Some(bucket) = DURATION_BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }
}

impl RateLimit {
    fn read(headers: &HeaderMap) -> Option<RateLimit> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let number = |name: &str| text(name).and_then(|text| text.parse().ok());
        let limit = RateLimit {
            resource: text("x-ratelimit-resource").unwrap_or_default().to_owned(),
            remaining: number("x-ratelimit-remaining"),
            limit: number("x-ratelimit-limit"),
            used: number("x-ratelimit-used"),
            reset: number("x-ratelimit-reset"),
        };
        let says = limit.remaining.or(limit.limit).or(limit.used).or(limit.reset).is_some();
        says.then_some(limit)
    }
}
