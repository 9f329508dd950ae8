//! The template language against kubectl, a Go program whose `-o go-template` is text/template itself.
//!
//! `kubectl/templates.jsonl` holds the templates, `kubectl/object.json` what they are executed on; nothing of what
//! kubectl answers is stored. `slice`, which is sprig's here, and loops over numbers, which kubectl's Go may not
//! know yet, are left to the goldens.

use std::collections::VecDeque;
use std::process::{Command, Output};
use std::sync::Mutex;

use baton_template::{Limits, List, Map, MissingKey, Template, Value};

/// kubectl's name for its template.
const NAME: &str = "output";
/// Between the templates of a batch; no template prints it.
const SEPARATOR: &str = "\u{1e}";
const BATCH: usize = 75;

/// A template of the file.
struct Case {
    text: String,
    /// Defines templates, which would be seen by the others of a batch.
    alone: bool,
    fails: bool,
}

#[test]
fn templates_print_what_kubectl_prints() {
    let cases = cases();
    let (alone, batched): (Vec<_>, Vec<_>) =
        cases.iter().filter(|case| !case.fails).partition(|case| case.alone);
    let mut jobs: VecDeque<Vec<&Case>> = alone.into_iter().map(|case| vec![case]).collect();
    jobs.extend(batched.chunks(BATCH).map(<[_]>::to_vec));
    let data = data();
    let wrong = in_parallel(jobs, |batch| differences(&batch, &data));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn templates_fail_where_kubectl_fails() {
    let cases = cases();
    let failing: VecDeque<&Case> = cases.iter().filter(|case| case.fails).collect();
    let data = data();
    let wrong = in_parallel(failing, |case| {
        let answer = kubectl(&format!("go-template={}", case.text));
        let complaint = String::from_utf8_lossy(&answer.stderr).into_owned();
        let ours = execute(&case.text, &data);
        let same =
            !answer.status.success() && ours.as_ref().is_err_and(|error| complaint.contains(place(error)));
        if same {
            Vec::new()
        } else {
            vec![format!("{}\n    kubectl: {complaint}    here:    {ours:?}", case.text)]
        }
    });
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_templates_enough() {
    assert!(cases().len() >= 300);
}

/// Executes a batch with kubectl and here, and tells where the two part.
fn differences(batch: &[&Case], data: &Value) -> Vec<String> {
    let text = match batch {
        [only] => only.text.clone(),
        // Inside an `if` variables end where they should.
        _ => batch.iter().map(|case| format!("{{{{if true}}}}{}{{{{end}}}}{SEPARATOR}", case.text)).collect(),
    };
    let answer = kubectl(&format!("go-template={text}"));
    let output = String::from_utf8_lossy(&answer.stdout).into_owned();
    if !answer.status.success() {
        let complaint = String::from_utf8_lossy(&answer.stderr).into_owned();
        return vec![format!("kubectl cannot execute {text:?}: {complaint}")];
    }
    let outputs: Vec<&str> = match batch {
        [_] => vec![&output],
        _ => output.split(SEPARATOR).collect(),
    };
    let pairs = batch.iter().zip(outputs);
    pairs
        .filter_map(|(case, wanted)| {
            let ours = execute(&case.text, data);
            (ours.as_deref() != Ok(wanted))
                .then(|| format!("{}\n    kubectl: {wanted:?}\n    here:    {ours:?}", case.text))
        })
        .collect()
}

fn execute(text: &str, data: &Value) -> Result<String, String> {
    let template = Template::parse(NAME, text).map_err(|error| error.to_string())?;
    template.execute(data, MissingKey::Default, Limits::default()).map_err(|error| error.to_string())
}

/// A message without what a function says for itself: releases of Go word that differently.
fn place(error: &str) -> &str {
    let Some((before, _)) = error.split_once("error calling ") else {
        return error;
    };
    let name = error[before.len()..].find(": ").unwrap_or(0);
    &error[..before.len() + name]
}

/// Runs `kubectl annotate` on the object's file alone, without any cluster.
fn kubectl(output: &str) -> Output {
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubectl/object.json");
    Command::new("kubectl")
        .args(["annotate", "--local", "-f", object, "probe=1", "-o", output])
        .env("KUBECONFIG", "/dev/null")
        .output()
        .expect("kubectl is installed: these tests compare with it, see .ci/run")
}

/// The object as kubectl hands it to its templates: whole numbers are `int64`.
fn data() -> Value {
    let answer = kubectl("json");
    let complaint = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "kubectl cannot read the object: {complaint}");
    value(&serde_json::from_slice(&answer.stdout).expect("kubectl prints JSON"))
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Number(number) => number.as_i64().map_or_else(|| Value::from(json), Value::Int64),
        serde_json::Value::Array(items) => Value::List(List::new(items.iter().map(value))),
        serde_json::Value::Object(entries) => {
            Value::Map(Map::new(entries.iter().map(|(key, item)| (key.as_str().into(), value(item)))))
        }
        other => Value::from(other),
    }
}

fn cases() -> Vec<Case> {
    let lines = include_str!("kubectl/templates.jsonl").lines();
    lines
        .map(|line| {
            let case: serde_json::Value = serde_json::from_str(line).expect("the templates are JSON lines");
            Case {
                text: case["t"].as_str().expect("a case has a template").to_owned(),
                alone: case["alone"] == true,
                fails: case["fails"] == true,
            }
        })
        .collect()
}

/// Does the jobs, a few at a time: starting kubectl takes most of it.
fn in_parallel<J: Send>(jobs: VecDeque<J>, work: impl Fn(J) -> Vec<String> + Sync) -> Vec<String> {
    let (jobs, found) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let next = || jobs.lock().expect("no worker panics while it takes a job").pop_front();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let more = work(job);
                    found.lock().expect("no worker panics while it reports").extend(more);
                }
            });
        }
    });
    found.into_inner().expect("no worker panics while it reports")
}
