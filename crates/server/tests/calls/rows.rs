//! Every operation that changes something, as a request that reaches the gate, with what each caller is answered. Shared by
//! the tests of the whole binary, which ask the same with policies.

use serde_json::{Value, json};

/// A request, and the statuses of its answers to nobody, a reader, a role of the project `shop` and an administrator, who ask
/// in this order.
pub(crate) struct Row {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) expected: [u16; 4],
}

/// Every path that shows something.
pub(crate) const READS: [&str; 59] = [
    "/healthz",
    "/api/version",
    "/api/v1/settings",
    "/api/v1/session/userinfo",
    "/api/v1/account",
    "/api/v1/account/admin",
    "/api/v1/account/can-i/applications/get/shop/web-dev",
    "/api/v1/applications",
    "/api/v1/applications?fields=items.spec",
    "/api/v1/applications/web-dev",
    "/api/v1/applications/web-dev?project=shop",
    "/api/v1/applications/web-dev/resource-tree",
    "/api/v1/applications/web-dev/managed-resources",
    "/api/v1/applications/web-dev/resource?kind=Secret&version=v1&namespace=shop&resourceName=keys",
    "/api/v1/applications/web-dev/resource/actions?kind=Deployment&group=apps&version=v1&namespace=shop&resourceName=web",
    "/api/v1/applications/web-dev/events",
    "/api/v1/applicationsets",
    "/api/v1/applicationsets/web",
    "/api/v1/applicationsets/web/resource-tree",
    "/api/v1/applicationsets/web/rollout",
    "/api/v1/applicationsets/web/plan",
    "/api/v1/applicationsets/web/phases",
    "/api/v1/applicationsets/web/events",
    "/api/v1/projects",
    "/api/v1/projects/shop",
    "/api/v1/rollouts",
    "/api/v1/approvals",
    "/api/v1/audit",
    "/api/v1/openapi.json",
    "/swagger.json",
    "/api/v1/clusters",
    "/api/v1/clusters/member?id.type=name",
    "/api/v1/clusters/https%3A%2F%2Fmember.example.com",
    "/api/v1/repositories",
    "/api/v1/repositories/https%3A%2F%2Fgit.example.com",
    "/api/v1/repositories/https%3A%2F%2Fgit.example.com/refs",
    "/api/v1/repocreds",
    "/api/v1/certificates",
    "/api/v1/gpgkeys",
    "/api/v1/gpgkeys/4AEE18F83AFDEB23",
    "/api/v1/projects/shop/detailed",
    "/api/v1/projects/shop/events",
    "/api/v1/projects/shop/syncwindows",
    "/api/v1/applications/web-dev/syncwindows",
    "/api/v1/applications/web-dev/manifests",
    "/api/v1/applications/web-dev/logs",
    "/api/v1/applications/web-dev/logs?download=true",
    "/api/v1/applications/web-dev/pods/none/logs",
    "/api/v1/applications/web-dev/revisions/main/metadata",
    "/api/v1/applications/web-dev/revisions/1.0/chartdetails",
    "/api/v1/applications/web-dev/links",
    "/api/v1/applications/web-dev/resource/links?kind=Secret&version=v1&namespace=shop&resourceName=keys",
    "/api/v1/projects/shop/globalprojects",
    "/api/v1/projects/shop/links",
    "/api/badge",
    "/api/badge?name=web-dev&revision=true&showAppName=true",
    "/api/v1/write-repositories",
    "/api/v1/write-repocreds",
    "/api/v1/write-repositories/https%3A%2F%2Fgit.example.com%2Fhydrated",
];

/// What everybody may read, known or not.
const OPEN: [&str; 8] = [
    "/healthz",
    "/api/version",
    "/api/v1/settings",
    "/api/v1/session/userinfo",
    "/api/v1/openapi.json",
    "/swagger.json",
    "/api/badge",
    "/api/badge?name=web-dev&revision=true&showAppName=true",
];
/// What is of no project, so that its roles do not see it.
const BEYOND_PROJECTS: [&str; 5] = [
    "/api/v1/clusters/",
    "/api/v1/repositories/",
    "/api/v1/write-repositories/",
    "/api/v1/certificates",
    "/api/v1/gpgkeys",
];

/// What each caller is answered who reads a path.
pub(crate) fn reading(path: &str) -> [u16; 4] {
    match path {
        path if OPEN.contains(&path) => [200, 200, 200, 200],
        "/api/v1/account/admin" => [401, 200, 403, 200],
        // Its source is no chart, which only whoever may see it is told.
        path if path.ends_with("/chartdetails") => [401, 400, 400, 400],
        path if BEYOND_PROJECTS.iter().any(|prefix| path.starts_with(prefix)) => [401, 200, 403, 200],
        _ => [401, 200, 200, 200],
    }
}

/// What is not over once it is answered.
pub(crate) const STREAMS: [&str; 4] = [
    "/api/v1/stream/applications",
    "/api/v1/stream/applicationsets",
    "/api/v1/stream/rollouts",
    "/api/v1/stream/approvals",
];
/// What sends a browser elsewhere: the tests of the sign-in by an issuer follow it.
pub(crate) const BROWSERS: [&str; 3] = ["/auth/login", "/auth/callback", "/auth/logout"];
/// What everybody may ask, with tests of its own: signing in and out, and what hosts tell.
pub(crate) const SIGN_IN: [(&str, &str); 3] =
    [("POST", "/api/v1/session"), ("DELETE", "/api/v1/session"), ("POST", "/api/webhook")];

fn row(method: &'static str, path: impl Into<String>, body: Value, expected: [u16; 4]) -> Row {
    Row { method, path: path.into(), body, expected }
}

/// The rows; `waits` is the prune that waits in the inbox.
pub(crate) fn rows(waits: &Value) -> Vec<Row> {
    let mut rows = of_applications();
    rows.extend(of_what_is_registered());
    rows.extend(of_accounts_and_projects());
    rows.extend(of_rollouts(waits));
    rows.extend(of_ends());
    rows
}

/// What one changes of an Application, from little to much.
fn of_applications() -> Vec<Row> {
    let new = |name: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
            "spec": {"project": "shop", "source": {"repoURL": "https://git.example.com/new", "path": "."},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        })
    };
    let on = |kind: &str, name: &str, more: &str| {
        let group = if kind == "Deployment" { "apps" } else { "" };
        format!(
            "/api/v1/applications/web-dev/resource{more}?group={group}&version=v1&kind={kind}&namespace=shop&resourceName={name}"
        )
    };
    let restart = json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop",
        "resourceName": "web", "action": "restart"});
    vec![
        row("POST", "/api/v1/applications", new("new"), [401, 403, 200, 200]),
        row("PUT", "/api/v1/applications/new", new("new"), [401, 403, 200, 200]),
        row("PUT", "/api/v1/applications/new/spec", new("new")["spec"].clone(), [401, 403, 200, 200]),
        row(
            "PATCH",
            "/api/v1/applications/web-prod",
            json!({"patch": "{}", "patchType": "merge"}),
            [401, 403, 200, 200],
        ),
        row(
            "POST",
            on("ConfigMap", "settings", "") + "&patchType=application/merge-patch%2Bjson",
            json!("{\"data\":{\"a\":\"c\"}}"),
            [401, 403, 200, 200],
        ),
        // A role of the project that may not act on resources by the table of these tests.
        row("POST", on("Deployment", "web", "/actions"), json!("restart"), [401, 403, 403, 200]),
        row("POST", "/api/v1/applications/web-dev/resource/actions/v2", restart, [401, 403, 403, 200]),
        row("POST", "/api/v1/applications/web-prod/sync", json!({"dryRun": true}), [401, 403, 200, 400]),
        row("POST", "/api/v1/applications/web-prod/rollback", json!({"id": 9}), [401, 403, 400, 400]),
    ]
}

fn of_what_is_registered() -> Vec<Row> {
    let on = |collection: &str| format!("/api/v1/{collection}/https%3A%2F%2Fgit.example.com%2Fnew");
    let only = [401, 403, 403, 200];
    let cluster = json!({"server": "https://new.example.com"});
    let of_cluster = "/api/v1/clusters/https%3A%2F%2Fnew.example.com";
    let mut rows = vec![
        row("POST", "/api/v1/clusters", cluster.clone(), only),
        row("PUT", of_cluster, cluster, only),
        row("POST", "/api/v1/clusters/member/invalidate-cache?id.type=name", json!(null), only),
        row("DELETE", of_cluster, json!(null), only),
        row("DELETE", "/api/v1/clusters/none?id.type=name", json!(null), [401, 403, 403, 404]),
        row("POST", on("repositories") + "/validate", json!({}), only),
        row("POST", "/api/v1/certificates", json!({}), [401, 403, 403, 400]),
        row("DELETE", "/api/v1/certificates?hostNamePattern=none", json!(null), only),
        row("POST", "/api/v1/gpgkeys", json!({}), [401, 403, 403, 400]),
        row("DELETE", "/api/v1/gpgkeys?keyID=4AEE18F83AFDEB23", json!(null), only),
        row("DELETE", "/api/v1/gpgkeys?keyID=none", json!(null), [401, 403, 403, 404]),
    ];
    for (collection, body) in [
        ("repositories", json!({"repo": "https://git.example.com/new"})),
        ("repocreds", json!({"url": "https://git.example.com/new"})),
        ("write-repositories", json!({"repo": "https://git.example.com/new"})),
        ("write-repocreds", json!({"url": "https://git.example.com/new"})),
    ] {
        rows.push(row("POST", format!("/api/v1/{collection}"), body.clone(), only));
        rows.push(row("PUT", on(collection), body, only));
        rows.push(row("DELETE", on(collection), json!(null), only));
    }
    rows
}

fn of_accounts_and_projects() -> Vec<Row> {
    let project = |name: &str| {
        let project = json!({"metadata": {"name": name},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}});
        json!({"project": project})
    };
    let password = json!({"name": "keeper", "currentPassword": "wrong", "newPassword": "something longer"});
    vec![
        row("PUT", "/api/v1/account/password", password, [401, 403, 403, 400]),
        row("POST", "/api/v1/account/ci/token", json!({}), [401, 403, 403, 200]),
        row("DELETE", "/api/v1/account/ci/token/x", json!(null), [401, 403, 403, 404]),
        row("POST", "/api/v1/projects/shop/roles/ci/token", json!({}), [401, 403, 403, 200]),
        row("DELETE", "/api/v1/projects/shop/roles/ci/token/7", json!(null), [401, 403, 403, 404]),
        row("POST", "/api/v1/projects", project("fresh"), [401, 403, 403, 200]),
        row("PUT", "/api/v1/projects/fresh", project("fresh"), [401, 403, 403, 200]),
        row("DELETE", "/api/v1/projects/fresh", json!(null), [401, 403, 403, 200]),
    ]
}

fn of_rollouts(waits: &Value) -> Vec<Row> {
    let set = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"generators": [{"list": {"elements": []}}],
            "template": {"metadata": {"name": "x"}, "spec": {"project": "shop", "destination": {"name": "member"}}}}})
    };
    let item = |hash: &Value| json!([{"id": waits["id"], "setHash": hash}]);
    vec![
        row("POST", "/api/v1/applicationsets", set("fresh"), [401, 403, 200, 200]),
        row(
            "POST",
            "/api/v1/applicationsets/generate",
            json!({"applicationSet": set("x")}),
            [401, 403, 200, 200],
        ),
        row("POST", "/api/v1/applicationsets/web/actions", json!({"action": "pause"}), [401, 403, 200, 400]),
        // Whoever may decide nothing of it is told so, whatever became of it meanwhile.
        row(
            "POST",
            "/api/v1/approvals/reject",
            json!({"items": item(&json!("stale")), "reason": "no"}),
            [401, 403, 403, 200],
        ),
        row(
            "POST",
            "/api/v1/approvals/approve",
            json!({"items": item(&waits["setHash"])}),
            [401, 403, 403, 200],
        ),
    ]
}

/// What ends something: who comes after has nothing left to end, and may not learn that it was there.
fn of_ends() -> Vec<Row> {
    let keys =
        "/api/v1/applications/web-dev/resource?version=v1&kind=Secret&namespace=shop&resourceName=keys";
    vec![
        row("DELETE", keys, json!(null), [401, 403, 200, 400]),
        row("DELETE", "/api/v1/applications/web-dev/operation", json!(null), [401, 403, 200, 200]),
        row("DELETE", "/api/v1/applications/other", json!(null), [401, 403, 403, 200]),
        row("DELETE", "/api/v1/applications/web-prod?cascade=false", json!(null), [401, 403, 200, 403]),
        row("DELETE", "/api/v1/applicationsets/web", json!(null), [401, 403, 200, 404]),
    ]
}
