//! What is wanted, as sources and generators say: given from outside, for it takes git and hosts.

use std::future::Future;
use std::pin::Pin;

use baton_api::{Application, ApplicationSet};
use serde_json::Value;

/// What becomes of a question, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Reads sources and runs generators. Errors are for people and hold no secret.
pub trait Sources: Send + Sync {
    /// The Applications that a set's generators and template give.
    fn generate<'a>(&'a self, set: &'a ApplicationSet) -> Later<'a, Vec<Value>>;

    /// The objects that an Application's sources describe, tracked and with namespaces.
    fn targets<'a>(&'a self, application: &'a Application) -> Later<'a, Vec<Value>>;
}
