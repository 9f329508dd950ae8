//! Who may send webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_controllers::webhook::{Event, Provider, WebhookError, parse};
use serde_json::json;

use crate::support::{event, github_push, gitlab_push, headers, secrets, sha1, sha256};

/// What a request is refused for, if it is.
fn refusal(secret: &[(&str, &str)], pairs: &[(&str, &str)], body: &str) -> Option<WebhookError> {
    parse(&headers(pairs), body.as_bytes(), &secrets(secret)).err()
}

#[test]
fn headers_tell_the_sender_and_those_of_gitea_come_before_githubs() {
    for (names, expected) in [
        (&["X-GitHub-Event"][..], Some(Provider::GitHub)),
        (&["X-Gitlab-Event"], Some(Provider::GitLab)),
        (&["X-Vss-Activityid"], Some(Provider::AzureDevOps)),
        (&["X-Event-Key", "X-Hook-UUID"], Some(Provider::Bitbucket)),
        (&["X-Event-Key"], Some(Provider::BitbucketServer)),
        (&["X-Gitea-Event", "X-Gogs-Event", "X-GitHub-Event"], Some(Provider::Gitea)),
        (&["X-Gogs-Event"], Some(Provider::Gitea)),
        (&["X-Other-Event"], None),
    ] {
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "push")).collect();
        assert_eq!(Provider::of(&headers(&pairs)), expected, "{names:?}");
    }
    assert_eq!(refusal(&[], &[], "{}"), Some(WebhookError::UnknownProvider));
}

#[test]
fn github_signs_with_either_hash() {
    let secret = [("webhook.github.secret", "s3cret")];
    let body = github_push("refs/heads/main").to_string();
    let push = ("X-GitHub-Event", "push");
    let (good, bad) =
        (format!("sha256={}", sha256("s3cret", &body)), format!("sha256={}", sha256("other", &body)));
    let legacy = format!("sha1={}", sha1("s3cret", &body));
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature-256", &good)], &body), None);
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature", &legacy)], &body), None);
    let failed = Some(WebhookError::Signature("HMAC verification failed"));
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature-256", &bad)], &body), failed);
    // The weaker hash does not help where the stronger one is there and wrong.
    let both = [push, ("X-Hub-Signature-256", bad.as_str()), ("X-Hub-Signature", legacy.as_str())];
    assert_eq!(refusal(&secret, &both, &body), failed);
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature-256", "sha256=zz")], &body), failed);
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature-256", &good)], &format!("{body} ")), failed);
    let missing = Some(WebhookError::Signature("missing X-Hub-Signature-256 Header"));
    assert_eq!(refusal(&secret, &[push], &body), missing);
    assert_eq!(refusal(&[], &[push], &body), None);
}

#[test]
fn gitlab_sends_the_secret_itself() {
    let secret = [("webhook.gitlab.secret", "s3cret")];
    let body = gitlab_push("push", "refs/heads/main").to_string();
    let push = ("X-Gitlab-Event", "Push Hook");
    assert_eq!(refusal(&secret, &[push, ("X-Gitlab-Token", "s3cret")], &body), None);
    let failed = Some(WebhookError::Signature("X-Gitlab-Token validation failed"));
    for token in ["", "s3cre", "s3cret2", "other!"] {
        assert_eq!(refusal(&secret, &[push, ("X-Gitlab-Token", token)], &body), failed, "{token}");
    }
    assert_eq!(refusal(&secret, &[push], &body), failed);
    assert_eq!(refusal(&[], &[push], &body), None);
}

#[test]
fn azure_devops_has_a_name_and_a_password() {
    let secret = [("webhook.azuredevops.username", "hook"), ("webhook.azuredevops.password", "s3:cret")];
    let body = crate::support::azure_push(&["refs/heads/main"]).to_string();
    let id = ("X-Vss-Activityid", "9c5b");
    let basic = |credentials: &str| format!("Basic {}", STANDARD.encode(credentials));
    assert_eq!(refusal(&secret, &[id, ("Authorization", &basic("hook:s3:cret"))], &body), None);
    let failed = Some(WebhookError::Signature("basic auth verification failed"));
    for value in [&basic("hook:other"), &basic("other:s3:cret"), &basic("hook"), "Basic ???", "Bearer x", ""]
    {
        assert_eq!(refusal(&secret, &[id, ("Authorization", value)], &body), failed, "{value}");
    }
    assert_eq!(refusal(&secret, &[id], &body), failed);
    assert_eq!(refusal(&[], &[id], &body), None);
}

#[test]
fn bitbucket_cloud_has_a_uuid_and_may_sign() {
    let body = crate::support::bitbucket_push("branch", "main").to_string();
    let (push, uuid) = (("X-Event-Key", "repo:push"), ("X-Hook-UUID", "a-b-c"));
    assert_eq!(refusal(&[("webhook.bitbucket.uuid", "a-b-c")], &[push, uuid], &body), None);
    let failed = Some(WebhookError::Signature("UUID verification failed"));
    assert_eq!(refusal(&[("webhook.bitbucket.uuid", "other")], &[push, uuid], &body), failed);
    let signed = [("webhook.bitbucket.secret", "s3cret")];
    let good = format!("sha256={}", sha256("s3cret", &body));
    assert_eq!(refusal(&signed, &[push, uuid, ("X-Hub-Signature", &good)], &body), None);
    assert!(refusal(&signed, &[push, uuid], &body).is_some());
}

#[test]
fn bitbucket_server_and_gitea_sign() {
    let body = crate::support::server_push("refs/heads/main", true).to_string();
    let good = sha256("s3cret", &body);
    let (push, secret) =
        (("X-Event-Key", "repo:refs_changed"), [("webhook.bitbucketserver.secret", "s3cret")]);
    assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature", &format!("sha256={good}"))], &body), None);
    for signature in ["sha256=00", "s", ""] {
        assert!(refusal(&secret, &[push, ("X-Hub-Signature", signature)], &body).is_some(), "{signature}");
    }

    let body = crate::support::gitea_push("refs/heads/main").to_string();
    let good = sha256("s3cret", &body);
    let prefixed = format!("sha256={good}");
    let push = ("X-Gitea-Event", "push");
    // Argo CD takes Gitea for GitHub, so GitHub's secret counts where there is none for Gogs.
    for secret in ["webhook.gogs.secret", "webhook.github.secret"] {
        let secret = [(secret, "s3cret")];
        assert_eq!(refusal(&secret, &[push, ("X-Gitea-Signature", &good)], &body), None);
        assert_eq!(refusal(&secret, &[push, ("X-Hub-Signature-256", &prefixed)], &body), None);
        assert_eq!(refusal(&secret, &[("X-Gogs-Event", "push"), ("X-Gogs-Signature", &good)], &body), None);
        let missing = Some(WebhookError::Signature("missing X-Gitea-Signature Header"));
        assert_eq!(refusal(&secret, &[push], &body), missing);
        assert!(refusal(&secret, &[push, ("X-Gitea-Signature", &sha256("x", &body))], &body).is_some());
    }
}

#[test]
fn events_nobody_asked_for_are_refused_and_pings_are_not() {
    for pairs in [
        &[("X-GitHub-Event", "star")][..],
        &[("X-Gitlab-Event", "Note Hook")],
        &[("X-Vss-Activityid", "x")],
        &[("X-Hook-UUID", "x"), ("X-Event-Key", "repo:fork")],
        &[("X-Event-Key", "repo:forked")],
        &[("X-Gitea-Event", "issues")],
    ] {
        assert_eq!(event(pairs, &json!({})).err(), Some(WebhookError::UnknownEvent), "{pairs:?}");
    }
    for pairs in [&[("X-GitHub-Event", "ping")][..], &[("X-Event-Key", "diagnostics:ping")]] {
        assert!(matches!(event(pairs, &json!({"zen": "x"})), Ok(Event::Nothing)), "{pairs:?}");
    }
    let system = event(&[("X-Gitlab-Event", "System Hook")], &json!({"event_name": "user_create"}));
    assert_eq!(system.err(), Some(WebhookError::UnknownEvent));
}
