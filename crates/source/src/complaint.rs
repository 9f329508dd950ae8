//! What `git` said, made fit to be shown and told apart.

use crate::command::{Failure, Refusal};
use crate::error::SourceError;

/// Longest text of `git` that goes into a message.
const MAX_TEXT: usize = 600;

/// What a failed conversation with a repository means.
pub(crate) fn explain(repository: &str, failure: Failure, secrets: &[String]) -> SourceError {
    let repository = repository.to_owned();
    match failure {
        Failure::Io(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
            SourceError::Local { repository, why: "the git program was not found".to_owned() }
        }
        Failure::Io(fault) => {
            SourceError::Local { repository, why: format!("git could not be run: {fault}") }
        }
        Failure::Abandoned => SourceError::Local { repository, why: "the request was given up".to_owned() },
        Failure::Silent(after) => SourceError::Timeout { repository, after, why: "it stayed silent" },
        Failure::Late(after) => SourceError::Timeout { repository, after, why: "it took too long" },
        Failure::Grown(most) => {
            SourceError::Limit { repository, why: format!("it takes more than {most} bytes on disk") }
        }
        Failure::Refused(Refusal::Limit(why)) => SourceError::Limit { repository, why },
        Failure::Refused(Refusal::Large { bytes, .. }) => {
            SourceError::Limit { repository, why: format!("an object of it has {bytes} bytes") }
        }
        Failure::Refused(Refusal::Content(why)) => SourceError::Local { repository, why },
        Failure::Refused(Refusal::Io(fault)) => SourceError::Local { repository, why: fault.to_string() },
        Failure::Exit(complaint) => {
            let why = presentable(&complaint, secrets);
            if speaks_of_access(&complaint) {
                SourceError::Unauthorized { repository, why }
            } else {
                SourceError::Network { repository, why }
            }
        }
    }
}

fn speaks_of_access(complaint: &str) -> bool {
    const SIGNS: [&str; 10] = [
        "terminal prompts disabled",
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "Permission denied",
        "Host key verification failed",
        "returned error: 401",
        "returned error: 403",
        "HTTP Basic: Access denied",
        "Invalid username or",
    ];
    SIGNS.iter().any(|sign| complaint.contains(sign))
}

/// The lines of a complaint that tell something, on one line, without secrets and control characters.
pub(crate) fn presentable(complaint: &str, secrets: &[String]) -> String {
    let mut text = String::new();
    for line in complaint.split(['\n', '\r']) {
        let line = line.trim();
        if line.is_empty() || is_noise(line) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(line);
    }
    for secret in secrets {
        text = text.replace(secret.as_str(), "<secret>");
    }
    let text = without_durations(&without_user_information(&text));
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_empty() {
        text.push_str("git said nothing");
    }
    if text.contains("terminal prompts disabled") {
        text.insert_str(0, "no credentials are known for it: ");
    }
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Whether a line tells nothing, or something else each time: a message that changes would be written again and again
/// into the status of whatever it is about.
fn is_noise(line: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "remote: Enumerating objects",
        "remote: Counting objects",
        "remote: Compressing objects",
        "remote: Total",
        "Receiving objects",
        "Resolving deltas",
        "warning: filtering not recognized",
        "Warning: Permanently added",
        "@",
    ];
    let lower = line.to_ascii_lowercase();
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
        || line.contains("bytes of body are still expected")
        || lower.contains("request id")
        || lower.contains("request-id")
}

/// Leaves out how long something took: curl says `after 12 ms`.
fn without_durations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" after ") {
        let (before, found) = rest.split_at(at);
        let digits = found[7..].bytes().take_while(u8::is_ascii_digit).count();
        let is_duration = digits > 0 && found[7 + digits..].starts_with(" ms");
        out.push_str(before);
        rest = if is_duration { &found[7 + digits + 3..] } else { &found[7..] };
        if !is_duration {
            out.push_str(&found[..7]);
        }
    }
    out.push_str(rest);
    out
}

/// Cuts `user:password@` out of every URL in a text.
fn without_user_information(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'' || c == '"')
            .unwrap_or(after.len());
        let skipped = after[..end].rfind('@').map_or(0, |at| at + 1);
        rest = &after[skipped..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_holds_no_secret_and_no_progress() {
        let complaint = "remote: Counting objects: 5% (1/20)\rremote: Counting objects: 100%\nfatal: unable to access \
                         'https://jane:hunter2@x.org/a/': token s3cr3t is bad\x1b[31m\n";
        let shown = presentable(complaint, &["s3cr3t".to_owned()]);
        assert_eq!(shown, "fatal: unable to access 'https://x.org/a/': token <secret> is bad [31m");
    }

    #[test]
    fn what_is_shown_is_the_same_each_time() {
        let of = |time: u32, id: &str| {
            let complaint = format!(
                "error: {time} bytes of body are still expected\nremote: Request ID {id}\n\
                 fatal: Failed to connect to x.org port 443 after {time} ms: Couldn't connect, after all"
            );
            presentable(&complaint, &[])
        };
        assert_eq!(of(3, "a"), of(1234, "b"));
        assert_eq!(of(3, "a"), "fatal: Failed to connect to x.org port 443: Couldn't connect, after all");
    }

    #[test]
    fn long_complaints_are_cut() {
        let shown = presentable(&"é".repeat(5000), &[]);
        assert_eq!(shown.chars().count(), MAX_TEXT + 1);
    }

    #[test]
    fn failures_are_told_apart() {
        let of = |text: &str| explain("r", Failure::Exit(text.to_owned()), &[]);
        let prompt = "fatal: could not read Username for 'https://x.org': terminal prompts disabled";
        assert!(matches!(of(prompt), SourceError::Unauthorized { .. }));
        assert!(matches!(of("git@x: Permission denied (publickey)."), SourceError::Unauthorized { .. }));
        assert!(matches!(of("fatal: unable to access: Could not resolve host"), SourceError::Network { .. }));
        assert!(of("").to_string().contains("git said nothing"));
    }

    proptest::proptest! {
        #[test]
        fn no_complaint_panics(complaint in "(\\PC| after [0-9]{0,3}| ms|://|@|\\n){0,40}") {
            presentable(&complaint, &["secret".to_owned()]);
        }
    }
}
