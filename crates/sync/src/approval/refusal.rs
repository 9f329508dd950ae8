//! Why an approval that somebody gave does not count, in words for them.

use baton_api::names::{application, baton, resource};
use baton_api::object::Object;
use jiff::Timestamp;
use serde_json::Value;

use super::ownership::Writer;
use super::{Approvals, Grant, by_application, by_object, operation_name};

/// Most objects whose refused approvals are told.
const MOST_TOLD: usize = 3;

/// Why the approvals that stand on the Application and on these objects, each as it is and as it is wanted, do not count;
/// empty where there are none or they do. The words stay the same while the approvals do.
pub fn refusals<'o>(
    waiting: impl IntoIterator<Item = (&'o Value, Option<&'o Value>)>,
    approvals: &Approvals<'_>,
) -> Vec<String> {
    let of_application =
        of_application(approvals).map(|why| format!("the approval on the Application does not count: {why}"));
    let of_objects = waiting.into_iter().filter_map(|(live, target)| {
        let why = of_object(live, target, approvals)?;
        Some(format!("the approval on {} does not count: {why}", live.key()))
    });
    of_application.into_iter().chain(of_objects.take(MOST_TOLD)).collect()
}

fn of_application(approvals: &Approvals<'_>) -> Option<String> {
    let metadata = &approvals.application.metadata;
    let text = metadata.annotations.as_ref()?.get(application::DELETION_APPROVED)?;
    if by_application(approvals) {
        return None;
    }
    let record = serde_json::json!({"metadata": {"managedFields": metadata.managed_fields}});
    let writer = Writer::of(&record, application::DELETION_APPROVED);
    if writer == Some(Writer::Source) {
        return Some(FROM_GIT.to_owned());
    }
    let Ok(time) = text.parse::<Timestamp>() else {
        return Some("it is not a time as 2006-01-02T15:04:05Z is".to_owned());
    };
    of_time(time, approvals).or_else(|| match writer {
        Some(Writer::Person { time: Some(written), .. })
            if written.as_second() < approvals.since.as_second() =>
        {
            Some(format!("it was written at {written}, before {}", began(approvals)))
        }
        _ => Some(UNRECORDED.to_owned()),
    })
}

fn of_object(live: &Value, target: Option<&Value>, approvals: &Approvals<'_>) -> Option<String> {
    let value = live.annotation(resource::DELETION_APPROVED)?;
    if by_object(live, target, approvals) {
        return None;
    }
    let stated = target.is_some_and(|target| target.annotation(resource::DELETION_APPROVED).is_some());
    let writer = Writer::of(live, resource::DELETION_APPROVED);
    if stated || writer == Some(Writer::Source) {
        return Some(FROM_GIT.to_owned());
    }
    if value != "true" {
        return match value.parse() {
            Ok(time) => of_time(time, approvals).or_else(|| Some(UNRECORDED.to_owned())),
            Err(_) => Some("it is neither \"true\" nor a time".to_owned()),
        };
    }
    let noted = Writer::of(live, baton::APPROVAL);
    match Grant::of(live).filter(|_| noted != Some(Writer::Source)) {
        Some(grant) if grant.operation != operation_name(approvals.since) => {
            Some(format!("it was given for another operation than the one {}", that_began(approvals)))
        }
        _ => Some(UNRECORDED.to_owned()),
    }
}

const FROM_GIT: &str = "it came from git, and only a person's word does";
const UNRECORDED: &str = "nobody is recorded to have written it since the operation began";

/// Why a time does not belong to the operation; none where it does.
fn of_time(time: Timestamp, approvals: &Approvals<'_>) -> Option<String> {
    if approvals.holds(time) {
        None
    } else if time.as_second() < approvals.since.as_second() {
        Some(format!("its time {time} is before {}", began(approvals)))
    } else {
        Some(format!("its time {time} is ahead of the clock"))
    }
}

fn began(approvals: &Approvals<'_>) -> String {
    format!("the operation began at {}", operation_name(approvals.since))
}

fn that_began(approvals: &Approvals<'_>) -> String {
    format!("that began at {}", operation_name(approvals.since))
}
