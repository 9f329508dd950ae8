//! The one place that everything passes before it leaves: values of Secrets and credentials in URLs do not.

use baton_diff::Rules;
use serde_json::Value;

/// Deeper than any object, so that a value that nests without end stops somewhere.
const DEEPEST: usize = 128;
/// What stands where credentials were.
const MASK: &str = "***";

/// Hides what must not be seen, in the value and in JSON texts inside it.
pub(crate) fn hide(value: &mut Value) {
    hide_at(value, 0);
}

fn hide_at(value: &mut Value, depth: usize) {
    if depth > DEEPEST {
        *value = Value::Null;
        return;
    }
    match value {
        Value::Object(fields) => {
            let is_secret = fields.get("kind").and_then(Value::as_str) == Some("Secret");
            if is_secret && (fields.contains_key("data") || fields.contains_key("stringData")) {
                let secret = Value::Object(std::mem::take(fields));
                *value = baton_diff::masked(&Value::Null, &core(secret), &Rules::default()).1;
            }
            if let Value::Object(fields) = value {
                fields.values_mut().for_each(|field| hide_at(field, depth + 1));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_at(item, depth + 1)),
        Value::String(text) => hide_text(text, depth),
        _ => {}
    }
}

/// A Secret that does not say its version is one all the same.
fn core(mut secret: Value) -> Value {
    if secret.get("apiVersion").and_then(Value::as_str).is_none() {
        secret["apiVersion"] = "v1".into();
    }
    secret
}

fn hide_text(text: &mut String, depth: usize) {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json
        && text.contains("Secret")
        && let Ok(mut inner) = serde_json::from_str::<Value>(text)
    {
        hide_at(&mut inner, depth + 1);
        *text = inner.to_string();
        return;
    }
    if text.contains("://") {
        *text = without_credentials(text);
    }
}

/// The text with what stands before the `@` of its URLs hidden. A name without a password stays in `ssh://git@host`.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>\\`,;()[]{}".contains(c));
        let authority = &after[..end.unwrap_or(after.len())];
        if let Some((user, host)) = authority.rsplit_once('@') {
            let web = before.ends_with("http://") || before.ends_with("https://");
            let shown = if web || user.contains(':') { MASK } else { user };
            out.push_str(shown);
            out.push('@');
            out.push_str(host);
        } else {
            out.push_str(authority);
        }
        rest = &after[authority.len()..];
    }
    out.push_str(rest);
    out
}

/// Puts back what was hidden from whoever sends an object that they were shown: a text that is the hidden form of what
/// is stored in its place means what is stored.
pub(crate) fn restore(sent: &mut Value, stored: &Value) {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => {
            for (name, value) in sent {
                if let Some(stored) = stored.get(name) {
                    restore(value, stored);
                }
            }
        }
        (Value::Array(sent), Value::Array(stored)) => {
            sent.iter_mut().zip(stored).for_each(|(sent, stored)| restore(sent, stored));
        }
        (Value::String(sent), Value::String(stored))
            if sent != stored && *sent == without_credentials(stored) =>
        {
            sent.clone_from(stored);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hidden(mut value: Value) -> String {
        hide(&mut value);
        value.to_string()
    }

    #[test]
    fn no_value_of_a_secret_leaves_wherever_it_stands() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "aHVzaA=="}, "metadata": {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"key\":\"aHVzaA==\"}}"}}});
        for value in [
            secret.clone(),
            json!({"items": [{"object": secret}]}),
            json!({"manifest": secret.to_string()}),
            json!({"liveState": json!([{"inner": secret.to_string()}]).to_string()}),
            json!({"kind": "Secret", "stringData": {"key": "hush", "other": "aHVzaA=="}}),
            json!({"kind": "Secret", "data": "aHVzaA=="}),
        ] {
            let shown = hidden(value);
            assert!(!shown.contains("aHVzaA") && !shown.contains("hush"), "{shown}");
        }
    }

    #[test]
    fn no_credentials_of_a_url_leave() {
        for (text, expected) in [
            ("https://me:hush@git.example.com/a.git", "https://***@git.example.com/a.git"),
            ("https://hush@git.example.com", "https://***@git.example.com"),
            ("ssh://git@git.example.com/a.git", "ssh://git@git.example.com/a.git"),
            ("ssh://git:hush@git.example.com/a.git", "ssh://***@git.example.com/a.git"),
            (
                "cannot read https://a:b@c/d and http://e:f@g: no",
                "cannot read https://***@c/d and http://***@g: no",
            ),
            ("https://git.example.com/a@b", "https://git.example.com/a@b"),
            ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }

    #[test]
    fn what_was_shown_can_be_sent_back() {
        let stored = json!({"spec": {"sources": [{"repoURL": "https://a:b@c/d"}], "project": "x"}});
        let mut sent = stored.clone();
        hide(&mut sent);
        sent["spec"]["project"] = "y".into();
        restore(&mut sent, &stored);
        assert_eq!(sent["spec"], json!({"sources": [{"repoURL": "https://a:b@c/d"}], "project": "y"}));
    }

    #[test]
    fn what_nests_without_end_is_cut_off() {
        let mut value = json!("https://a:b@c");
        for _ in 0..1000 {
            value = json!([value]);
        }
        assert!(!hidden(value).contains("a:b"));
    }
}
