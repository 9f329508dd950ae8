//! Events of objects.

use serde_json::{Value, json};

use crate::error::Error;
use crate::objects::{EVENTS, encoded, text};
use crate::server::Server;

/// Most Events of one answer.
const MOST: usize = 1000;

impl Server {
    /// The Events about an object of the control plane, as Kubernetes lists them.
    pub(crate) async fn events_about(&self, namespace: &str, name: &str, uid: &str) -> Result<Value, Error> {
        let mut selector = format!("involvedObject.name={name},involvedObject.namespace={namespace}");
        if !uid.is_empty() {
            selector.push_str(&format!(",involvedObject.uid={uid}"));
        }
        let query = format!("fieldSelector={}", encoded(&selector));
        let mut found = self.objects(EVENTS, namespace).list(&query).await?;
        found.sort_by(|left, right| text(right, "/lastTimestamp").cmp(text(left, "/lastTimestamp")));
        found.truncate(MOST);
        Ok(json!({"metadata": {}, "items": found.into_iter().map(crate::server::plain).collect::<Vec<_>>()}))
    }
}
