//! How fast decisions are. `make bench` runs it.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use baton_grammar::globs::gobwas;
use baton_rbac::{Action, Caller, Object, Policy, Request, Resource, Rights, Verb};

const LINES: usize = 501;
const APPLICATIONS: usize = 5_000;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let lines = lines();
    let csv: Vec<String> = lines.iter().map(|line| format!("p, {}", line.join(", "))).collect();
    let data = BTreeMap::from([("policy.csv".to_owned(), csv.join("\n") + "\ng, team, role:team")]);
    let start = Instant::now();
    let rights = Rights::new(Policy::load(&data).expect("the policy is valid"));
    let load = start.elapsed().as_secs_f64();
    let caller = Caller::session("somebody", ["team"]);
    let requests: Vec<Request> = (0..APPLICATIONS).map(request).collect();

    let start = Instant::now();
    let mut review = rights.review(&caller);
    let listed = requests.iter().filter(|request| black_box(review.decide(request)).allowed).count();
    let list = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let single = requests.iter().filter(|request| black_box(rights.decide(&caller, request)).allowed).count();
    let one = start.elapsed().as_secs_f64();

    let asked = &requests[..100];
    let start = Instant::now();
    let scanned = asked.iter().filter(|request| black_box(scan(&lines, request))).count();
    let naive = start.elapsed().as_secs_f64() / asked.len() as f64;

    assert_eq!((listed, single), (APPLICATIONS, APPLICATIONS), "every project has a line");
    assert_eq!(scanned, asked.len(), "a scan finds them too");
    println!(
        "rbac {LINES} lines loaded in {:.1} ms; list of {APPLICATIONS} Applications: {:.0} decisions/ms, {:.0} times a naive scan; \
         single: {:.0} decisions/ms, {:.0} times",
        load * 1e3,
        APPLICATIONS as f64 / list / 1e3,
        naive * APPLICATIONS as f64 / list,
        APPLICATIONS as f64 / one / 1e3,
        naive * APPLICATIONS as f64 / one,
    );
}

/// A role with a line for each of five hundred projects, and a deny.
fn lines() -> Vec<[String; 5]> {
    let mut lines: Vec<[String; 5]> = (0..LINES - 1)
        .map(|at| {
            ["role:team", "applications", "get", &format!("project-{at}/*"), "allow"].map(str::to_owned)
        })
        .collect();
    lines.push(["role:team", "applications", "delete", "*/prod-*", "deny"].map(str::to_owned));
    lines
}

fn request(at: usize) -> Request {
    let object = Object::in_project(
        &format!("project-{}", at % (LINES - 1)),
        "argocd",
        &format!("app-{at}"),
        "argocd",
    );
    Request::new(Resource::Applications, Action::from(Verb::Get), object.expect("names without slashes"))
}

/// What it takes without an index or compiled patterns: every pattern of every line, each time.
fn scan(lines: &[[String; 5]], request: &Request) -> bool {
    let matches = |pattern: &str, text: &str| {
        gobwas::Pattern::new(pattern, &[]).is_ok_and(|pattern| pattern.matches(text))
    };
    let matching = lines.iter().filter(|[_, resource, action, object, _]| {
        matches(resource, request.resource.word())
            && matches(action, request.action.as_str())
            && matches(object, request.object.as_str())
    });
    let effects: Vec<&str> = matching.map(|line| line[4].as_str()).collect();
    effects.contains(&"allow") && !effects.contains(&"deny")
}
