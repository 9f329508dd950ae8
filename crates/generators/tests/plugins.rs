//! The plugin generator over real HTTP, with everything a plugin can do wrong.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use baton_api::ApplicationSet;
use baton_generators::offline::Offline;
use baton_generators::{Generated, GeneratorError, Generators, Limits, Settings};
use baton_scm::Hosts;
use baton_source::Repositories;
use baton_template::Value as Param;
use bytes::Bytes;
use serde_json::{Value, json};

const TOKEN: &str = "hunter2";

type Fault = fn() -> Response;

type Answer = Arc<dyn Fn(HeaderMap, Value) -> Response + Send + Sync>;

/// Serves one answer at the plugin's path and gives the address.
async fn serve(answer: impl Fn(HeaderMap, Value) -> Response + Send + Sync + 'static) -> String {
    let answer: Answer = Arc::new(answer);
    let handler = move |headers: HeaderMap, body: String| async move {
        answer(headers, serde_json::from_str(&body).unwrap_or_default())
    };
    let router = Router::new().route("/base/api/v1/getparams.execute", post(handler));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/base")
}

fn world(config: &Value) -> Offline {
    let mut world = Offline::new("argocd");
    let documents = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin", "namespace": "argocd"}, "data": config}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret"}, "stringData": {"plugin.token": TOKEN}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "stringData": {"key": "from-other\n"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere", "namespace": "team"}, "stringData": {"key": "x"}}),
    ];
    for document in documents {
        world.add_yaml(&document.to_string()).expect("a usable manifest");
    }
    world
}

async fn run(config: Value, generator: Value, go_template: bool) -> Result<Generated, GeneratorError> {
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
    let repositories = Repositories::new(baton_source::Settings::default());
    let limits = Limits { answer: 1_000, ..Limits::default() };
    let generators = Generators::new(repositories, hosts, Settings { limits, ..Settings::default() });
    let set: ApplicationSet = serde_json::from_value(json!({
        "metadata": {"name": "set", "namespace": "team"},
        "spec": {"goTemplate": go_template, "generators": [{"plugin": generator}], "template": {}},
    }))
    .expect("an ApplicationSet");
    generators.generate(&set, &world(&config)).await
}

fn plain() -> Value {
    json!({"configMapRef": {"name": "plugin"}})
}

fn shown(generated: &Generated) -> Vec<String> {
    generated.groups[0].params.iter().map(|set| Param::Map(set.clone()).to_string()).collect()
}

#[tokio::test]
async fn a_plugin_is_asked_with_its_token_and_input() {
    let url = serve(|headers, body| {
        let header =
            |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let seen = json!({
            "authorization": header(header::AUTHORIZATION),
            "type": header(header::CONTENT_TYPE),
            "body": body,
        });
        json!({"output": {"parameters": [{"seen": seen.to_string()}]}}).to_string().into_response()
    })
    .await;
    let generator = json!({
        "configMapRef": {"name": "plugin"},
        "input": {"parameters": {"a": [1, {"b": true}]}},
        "values": {"v": "{{ .generator.input.parameters.a }}"},
    });
    for (token, sent) in [("$plugin.token", TOKEN), ("$other:key", "from-other")] {
        let config = json!({"baseUrl": url, "token": token, "requestTimeout": "5"});
        let generated = run(config, generator.clone(), true).await.expect("an answer");
        let sets = shown(&generated);
        assert!(sets[0].contains(&format!(r#""authorization":"Bearer {sent}""#)), "{sets:?}");
        assert!(sets[0].contains(r#""applicationSetName":"set""#), "{sets:?}");
        assert!(sets[0].contains(r#""input":{"parameters":{"a":[1,{"b":true}]}}"#), "{sets:?}");
        assert!(sets[0].ends_with("values:map[v:[1 map[b:true]]]]"), "{sets:?}");
    }
}

#[tokio::test]
async fn answers_become_sets_in_both_modes() {
    let answer = r#"{"output": {"parameters": [{"a": {"b": [1000000, null]}, "t": "x"}, null]}} and more"#;
    let url = serve(move |_, _| answer.into_response()).await;
    let config = json!({"baseUrl": format!("{url}/"), "token": "$plugin.token"});
    let generated = run(config.clone(), plain(), true).await.expect("an answer");
    let generator = "generator:map[input:map[parameters:map[]]]";
    let expected = [format!("map[a:map[b:[1e+06 <nil>]] {generator} t:x]"), format!("map[{generator}]")];
    assert_eq!(shown(&generated), expected);
    let generated = run(config, plain(), false).await.expect("an answer");
    assert_eq!(shown(&generated)[0], format!("map[a.b.0:1e+06 a.b.1:<nil> {generator} t:x]"));
}

#[tokio::test]
async fn only_a_list_without_parameters_is_empty() {
    let answers = [
        "",
        "null",
        "{}",
        r#"{"output": null}"#,
        r#"{"output": {}}"#,
        r#"{"output": {"parameters": null}}"#,
        r#"{"error": "backend down"}"#,
        r#"{"output": {"parameters": []}}"#,
    ];
    for answer in answers {
        let url = serve(move |_, _| answer.into_response()).await;
        let config = json!({"baseUrl": url, "token": "$plugin.token"});
        match run(config, plain(), true).await {
            Ok(generated) => {
                assert!(answer.contains("[]") && generated.groups[0].params.is_empty(), "{answer}");
            }
            Err(error) => {
                assert!(
                    !answer.contains("[]") && error.to_string().contains("output.parameters"),
                    "{answer}: {error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_plugin_that_fails_fails_the_set() {
    let faults: Vec<(&str, Fault)> = vec![
        ("API error with status code 500: broken", || {
            (StatusCode::INTERNAL_SERVER_ERROR, r#"{"message": "broken"}"#).into_response()
        }),
        ("API error with status code 403: no", || {
            (StatusCode::FORBIDDEN, r#"{"error": "no"}"#).into_response()
        }),
        ("API error with status code 404: plain", || (StatusCode::NOT_FOUND, "plain").into_response()),
        ("API error with status code 302", || {
            (StatusCode::FOUND, [(header::LOCATION, "http://127.0.0.1:1/")]).into_response()
        }),
        ("the answer is no JSON", || "{\"output\"".into_response()),
        ("the answer is no object", || "[]".into_response()),
        ("output of the answer is no object", || r#"{"output": 3}"#.into_response()),
        ("output.parameters of the answer is no list", || {
            r#"{"output": {"parameters": {}}}"#.into_response()
        }),
        ("output.parameters holds what is no object", || {
            r#"{"output": {"parameters": [1]}}"#.into_response()
        }),
        ("longer than 1000 bytes", || "x".repeat(2_000).into_response()),
        ("the answer is no JSON", || "[".repeat(900).into_response()),
        ("the call failed", || {
            let broken = futures::stream::iter([
                Ok(Bytes::from_static(b"{\"output\": {\"parameters\": [{\"a\": \"b\"}")),
                Err(std::io::Error::other("the connection breaks")),
            ]);
            Response::new(Body::from_stream(broken))
        }),
    ];
    for (part, answer) in faults {
        let url = serve(move |_, _| answer()).await;
        let config = json!({"baseUrl": url, "token": "$plugin.token"});
        let error = run(config, plain(), true).await.expect_err("a fault").to_string();
        assert!(error.contains(part), "{error} does not say {part}");
        assert!(error.starts_with("spec.generators[0].plugin: plugin plugin: "), "{error}");
        assert!(!error.contains(TOKEN), "{error}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_not_there_fails_the_set() {
    for url in ["http://127.0.0.1:1", "http://user:hunter2@127.0.0.1:1", "nonsense", "ftp://127.0.0.1"] {
        let config = json!({"baseUrl": url, "token": "$plugin.token"});
        let error = run(config, plain(), true).await.expect_err("no plugin").to_string();
        assert!(error.contains("error listing params"), "{error}");
        assert!(!error.contains(TOKEN), "{error}");
    }
}

// Time is virtual: it passes when there is nothing left to do but wait.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_does_not_answer_in_time_fails_the_set() {
    let router = Router::new().fallback(|| async {
        std::future::pending::<()>().await;
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a bound address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = json!({"baseUrl": url, "token": "$plugin.token", "requestTimeout": "600"});
    let error = run(config, plain(), true).await.expect_err("silence").to_string();
    assert!(error.contains("no answer in time"), "{error}");
}

#[tokio::test]
async fn a_config_map_must_say_where_the_plugin_is() {
    let url = "http://127.0.0.1:1";
    for (config, part) in [
        (json!({"token": "$plugin.token"}), "baseUrl not found in ConfigMap"),
        (json!({"baseUrl": "", "token": "$plugin.token"}), "baseUrl not found in ConfigMap"),
        (json!({"baseUrl": url}), "token not found in ConfigMap"),
        (
            json!({"baseUrl": url, "token": "plugin.token"}),
            "does not reference a secret key starting with '$'",
        ),
        (json!({"baseUrl": url, "token": "$"}), "names no secret or no key"),
        (json!({"baseUrl": url, "token": "$other:"}), "names no secret or no key"),
        (json!({"baseUrl": url, "token": "$absent"}), "no key \"absent\" in Secret argocd/argocd-secret"),
        (json!({"baseUrl": url, "token": "$nothing:key"}), "Secret argocd/nothing not found"),
        (json!({"baseUrl": url, "token": "$elsewhere:key"}), "Secret argocd/elsewhere not found"),
        (
            json!({"baseUrl": url, "token": "$plugin.token", "requestTimeout": "soon"}),
            "error set requestTimeout",
        ),
        (
            json!({"baseUrl": url, "token": "$plugin.token", "requestTimeout": "-1"}),
            "error set requestTimeout",
        ),
    ] {
        let error = run(config, plain(), true).await.expect_err("a fault").to_string();
        assert!(error.contains(part), "{error} does not say {part}");
    }
    let elsewhere = json!({"configMapRef": {"name": "absent"}});
    let error = run(json!({}), elsewhere, true).await.expect_err("no ConfigMap").to_string();
    assert!(error.contains("error fetching ConfigMap: not found"), "{error}");
}
