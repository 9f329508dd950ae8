//! The small languages Kubernetes and Argo CD objects are written in, each read in one place.
//!
//! Pure: text in, values out. Nothing here recurses without a bound or panics on any input.

pub mod cron;
pub mod duration;
pub mod fields;
pub mod globs;
pub mod jq;
pub mod jsonpath;
pub mod labels;
pub mod quantity;
pub mod regexp;
pub mod semver;
pub mod yaml;
