//! The real `kubectl` against `baton apiserver`, or against the cluster that `BATON_TEST_KUBECONFIG` names. kubectl
//! must be installed: without it these tests fail, they do not skip.

mod apply;
mod change;
mod create;
mod delete;
mod discover;
mod print;
mod session;

/// The text has every part.
#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// The fields of each line, as a table's reader sees them.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

/// A Deployment with its Service and ConfigMap.
fn application(name: &str, replicas: u32, image: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers:
      - name: main
        image: {image}
        ports:
        - containerPort: 80
---
apiVersion: v1
kind: Service
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  selector: {{app: {name}}}
  ports:
  - port: 80
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  labels: {{app: {name}}}
data:
  greeting: hello
"
    )
}
