//! How fast Applications are rendered. `make bench` runs it.

use std::hint::black_box;
use std::time::Instant;

use baton_api::application_set::ApplicationTemplate;
use baton_render::{Engine, Params, Renderer};
use baton_template::{MissingKey, Value as Param};
use serde_json::{Value, json};

const APPLICATIONS: usize = 10_000;
const STRINGS: usize = 40;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let engine = Engine::Go(MissingKey::Error);
    let renderer = Renderer::new(&engine, &template(), None, false).expect("the template is valid");
    let sets: Vec<Params> = (0..APPLICATIONS).map(params).collect();
    let start = Instant::now();
    for params in &sets {
        black_box(renderer.render(params, "argocd").expect("the parameters fit"));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "render {APPLICATIONS} Applications from goTemplate with {STRINGS} strings each: {:.0} ns a string, {:.0} Applications/s",
        seconds * 1e9 / (APPLICATIONS * STRINGS) as f64,
        APPLICATIONS as f64 / seconds,
    );
}

/// What the clusters generator makes of a cluster.
fn params(index: usize) -> Params {
    let set = json!({
        "name": format!("cluster-{index}"),
        "nameNormalized": format!("cluster-{index}"),
        "server": format!("https://cluster-{index}.example.com:6443"),
        "metadata": {
            "labels": {"env": if index.is_multiple_of(3) { "prod" } else { "staging" }, "region": "eu-west-1"},
            "annotations": {"owner": format!("team-{}", index % 50)},
        },
        "values": {"revision": "main", "replicas": 3},
    });
    match Param::from(&set) {
        Param::Map(map) => map,
        _ => Params::new([]),
    }
}

/// A template in which every one of forty strings holds template text, from a bare field to a condition.
fn template() -> ApplicationTemplate {
    const TEXTS: [&str; 5] = [
        "{{ .name }}",
        "{{ .metadata.labels.env }}-{{ .nameNormalized }}",
        "{{ if eq .metadata.labels.env \"prod\" }}high{{ else }}low{{ end }}",
        "{{ index .metadata.annotations \"owner\" | upper | quote }}",
        "envs/{{ .metadata.labels.region }}/{{ .values.revision }}",
    ];
    let parameters: Vec<Value> = (0..STRINGS - 5)
        .map(|at| json!({"name": format!("setting-{at}"), "value": TEXTS[at % TEXTS.len()]}))
        .collect();
    let template = json!({
        "metadata": {"name": "{{ .nameNormalized }}-guestbook", "labels": {"env": "{{ .metadata.labels.env }}"}},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "https://git.example.com/guestbook.git",
                "targetRevision": "{{ .values.revision }}",
                "path": "envs/{{ .metadata.labels.region }}",
                "helm": {"parameters": parameters},
            },
            "destination": {"server": "{{ .server }}", "namespace": "guestbook"},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    });
    serde_json::from_value(template).expect("the template is valid")
}
