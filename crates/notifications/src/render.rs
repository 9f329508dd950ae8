//! From templates to a message.

use baton_template::{Execution, Limits, MissingKey, SystemEntropy, Template, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::{Condition, Config};
use crate::message::{Message, Part};
use crate::subject::Subject;
use crate::subscription::Destination;

/// Longest text of a message, in bytes.
const LONGEST: usize = 48 << 10;

/// Most bytes of all texts of a message.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Makes the message of a condition for a destination: its templates laid over each other, the last on top.
///
/// # Errors
/// A template is not there or cannot be filled in. The message holds no value of the Secret.
pub(crate) fn message(
    condition: &Condition,
    subject: &Subject<'_>,
    to: &Destination,
    config: &Config,
    now: Timestamp,
) -> Result<Message, String> {
    let Some(service) = config.services.get(&to.service) else {
        return Err(format!("there is no service {}", to.service));
    };
    let kind = service.kind.name();
    let now = now.to_zoned(TimeZone::UTC);
    let dot = Value::Map(config.surroundings.of_templates(subject, kind, &to.recipient, &now));
    let mut message = Message::default();
    for name in &condition.send {
        let template = config.templates.get(name).ok_or_else(|| format!("there is no template {name}"))?;
        let is_for = |part: &Part| matches!(part.place().0, block if block.is_empty() || block == kind);
        let of_service = template.parts.iter().filter(|(part, _)| is_for(part));
        let of_webhook =
            template.webhooks.get(&to.service).into_iter().flatten().filter(|_| kind == "webhook");
        for (part, text) in of_service.chain(of_webhook) {
            let filled = fill(text, &dot, &now)
                .map_err(|error| config.redactor.redact(&format!("template {name}: {error}")))?;
            if !filled.is_empty() {
                message.set(*part, filled);
            }
        }
    }
    if message.bytes() > LONGEST_MESSAGE {
        return Err(format!("the message is longer than {LONGEST_MESSAGE} bytes"));
    }
    Ok(message)
}

/// What is told where no template can be filled in and yet somebody has to know.
pub(crate) fn fallback(trigger: &str, condition: &Condition, subject: &Subject<'_>, why: &str) -> Message {
    let about = subject.about();
    let what = if condition.description.is_empty() { trigger } else { &condition.description };
    let mut message = Message::plain(format!("{about}: {what} (the template could not be used: {why})"));
    message.set(Part::EmailSubject, format!("{about}: {trigger}"));
    message
}

fn fill(template: &Template, dot: &Value, now: &jiff::Zoned) -> Result<String, String> {
    let execution = Execution {
        missing_key: MissingKey::Default,
        limits: Limits { output: LONGEST, ..Limits::default() },
        now: Some(now),
        entropy: Some(&SystemEntropy),
    };
    template.execute_in(dot, &execution).map_err(|error| error.to_string())
}
