//! How much is under way at once.

use std::sync::Arc;

use baton_hooks::{Gate, Limits, Role, Runner, Verdict};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::receiver::{Receiver, ok};
use crate::support::{check, hook, local};

#[tokio::test]
async fn a_storm_of_calls_keeps_to_the_limits() {
    let receiver = Receiver::start(|_| ok()).await;
    let runner = Arc::new(Runner::new(local()).expect("the settings are good"));
    let gate = Gate::new(&Limits::default());
    let most = Arc::new(Mutex::new((0, 0)));
    let mut storm = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (runner, gate, most) = (runner.clone(), gate.clone(), most.clone());
        let configuration = json!({"name": "storm", "type": "http", "http": {"url": receiver.url("/")}});
        storm.spawn(async move {
            let set = format!("argocd/set-{}", number % 50);
            let (_pass, call) = if number % 2 == 0 {
                (gate.hook(&set).await, hook(&local(), Role::PreHook, configuration))
            } else {
                (gate.check(&set).await, check(&local(), configuration))
            };
            let under_way = gate.under_way();
            {
                let mut most = most.lock();
                *most = (most.0.max(under_way.0), most.1.max(under_way.1));
            }
            let call = call.expect("it is good");
            runner.run(&call, Timestamp::UNIX_EPOCH, &CancellationToken::new()).await
        });
    }
    while let Some(outcome) = storm.join_next().await {
        assert_eq!(outcome.expect("no task fails").result, Verdict::Success);
    }
    assert_eq!(*most.lock(), (5, 10));
    assert_eq!(gate.under_way(), (0, 0));
    assert_eq!(receiver.requests().len(), 200);
}
