//! Who wrote an annotation, by the object's managed fields.

use baton_api::names::FIELD_MANAGER;
use jiff::Timestamp;
use serde_json::Value;

/// Field manager of ApplicationSets, which also writes what stands in git.
const SET_MANAGER: &str = "argocd-applicationset-controller";

/// Who wrote an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Writer {
    /// One of our own field managers: it came from the source.
    Source,
    /// Anybody else.
    Person {
        /// Their field manager.
        manager: String,
        /// When that manager wrote last.
        time: Option<Timestamp>,
    },
}

impl Writer {
    /// Who wrote an annotation; `None` where nobody is known to have. Where several did, the source's word is the one
    /// that counts, and else the last.
    pub(super) fn of(object: &Value, annotation: &str) -> Option<Writer> {
        let entries = object["metadata"]["managedFields"].as_array()?;
        let field = format!("f:{annotation}");
        let owners = entries.iter().filter(|entry| {
            let annotations = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
            !annotations[field.as_str()].is_null()
        });
        let mut last: Option<Writer> = None;
        for entry in owners {
            let manager = entry["manager"].as_str().unwrap_or_default();
            if manager == FIELD_MANAGER || manager == SET_MANAGER {
                return Some(Writer::Source);
            }
            let time = entry["time"].as_str().and_then(|text| text.parse().ok());
            if last.as_ref().is_none_or(|last| last.time() < time) {
                last = Some(Writer::Person { manager: manager.to_owned(), time });
            }
        }
        last
    }

    fn time(&self) -> Option<Timestamp> {
        match self {
            Writer::Source => None,
            Writer::Person { time, .. } => *time,
        }
    }
}
