//! Helm. A program that stands in for it writes down how it was called; `real` runs the real one.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Repo, URL, World, program, source, tool};

const OTHER: &str = "https://git.example.com/team/values.git";

/// A helm that writes down its words, its environment and the value files it is given.
pub(crate) struct StandIn {
    directory: TempDir,
    pub(crate) program: PathBuf,
}

impl StandIn {
    pub(crate) fn new() -> StandIn {
        StandIn::doing("printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: rendered}\\n'")
    }

    /// Does something of its own after that; `$seen` is where notes go.
    fn doing(script: &str) -> StandIn {
        let directory = tempfile::tempdir().expect("a directory");
        let seen = directory.path().join("seen");
        let script = format!(
            r#"seen={}
for word in "$@"; do
  case "$word" in
    --values=*) echo "values $(cat "${{word#--values=}}")" >> $seen ;;
    --set-file=*) rest="${{word#--set-file=}}"; echo "file ${{rest%%=*}} $(cat "${{rest#*=}}")" >> $seen ;;
    *) echo "word $word" >> $seen ;;
  esac
done
env | sed 's/^/env /' >> $seen
find . | sort | sed 's/^/here /' >> $seen
{script}"#,
            seen.display()
        );
        let program = program(directory.path(), "helm", &script);
        StandIn { directory, program }
    }

    fn world(&self, repos: &[(&str, &Repo)]) -> World {
        World::with(repos, |settings| settings.helm.clone_from(&self.program))
    }

    /// Lines of that kind that were written down.
    pub(crate) fn seen(&self, kind: &str) -> Vec<String> {
        let seen = std::fs::read_to_string(self.directory.path().join("seen")).unwrap_or_default();
        let begin = format!("{kind} ");
        seen.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect()
    }
}

fn chart() -> Repo {
    Repo::with(&[
        ("charts/shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("charts/shop/values.yaml", "own: true\n"),
        ("charts/shop/prod.yaml", "env: prod\n"),
        ("charts/shop/env/a.yaml", "a: 1\n"),
        ("charts/shop/env/b.yaml", "b: 1\n"),
        ("charts/shop/templates/a.yaml", "kind: A\n"),
        ("common.yaml", "common: true\n"),
        ("other/unrelated.yaml", "x: y\n"),
    ])
}

fn helm(options: Value) -> Value {
    json!({"path": "charts/shop", "helm": options})
}

#[tokio::test]
async fn a_chart_is_found_by_its_file_and_rendered_for_the_application() {
    let (repo, stand_in) = (chart(), StandIn::new());
    let world = stand_in.world(&[(URL, &repo)]);
    let versions = ["v1".to_owned(), "apps/v1/Deployment".to_owned()];
    let sources = [source(json!({"path": "charts/shop"}))];
    let rendered = world
        .ask(&sources, |request| {
            request.instance = "team_shop";
            request.kube_version = "v1.33.1-gke.5";
            request.api_versions = Box::leak(Box::new(versions));
        })
        .await
        .expect("rendered");
    assert_eq!(rendered.source_types[0].as_str(), "Helm");
    assert_eq!(crate::support::names(&rendered), ["rendered"]);
    let expected = [
        "template",
        ".",
        "--name-template=shop",
        "--namespace=prod",
        "--kube-version=1.33.1",
        "--api-versions=v1",
        "--api-versions=apps/v1/Deployment",
        "--include-crds",
    ];
    assert_eq!(stand_in.seen("word"), expected);
    let here = stand_in.seen("here");
    assert!(here.contains(&"./templates/a.yaml".to_owned()), "{here:?}");
    let environment = stand_in.seen("env").join("\n");
    assert!(environment.contains("HELM_NO_PLUGINS=1"), "{environment}");
    assert!(!environment.contains("CARGO"), "{environment}");
}

#[tokio::test]
async fn every_option_reaches_helm() {
    let (repo, stand_in) = (chart(), StandIn::new());
    let world = stand_in.world(&[(URL, &repo)]);
    let options = json!({
        "releaseName": "other", "namespace": "elsewhere", "kubeVersion": "1.30", "apiVersions": ["x/v1"],
        "skipCrds": true, "skipTests": true, "skipSchemaValidation": true, "version": "v3",
        "parameters": [
            {"name": "a", "value": "first"},
            {"name": "list", "value": "{x,y}"},
            {"name": "text", "value": "x,y"},
            {"name": "s", "value": "01", "forceString": true},
            {"name": "a", "value": "$ARGOCD_APP_NAME-$ARGOCD_APP_NAMESPACE"},
            {"name": "--output-dir", "value": "/tmp"},
        ],
    });
    assert!(world.names(helm(options)).await.is_ok());
    let expected = [
        "template",
        ".",
        "--name-template=other",
        "--namespace=elsewhere",
        "--kube-version=1.30",
        "--set=list={x,y}",
        "--set=text=x\\,y",
        "--set-string=s=01",
        "--set=a=shop-prod",
        "--set=--output-dir=/tmp",
        "--api-versions=x/v1",
        "--skip-schema-validation",
        "--skip-tests",
    ];
    assert_eq!(stand_in.seen("word"), expected);
}

#[tokio::test]
async fn values_come_in_order_from_files_and_then_from_the_source() {
    let (repo, stand_in) = (chart(), StandIn::new());
    let world = stand_in.world(&[(URL, &repo)]);
    let options = json!({
        "valueFiles": ["env/*.yaml", "$ARGOCD_APP_NAMESPACE.yaml", "/common.yaml", "../../common.yaml", "env/a.yaml"],
        "values": "text: true",
        "fileParameters": [{"name": "note", "path": "/common.yaml"}],
    });
    assert!(world.names(helm(options)).await.is_ok_and(|names| names == ["rendered"]));
    assert_eq!(stand_in.seen("values"), ["b: 1", "env: prod", "common: true", "a: 1", "text: true"]);
    assert_eq!(stand_in.seen("file"), ["note common: true"]);
    let object =
        json!({"valueFiles": ["prod.yaml"], "values": "text: true", "valuesObject": {"object": [1]}});
    let stand_in = StandIn::new();
    assert!(stand_in.world(&[(URL, &repo)]).names(helm(object)).await.is_ok());
    assert_eq!(stand_in.seen("values"), ["env: prod", "{\"object\":[1]}"]);
}

#[tokio::test]
async fn value_files_may_come_from_a_source_named_by_ref() {
    let (repo, stand_in) = (chart(), StandIn::new());
    let values = Repo::with(&[("shop/prod.yaml", "from: elsewhere\n")]);
    let world = stand_in.world(&[(URL, &repo), (OTHER, &values)]);
    let options = json!({"valueFiles": ["$values/$ARGOCD_APP_NAME/prod.yaml", "$other/prod.yaml"], "ignoreMissingValueFiles": true});
    let sources =
        [source(helm(options)), source(json!({"repoURL": OTHER, "ref": "values", "targetRevision": "main"}))];
    let rendered = world.render(&sources).await.expect("rendered");
    assert_eq!(rendered.objects.len(), 1);
    assert_eq!(stand_in.seen("values"), ["from: elsewhere"]);
    values.write("shop/prod.yaml", "from: later\n");
    values.commit();
    world.render(&sources).await.expect("rendered");
    assert_eq!(stand_in.seen("values"), ["from: elsewhere", "from: later"], "a commit there renders anew");
    for (other, why) in [
        ("values", "multiple sources had the same `ref` key"),
        ("a/b", "cannot contain any special characters"),
    ] {
        let sources = [&sources[..], &[source(json!({"repoURL": OTHER, "ref": other}))]].concat();
        let message = world.render(&sources).await.expect_err(other).to_string();
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn value_files_cannot_leave_the_repository() {
    let (repo, stand_in) = (chart(), StandIn::new());
    repo.link("charts/shop/out.yaml", "../../../../etc/passwd");
    repo.link("charts/linked/out.yaml", "/etc/passwd");
    repo.commit();
    let world = stand_in.world(&[(URL, &repo)]);
    for (file, why) in [
        ("../../../x.yaml", "file '../../../x.yaml' resolved to outside repository root"),
        ("/../x.yaml", "file '/../x.yaml' resolved to outside repository root"),
        ("../linked/out.yaml", "file '../linked/out.yaml' resolved to outside repository root"),
        ("..", "value file \"..\" does not exist"),
        ("https://127.0.0.1/x.yaml", "is an address"),
        ("gone.yaml", "value file \"gone.yaml\" does not exist"),
        ("gone/*.yaml", "values file glob \"gone/*.yaml\" matched no files"),
    ] {
        // The chart itself holds a link that leads out: it is refused before the values are looked at.
        let path = json!({"path": "charts/shop", "helm": {"valueFiles": [file]}});
        let message = world.names(path).await.expect_err(file);
        assert!(message.contains("leads out of the repository"), "{message}");
        let clean = chart();
        clean.link("charts/linked/out.yaml", "/etc/passwd");
        clean.commit();
        let message = stand_in
            .world(&[(URL, &clean)])
            .names(helm(json!({"valueFiles": [file]})))
            .await
            .expect_err(file);
        assert!(message.contains(why), "{file}: {message}");
    }
    assert!(stand_in.seen("word").is_empty(), "helm was not run at all");
}

#[tokio::test]
async fn missing_value_files_may_be_ignored() {
    let (repo, stand_in) = (chart(), StandIn::new());
    let world = stand_in.world(&[(URL, &repo)]);
    let options =
        json!({"valueFiles": ["gone.yaml", "gone/*", "prod.yaml"], "ignoreMissingValueFiles": true});
    assert!(world.names(helm(options)).await.is_ok());
    assert_eq!(stand_in.seen("values"), ["env: prod"]);
}

#[tokio::test]
async fn charts_of_the_same_repository_are_there_for_those_that_need_them() {
    let script = "if [ $1 = template ] && [ ! -e built ]; then echo 'Error: found in Chart.yaml, but missing in charts/ directory: lib' >&2; exit 1; fi
if [ $1 = dependency ]; then cat ../../lib/Chart.yaml ../base/Chart.yaml > built; exit; fi
printf 'kind: A\\nmetadata: {name: built}\\n'";
    let stand_in = StandIn::doing(script);
    let repo = chart();
    repo.write(
        "charts/shop/Chart.yaml",
        "name: shop\ndependencies: [{name: lib, repository: 'file://../../lib'}]\n",
    );
    repo.write(
        "lib/Chart.yaml",
        "name: lib\ndependencies: [{name: base, repository: 'file://../charts/base'}]\n",
    );
    repo.write("charts/base/Chart.yaml", "name: base\n");
    repo.commit();
    let world = stand_in.world(&[(URL, &repo)]);
    assert_eq!(world.names(helm(json!({}))).await, Ok(vec!["built".to_owned()]));
    for (repository, why) in [
        ("file://../../../etc", "leads out of the repository"),
        ("file:///etc", "leads out of the repository"),
        ("@stable", "not from \"@stable\""),
        ("http://127.0.0.1:1", "not from \"http://127.0.0.1:1\""),
        ("https://127.0.0.1:1", "remote references are turned off"),
    ] {
        repo.write(
            "charts/shop/Chart.yaml",
            format!("name: shop\ndependencies: [{{name: lib, repository: '{repository}'}}]\n"),
        );
        repo.commit();
        let world = World::with(&[(URL, &repo)], |settings| {
            settings.helm.clone_from(&stand_in.program);
            settings.remote_references = false;
        });
        let message = world.names(helm(json!({}))).await.expect_err(repository);
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn errors_are_helms_own_or_say_what_to_install() {
    let repo = chart();
    let stand_in = StandIn::doing("echo 'Error: parse error at (shop/templates/a.yaml:3)' >&2; exit 1");
    let message = stand_in.world(&[(URL, &repo)]).names(helm(json!({}))).await.expect_err("an error");
    assert!(
        message.contains("`helm template` failed: Error: parse error at (shop/templates/a.yaml:3)"),
        "{message}"
    );
    let broken = StandIn::doing("echo 'kind: ['");
    let message = broken.world(&[(URL, &repo)]).names(helm(json!({}))).await.expect_err("no YAML");
    assert!(message.contains("Failed to unmarshal \"helm template\""), "{message}");
    let none = World::with(&[(URL, &repo)], |settings| settings.helm = "helm-that-is-not-there".into());
    let message = none.names(helm(json!({}))).await.expect_err("no helm");
    assert!(
        message.contains("helm-that-is-not-there is needed") && message.contains("Install helm"),
        "{message}"
    );
    let message = none.names(helm(json!({"version": "v2"}))).await.expect_err("an old helm");
    assert!(message.contains("helm version 'v2' is not supported"), "{message}");
}

#[tokio::test]
async fn the_real_helm_renders_the_same() {
    let repo = Repo::with(&[
        (
            "shop/Chart.yaml",
            "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{name: lib, version: 0.1.0, repository: 'file://../lib'}]\n",
        ),
        ("shop/values.yaml", "color: red\nsize: 1\n"),
        ("shop/prod.yaml", "color: green\n"),
        (
            "shop/crds/c.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\n",
        ),
        (
            "shop/templates/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\ndata:\n  color: {{ .Values.color }}\n  size: {{ .Values.size | quote }}\n  kube: {{ .Capabilities.KubeVersion }}\n  api: {{ .Capabilities.APIVersions.Has \"x/v1\" | quote }}\n  list: {{ .Values.list | toJson | quote }}\n  note: {{ .Values.note | quote }}\n  lib: {{ include \"lib.name\" . }}\n",
        ),
        ("lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 0.1.0\ntype: library\n"),
        ("lib/templates/_a.tpl", "{{ define \"lib.name\" }}from-lib{{ end }}"),
        ("note.txt", "a, b"),
    ]);
    let world = World::with(&[(URL, &repo)], |settings| settings.helm = tool("helm"));
    let options = json!({
        "valueFiles": ["prod.yaml"], "values": "size: 2\nlist: []\n", "apiVersions": ["x/v1"],
        "parameters": [{"name": "list", "value": "{a,b}"}],
        "fileParameters": [{"name": "note", "path": "/note.txt"}],
    });
    let rendered = world.render(&[source(json!({"path": "shop", "helm": options}))]).await.expect("rendered");
    assert_eq!(crate::support::names(&rendered), ["c", "shop"]);
    let expected = json!({"color": "green", "size": "2", "kube": "v1.33.1", "api": "true", "list": "[\"a\",\"b\"]", "note": "a, b", "lib": "from-lib"});
    assert_eq!(rendered.objects[1]["data"], expected);
    assert_eq!(rendered.objects[1]["metadata"]["namespace"], "prod");
}
