//! The chart gives the same objects as the command, the image is small and nobody's, and nothing needs more than the restricted
//! profile allows.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::process::run;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Helm as it is installed, or as `.ci/tools` built it.
fn helm() -> Command {
    let tools = root().join("target/tools/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(env::split_paths(&path).chain([tools])).expect("a PATH");
    let found = env::split_paths(&path).map(|directory| directory.join("helm")).find(|file| file.is_file());
    Command::new(found.expect("helm is on PATH, or `make tools` has built it"))
}

type Objects = BTreeMap<(String, String), Value>;

fn named(objects: impl IntoIterator<Item = Value>) -> Objects {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects
        .into_iter()
        .filter(|object| !object.is_null())
        .map(|object| ((text(&object["kind"]), text(&object["metadata"]["name"])), object))
        .collect()
}

/// What the command prints.
fn printed(arguments: &[&str]) -> Objects {
    let outcome = run(["install", "-o", "json"].iter().chain(arguments));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let mut list: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let Value::Array(items) = list["items"].take() else { panic!("a list") };
    named(items)
}

/// What the chart gives.
fn rendered(namespace: &str, values: &Value) -> Objects {
    let output = templated(namespace, values);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    named(baton_grammar::yaml::documents(&text).expect("YAML"))
}

fn templated(namespace: &str, values: &Value) -> Output {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), values.to_string()).expect("a file");
    let home = tempfile::tempdir().expect("a directory");
    helm()
        .args(["template", "any-name", "--kube-version", "1.30.0", "--namespace", namespace, "--values"])
        .arg(file.path())
        .arg(root().join("deploy/helm/baton"))
        .env("HOME", home.path())
        .output()
        .expect("helm runs")
}

#[test]
fn the_chart_gives_what_the_command_prints() {
    let rows: [(&[&str], &str, Value); 8] = [
        (&[], "argocd", json!({})),
        (&["--namespace", "delivery", "--ha"], "delivery", json!({"ha": true})),
        (&["--only", "applicationset"], "argocd", json!({"only": "applicationset"})),
        (
            &[
                "--image",
                "registry.example.com/baton:7",
                "--hooks-configmap",
                "programs",
                "--tls-secret",
                "tls",
            ],
            "argocd",
            json!({"image": "registry.example.com/baton:7", "hooksConfigmap": "programs", "tlsSecret": "tls"}),
        ),
        (&["--no-in-cluster"], "argocd", json!({"inCluster": false})),
        (&["--settings=false"], "argocd", json!({"settings": false})),
        (
            &["--env", "HTTPS_PROXY=http://proxy.example.com", "--env", "OTEL_SERVICE_NAME=7"],
            "argocd",
            json!({"extraEnv": {"HTTPS_PROXY": "http://proxy.example.com", "OTEL_SERVICE_NAME": "7"}}),
        ),
        (
            &["--only", "server", "--tls-secret", "tls"],
            "argocd",
            json!({"only": "server", "tlsSecret": "tls"}),
        ),
    ];
    for (arguments, namespace, values) in rows {
        let mut expected = printed(arguments);
        // Helm makes the namespace itself, and definitions are too large for it.
        expected.retain(|(kind, _), _| kind != "Namespace" && kind != "CustomResourceDefinition");
        let found = rendered(namespace, &values);
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{arguments:?}");
        for (name, object) in &expected {
            assert_eq!(found[name], *object, "{name:?} with {arguments:?}");
        }
    }
}

#[test]
fn what_means_nothing_is_refused_by_chart_and_command_alike() {
    let rows: [(Value, &[&str]); 14] = [
        (json!({"only": "applicationsets"}), &["--only", "applicationsets"]),
        (json!({"only": "Server"}), &["--only", "Server"]),
        (json!({"image": ""}), &["--image="]),
        (json!({"image": "a b"}), &["--image=a b"]),
        (json!({"hooksConfigmap": "Bad_Name!"}), &["--hooks-configmap=Bad_Name!"]),
        (json!({"tlsSecret": "-a"}), &["--tls-secret=-a"]),
        (
            json!({"only": "server", "hooksConfigmap": "programs"}),
            &["--only=server", "--hooks-configmap=programs"],
        ),
        (
            json!({"only": "applicationset", "tlsSecret": "tls"}),
            &["--only=applicationset", "--tls-secret=tls"],
        ),
        (json!({"extraEnv": {"a.b": "c"}}), &["--env=a.b=c"]),
        // These cannot be written on a command line.
        (json!({"inCluster": "false"}), &[]),
        (json!({"ha": "false"}), &[]),
        (json!({"hooksConfigMap": "programs"}), &[]),
        (json!({"extraEnv": null}), &[]),
        (json!({"extraEnv": {"A": 1_000_000}}), &[]),
    ];
    for (values, arguments) in rows {
        let output = templated("argocd", &values);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("values don't meet"), "{values}: {said}");
        if !arguments.is_empty() {
            let outcome = run(["install"].iter().chain(arguments));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        }
    }
}

#[test]
fn what_the_chart_says_of_notifications_is_the_catalog() {
    let path = root().join("deploy/helm/baton/files/notifications.yaml");
    let expected = baton_notifications::catalog::object("any")["data"].take();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, baton_grammar::yaml::to_string(&expected)).expect("a file");
    }
    let text = fs::read_to_string(&path).expect("a file");
    assert_eq!(baton_grammar::yaml::first(&text).expect("YAML"), expected, "UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn pods_are_restricted() {
    let all = printed(&["--hooks-configmap", "programs", "--tls-secret", "tls", "--ha"]);
    let deployments: Vec<&Value> =
        all.iter().filter(|((kind, _), _)| kind == "Deployment").map(|(_, object)| object).collect();
    assert_eq!(deployments.len(), 4);
    for deployment in deployments {
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        for forbidden in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod[forbidden].is_null(), "{forbidden}");
        }
        for volume in pod["volumes"].as_array().expect("volumes") {
            let kinds = ["emptyDir", "configMap", "secret"];
            assert!(kinds.iter().any(|kind| !volume[*kind].is_null()), "{volume}");
        }
        for container in pod["containers"].as_array().expect("containers") {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
            assert!(container["resources"]["requests"]["memory"].is_string());
            assert!(container["resources"]["limits"]["memory"].is_string());
            for probe in ["livenessProbe", "readinessProbe"] {
                assert!(container[probe]["httpGet"]["path"].is_string(), "{probe}");
            }
        }
    }
}

#[test]
fn no_role_names_more_than_it_must() {
    let all = printed(&[]);
    for ((kind, name), role) in all.iter().filter(|((kind, _), _)| kind == "Role" || kind == "ClusterRole") {
        // What is deployed into this cluster is not known beforehand, and only that.
        let wild = kind == "ClusterRole";
        for rule in role["rules"].as_array().expect("rules") {
            for field in ["verbs", "resources", "apiGroups"] {
                let all = rule[field].as_array().into_iter().flatten().any(|text| text == "*");
                assert!(wild || !all, "{kind} {name} says {field}: *");
            }
        }
    }
    let clusterwide = |objects: &Objects| objects.keys().filter(|(kind, _)| kind == "ClusterRole").count();
    assert_eq!(clusterwide(&all), 2, "of the two that go into clusters");
    assert_eq!(clusterwide(&printed(&["--no-in-cluster"])), 0);
    assert_eq!(clusterwide(&printed(&["--only", "applicationset"])), 0);
}

#[test]
fn what_is_built_here_goes_into_no_image() {
    let text = fs::read_to_string(root().join(".dockerignore")).expect("a file");
    let left_out: Vec<&str> =
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for needless in ["target", ".git", ".baton", "ui/dist", "**/node_modules"] {
        assert!(left_out.contains(&needless), "{needless} is sent to whoever builds the image");
    }
    // Nothing that the build needs is among it, nor anything that git keeps.
    for kept in ["crates", "deploy", "docs", "examples", "ui", "Cargo.toml", "Cargo.lock"] {
        assert!(!left_out.contains(&kept), "{kept} is needed");
    }
    let output =
        Command::new("git").args(["ls-files", "target", "ui/dist", ".baton"]).current_dir(root()).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("git runs").stdout), "");
}

#[test]
fn the_image_is_nobodys_and_has_nothing_that_builds() {
    let text = fs::read_to_string(root().join("deploy/Dockerfile")).expect("a file");
    let joined = text.replace("\\\n", " ");
    let lines: Vec<(&str, &str)> = joined
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .collect();
    let last = lines.iter().rposition(|(word, _)| *word == "FROM").expect("a stage");
    let (build, image) = lines.split_at(last);
    for (_, from) in lines.iter().filter(|(word, _)| *word == "FROM") {
        let version =
            from.split(' ').next().and_then(|image| image.split_once(':')).map(|(_, version)| version);
        assert!(version.is_some_and(|version| version != "latest"), "{from} has a version");
    }
    let user = image.iter().find(|(word, _)| *word == "USER").expect("a user").1;
    let numbers: Vec<u32> = user.split(':').map(|id| id.parse().expect("a number")).collect();
    assert!(numbers.iter().all(|id| *id > 0), "{user}");
    let after = image.iter().skip_while(|(word, _)| *word != "USER").map(|(word, _)| *word);
    assert!(after.into_iter().all(|word| word != "RUN" && word != "COPY"), "nothing is of that user");
    let copied: Vec<&str> = image.iter().filter(|(word, _)| *word == "COPY").map(|(_, what)| *what).collect();
    let from =
        |stage: &str| copied.iter().filter(|what| what.starts_with(&format!("--from={stage} "))).count();
    assert_eq!((from("build"), from("tools"), copied.len()), (1, 1, 2), "{copied:?}");
    assert!(!image.iter().any(|(_, what)| what.contains("build-essential") || what.contains("cargo")));
    assert!(copied.iter().any(|what| what.contains("/helm") && what.contains("/kustomize")), "{copied:?}");
    for (_, what) in build.iter().filter(|(word, what)| *word == "COPY" && !what.starts_with("--from")) {
        let mut words: Vec<&str> = what.split_whitespace().collect();
        words.pop();
        for file in words {
            assert!(root().join(file).exists(), "{file} is not there to be copied");
        }
    }
    // What the binary has in it is copied before it is built.
    let sources: Vec<&str> =
        build.iter().filter(|(word, _)| *word == "COPY").map(|(_, what)| *what).collect();
    for needed in ["crates crates", "deploy deploy", "docs docs", "examples examples"] {
        assert!(sources.contains(&needed), "{needed}");
    }
    // Sources are rendered in an installation by what the tests render them with.
    let tested = fs::read_to_string(root().join(".ci/tools")).expect("a file");
    for program in ["helm", "kustomize"] {
        let version = tested.lines().find_map(|line| line.strip_prefix(&format!("{program}=")));
        let version = version.unwrap_or_else(|| panic!("no version of {program}"));
        assert!(build.iter().any(|(_, what)| what.ends_with(version)), "the image has another {program}");
    }
    let entry = image.iter().find(|(word, _)| *word == "ENTRYPOINT").expect("an entry").1;
    assert_eq!(entry, r#"["/usr/local/bin/baton"]"#);
}
