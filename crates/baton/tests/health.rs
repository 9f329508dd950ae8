//! `baton health`: objects and customizations in files, both forms, exit codes.

mod process;

use std::{fs, io::Write as _, path::Path, process::Stdio};

use process::{Outcome, baton, run};
use tempfile::TempDir;

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1}
";

const THING: &str = "apiVersion: example.com/v1
kind: Thing
metadata: {name: it}
status: {ready: 2, ready: 3, at: 2024-01-02T03:04:05Z}
";

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("inside the directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    directory
}

fn health(directory: &Path, arguments: &[&str]) -> Outcome {
    let arguments =
        arguments.iter().map(|argument| argument.replace("DIR", &directory.display().to_string()));
    run(["health".to_owned()].into_iter().chain(arguments))
}

#[track_caller]
fn prints(outcome: &Outcome, stdout: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), stdout, ""));
}

#[test]
fn an_object_is_assessed_by_the_rules() {
    let files = directory(&[("web.yaml", DEPLOYMENT)]);
    let message = "Waiting for rollout to finish: 1 out of 2 new replicas have been updated...";
    let json = health(files.path(), &["-f", "DIR/web.yaml", "-o", "json"]);
    prints(&json, &format!("{{\"message\":\"{message}\",\"status\":\"Progressing\"}}\n"));
    prints(&health(files.path(), &["-f", "DIR/web.yaml"]), &format!("Progressing: {message}\n"));
}

#[test]
fn an_object_may_come_on_standard_input() {
    let mut child = baton()
        .args(["health", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary under test starts");
    let service = br#"{"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}}"#;
    child.stdin.take().expect("piped").write_all(service).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"Healthy\n"[..]));
}

#[test]
fn what_has_no_health_has_an_empty_status() {
    let files = directory(&[("it.yaml", THING)]);
    let json = health(files.path(), &["-f", "DIR/it.yaml", "-o", "json"]);
    prints(&json, "{\"message\":\"\",\"status\":\"\"}\n");
    let text = health(files.path(), &["-f", "DIR/it.yaml"]);
    prints(&text, "nothing is known of the health of Thing \"it\"\n");
}

#[test]
fn scripts_come_from_a_directory_or_a_config_map() {
    let script = "return { status = 'Healthy', message = obj.status.ready .. ' at ' .. obj.status.at }";
    let map = "kind: Other\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n  \
        resource.customizations.health.example.com_Thing: |\n    -- of the map\n    return { status = 'Suspended' }\n";
    let files = directory(&[
        ("it.yaml", THING),
        ("scripts/example.com/Thing/health.lua", script),
        ("scripts/example.com/Thing/testdata/input.yaml", "not: [looked at"),
        ("map.yaml", map),
    ]);
    let of_directory = ["-f", "DIR/it.yaml", "--customizations", "DIR/scripts"];
    prints(&health(files.path(), &of_directory), "Healthy: 3 at 2024-01-02T03:04:05Z\n");
    let of_map = ["-f", "DIR/it.yaml", "--customizations", "DIR/map.yaml"];
    prints(&health(files.path(), &of_map), "Suspended\n");
    let both = [&of_map[..], &["--customizations", "DIR/scripts"]].concat();
    prints(&health(files.path(), &both), "Suspended\n");
    let other_way = [&of_directory[..], &["--customizations", "DIR/map.yaml"]].concat();
    prints(&health(files.path(), &other_way), "Healthy: 3 at 2024-01-02T03:04:05Z\n");
}

#[test]
fn the_example_waits_for_its_replicas() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/health");
    let arguments = ["-f", "DIR/database.yaml", "--customizations", "DIR/customizations"];
    prints(&health(&examples, &arguments), "Progressing: 2 of 3 replicas are ready\n");
}

#[test]
fn of_several_documents_the_first_counts() {
    let files = directory(&[("all.yaml", &format!("---\n---\n{DEPLOYMENT}---\n{THING}---\n{THING}"))]);
    let outcome = health(files.path(), &["-f", "DIR/all.yaml", "-o", "json"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.contains("\"status\":\"Progressing\""), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "only the first object is looked at; 2 more follow it\n");
}

#[test]
fn a_script_speaks_also_of_an_object_being_deleted() {
    let files = directory(&[
        (
            "it.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, deletionTimestamp: 2024-01-02T03:04:05Z}\n",
        ),
        ("scripts/Pod/health.lua", "return { status = 'Degraded', message = 'says the script' }"),
    ]);
    prints(&health(files.path(), &["-f", "DIR/it.yaml"]), "Progressing: Pending deletion\n");
    let scripted = health(files.path(), &["-f", "DIR/it.yaml", "--customizations", "DIR/scripts"]);
    prints(&scripted, "Degraded: says the script\n");
}

#[test]
fn a_failing_script_makes_it_unknown_and_ends_with_3() {
    let files = directory(&[
        ("it.yaml", THING),
        ("broken/example.com/Thing/health.lua", "error('broken')"),
        ("endless/example.com/Thing/health.lua", "while true do pcall(error) end"),
        ("old.yaml", "apiVersion: apps/v1beta1\nkind: Deployment\n"),
    ]);
    for (arguments, message) in [
        (&["-f", "DIR/it.yaml", "--customizations", "DIR/broken"][..], "<string>:1: broken"),
        (
            &["-f", "DIR/it.yaml", "--customizations", "DIR/endless"],
            "the script was stopped: it ran for too long",
        ),
        (&["-f", "DIR/old.yaml"], "unsupported Deployment GVK: apps/v1beta1, Kind=Deployment"),
    ] {
        let outcome = health(files.path(), &[arguments, &["-o", "json"]].concat());
        let expected = format!("{{\"message\":\"{message}\",\"status\":\"Unknown\"}}\n");
        assert_eq!((outcome.code, outcome.stdout), (Some(3), expected));
        assert!(outcome.stderr.starts_with("error: cannot tell the health of "), "{}", outcome.stderr);
    }
}

#[test]
fn what_cannot_be_read_is_named_and_ends_with_1() {
    let files =
        directory(&[("it.yaml", THING), ("list.yaml", "[]"), ("bad.yaml", "a: b: c"), ("empty/x", "")]);
    for (arguments, part) in [
        (&[][..], "--file"),
        (&["-f", "DIR/absent.yaml"], "absent.yaml"),
        (&["-f", "DIR/list.yaml"], "list.yaml holds no object"),
        (&["-f", "DIR/bad.yaml"], "line 1, column 5"),
        (&["-f", "DIR/it.yaml", "-o", "xml"], "xml"),
        (&["-f", "DIR/it.yaml", "--customizations", "DIR/absent"], "absent"),
        (&["-f", "DIR/it.yaml", "--customizations", "DIR/it.yaml"], "it.yaml holds no ConfigMap"),
        (&["-f", "DIR/it.yaml", "--customizations", "DIR/empty"], "<group>/<Kind>/health.lua"),
    ] {
        let outcome = health(files.path(), arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}
