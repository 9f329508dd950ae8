//! What executing a compiled template costs. `make bench` runs it.

use std::hint::black_box;
use std::time::Instant;

use baton_template::{Limits, MissingKey, Template, Value, params};
use serde_json::json;

const ROUNDS: u32 = 500;
const CALLS: u32 = 400;

const TEMPLATES: [(&str, &str); 7] = [
    ("a literal", "apps/guestbook/overlays/production"),
    ("a field", "{{.name}}"),
    ("two fields, one of them deep", "{{.metadata.labels.env}}-{{.name}}"),
    ("a pipeline of two functions", "{{.name | upper | trunc 10}}"),
    ("an index and a default", "{{index .metadata.labels \"env\" | default \"dev\"}}"),
    ("a condition", "{{if eq .metadata.labels.env \"prod\"}}high{{else}}low{{end}}"),
    ("a loop", "{{range $i, $s := .segments}}{{if $i}}-{{end}}{{$s}}{{end}}"),
];

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let data = Value::from(&json!({
        "name": "cluster-42",
        "nameNormalized": "cluster-42",
        "server": "https://cluster-42.example.com:6443",
        "metadata": {
            "labels": {"env": "prod", "region": "eu-west-1", "tier": "front"},
            "annotations": {"owner": "team-7"},
        },
        "segments": ["apps", "web", "prod"],
    }));
    for (what, text) in TEMPLATES {
        let template = Template::parse("bench", text).expect("the text is a template");
        let nanoseconds = measured(|| {
            let output = template.execute(black_box(&data), MissingKey::Error, Limits::default());
            black_box(output.expect("the data has what is asked for"));
        });
        println!("execute {what}: {nanoseconds:.0} ns");
    }
    let Value::Map(flat) = Value::from(&json!({"name": "cluster-42", "metadata.labels.env": "prod"})) else {
        return;
    };
    let nanoseconds = measured(|| {
        let output = params::substitute(black_box("{{metadata.labels.env}}-{{name}}"), &flat);
        black_box(output.expect("every tag is closed"));
    });
    println!("substitute two parameters: {nanoseconds:.0} ns");
}

/// Nanoseconds a call takes in the fastest of many short rounds: whatever else the machine does only adds.
fn measured(mut call: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    });
    rounds.fold(f64::INFINITY, f64::min)
}
