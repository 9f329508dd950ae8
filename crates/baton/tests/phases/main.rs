//! The proposal's five examples of phased deployments on `baton up`, each with the fleet it needs: who goes in which phase, what
//! the receiver is told and in which order, and who changes between which calls; and what people do to a rollout on its way.

mod course;
mod history;
mod people;
#[path = "../process/mod.rs"]
mod process;
mod stage;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use course::{Rollout, Step, name_of};
use serde_json::{Value, json};
use stage::{Call, Manner, Needs, Stage, open_to_all};

const SLACK: &str = "hooks.slack.com";

/// Deploys an example and then another commit, and tells the course of both. `meanwhile` is what people do in a rollout; it is told
/// the identity of the one before.
async fn twice(
    stage: Stage,
    set: &str,
    meanwhile: impl AsyncFn(&Stage, &str),
    steps: impl Fn(usize) -> Vec<Step>,
) -> Told {
    let mut commits = Vec::new();
    let mut bounds = vec![0];
    let mut rollout = String::new();
    let mut phases = Value::Null;
    for (number, colour) in ["blue", "green"].into_iter().enumerate() {
        if number == 0 {
            stage.apply();
        } else {
            stage.push(colour).await;
        }
        commits.push(stage.head());
        meanwhile(&stage, &rollout).await;
        phases = stage.complete(&rollout).await;
        rollout = phases["rolloutID"].as_str().expect("a rollout").to_owned();
        bounds.push(*stage.history().await.last_key_value().expect("a history").0);
        let everywhere: BTreeSet<String> = stage.coloured(colour).await.into_iter().collect();
        let targets: BTreeSet<String> = targets(&phases).into_iter().flatten().collect();
        assert_eq!(everywhere, targets, "the clusters have what the commit says");
    }
    let mut others: BTreeSet<String> = stage.clusters().collect();
    others.insert("in-cluster".to_owned());
    targets(&phases).iter().flatten().for_each(|name| assert!(others.remove(name), "{name} is a member"));
    assert_eq!(phases["unassigned"], json!(others), "who is in no phase is told of, and stays as it is");
    let (history, calls) = stage.end().await;
    for (number, commit) in commits.iter().enumerate() {
        let (after, until) = (bounds[number], bounds[number + 1]);
        let rollout = Rollout { set, commit, history: &history, calls: &calls, after, until };
        rollout.came(&steps(number));
        same_keys_for_the_same(&rollout.calls());
    }
    calls.iter().for_each(|call| is_well_formed(call, set));
    Told { phases, calls }
}

struct Told {
    /// The status when all was done.
    phases: Value,
    calls: Vec<Call>,
}

/// The Applications of each phase. A phase that has none would show nothing.
fn targets(phases: &Value) -> Vec<Vec<String>> {
    let of = |phase: &Value| {
        let names = phase["applications"].as_array().into_iter().flatten();
        let names: Vec<String> = names.map(|one| one["name"].as_str().expect("a name").to_owned()).collect();
        assert!(!names.is_empty(), "{} has no targets", phase["name"]);
        assert_eq!(phase["selected"], names.len(), "{phase:#}");
        assert_eq!(phase["healthy"], names.len(), "{phase:#}");
        names
    };
    phases["phases"].as_array().expect("phases").iter().map(of).collect()
}

/// What every call has, whatever it is for.
#[track_caller]
fn is_well_formed(call: &Call, set: &str) {
    assert_eq!(call.tls["serverName"], call.host, "the certificate was asked for by the name of the URL");
    assert_eq!(call.tls["version"], "TLSv1_3");
    assert_eq!(call.headers["x-appset-name"], set);
    assert_eq!(call.headers["x-appset-namespace"], "argocd");
    assert_eq!(call.headers["user-agent"], "ArgoCD-ApplicationSet-PhaseHook/1.0");
    assert_eq!(call.headers.contains_key("x-check-name"), call.method == "GET", "{call:?}");
    assert_eq!(call.headers.contains_key("x-hook-type"), call.method == "POST", "{call:?}");
}

/// Calls of one hook or check for one target have one key, and no others have it.
#[track_caller]
fn same_keys_for_the_same(calls: &[&Call]) {
    let mut keys: BTreeMap<(String, String), &str> = BTreeMap::new();
    for call in calls {
        let key = call.headers["idempotency-key"].as_str();
        let known = *keys.entry((name_of(call), call.url())).or_insert(key);
        assert_eq!(key, known, "{call:?}");
    }
    let distinct: BTreeSet<&str> = keys.values().copied().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn clusters(names: &[&str], label: &str) -> Vec<String> {
    names.iter().map(|name| format!("{name},{label}")).collect()
}

#[tokio::test]
async fn progressive_environments() {
    let fleet = [("dev", "dev"), ("staging", "staging"), ("prod", "prod")];
    let pair = |env: &str| vec![format!("{env}-1"), format!("{env}-2")];
    let host = |env: &str, cluster: &str| format!("{cluster}.{env}.example.com");
    let stage = Stage::start(Needs {
        file: "progressive-environments.yaml",
        set: "progressive-rollout",
        clusters: fleet
            .iter()
            .flat_map(|(env, label)| {
                pair(env).into_iter().map(move |name| format!("{name},environment={label}"))
            })
            .collect(),
        hosts: ["dev", "staging"]
            .iter()
            .flat_map(|env| pair(env).into_iter().map(move |cluster| host(env, &cluster)))
            .collect(),
        // One is not well at first: it is asked again before anything goes on.
        answers: &["dev-1.dev.example.com/health=503,times=1"],
    })
    .await;
    let meanwhile = async |stage: &Stage, rollout: &str| {
        for phase in 0..2 {
            stage.advance(phase, rollout).await;
        }
    };
    let checks = |env: &str| {
        let url = |cluster: &String| ("health-check", format!("GET https://{}/health", host(env, cluster)));
        pair(env).iter().map(url).collect::<Vec<_>>()
    };
    let told = twice(stage, "progressive-rollout", meanwhile, |number| {
        let mut first = checks("dev");
        if number == 0 {
            first.push(first[0].clone());
        }
        vec![
            Step::Changed(pair("dev")),
            Step::Calls(first),
            Step::Waited(0),
            Step::Changed(pair("staging")),
            Step::Calls(checks("staging")),
            Step::Waited(1),
            Step::Changed(pair("prod")),
        ]
    })
    .await;
    assert_eq!(targets(&told.phases), ["dev", "staging", "prod"].map(pair));
    let statuses: Vec<u16> =
        told.calls.iter().map(|call| call.status).filter(|status| *status != 200).collect();
    assert_eq!(statuses, [503]);
    assert!(told.calls.iter().all(|call| call.body.is_empty()));
}

#[tokio::test]
async fn the_canary_of_twenty_clusters_is_two() {
    let all: Vec<String> = (1..=20).map(|number| format!("prod-{number:02}")).collect();
    let stage = Stage::start(Needs {
        file: "canary.yaml",
        set: "canary-with-hooks",
        clusters: all.iter().map(|name| format!("{name},environment=production")).collect(),
        hosts: names(&[SLACK]),
        // Whoever did not wait for the answer would be seen to change meanwhile.
        answers: &["/webhook=200,after=1s"],
    })
    .await;
    let meanwhile = async |stage: &Stage, rollout: &str| {
        let colour = if rollout.is_empty() { "blue" } else { "green" };
        let waits =
            |phases: &Value| phases["rolloutID"] != rollout && phases["phases"][0]["state"] == "Waiting";
        stage.until("the canary waits", waits).await;
        assert_eq!(stage.coloured(colour).await, ["prod-01", "prod-02"], "exactly two go first");
        stage.advance(0, rollout).await;
    };
    let told = twice(stage, "canary-with-hooks", meanwhile, |_| {
        vec![
            Step::Calls(vec![("deployment-notification", format!("POST https://{SLACK}/webhook"))]),
            Step::Changed(all[..2].to_vec()),
            Step::Command("monitoring-validation", Vec::new()),
            Step::Waited(0),
            Step::Changed(all[2..].to_vec()),
        ]
    })
    .await;
    assert_eq!(targets(&told.phases), [all[..2].to_vec(), all[2..].to_vec()]);
    assert_eq!(
        (&told.phases["phases"][0]["matched"], &told.phases["phases"][1]["matched"]),
        (&json!(20), &json!(20))
    );
    assert_eq!(told.calls.len(), 2);
    for call in &told.calls {
        assert_eq!(call.body, r#"{"text": "Starting canary deployment"}"#);
        assert_eq!(call.headers["x-hook-type"], "pre");
    }
}

#[tokio::test]
async fn change_management() {
    let production = names(&["prod-1", "prod-2"]);
    let mut fleet = clusters(&["prod-1", "prod-2"], "environment=production");
    fleet.push("dev-1,environment=dev".to_owned());
    let stage = Stage::start(Needs {
        file: "change-management.yaml",
        set: "compliance-deployment",
        clusters: fleet,
        hosts: names(&["api.servicenow.com"]),
        answers: &["api.servicenow.com/api/now/table/change_request=201,after=1s"],
    })
    .await;
    let meanwhile = async |stage: &Stage, rollout: &str| {
        // It is asked for again and again, and nobody has changed before somebody says yes.
        let waits = |phases: &Value| {
            let hook = &phases["phases"][0]["preHooks"][1];
            phases["rolloutID"] != rollout && hook["state"] == "Retrying"
        };
        let phases = stage.until("the approval is missed", waits).await;
        let colour = if rollout.is_empty() { "blue" } else { "green" };
        assert_eq!(stage.coloured(colour).await, [""; 0]);
        let hook = &phases["phases"][0]["preHooks"][1];
        assert_eq!((&hook["name"], &hook["code"]), (&json!("wait-for-approval"), &json!(1)));
        let key = hook["idempotencyKey"].as_str().expect("a key");
        let file = stage.path("hooks/approvals").join(key);
        fs::write(&file, "").expect("an approval");
        open_to_all(&file);
    };
    let url = "POST https://api.servicenow.com/api/now/table/change_request";
    let told = twice(stage, "compliance-deployment", meanwhile, |_| {
        vec![
            Step::Calls(vec![("create-change-request", url.to_owned())]),
            Step::Command("wait-for-approval", Vec::new()),
            Step::Changed(production.clone()),
        ]
    })
    .await;
    assert_eq!(targets(&told.phases), [production]);
    let approval = &told.phases["phases"][0]["preHooks"][1];
    assert!(approval["attempt"].as_i64() >= Some(2), "it was asked for more than once: {approval}");
    assert_eq!(told.calls.len(), 2, "each request is made once, however often is asked for the approval");
    for call in &told.calls {
        assert_eq!((call.status, call.headers["x-hook-type"].as_str()), (201, "pre"));
        assert_eq!(call.headers["authorization"], "Bearer an-example-and-no-token");
        let body: Value = serde_json::from_str(&call.body).expect("JSON");
        let text = "Production deployment for compliance-deployment";
        assert_eq!(body, json!({"short_description": text, "category": "Software"}));
    }
    assert!(!told.phases.to_string().contains("an-example-and-no-token"), "the token is in no status");
}

/// The proposal's pairs of clusters, which wait for each other and call nobody.
async fn basic(manner: Manner) -> Told {
    let pair = |env: &str| vec![format!("{env}-eu-west"), format!("{env}-us-west")];
    let needs = Needs {
        file: "basic-progressive.yaml",
        set: "basic-progressive",
        clusters: ["dev", "staging", "prod"].iter().flat_map(|env| pair(env)).collect(),
        hosts: names(&[SLACK]),
        answers: &[],
    };
    let stage = Stage::with(needs, manner).await;
    let meanwhile = async |stage: &Stage, rollout: &str| {
        for phase in 0..2 {
            stage.advance(phase, rollout).await;
        }
    };
    let steps = |_| {
        vec![
            Step::Changed(pair("dev")),
            Step::Waited(0),
            Step::Changed(pair("staging")),
            Step::Waited(1),
            Step::Changed(pair("prod")),
        ]
    };
    let told = twice(stage, "basic-progressive", meanwhile, steps).await;
    assert_eq!(targets(&told.phases), ["dev", "staging", "prod"].map(pair));
    told
}

#[tokio::test]
async fn basic_progressive() {
    let told = basic(Manner::Usual).await;
    assert!(told.calls.is_empty(), "it has no hooks");
}

#[tokio::test]
#[should_panic(expected = "before the end of Waited(0)")]
async fn whoever_does_not_mind_phases_is_found_out() {
    basic(Manner::Careless).await;
}

#[tokio::test]
async fn advanced_hooks() {
    let production = names(&["prod-1", "prod-2"]);
    let mut fleet = clusters(&["prod-1", "prod-2"], "tier=production");
    fleet.push("test-1,tier=test".to_owned());
    let path = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX";
    let stage = Stage::start(Needs {
        file: "advanced-hooks.yaml",
        set: "advanced-hooks",
        clusters: fleet,
        hosts: names(&[SLACK]),
        answers: &["/services/*=200,after=1s"],
    })
    .await;
    // What the operator gives to commands, for theirs is another user where the controller is root's.
    let kubeconfig = stage.path("hooks/kubeconfig");
    fs::copy(stage.path("up/clusters/prod-1.kubeconfig"), &kubeconfig).expect("a copy");
    open_to_all(&kubeconfig);
    let url = format!("POST https://{SLACK}{path}");
    let told = twice(
        stage,
        "advanced-hooks",
        async |_: &Stage, _: &str| {},
        |_| {
            vec![
                Step::Command("infrastructure-check", Vec::new()),
                Step::Calls(vec![("slack-notification", url.clone())]),
                Step::Changed(production.clone()),
                Step::Command("smoke-tests", production.clone()),
                Step::Calls(vec![("success-notification", url.clone())]),
            ]
        },
    )
    .await;
    assert_eq!(targets(&told.phases), [production]);
    let results = |role: &str| told.phases["phases"][0][role].as_array().expect("results").clone();
    let succeeded = |result: &Value| result["state"] == "Succeeded";
    assert!(results("preHooks").iter().chain(&results("postHooks")).all(succeeded), "{:#}", told.phases);
    let texts = [
        ("pre", "🚀 Starting production deployment for advanced-hooks"),
        ("post", "✅ Production deployment completed for advanced-hooks"),
    ];
    assert_eq!(told.calls.len(), 4);
    for (call, (kind, text)) in told.calls.iter().zip(texts.iter().cycle()) {
        assert_eq!((call.headers["x-hook-type"].as_str(), call.status), (*kind, 200));
        assert_eq!(call.headers["content-type"], "application/json");
        let body: Value = serde_json::from_str(&call.body).expect("JSON");
        assert_eq!(body, json!({"text": text, "channel": "#deployments"}));
    }
}

#[tokio::test]
async fn a_receiver_whose_authority_nobody_knows_is_not_called() {
    let needs = Needs {
        file: "canary.yaml",
        set: "canary-with-hooks",
        clusters: clusters(&["prod-1", "prod-2"], "environment=production"),
        hosts: names(&[SLACK]),
        answers: &[],
    };
    let stage = Stage::with(needs, Manner::Distrusting).await;
    stage.apply();
    let phases = stage.until("the phase fails", |phases| phases["phases"][0]["state"] == "Failed").await;
    let hook = &phases["phases"][0]["preHooks"][0];
    let message = hook["message"].as_str().expect("a message");
    assert!(message.contains("TLS with https://hooks.slack.com failed"), "{message}");
    assert_eq!(stage.applications().await, [""; 0]);
    let (_, calls) = stage.end().await;
    assert!(calls.is_empty(), "{calls:?}");
}

#[tokio::test]
async fn the_proposals_change_management_is_refused_with_what_would_help() {
    let hints = [
        "preHooks[0].http.headers[Authorization]: uses the Secret \"servicenow\", which secretRefs does not declare; add \
         `secretRefs: [{name: servicenow}]` and label the Secret for use by hooks",
        "preHooks[1].timeout: 24h is more than a command may take, which is 30m; for something that takes longer, let each \
         attempt be short and repeat it with retry",
    ];
    let seed = stage::examples().join("../seeds/004-change-management.yaml");
    let seed = seed.to_str().expect("UTF-8");
    let stage = Stage::start(Needs {
        file: "change-management.yaml",
        set: "compliance-deployment",
        clusters: clusters(&["prod-1"], "environment=production"),
        hosts: names(&["api.servicenow.com"]),
        answers: &["api.servicenow.com/api/now/table/change_request=201"],
    })
    .await;
    stage.kubectl(&["apply", "-n", "argocd", "-f", seed]);
    let wrong = |set: &Value| {
        let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let wrong = conditions.into_iter().find(|one| one["type"] == "InvalidPhaseConfig");
        wrong
            .filter(|one| one["status"] == "True")
            .map(|one| one["message"].as_str().unwrap_or_default().to_owned())
    };
    let message = process::eventually("it is refused", async || wrong(&stage.set().await)).await;
    for hint in hints {
        assert!(message.contains(hint), "{message}");
    }
    assert_eq!(stage.applications().await, [""; 0], "nobody is created");
    // As the example is written it is taken, and the condition goes.
    stage.apply();
    stage.until("the hooks begin", |phases| phases["phases"][0]["state"] == "PreHooks").await;
    process::eventually("the condition goes", async || wrong(&stage.set().await).is_none().then_some(()))
        .await;
}
