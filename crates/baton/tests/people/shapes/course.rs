//! What is asked: every call of tier A, and what scripts need around them, on a fleet made by the calls themselves.

use serde_json::{Value, json};

use super::player::{By, Player};

/// Calls of which a shape is recorded, whatever else is.
pub(super) const TIER_A: &[&str] = &[
    "GET /api/version",
    "POST /api/v1/session",
    "DELETE /api/v1/session",
    "GET /api/v1/session/userinfo",
    "GET /api/v1/account/can-i/",
    "GET /api/v1/settings",
    "GET /api/v1/applications",
    "GET /api/v1/applications/{app}",
    "GET /api/v1/stream/applications",
    "PATCH /api/v1/applications/{app}",
    "PUT /api/v1/applications/{app}",
    "DELETE /api/v1/applications/{app}",
    "POST /api/v1/applications/{app}/sync",
    "DELETE /api/v1/applications/{app}/operation",
    "GET /api/v1/applications/{app}/managed-resources",
    "GET /api/v1/applications/{app}/resource-tree",
    "GET /api/v1/applications/{app}/resource/actions",
    "POST /api/v1/applications/{app}/resource/actions",
    "POST /api/v1/applications/{app}/resource/actions/v2",
    "GET /api/v1/applications/{app}/events",
    "GET /api/v1/applicationsets",
    "GET /api/v1/applicationsets/{set}",
    "POST /api/v1/applicationsets",
    "DELETE /api/v1/applicationsets/{set}",
    "POST /api/v1/applicationsets/generate",
    "GET /api/v1/applicationsets/{set}/resource-tree",
    "GET /api/v1/applicationsets/{set}/events",
    "GET /api/v1/stream/applicationsets",
    "GET /api/v1/projects",
    "GET /api/v1/projects/{project}",
];

const LINES: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const DEPLOYMENT: &str = "namespace=shape&resourceName=web&version=v1&group=apps&kind=Deployment";

pub(super) async fn play(player: &mut Player) {
    for (brace, value) in [("app", "web"), ("set", "fleet"), ("project", "shop"), ("missing", "nothing")] {
        player.name(brace, value);
    }
    strangers(player).await;
    signed_in(player).await;
    project(player).await;
    deployed(player).await;
    read(player).await;
    acted(player).await;
    changed(player).await;
    operated(player).await;
    sets(player).await;
    ended(player).await;
}

/// Who is not signed in, and what makes no sense.
async fn strangers(player: &mut Player) {
    for call in ["GET /api/version", "GET /api/v1/settings", "GET /api/v1/session/userinfo"] {
        player.odd("by nobody", By::Nobody, call, None, &[]).await;
    }
    for call in ["GET /api/v1/applications", "GET /api/v1/stream/applications", "GET /api/v1/projects"] {
        player.odd("by nobody", By::Nobody, call, None, &[]).await;
        player.odd("with a forged token", By::Forger, call, None, &[]).await;
    }
    let wrong = json!({"username": "admin", "password": "wrong"});
    player.odd("wrong password", By::Nobody, "POST /api/v1/session", Some(wrong), &[]).await;
    let typed = [("content-type", "text/plain")];
    player.odd("text/plain", By::Nobody, "POST /api/v1/session", Some(json!({})), &typed).await;
    let broken = Some(Value::String("{\"username\":".to_owned()));
    player.odd("broken JSON", By::Nobody, "POST /api/v1/session", broken, &[]).await;
}

async fn signed_in(player: &mut Player) {
    player.sign_in().await;
    for call in [
        "GET /api/version",
        "GET /api/v1/settings",
        "GET /api/v1/session/userinfo",
        "GET /api/v1/account/can-i/applications/sync/*",
        "GET /api/v1/account/can-i/nothing/sync/*",
        "GET /api/v1/account",
        "GET /api/v1/account/admin",
        "GET /api/v1/applications",
        "GET /api/v1/applicationsets",
        "GET /api/v1/nothing",
        "PATCH /api/v1/projects",
    ] {
        player.ask(call).await;
    }
}

async fn project(player: &mut Player) {
    let spec = json!({
        "description": "of shapes", "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*", "name": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        "roles": [{"name": "ci", "policies": ["p, proj:shop:ci, applications, get, shop/*, allow"]}],
    });
    let project = json!({"metadata": {"name": "shop"}, "spec": spec});
    player.tell("POST /api/v1/projects", json!({"project": project})).await;
    for call in [
        "GET /api/v1/projects",
        "GET /api/v1/projects?fields=items.metadata.name",
        "GET /api/v1/projects/{project}",
        "GET /api/v1/projects/{missing}",
        "GET /api/v1/projects/{project}/detailed",
        "GET /api/v1/projects/{project}/events",
        "GET /api/v1/projects/{project}/syncwindows",
        "GET /api/v1/projects/{project}/globalprojects",
        "GET /api/v1/projects/{project}/links",
    ] {
        player.ask(call).await;
    }
    player
        .tell("POST /api/v1/projects/{project}/roles/ci/token", json!({"id": "one", "expiresIn": 3600}))
        .await;
}

/// An Application with a workload, a Secret and a plain object, synced and healthy.
async fn deployed(player: &mut Player) {
    player.commit("web/all.yaml", &web("blue"));
    let application = application(player, "web", "web");
    player.tell("POST /api/v1/applications", application.clone()).await;
    player.odd("again", By::Admin, "POST /api/v1/applications", Some(application.clone()), &[]).await;
    let mut other = application;
    other["spec"]["source"]["path"] = json!("other");
    player.odd("another spec", By::Admin, "POST /api/v1/applications", Some(other), &[]).await;
    let compared = |app: &Value| app["status"]["sync"]["status"] == "OutOfSync";
    player.until("it is compared", "/api/v1/applications/web", compared).await;
    player
        .tell("POST /api/v1/applications/{app}/sync", json!({"infos": [{"name": "why", "value": "shapes"}]}))
        .await;
    player.until("it is healthy", "/api/v1/applications/web", well).await;
}

async fn read(player: &mut Player) {
    let app = player.ask("GET /api/v1/applications/{app}").await;
    player.name("revision", app["status"]["sync"]["revision"].as_str().expect("a revision"));
    player.listen("GET /api/v1/stream/applications?name={app}", LINES, added).await;
    player.listen("GET /api/v1/stream/applications?name={app}", EVENTS, added).await;
    let sparse =
        "GET /api/v1/stream/applications?name={app}&fields=result.type,result.application.metadata.name";
    player.listen(sparse, LINES, added).await;
    for call in [
        "GET /api/v1/applications",
        "GET /api/v1/applications?project=shop&selector=team%3Dshapes",
        "GET /api/v1/applications?project=other",
        "GET /api/v1/applications?fields=items.metadata.name,items.status.sync.status,items.status.health",
        "GET /api/v1/applications?fields=metadata.resourceVersion,items.metadata.name,items.spec,items.operation.sync,items.status.operationState.phase,items.status.summary",
        "GET /api/v1/applications/{app}?refresh=normal",
        "GET /api/v1/applications/{app}?refresh=hard",
        "GET /api/v1/applications/{app}?project=shop",
        "GET /api/v1/applications/{app}?project=other",
        "GET /api/v1/applications/{missing}",
        "GET /api/v1/applications/{missing}?project=shop",
        "GET /api/v1/applications/{app}/resource-tree",
        "GET /api/v1/applications/{missing}/resource-tree",
        "GET /api/v1/applications/{app}/managed-resources",
        "GET /api/v1/applications/{app}/managed-resources?kind=ConfigMap&fields=items.name,items.kind",
        "GET /api/v1/applications/{app}/resource?namespace=shape&resourceName=plain&version=v1&kind=ConfigMap",
        "GET /api/v1/applications/{app}/resource?namespace=shape&resourceName=nothing&version=v1&kind=ConfigMap",
        "GET /api/v1/applications/{app}/events",
        "GET /api/v1/applications/{app}/syncwindows",
        "GET /api/v1/applications/{app}/manifests",
        "GET /api/v1/applications/{app}/links",
        "GET /api/v1/applications/{app}/revisions/{revision}/metadata",
        "GET /api/v1/clusters",
        "GET /api/v1/repositories",
    ] {
        player.ask(call).await;
    }
}

/// Actions on a resource.
async fn acted(player: &mut Player) {
    let path = format!("/api/v1/applications/{{app}}/resource/actions?{DEPLOYMENT}");
    player.ask(&format!("GET {path}")).await;
    player.tell(&format!("POST {path}"), json!("restart")).await;
    player.odd("no such action", By::Admin, &format!("POST {path}"), Some(json!("fly")), &[]).await;
    let action = json!({"namespace": "shape", "resourceName": "web", "version": "v1", "group": "apps",
        "kind": "Deployment", "action": "scale", "resourceActionParameters": [{"name": "replicas", "value": "2"}]});
    let v2 = "POST /api/v1/applications/{app}/resource/actions/v2";
    player.tell(v2, action.clone()).await;
    let mut none = action;
    none["resourceName"] = json!("nothing");
    player.odd("no such resource", By::Admin, v2, Some(none), &[]).await;
}

async fn changed(player: &mut Player) {
    let merge = json!({"patch": "{\"metadata\":{\"annotations\":{\"note\":\"one\"}}}", "patchType": "merge"});
    player.tell("PATCH /api/v1/applications/{app}", merge.clone()).await;
    player.odd("missing", By::Admin, "PATCH /api/v1/applications/{missing}", Some(merge), &[]).await;
    let patch = json!({"patch": "[{\"op\":\"add\",\"path\":\"/metadata/annotations/note\",\"value\":\"two\"}]", "patchType": "json"});
    player.odd("JSON patch", By::Admin, "PATCH /api/v1/applications/{app}", Some(patch), &[]).await;
    let broken = json!({"patch": "{", "patchType": "merge"});
    player.odd("broken", By::Admin, "PATCH /api/v1/applications/{app}", Some(broken), &[]).await;
    let mut app = player.until("it is there", "/api/v1/applications/web", |_| true).await;
    app["metadata"]["annotations"]["note"] = json!("three");
    player.tell("PUT /api/v1/applications/{app}", app.clone()).await;
    let spec = app["spec"].clone();
    player.tell("PUT /api/v1/applications/{app}/spec", spec.clone()).await;
    let mut wrong = spec;
    wrong["project"] = json!("nothing");
    player.odd("no such project", By::Admin, "PUT /api/v1/applications/{app}/spec", Some(wrong), &[]).await;
}

/// What syncs answer that are refused, or wait, or are ended.
async fn operated(player: &mut Player) {
    player.ask("DELETE /api/v1/applications/{app}/operation").await;
    player.odd("missing", By::Admin, "POST /api/v1/applications/{missing}/sync", Some(json!({})), &[]).await;
    player
        .odd("dry run", By::Admin, "POST /api/v1/applications/{app}/sync", Some(json!({"dryRun": true})), &[])
        .await;
    let synced = |app: &Value| {
        app["operation"].is_null()
            && app["status"]["operationState"]["operation"]["sync"]["dryRun"] == true
            && finished(app)
    };
    player.until("the dry run is over", "/api/v1/applications/web", synced).await;

    // A prune that a person has to approve: the operation waits.
    let mut guarded = config_map("guarded", "blue");
    guarded["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Prune=confirm"});
    player.commit("web/guarded.yaml", &[guarded]);
    let prune = json!({"prune": true});
    player.tell("POST /api/v1/applications/{app}/sync", prune.clone()).await;
    let has =
        |app: &Value| app["operation"].is_null() && finished(app) && app.to_string().contains("guarded");
    player.until("the guarded object is there", "/api/v1/applications/web", has).await;
    player.commit("web/guarded.yaml", &[]);
    player
        .until("it is to go", "/api/v1/applications/web?refresh=hard", |app| {
            app.to_string().contains("requiresPruning")
        })
        .await;
    player.tell("POST /api/v1/applications/{app}/sync", prune.clone()).await;
    let waits =
        |app: &Value| app["status"]["operationState"]["message"].to_string().contains("pruning confirmation");
    player.until("it waits", "/api/v1/applications/web", waits).await;
    player.odd("while it waits for a person", By::Admin, "GET /api/v1/applications/{app}", None, &[]).await;
    player.odd("another one runs", By::Admin, "POST /api/v1/applications/{app}/sync", Some(prune), &[]).await;
    player.odd("one runs", By::Admin, "DELETE /api/v1/applications/{app}/operation", None, &[]).await;
    player.until("it has ended", "/api/v1/applications/web", finished).await;
    player.odd("after it was ended", By::Admin, "GET /api/v1/applications/{app}", None, &[]).await;

    let unwell =
        json!({"metadata": {"name": "unwell"}, "spec": application(player, "unwell", "missing")["spec"]});
    player
        .odd("without its path", By::Admin, "POST /api/v1/applications?validate=false", Some(unwell), &[])
        .await;
    let told = |app: &Value| app["status"]["conditions"][0]["type"].is_string();
    player.until("it has a condition", "/api/v1/applications/unwell", told).await;
    player.name("unwell", "unwell");
    player.odd("with a condition", By::Admin, "GET /api/v1/applications/{unwell}", None, &[]).await;
}

async fn sets(player: &mut Player) {
    let element = |env: &str| json!({"env": env});
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut template = application(player, "fleet-{{.env}}", "web");
    template["metadata"]["labels"] = json!({"env": "{{.env}}"});
    template["spec"]["destination"]["namespace"] = json!("fleet-{{.env}}");
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": "argocd"},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": [element("dev"), element("prod")]}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    });
    player.tell("POST /api/v1/applicationsets/generate", json!({"applicationSet": set})).await;
    player.tell("POST /api/v1/applicationsets?dryRun=true", set.clone()).await;
    player.tell("POST /api/v1/applicationsets", set.clone()).await;
    let mut other = set.clone();
    other["spec"]["goTemplateOptions"] = json!(["missingkey=error"]);
    player.odd("another spec", By::Admin, "POST /api/v1/applicationsets", Some(other.clone()), &[]).await;
    player.tell("POST /api/v1/applicationsets?upsert=true", other).await;
    let mut templated = set;
    templated["metadata"]["name"] = json!("templated");
    templated["spec"]["template"]["spec"]["project"] = json!("{{.env}}");
    player.odd("a templated project", By::Admin, "POST /api/v1/applicationsets", Some(templated), &[]).await;

    let path = "/api/v1/applicationsets/fleet";
    let done = |set: &Value| {
        let all = set["status"]["applicationStatus"].as_array();
        all.is_some_and(|all| all.len() == 2 && all.iter().all(|one| one["status"] == "Healthy"))
            && set["status"]["health"]["status"] == "Healthy"
    };
    player.until("it is rolled out", path, done).await;
    player.listen("GET /api/v1/stream/applicationsets?name={set}", LINES, added).await;
    player.listen("GET /api/v1/stream/applicationsets?name={set}", EVENTS, added).await;
    for call in [
        "GET /api/v1/applicationsets",
        "GET /api/v1/applicationsets?projects=other",
        "GET /api/v1/applicationsets/{set}",
        "GET /api/v1/applicationsets/{missing}",
        "GET /api/v1/applicationsets/{set}/resource-tree",
        "GET /api/v1/applicationsets/{set}/events",
        "DELETE /api/v1/applicationsets/{missing}",
        "DELETE /api/v1/applicationsets/{set}",
    ] {
        player.ask(call).await;
    }
}

async fn ended(player: &mut Player) {
    player.ask("DELETE /api/v1/applications/{missing}").await;
    player.ask("DELETE /api/v1/applications/{app}?cascade=false&propagationPolicy=foreground").await;
    player.ask("DELETE /api/v1/applications/{app}?cascade=true&propagationPolicy=nothing").await;
    player.ask("DELETE /api/v1/applications/{app}?cascade=true").await;
    let waits = |app: &Value| app["metadata"]["deletionTimestamp"].is_string();
    player.until("it is being deleted", "/api/v1/applications/web", waits).await;
    // What is guarded goes once somebody has said so.
    let approval = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": jiff::Timestamp::now().to_string()}}});
    let approval = json!({"patch": approval.to_string(), "patchType": "merge"});
    player
        .odd("approves its deletion", By::Admin, "PATCH /api/v1/applications/{app}", Some(approval), &[])
        .await;
    player
        .until("all is gone", "/api/v1/applications?name=web", |list| {
            list["items"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    player.ask("DELETE /api/v1/session").await;
}

fn added(event: &Value) -> bool {
    event["result"]["type"] == "ADDED"
}

fn finished(app: &Value) -> bool {
    app["status"]["operationState"]["finishedAt"].is_string()
}

fn well(app: &Value) -> bool {
    finished(app)
        && app["status"]["sync"]["status"] == "Synced"
        && app["status"]["health"]["status"] == "Healthy"
}

fn application(player: &Player, name: &str, path: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"team": "shapes"}, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {
            "project": "shop",
            "source": {"repoURL": player.repo_url(), "path": path, "targetRevision": "main"},
            "destination": {"name": player.target.cluster, "namespace": "shape"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        },
    })
}

fn config_map(name: &str, colour: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": colour}})
}

fn web(colour: &str) -> [Value; 4] {
    let labels = json!({"app": "web"});
    let container =
        json!({"name": "web", "image": "registry.example.com/web:1.0", "ports": [{"containerPort": 80}]});
    [
        config_map("plain", colour),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "value"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}),
    ]
}
