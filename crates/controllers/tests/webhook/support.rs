//! Requests as the hosts send them.

use std::collections::BTreeMap;

use baton_api::ApplicationSetSpec;
use baton_controllers::webhook::{Event, WebhookError, WebhookSecrets, parse};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use serde_json::{Value, json};

/// Headers of a request.
pub(crate) type Headers<'h> = &'h [(&'h str, &'h str)];

pub(crate) fn headers(pairs: Headers<'_>) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let name: HeaderName = name.parse().expect("a header's name");
        (name, HeaderValue::from_str(value).expect("a header's value"))
    };
    pairs.iter().map(pair).collect()
}

pub(crate) fn secrets(pairs: &[(&str, &str)]) -> WebhookSecrets {
    let data: BTreeMap<String, Vec<u8>> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    WebhookSecrets::read(&data, |_, _| None)
}

/// What an unsigned request says.
pub(crate) fn event(pairs: &[(&str, &str)], body: &Value) -> Result<Event, WebhookError> {
    parse(&headers(pairs), body.to_string().as_bytes(), &WebhookSecrets::default())
}

pub(crate) fn sha256(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex(hmac::sign(&key, body.as_bytes()).as_ref())
}

pub(crate) fn sha1(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    hex(hmac::sign(&key, body.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn spec(generators: Value) -> ApplicationSetSpec {
    let spec = json!({"goTemplate": true, "generators": generators, "template": {}});
    serde_json::from_value(spec).expect("the test's own spec")
}

pub(crate) fn git(repository: &str, revision: &str) -> Value {
    json!({"git": {"repoURL": repository, "revision": revision, "directories": [{"path": "*"}]}})
}

pub(crate) fn github_push(reference: &str) -> Value {
    json!({
        "ref": reference,
        "before": "95790bf891e76fee5e1747ab589903a6a1f80f22",
        "after": "da1560886d4f094c3e6c9ef40349f7d38b5d27d7",
        "repository": {
            "name": "apps", "full_name": "org/apps",
            "html_url": "https://github.com/org/apps", "url": "https://github.com/org/apps",
            "default_branch": "main", "owner": {"name": "org", "login": "org"},
        },
        "commits": [],
    })
}

pub(crate) fn github_pull_request(action: &str) -> Value {
    json!({
        "action": action, "number": 2,
        "pull_request": {"state": "open", "head": {"ref": "change"}},
        "repository": {
            "name": "Apps", "full_name": "Org/Apps", "html_url": "https://github.com/Org/Apps",
            "url": "https://api.github.com/repos/Org/Apps", "owner": {"login": "Org"},
        },
    })
}

pub(crate) fn gitlab_push(kind: &str, reference: &str) -> Value {
    json!({
        "object_kind": kind, "event_name": kind, "ref": reference,
        "project": {
            "id": 15, "web_url": "https://gitlab.com/group/apps", "default_branch": "main",
            "path_with_namespace": "group/apps",
        },
    })
}

pub(crate) fn gitlab_merge_request(action: &str) -> Value {
    json!({
        "object_kind": "merge_request", "event_type": "merge_request",
        "project": {"id": 15, "web_url": "https://gitlab.com/group/apps", "path_with_namespace": "group/apps"},
        "object_attributes": {"iid": 1, "target_project_id": 15, "source_project_id": 16, "action": action},
    })
}

pub(crate) fn azure_push(references: &[&str]) -> Value {
    let updates: Vec<Value> =
        references.iter().map(|name| json!({"name": name, "newObjectId": "33b5"})).collect();
    json!({
        "eventType": "git.push", "publisherId": "tfs",
        "resource": {
            "refUpdates": updates,
            "repository": {
                "name": "apps", "defaultBranch": "refs/heads/main",
                "remoteUrl": "https://dev.azure.com/org/project/_git/apps", "project": {"name": "project"},
            },
        },
    })
}

pub(crate) fn azure_pull_request(kind: &str) -> Value {
    json!({
        "eventType": kind,
        "resource": {"pullRequestId": 1, "repository": {"name": "apps", "project": {"name": "project"}}},
    })
}

pub(crate) fn bitbucket_push(kind: &str, name: &str) -> Value {
    json!({
        "repository": {
            "full_name": "team/apps", "name": "apps",
            "links": {"html": {"href": "https://bitbucket.org/team/apps"}},
        },
        "push": {"changes": [{"new": {"type": kind, "name": name}, "old": null}]},
    })
}

pub(crate) fn server_push(reference: &str, with_links: bool) -> Value {
    let links = json!({"clone": [
        {"href": "ssh://git@bitbucket.example.com:7999/proj/apps.git", "name": "ssh"},
        {"href": "https://bitbucket.example.com/scm/proj/apps.git", "name": "http"},
    ]});
    json!({
        "eventKey": "repo:refs_changed",
        "repository": {"slug": "apps", "project": {"key": "PROJ"}, "links": if with_links { links } else { Value::Null }},
        "changes": [{"ref": {"id": reference, "displayId": "x", "type": "BRANCH"}, "type": "UPDATE"}],
    })
}

pub(crate) fn gitea_push(reference: &str) -> Value {
    json!({
        "ref": reference,
        "repository": {
            "name": "apps", "full_name": "org/apps", "html_url": "https://gitea.example.com/org/apps",
            "default_branch": "main", "owner": {"login": "org", "username": "org"},
        },
    })
}
