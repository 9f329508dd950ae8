//! What is wrong with an Application, in one line, from what its resources say.

use baton_api::application_status::HealthCode;

/// Longest line.
const LONGEST: usize = 300;

/// A resource of an Application, and what is said of it.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace, if it has one.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// In words.
    pub message: &'a str,
}

/// Why an Application is not healthy: the first resource that is as bad as the whole, or else what is said of the whole.
pub fn of_health<'a>(
    whole: (&HealthCode, &str),
    resources: impl Iterator<Item = (&'a HealthCode, Resource<'a>)>,
) -> Option<String> {
    let (code, message) = whole;
    if matches!(code, HealthCode::Healthy) {
        return None;
    }
    first(resources.filter(|(own, _)| *own == code).map(|(_, resource)| resource))
        .or_else(|| (!message.is_empty()).then(|| line(message)))
}

/// What an operation says, with the first resource that failed.
pub fn of_operation<'a>(message: &str, failed: impl Iterator<Item = Resource<'a>>) -> String {
    // What the message says already is not said twice.
    let failed = first(failed.filter(|one| one.message.is_empty() || !message.contains(one.message)));
    match (message, failed) {
        (message, None) => line(message),
        ("", Some(failed)) => failed,
        (message, Some(failed)) => line(&format!("{failed} ({message})")),
    }
}

fn first<'a>(mut resources: impl Iterator<Item = Resource<'a>>) -> Option<String> {
    let first = resources.next()?;
    let more = match resources.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let name = match first.namespace {
        "" => first.name.to_owned(),
        namespace => format!("{namespace}/{}", first.name),
    };
    let what = format!("{} {name}{more}", first.kind);
    Some(line(&if first.message.is_empty() { what } else { format!("{what}: {}", first.message) }))
}

/// A text in one line, no longer than people read.
fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word[..word.floor_char_boundary(LONGEST)]);
        if line.len() > LONGEST {
            line.truncate(line.floor_char_boundary(LONGEST));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource<'a>(kind: &'a str, name: &'a str, message: &'a str) -> Resource<'a> {
        Resource { kind, namespace: if kind == "Namespace" { "" } else { "web" }, name, message }
    }

    #[test]
    fn the_resource_that_makes_an_application_sick_is_named() {
        let (healthy, bad, slow) = (HealthCode::Healthy, HealthCode::Degraded, HealthCode::Progressing);
        let resources = [
            (&healthy, resource("Service", "a", "")),
            (&slow, resource("Deployment", "b", "Waiting for rollout\nto finish")),
            (&bad, resource("Deployment", "c", "")),
            (&slow, resource("Job", "d", "")),
        ];
        let told = |code: &HealthCode, message: &str| of_health((code, message), resources.iter().copied());
        assert_eq!(told(&healthy, "x"), None);
        assert_eq!(
            told(&slow, "x").as_deref(),
            Some("Deployment web/b (and 1 more): Waiting for rollout to finish")
        );
        assert_eq!(told(&bad, "x").as_deref(), Some("Deployment web/c"));
        assert_eq!(
            told(&HealthCode::Missing, "Caused by /Secret:web/s").as_deref(),
            Some("Caused by /Secret:web/s")
        );
        assert_eq!(told(&HealthCode::Missing, ""), None);
    }

    #[test]
    fn the_resource_that_fails_an_operation_is_named() {
        let failed = [resource("Namespace", "n", "is forbidden")];
        let told = |message: &str, failed: &[Resource<'_>]| of_operation(message, failed.iter().copied());
        assert_eq!(
            told("one or more objects failed", &failed),
            "Namespace n: is forbidden (one or more objects failed)"
        );
        assert_eq!(told("failed: is forbidden", &failed), "failed: is forbidden");
        assert_eq!(told("running", &[]), "running");
        assert_eq!(told("", &failed), "Namespace n: is forbidden");
        let long = "ö".repeat(10_000);
        for text in [&*long, &*"a b ".repeat(10_000)] {
            assert!(told(text, &[resource("Secret", text, text)]).len() < LONGEST + 10);
        }
    }
}
