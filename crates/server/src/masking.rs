//! The one place that everything passes before it leaves: values of Secrets, credentials in URLs, and headers and variables of
//! hooks that are credentials by their name do not.

use baton_diff::Rules;
use serde_json::{Map, Value};

/// Deeper than any object, so that a value that nests without end stops somewhere.
const DEEPEST: usize = 128;
/// What stands where credentials were.
const MASK: &str = "***";
/// Where a call goes.
const DESTINATION: [&str; 3] = ["url", "command", "insecureSkipVerify"];
/// What a name has in it that is a credential's.
const TELLING: [&str; 11] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "signature",
    "session",
];
/// How a value may begin before what a Secret gives it.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

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
                credentials(fields).for_each(|(_, text)| MASK.clone_into(text));
                fields.values_mut().for_each(|field| hide_at(field, depth + 1));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_at(item, depth + 1)),
        Value::String(text) => hide_text(text, depth),
        _ => {}
    }
}

/// The literal credentials of a call of a hook: headers beside a URL, variables beside a command.
fn credentials(call: &mut Map<String, Value>) -> impl Iterator<Item = (&String, &mut String)> {
    let which = match (call.get("url"), call.get("command")) {
        (Some(Value::String(_)), _) => "headers",
        (_, Some(Value::Array(_))) => "env",
        _ => "",
    };
    let texts = call.get_mut(which).and_then(Value::as_object_mut).into_iter().flatten();
    texts.filter_map(|(name, value)| match value {
        Value::String(text) if is_telling(name) && !is_reference(text) => Some((name, text)),
        _ => None,
    })
}

/// Whether what has this name opens something.
fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    TELLING.iter().any(|part| name.contains(part))
        || name.starts_with("proxy-")
        || matches!(last, "auth" | "pat")
        || (last == "key" && name != "idempotency-key")
}

/// Whether a text says only where its value is kept, as in `Bearer {{secrets.pager.token}}`.
fn is_reference(text: &str) -> bool {
    let text = text.trim();
    let is_scheme = |word: &str| SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    let kept = match text.split_once(' ') {
        Some((word, rest)) if is_scheme(word) => rest.trim(),
        _ => text,
    };
    let inner = kept.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains(['{', '}', '"', '`']))
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
        && ["Secret", "\"headers\"", "\"env\""].iter().any(|sign| text.contains(sign))
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
    let mut shown = stored.clone();
    hide(&mut shown);
    put_back(sent, stored, &shown);
}

fn put_back(sent: &mut Value, stored: &Value, shown: &Value) {
    match (sent, stored, shown) {
        (Value::Object(sent), Value::Object(stored), Value::Object(shown)) => {
            let mut of = |is_call: bool| {
                for (name, value) in sent.iter_mut().filter(|(name, _)| is_carried(name) == is_call) {
                    if let (Some(stored), Some(shown)) = (stored.get(name), shown.get(name)) {
                        put_back(value, stored, shown);
                    }
                }
                DESTINATION.iter().all(|name| sent.get(*name) == stored.get(*name))
            };
            // Credentials go where they went: else whoever may change a hook could have them sent to himself.
            if of(false) {
                of(true);
            }
        }
        (Value::Array(sent), Value::Array(stored), Value::Array(shown)) => {
            for (place, value) in sent.iter_mut().enumerate() {
                // What has a name may have moved.
                let place = match value.get("name").and_then(Value::as_str) {
                    None => Some(place),
                    Some(name) => stored.iter().position(|one| one["name"] == name),
                };
                let before = place.and_then(|place| stored.get(place).zip(shown.get(place)));
                if let Some((stored, shown)) = before {
                    put_back(value, stored, shown);
                }
            }
        }
        (Value::String(sent), Value::String(stored), Value::String(shown)) if sent == shown => {
            sent.clone_from(stored);
        }
        _ => {}
    }
}

/// Whether a field holds what a call brings along.
fn is_carried(field: &str) -> bool {
    matches!(field, "headers" | "env")
}

/// The name of a header or variable that holds nothing but what was shown in its place: nobody may mean that.
pub(crate) fn left_hidden(value: &mut Value) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let left = credentials(fields).find(|(_, text)| *text == MASK).map(|(name, _)| name.clone());
            left.or_else(|| fields.values_mut().find_map(left_hidden))
        }
        Value::Array(items) => items.iter_mut().find_map(left_hidden),
        _ => None,
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

    fn hooked(headers: Value, env: Value) -> Value {
        json!({"phases": [{"name": "canary", "preHooks": [
            {"name": "tell", "type": "http", "http": {"url": "https://hooks.example.com", "headers": headers}},
            {"name": "run", "type": "command", "command": {"command": ["./run"], "env": env}},
        ]}]})
    }

    #[test]
    fn no_literal_credentials_of_a_hook_leave_and_where_they_are_kept_is_told() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Proxy-Thing",
            "Cookie",
            "X-Api-Key",
            "apikey",
            "Private-Token",
            "X-Auth",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "clientSecret",
            "X-Hub-Signature",
            "GITHUB_PAT",
            "key",
        ] {
            for text in ["hush", "Bearer hush", "Bearer hush{{a}}", "{{a}}hush{{b}}", "{{ \"hush\" }}"] {
                let shown = hidden(hooked(json!({name: text}), json!({name: text})));
                assert!(!shown.contains("hush") && shown.matches("***").count() == 2, "{name}: {shown}");
                let applied =
                    hidden(json!({"annotation": hooked(json!({name: text}), json!({})).to_string()}));
                assert!(!applied.contains("hush"), "{name}: {applied}");
            }
            for text in ["{{secrets.pager.token}}", "Bearer {{secrets.pager.token}}", "basic  {{ x }}"] {
                assert!(hidden(hooked(json!({name: text}), json!({}))).contains(text), "{name}: {text}");
            }
        }
        for name in ["Content-Type", "Idempotency-Key", "X-Request-Id", "LOG_LEVEL", "KEYBOARD", "monkey"] {
            assert!(
                !hidden(hooked(json!({name: "plain"}), json!({name: "plain"}))).contains("***"),
                "{name}"
            );
        }
        let others =
            json!({"headers": {"Authorization": "plain"}, "env": [{"name": "TOKEN", "value": "plain"}]});
        assert!(!hidden(others).contains("***"), "a field of this name that is of no call");
    }

    #[test]
    fn a_hidden_header_that_is_sent_back_is_the_stored_one_wherever_it_has_moved_to() {
        let stored = hooked(json!({"Authorization": "Bearer hush", "A": "b"}), json!({"TOKEN": "quiet"}));
        let mut sent = stored.clone();
        hide(&mut sent);
        let hooks = sent["phases"][0]["preHooks"].as_array_mut().expect("hooks");
        hooks[0]["http"]["headers"]["A"] = "c".into();
        hooks.insert(0, json!({"name": "new", "http": {"url": "https://x", "headers": {"Cookie": "mine"}}}));
        hooks.reverse();
        restore(&mut sent, &stored);
        let hooks = &sent["phases"][0]["preHooks"];
        assert_eq!(hooks[0]["command"]["env"], json!({"TOKEN": "quiet"}));
        assert_eq!(hooks[1]["http"]["headers"], json!({"Authorization": "Bearer hush", "A": "c"}));
        assert_eq!(hooks[2]["http"]["headers"], json!({"Cookie": "mine"}));
        assert_eq!(left_hidden(&mut sent), None);
        for (place, value) in
            [("url", json!("https://elsewhere.example.com")), ("insecureSkipVerify", json!(true))]
        {
            let mut elsewhere = stored.clone();
            hide(&mut elsewhere);
            elsewhere["phases"][0]["preHooks"][0]["http"][place] = value;
            restore(&mut elsewhere, &stored);
            assert_eq!(left_hidden(&mut elsewhere).as_deref(), Some("Authorization"), "{place}");
        }
        let mut other = hooked(json!({"Authorization": "***"}), json!({}));
        restore(&mut other, &json!({"phases": []}));
        assert_eq!(left_hidden(&mut other).as_deref(), Some("Authorization"));
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
