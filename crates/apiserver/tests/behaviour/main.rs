//! What a client may rely on, checked on three targets with the same cases: the server in process under a paused
//! clock, the server over TLS, and whatever cluster `BATON_TEST_KUBECONFIG` names. A case that fails on a real
//! kube-apiserver is a wrong case; a case that fails only here is a wrong server.

mod apply;
mod builtins;
mod clients;
mod crd_schema;
mod crds;
mod crud;
mod deletion;
mod discovery;
mod dry_run;
mod field_validation;
mod garbage;
mod history;
mod lists;
mod malformed;
mod namespaces;
mod negotiation;
mod patches;
mod protobuf;
mod resource_versions;
mod reviews;
mod strangers;
mod strategic;
mod subresources;
mod table;
mod target;
mod watches;
mod world;

use futures::{FutureExt as _, StreamExt as _};
use std::{any::Any, panic::AssertUnwindSafe, time::Duration};
use table::Case;
use target::Target;
use world::World;

/// Generous: a namespace takes several seconds to empty on a real cluster. Virtual in process.
const CASE_TIMEOUT: Duration = Duration::from_secs(90);

#[test]
fn every_case_holds_in_process_under_a_paused_clock() {
    target::paused_runtime().block_on(async {
        let target = Target::in_process();
        run_table(&target, 1).await;
    });
}

#[test]
fn every_case_holds_over_tls() {
    target::runtime().block_on(async {
        let target = Target::tls().await;
        run_table(&target, 8).await;
    });
}

#[test]
fn every_case_holds_on_the_cluster_named_by_the_environment() {
    target::runtime().block_on(async {
        let Some(target) = Target::from_environment().await else { return };
        run_table(&target, 8).await;
    });
}

/// Runs every case that applies to the target, `width` at a time, and panics at the end if any failed.
async fn run_table(target: &Target, width: usize) {
    let only = std::env::var("BATON_TEST_CASE").unwrap_or_default();
    let mut cases = table::cases();
    cases.retain(|case| {
        let lacking = target.lacks(case.needs);
        lacking.inspect(|why| println!("not run {}: {}: {why}", target.name(), case.name));
        lacking.is_none() && case.name.contains(&only)
    });
    let outcomes: Vec<(&str, Result<(), String>)> = futures::stream::iter(cases)
        .map(|case| run_case(target, case))
        .buffer_unordered(width)
        .collect()
        .await;
    let failures: Vec<_> =
        outcomes.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?))).collect();
    for (name, failure) in &failures {
        println!("FAILED {name}: {failure}");
    }
    let summary = format!(
        "behaviour {}: {} passed, {} failed",
        target.name(),
        outcomes.len() - failures.len(),
        failures.len()
    );
    println!("{summary}");
    assert!(failures.is_empty(), "{summary}");
}

async fn run_case(target: &Target, case: Case) -> (&'static str, Result<(), String>) {
    let attempt = async {
        let world = World::new(target).await;
        let outcome = AssertUnwindSafe((case.run)(&world)).catch_unwind().await;
        world.clean_up().await;
        outcome
    };
    let outcome = match tokio::time::timeout(CASE_TIMEOUT, AssertUnwindSafe(attempt).catch_unwind()).await {
        Err(_) => Err(format!("not finished after {CASE_TIMEOUT:?}")),
        Ok(Err(panic) | Ok(Err(panic))) => Err(panic_text(&*panic)),
        Ok(Ok(Ok(()))) => Ok(()),
    };
    (case.name, outcome)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panicked without a message").to_owned()
}
