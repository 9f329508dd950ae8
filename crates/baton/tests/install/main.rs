//! What `baton install` prints, applied by the real kubectl to an API that enforces rights; and the controllers as real processes
//! with exactly the rights it grants.

mod chart;
mod cluster;
mod leaving;
mod migrate;
mod named;
#[path = "../process/mod.rs"]
mod process;
#[path = "../../../notifications/tests/behaviour/receiver.rs"]
mod receiver;
mod served;
mod takeover;

use std::collections::BTreeSet;

use cluster::{Cluster, NAMESPACE, Repository};
use process::Running;
use receiver::{Receiver, answer};
use serde_json::{Value, json};

const SETS: &str = "baton-applicationset-controller";
const APPLICATIONS: &str = "baton-application-controller";
const NOTIFICATIONS: &str = "baton-notifications-controller";
/// The members of each set, with their environment.
const MEMBERS: [(&str, &str); 2] = [("one", "dev"), ("two", "prod")];

fn map(name: &str, colour: &str, options: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": colour},
        "metadata": {"name": name, "annotations": {"argocd.argoproj.io/sync-options": options}},
    })
    .to_string()
}

/// A set over a directory for each member. `more` goes into its specification, `generator` beside the list.
fn set(name: &str, repository: &Repository, generator: Value, more: Value) -> Value {
    let elements: Vec<Value> =
        MEMBERS.iter().map(|(member, env)| json!({"name": format!("{name}-{member}"), "env": env})).collect();
    let mut entry = json!({"list": {"elements": elements}});
    merge(&mut entry, generator);
    let mut set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "generators": [entry],
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": repository.url(), "targetRevision": "main", "path": "{{name}}"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "work"},
                    "syncPolicy": {"syncOptions": ["CreateNamespace=true"], "automated": {"prune": true}},
                },
            },
        },
    });
    merge(&mut set["spec"], more);
    set
}

fn merge(into: &mut Value, more: Value) {
    let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) else { return };
    into.extend(more);
}

fn by_env(env: &str) -> Value {
    json!([{"key": "env", "operator": "In", "values": [env]}])
}

fn rolling(repository: &Repository) -> Value {
    let steps = ["dev", "prod"].map(|env| json!({"matchExpressions": by_env(env)}));
    let strategy =
        json!({"type": "RollingSync", "rollingSync": {"steps": steps}, "deletionOrder": "Reverse"});
    set("rolling", repository, json!({}), json!({"strategy": strategy}))
}

fn phased(repository: &Repository) -> Value {
    let phases =
        ["dev", "prod"].map(|env| json!({"name": env, "targets": [{"matchExpressions": by_env(env)}]}));
    let strategy = json!({"deploymentStrategy": {"type": "phaseDeployment", "phases": phases}});
    set("phased", repository, strategy, json!({}))
}

fn files(colour: &str) -> Vec<(String, String)> {
    let sets = ["rolling", "phased"].into_iter();
    sets.flat_map(|set| MEMBERS.iter().map(move |(member, _)| format!("{set}-{member}")))
        .map(|name| (format!("{name}/map.yaml"), map(&name, colour, "")))
        .collect()
}

fn commit(repository: &Repository, colour: &str) -> String {
    let files = files(colour);
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    repository.commit(&files, &[])
}

/// Waits until every Application of a set is well at a commit.
#[track_caller]
fn arrives(cluster: &Cluster, set: &str, commit: &str) {
    for (member, _) in MEMBERS {
        let name = format!("{set}-{member}");
        cluster.until(&format!("{name} is at {commit}"), || {
            let status = cluster.find("application", &name)?["status"].take();
            let there = status["sync"]["status"] == "Synced"
                && status["sync"]["revision"] == *commit
                && status["health"]["status"] == "Healthy";
            there.then_some(())
        });
    }
}

/// When an Application's last sync began and ended.
fn synced(cluster: &Cluster, name: &str) -> [String; 2] {
    let state = cluster.object("application", name)["status"]["operationState"].take();
    ["startedAt", "finishedAt"].map(|field| state[field].as_str().expect("a time").to_owned())
}

/// Ends controllers, none of which was refused anything.
fn end(running: Vec<(&str, Running)>) {
    for (name, running) in running {
        let outcome = running.terminate();
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
        let refused: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("forbidden")).collect();
        assert!(refused.is_empty(), "{name} was refused: {refused:#?}");
    }
}

fn wait_for_hook(hook: &Receiver, cluster: &Cluster, what: &str) {
    cluster.until(what, || hook.requests().iter().any(|request| request.contains(what)).then_some(()));
}

#[test]
fn the_controllers_do_everything_with_exactly_the_rights_they_are_given() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let hook = runtime.block_on(Receiver::start(|_, _| answer(200, "", "")));
    let cluster = Cluster::start();
    let said = cluster.apply_printed(&["install"]);
    assert!(said.contains("namespace/argocd serverside-applied"), "{said}");
    assert!(
        said.contains("customresourcedefinition.apiextensions.k8s.io/applicationsets.argoproj.io"),
        "{said}"
    );
    // A second time nothing is in the way.
    cluster.apply_printed(&["install", "--ha"]);
    let service = format!("url: http://{}/hook", hook.address);
    let subscriptions = json!([{"recipients": ["webhook"], "triggers": ["on-deletion-approval-required"]}]);
    let patch = json!({"data": {"service.webhook": service, "subscriptions": subscriptions.to_string()}});
    cluster.kubectl(&[
        "patch",
        "configmap",
        "argocd-notifications-cm",
        "-n",
        NAMESPACE,
        "--type=merge",
        "-p",
        &patch.to_string(),
    ]);

    let repository = cluster.repository();
    let first = commit(&repository, "blue");
    let running: Vec<(&str, Running)> =
        [SETS, APPLICATIONS, NOTIFICATIONS].map(|name| (name, cluster.start_component(name))).into();
    // Both go on in order.
    for set in [rolling(&repository), phased(&repository)] {
        cluster.apply(&set);
    }
    for set in ["rolling", "phased"] {
        arrives(&cluster, set, &first);
    }
    let second = commit(&repository, "green");
    for set in ["rolling", "phased"] {
        arrives(&cluster, set, &second);
        let [_, done] = synced(&cluster, &format!("{set}-one"));
        let [begun, _] = synced(&cluster, &format!("{set}-two"));
        assert!(done <= begun, "{set}: the second began at {begun}, before the first was done at {done}");
    }
    cluster.until("the phases are complete", || {
        (cluster.set("phased")["status"]["phases"][0]["state"] == "Complete").then_some(())
    });
    let revisions = cluster.kubectl(&["get", "controllerrevisions", "-n", NAMESPACE, "-o", "name"]);
    assert!(revisions.lines().count() >= 2, "good states are kept: {revisions}");

    // What must not go unasked waits, is told, and goes once somebody has said so.
    repository.commit(&[("rolling-one/dear.yaml", map("dear", "blue", "Prune=confirm"))], &[]);
    cluster.until("dear is there", || {
        let arguments = ["get", "configmap", "dear", "-n", "work", "-o", "name", "--ignore-not-found"];
        (!cluster.kubectl(&arguments).is_empty()).then_some(())
    });
    let last = repository.commit(&[], &["rolling-one/dear.yaml"]);
    wait_for_hook(&hook, &cluster, "dear");
    cluster.kubectl(&["get", "configmap", "dear", "-n", "work"]);
    let now = jiff::Timestamp::now().to_string();
    cluster.kubectl(&[
        "annotate",
        "application",
        "rolling-one",
        "-n",
        NAMESPACE,
        &format!("argocd.argoproj.io/deletion-approved={now}"),
    ]);
    arrives(&cluster, "rolling", &last);
    let gone =
        cluster.kubectl(&["get", "configmap", "dear", "-n", "work", "-o", "name", "--ignore-not-found"]);
    assert_eq!(gone, "");

    // The last step goes first.
    cluster.kubectl(&["delete", "applicationset", "rolling", "-n", NAMESPACE, "--wait=false"]);
    cluster.until("the second is gone", || {
        // As it was before the second was still there.
        let first = cluster.find("application", "rolling-one");
        let second = cluster.find("application", "rolling-two");
        let waits = |first: &Value| first["metadata"]["deletionTimestamp"].is_null();
        assert!(
            second.is_none() || first.is_some_and(|first| waits(&first)),
            "the first step waits for the second"
        );
        second.is_none().then_some(())
    });
    cluster.until("all is gone", || {
        let none = cluster.find("applicationset", "rolling").is_none()
            && cluster.find("application", "rolling-one").is_none();
        none.then_some(())
    });
    let left = cluster.kubectl(&["get", "configmaps", "-n", NAMESPACE, "-o", "name"]);
    assert!(!left.contains("rolling.baton"), "{left}");
    let events = cluster.kubectl(&["get", "events", "-n", NAMESPACE, "-o", "name"]);
    assert_ne!(events, "", "what was done is told");
    end(running);
}

/// Takes from a component's Role the rule about a resource.
fn take_rule(cluster: &Cluster, role: &str, resource: &str) {
    let mut object = cluster.object("role", role);
    let rules = object["rules"].as_array_mut().expect("rules");
    let before = rules.len();
    rules.retain(|rule| rule["resources"][0] != resource);
    assert_eq!(rules.len(), before - 1, "{role} has one rule about {resource}");
    let patch = json!({"rules": rules}).to_string();
    cluster.kubectl(&["patch", "role", role, "-n", NAMESPACE, "--type=merge", "-p", &patch]);
}

#[test]
fn whoever_changed_the_settings_is_told_of_a_conflict_and_can_leave_them_as_they_are() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    let patch = json!({"data": {
        "applicationsetcontroller.enable.progressive.syncs": "false", "baton.deletion.fuse": "10%", "server.log.level": "debug",
    }});
    for (map, patch) in [
        ("argocd-cmd-params-cm", patch),
        ("argocd-notifications-cm", json!({"data": {"template.app-sync-failed": "message: our own\n"}})),
        ("argocd-cm", json!({"data": {"url": "https://cd.example.com"}})),
    ] {
        cluster.kubectl(&[
            "patch",
            "configmap",
            map,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            &patch.to_string(),
        ]);
    }
    let printed = process::run(["install", "--ha"]);
    let outcome =
        cluster.kubectl_as(&cluster.kubeconfig(), &["apply", "--server-side", "-f", "-"], &printed.stdout);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stdout);
    let conflicts: Vec<&str> =
        outcome.stderr.lines().filter(|line| line.contains("conflict")).map(str::trim).collect();
    assert!(conflicts.iter().any(|line| line.contains("kubectl-patch")), "{conflicts:#?}");
    assert!(
        !outcome.stderr.contains("url"),
        "what is not installed is nobody's to overwrite: {}",
        outcome.stderr
    );
    let said = cluster.apply_printed(&["install", "--ha", "--settings=false"]);
    assert!(!said.contains("configmap/"), "{said}");
    let kept = |map: &str, key: &str| cluster.object("configmap", map)["data"][key].take();
    assert_eq!(kept("argocd-cmd-params-cm", "baton.deletion.fuse"), "10%");
    assert_eq!(kept("argocd-notifications-cm", "template.app-sync-failed"), "message: our own\n");
    assert_eq!(
        cluster.object("deployment", SETS)["spec"]["replicas"],
        2,
        "everything else is as it was asked for"
    );
}

/// What a process writes for whoever collects logs.
fn assert_all_json(name: &str, stderr: &str) {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() > 3, "{name} says nothing: {lines:?}");
    for line in lines {
        let said: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
        for field in ["timestamp", "level", "target"] {
            assert!(said[field].is_string(), "{name} leaves out {field}: {line}");
        }
        assert!(said["fields"].is_object(), "{name} says nothing: {line}");
    }
}

#[test]
fn every_line_of_the_log_is_json_as_it_is_installed() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install", "--env", "BATON_LOG=baton=debug,kube=debug,info"]);
    let repository = cluster.repository();
    let first = commit(&repository, "blue");
    let all = [SETS, APPLICATIONS, NOTIFICATIONS, "baton-server"];
    let mut running = all.map(|name| (name, cluster.start_component(name)));
    running[3].1.line_with("Serving");
    let mut broken = rolling(&repository);
    broken["metadata"]["name"] = "broken".into();
    broken["spec"]["generators"] = json!([{"git": {"repoURL": "https://127.0.0.1:1/none", "revision": "main", "directories": [{"path": "*"}]}}]);
    cluster.apply(&rolling(&repository));
    cluster.apply(&broken);
    arrives(&cluster, "rolling", &first);
    cluster.until("an error was met", || {
        let conditions = cluster.set("broken")["status"]["conditions"].take();
        conditions.to_string().contains("127.0.0.1").then_some(())
    });
    for (name, running) in running {
        let outcome = running.terminate();
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
        assert_all_json(name, &outcome.stderr);
    }
    // What keeps it from its work is said in the same form.
    for arguments in
        [&["controller", "--lease-duration", "1s", "--renew-deadline", "2s"][..], &["server", "--insecure"]]
    {
        let mut command = process::baton();
        command.env("BATON_LOG_FORMAT", "json").args(arguments).args(["--kubeconfig", "/nowhere"]);
        let outcome = Running::of(command).ends();
        assert_ne!(outcome.code, Some(0));
        let last = outcome.stderr.lines().last().expect("a word");
        let said: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"));
        assert!(said["fields"]["message"].is_string(), "{said}");
    }
}

#[test]
fn a_rule_that_is_taken_away_is_missed_and_named() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    take_rule(&cluster, SETS, "controllerrevisions");
    let repository = cluster.repository();
    commit(&repository, "blue");
    let running = [SETS, APPLICATIONS].map(|name| cluster.start_component(name));
    cluster.apply(&phased(&repository));
    let told = cluster.until("the missing rule is named", || {
        let set = cluster.set("phased");
        let conditions = set["status"]["conditions"].as_array()?;
        let told = conditions.iter().filter_map(|condition| condition["message"].as_str());
        told.into_iter().find(|message| message.contains("controllerrevisions")).map(str::to_owned)
    });
    println!("{told}");
    take_rule(&cluster, SETS, "applications");
    let outcome = {
        let [sets, applications] = running;
        cluster.kubectl(&[
            "delete",
            "application",
            "phased-one",
            "-n",
            NAMESPACE,
            "--ignore-not-found",
            "--wait=false",
        ]);
        cluster.until("an Application that is missing is not made", || {
            let set = cluster.set("phased");
            let conditions = set["status"]["conditions"].as_array()?;
            let refused = conditions.iter().any(|condition| {
                condition["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("cannot create resource"))
            });
            refused.then_some(())
        });
        drop(applications);
        sets.terminate()
    };
    assert!(outcome.stderr.contains("forbidden"), "{}", outcome.stderr);
}

#[test]
fn the_account_of_a_component_may_nothing_else() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install", "--no-in-cluster"]);
    let may = |account: &str, arguments: &[&str]| {
        let kubeconfig = cluster.path(&format!("{account}.kubeconfig"));
        let outcome = cluster.kubectl_as(&kubeconfig, &[&["auth", "can-i", "-q"], arguments].concat(), "");
        outcome.code == Some(0)
    };
    for account in [SETS, APPLICATIONS, NOTIFICATIONS, "baton-server"] {
        cluster.kubeconfig_of(account);
        assert!(may(account, &["list", "applications.argoproj.io", "-n", NAMESPACE]), "{account}");
        for arguments in [
            &["list", "secrets", "-n", "default"][..],
            &["list", "applications.argoproj.io", "-A"],
            &["create", "pods", "-n", NAMESPACE],
            &["create", "clusterrolebindings"],
            &["escalate", "roles", "-n", NAMESPACE],
            &["impersonate", "users"],
            &["create", "serviceaccounts/token", "-n", NAMESPACE],
            &["create", "pods/exec", "-n", NAMESPACE],
        ] {
            assert!(!may(account, arguments), "{account} may {arguments:?}");
        }
    }
    for (account, arguments, expected) in [
        (SETS, &["delete", "applications.argoproj.io", "-n", NAMESPACE][..], true),
        (SETS, &["create", "secrets", "-n", NAMESPACE], false),
        (APPLICATIONS, &["delete", "applications.argoproj.io", "-n", NAMESPACE], false),
        (APPLICATIONS, &["create", "configmaps", "-n", NAMESPACE], false),
        (NOTIFICATIONS, &["create", "secrets", "-n", NAMESPACE], true),
        (NOTIFICATIONS, &["get", "configmaps/argocd-cm", "-n", NAMESPACE], false),
        (NOTIFICATIONS, &["get", "configmaps/argocd-notifications-cm", "-n", NAMESPACE], true),
    ] {
        assert_eq!(may(account, arguments), expected, "{account} {arguments:?}");
    }
}

#[test]
fn beside_argo_cd_only_one_component_comes_and_touches_nothing_of_argo_cd() {
    let cluster = Cluster::start();
    cluster.kubectl(&["create", "namespace", NAMESPACE]);
    cluster.apply_printed(&["crds"]);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm", "namespace": NAMESPACE},
        "data": {"applicationsetcontroller.enable.progressive.syncs": "true", "applicationsetcontroller.policy": "sync"},
    });
    cluster.apply(&settings);
    let said = cluster.apply_printed(&["install", "--only", "applicationset"]);
    let names: BTreeSet<&str> = said.lines().filter_map(|line| line.split([' ', '/']).nth(1)).collect();
    assert_eq!(names, [SETS].into(), "{said}");
    let repository = cluster.repository();
    let first = commit(&repository, "blue");
    // Argo CD's own controller of Applications has rights of its own.
    let mut theirs = process::baton();
    theirs.args(["controller", "--controllers", "application", "--allow-local-repos", "--kubeconfig"]);
    theirs.arg(cluster.kubeconfig()).env("ARGOCD_RECONCILIATION_TIMEOUT", "2s");
    let theirs = Running::of(theirs);
    let ours = cluster.start_component(SETS);
    cluster.apply(&rolling(&repository));
    arrives(&cluster, "rolling", &first);
    let second = commit(&repository, "green");
    arrives(&cluster, "rolling", &second);
    let [_, done] = synced(&cluster, "rolling-one");
    let [begun, _] = synced(&cluster, "rolling-two");
    assert!(done <= begun, "{done} {begun}");
    assert_eq!(cluster.object("configmap", "argocd-cmd-params-cm")["data"], settings["data"]);
    drop(theirs);
    end(vec![(SETS, ours)]);
}
