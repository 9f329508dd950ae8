//! Whom an event concerns (3.12).

use std::collections::BTreeSet;

use baton_api::ApplicationSpec;
use baton_controllers::webhook::Event;
use serde_json::{Value, json};

use crate::support::{
    Headers, azure_pull_request, azure_push, bitbucket_push, event, git, gitea_push, github_pull_request,
    github_push, gitlab_merge_request, gitlab_push, server_push, spec,
};

const GITHUB: [(&str, &str); 1] = [("X-GitHub-Event", "push")];
const APPS: &str = "https://github.com/org/apps.git";

fn touches(event: &Event, generator: Value) -> bool {
    event.touches(&spec(json!([generator])), None)
}

#[test]
fn a_push_concerns_generators_that_follow_the_branch() {
    for (pushed, revision, expected) in [
        ("refs/heads/main", "HEAD", true),
        ("refs/heads/main", "", true),
        ("refs/heads/main", "main", true),
        ("refs/heads/main", "refs/heads/main", true),
        ("refs/heads/main", "other", false),
        ("refs/heads/feature/x", "feature/x", true),
        ("refs/heads/feature/x", "refs/heads/feature/x", true),
        ("refs/heads/feature/x", "x", false),
        ("refs/heads/feature/x", "HEAD", false),
        ("refs/tags/v1.2.3", "v1.2.3", true),
        ("refs/tags/v1.2.3", "1.x", true),
        ("refs/tags/v1.2.3", ">=2", false),
        ("refs/heads/v1.2.3", "1.x", false),
        ("refs/tags/main", "HEAD", false),
    ] {
        let event = event(&GITHUB, &github_push(pushed)).expect("an event");
        assert_eq!(touches(&event, git(APPS, revision)), expected, "{pushed} and {revision}");
        assert!(!touches(&event, git("https://github.com/org/other.git", revision)));
    }
}

#[test]
fn a_push_concerns_applications_that_read_the_branch() {
    let of = |source: Value| -> ApplicationSpec {
        serde_json::from_value(json!({"project": "default", "destination": {}, "source": source}))
            .expect("a spec")
    };
    let source =
        |repository: &str, revision: &str| json!({"repoURL": repository, "targetRevision": revision});
    let other = "https://github.com/org/other.git";
    let pushed = event(&GITHUB, &github_push("refs/heads/main")).expect("an event");
    for (source, expected) in [
        (source(APPS, "main"), true),
        (source("git@github.com:org/apps", ""), true),
        (source(APPS, "release"), false),
        (source(other, "main"), false),
        (json!({"repoURL": APPS, "targetRevision": "main", "chart": "apps"}), false),
    ] {
        assert_eq!(pushed.moves_sources(&of(source.clone())), expected, "{source}");
    }
    let mut several = of(source(APPS, "main"));
    several.sources = vec![serde_json::from_value(source(other, "main")).expect("a source")];
    assert!(!pushed.moves_sources(&several), "several win over one");
    several.sources.push(serde_json::from_value(source(APPS, "HEAD")).expect("a source"));
    assert!(pushed.moves_sources(&several));
}

#[test]
fn every_host_tells_of_pushes() {
    let hosts: Vec<(Headers<'_>, Value, &str, &str)> = vec![
        (
            &[("X-Gitlab-Event", "Push Hook")],
            gitlab_push("push", "refs/heads/main"),
            "git@gitlab.com:group/apps.git",
            "HEAD",
        ),
        (
            &[("X-Gitlab-Event", "Tag Push Hook")],
            gitlab_push("tag_push", "refs/tags/v1"),
            "https://gitlab.com/group/apps",
            "v1",
        ),
        (
            &[("X-Gitlab-Event", "System Hook")],
            gitlab_push("push", "refs/heads/main"),
            "https://gitlab.com/group/apps",
            "main",
        ),
        (
            &[("X-Vss-Activityid", "x")],
            azure_push(&["refs/heads/a", "refs/heads/main"]),
            "https://dev.azure.com/org/project/_git/apps",
            "HEAD",
        ),
        (
            &[("X-Hook-UUID", "x"), ("X-Event-Key", "repo:push")],
            bitbucket_push("branch", "main"),
            "git@bitbucket.org:team/apps.git",
            "HEAD",
        ),
        (
            &[("X-Hook-UUID", "x"), ("X-Event-Key", "repo:push")],
            bitbucket_push("tag", "v1"),
            "https://bitbucket.org/team/apps",
            "v1",
        ),
        (
            &[("X-Event-Key", "repo:refs_changed")],
            server_push("refs/heads/main", true),
            "https://bitbucket.example.com/scm/proj/apps.git",
            "main",
        ),
        (
            &[("X-Event-Key", "repo:refs_changed")],
            server_push("refs/heads/main", true),
            "ssh://git@bitbucket.example.com:7999/proj/apps.git",
            "HEAD",
        ),
        (
            &[("X-Event-Key", "repo:refs_changed")],
            server_push("refs/heads/main", false),
            "https://bitbucket.example.com/scm/proj/apps.git",
            "main",
        ),
        (
            &[("X-Gitea-Event", "push"), ("X-GitHub-Event", "push")],
            gitea_push("refs/heads/main"),
            "https://gitea.example.com/org/apps",
            "HEAD",
        ),
        (
            &[("X-Gogs-Event", "push")],
            gitea_push("refs/heads/dev"),
            "https://gitea.example.com/org/apps.git",
            "dev",
        ),
    ];
    for (headers, body, repository, revision) in hosts {
        let event = event(headers, &body).unwrap_or_else(|error| panic!("{headers:?}: {error}"));
        assert!(touches(&event, git(repository, revision)), "{repository} {revision}");
        assert!(!touches(&event, git(repository, "elsewhere")), "{repository}");
        assert!(!touches(&event, git("https://example.com/other/repo", revision)), "{repository}");
    }
}

#[test]
fn pull_requests_concern_generators_of_their_repository() {
    let github = |api: &str, owner: &str| json!({"pullRequest": {"github": {"owner": owner, "repo": "apps", "api": api}}});
    let gitlab =
        |api: &str, project: &str| json!({"pullRequest": {"gitlab": {"project": project, "api": api}}});
    let azure = |repo: &str| json!({"pullRequest": {"azuredevops": {"organization": "o", "project": "project", "repo": repo}}});
    let requests = |kind: &str, owner: &str| match kind {
        "bitbucketServer" => {
            json!({"pullRequest": {kind: {"project": owner, "repo": "apps", "api": "https://b/"}}})
        }
        _ => json!({"pullRequest": {kind: {"owner": owner, "repo": "apps", "api": "https://g/"}}}),
    };
    let server = json!({"pullRequest": {"id": 1, "toRef": {"repository": {"slug": "apps", "project": {"key": "ORG"}}}}});
    let cloud = json!({"repository": {"full_name": "org/apps"}, "pullrequest": {"id": 1}});
    let gitea =
        json!({"action": "synchronized", "repository": {"name": "apps", "owner": {"username": "org"}}});
    let cases: Vec<(Headers<'_>, Value, Value, bool)> = vec![
        (&[("X-GitHub-Event", "pull_request")], github_pull_request("opened"), github("", "org"), true),
        (
            &[("X-GitHub-Event", "pull_request")],
            github_pull_request("labeled"),
            github("https://api.github.com", "ORG"),
            true,
        ),
        (
            &[("X-GitHub-Event", "pull_request")],
            github_pull_request("opened"),
            github("https://ghe.example.com/api/v3", "org"),
            false,
        ),
        (&[("X-GitHub-Event", "pull_request")], github_pull_request("opened"), github("", "other"), false),
        (&[("X-GitHub-Event", "pull_request")], github_pull_request("edited"), github("", "org"), false),
        (&[("X-GitHub-Event", "pull_request")], github_pull_request("opened"), git(APPS, "HEAD"), false),
        (&[("X-Gitlab-Event", "Merge Request Hook")], gitlab_merge_request("open"), gitlab("", "15"), true),
        (
            &[("X-Gitlab-Event", "Merge Request Hook")],
            gitlab_merge_request("merge"),
            gitlab("https://gitlab.com", "group/apps"),
            true,
        ),
        (
            &[("X-Gitlab-Event", "Merge Request Hook")],
            gitlab_merge_request("open"),
            gitlab("https://gitlab.example.com", "15"),
            false,
        ),
        (&[("X-Gitlab-Event", "Merge Request Hook")], gitlab_merge_request("open"), gitlab("", "16"), false),
        (
            &[("X-Gitlab-Event", "Merge Request Hook")],
            gitlab_merge_request("approved"),
            gitlab("", "15"),
            false,
        ),
        (&[("X-Vss-Activityid", "x")], azure_pull_request("git.pullrequest.updated"), azure("apps"), true),
        (&[("X-Vss-Activityid", "x")], azure_pull_request("git.pullrequest.created"), azure("other"), false),
        (
            &[("X-Hook-UUID", "x"), ("X-Event-Key", "pullrequest:created")],
            cloud.clone(),
            requests("bitbucket", "org"),
            true,
        ),
        (
            &[("X-Hook-UUID", "x"), ("X-Event-Key", "pullrequest:fulfilled")],
            cloud,
            requests("bitbucket", "other"),
            false,
        ),
        (&[("X-Event-Key", "pr:opened")], server.clone(), requests("bitbucketServer", "org"), true),
        (&[("X-Event-Key", "pr:merged")], server, requests("bitbucketServer", "other"), false),
        (&[("X-Gitea-Event", "pull_request")], gitea.clone(), requests("gitea", "org"), true),
        (&[("X-Gitea-Event", "pull_request")], gitea, requests("gitea", "other"), false),
    ];
    for (headers, body, generator, expected) in cases {
        let event = event(headers, &body).unwrap_or_else(|error| panic!("{headers:?}: {error}"));
        assert_eq!(touches(&event, generator.clone()), expected, "{body} and {generator}");
    }
}

#[test]
fn generators_are_found_however_deep_they_stand() {
    let event = event(&GITHUB, &github_push("refs/heads/main")).expect("an event");
    let list = json!({"list": {"elements": []}});
    let matrix = |generators: Value| json!({"matrix": {"generators": generators}});
    let merge = |generators: Value| json!({"merge": {"mergeKeys": ["a"], "generators": generators}});
    for (generator, expected) in [
        (matrix(json!([list, git(APPS, "HEAD")])), true),
        (matrix(json!([git(APPS, "main"), list])), true),
        (merge(json!([list, git(APPS, "HEAD")])), true),
        (matrix(json!([list, merge(json!([git(APPS, "HEAD"), list]))])), true),
        (merge(json!([list, matrix(json!([list, git(APPS, "HEAD")]))])), true),
        (merge(json!([list, matrix(json!([list, git(APPS, "other")]))])), false),
        (matrix(json!([list, {"matrix": "nonsense"}])), false),
        (json!({"plugin": {"configMapRef": {"name": "p"}}}), true),
        (merge(json!([list, {"plugin": {"configMapRef": {"name": "p"}}}])), true),
        (json!({"scmProvider": {"github": {"organization": "org"}}}), false),
        (list.clone(), false),
    ] {
        assert_eq!(touches(&event, generator.clone()), expected, "{generator}");
    }
}

/// A second child that names its repository by a template: what was read before decides, if it is known.
#[test]
fn templates_stand_for_what_was_read_or_for_anything() {
    let event = event(&GITHUB, &github_push("refs/heads/main")).expect("an event");
    let list = json!({"list": {"elements": []}});
    let set = |repository: &str, revision: &str| {
        spec(json!([{"matrix": {"generators": [list, git(repository, revision)]}}]))
    };
    let read = |pairs: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        pairs.iter().map(|(url, revision)| ((*url).to_owned(), (*revision).to_owned())).collect()
    };
    let templated = set("{{ .url }}", "{{ .branch }}");
    assert!(event.touches(&templated, None));
    assert!(event.touches(&templated, Some(&read(&[(APPS, "main"), ("https://x/y", "main")]))));
    assert!(!event.touches(&templated, Some(&read(&[(APPS, "other"), ("https://x/y", "main")]))));
    assert!(!event.touches(&templated, Some(&read(&[]))));
    // What is written out must fit as well.
    assert!(!event.touches(&set("{{ .url }}", "dev"), None));
    assert!(!event.touches(&set("{{ .url }}", "HEAD"), Some(&read(&[(APPS, "main")]))));
    assert!(event.touches(&set("{{ .url }}", "HEAD"), Some(&read(&[(APPS, "HEAD")]))));
    assert!(!event.touches(&set("https://x/{{ .y }}", "{{ .z }}"), Some(&read(&[("https://x/y", "main")]))));
    // What needs no template does not depend on what was read.
    assert!(event.touches(&set(APPS, "HEAD"), Some(&read(&[]))));
}
