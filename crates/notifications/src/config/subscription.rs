//! `subscriptions`: who is told about everything, or about all that has certain labels.

use baton_grammar::labels::Selector;
use serde_json::Value as Json;

use super::Finding;
use super::document::Document;
use crate::subscription::Destination;

/// Most subscriptions that are read.
const MOST: usize = 512;

/// A subscription to many objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultSubscription {
    /// Who is told.
    pub recipients: Vec<Destination>,
    /// What of; the default triggers if none is named.
    pub triggers: Vec<String>,
    /// About which objects.
    pub selector: Selector,
}

/// Reads the list. An entry that is wrong is left out.
pub(super) fn subscriptions(
    document: &Document<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<DefaultSubscription>, Finding> {
    let items = match &document.value {
        Json::Array(items) => items.as_slice(),
        Json::Null => &[],
        _ => return Err(document.error("", "a list of subscriptions is wanted")),
    };
    if items.len() > MOST {
        return Err(document.error("", format!("there are more than {MOST} subscriptions")));
    }
    let mut subscriptions = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match subscription(document, &format!("[{index}]"), item) {
            Ok(subscription) => subscriptions.push(subscription),
            Err(finding) => findings.push(finding),
        }
    }
    Ok(subscriptions)
}

fn subscription(document: &Document<'_>, path: &str, item: &Json) -> Result<DefaultSubscription, Finding> {
    let Some(map) = item.as_object() else {
        return Err(document.error(path, "a subscription is a map with recipients and triggers"));
    };
    let recipients = document.list(map, path, "recipients")?;
    let selector = document.text(map, path, "selector")?;
    let selector = Selector::parse(&selector)
        .map_err(|error| document.error(&format!("{path}.selector"), format!("selector: {error}")))?;
    Ok(DefaultSubscription {
        recipients: recipients.iter().map(|text| Destination::parse(text)).collect(),
        triggers: document.list(map, path, "triggers")?,
        selector,
    })
}
