//! What users write into windows, projects and retries is read without a panic, whatever it is.

use baton_api::Application;
use baton_api::application::{Backoff, RetryStrategy};
use baton_api::project::{AppProject, SyncWindow};
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::{retry, windows};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

/// Texts that look like what is expected, and texts that do not.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[*!?/{}\\[\\]a-c,.:@-]{0,12}",
        "(TZ=[A-Za-z/]{0,9} )?[0-9*/,?-]{1,6}( [0-9*/,?a-z-]{1,6}){3,5}",
        "-?[0-9]{1,20}(ns|ms|s|m|h)?",
        ".{0,20}",
    ]
}

fn application(name: &str, namespace: &str) -> Application {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": namespace},
        "spec": {"destination": {"server": name, "namespace": namespace}}}))
    .expect("an Application")
}

proptest! {
    #[test]
    fn windows_are_judged(
        (schedule, duration, zone, pattern) in (text(), text(), text(), text()),
        second in any::<i64>(),
        manual in any::<bool>(),
    ) {
        let window: SyncWindow = serde_json::from_value(json!({"kind": "deny", "schedule": schedule,
            "duration": duration, "timeZone": zone, "applications": [pattern, "*"], "syncOverrun": true}))
        .expect("a window");
        let now = Timestamp::from_second(second % Timestamp::MAX.as_second()).expect("a time");
        let all = [window];
        let verdict = windows::judge_operation(&all, &application("web", "n"), !manual, Some(now), now);
        prop_assert!(verdict.error.is_none() || !verdict.allowed);
        prop_assert!(verdict.changes_at.is_none_or(|change| change > now));
    }

    #[test]
    fn projects_are_asked(a in text(), b in text(), c in text()) {
        let project: AppProject = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {
            "sourceRepos": [a, b], "destinations": [{"server": a, "name": b, "namespace": c}],
            "clusterResourceWhitelist": [{"group": a, "kind": b, "name": c}],
            "namespaceResourceBlacklist": [{"group": b, "kind": c}],
            "sourceNamespaces": [a, format!("/{b}/")],
            "orphanedResources": {"ignore": [{"group": a, "kind": b, "name": c}]}}}))
        .expect("a project");
        let rules = ProjectRules::new(&project, &[], &[], &[]);
        let cluster = DestinationCluster { server: &a, name: &c };
        rules.permits_source(&c);
        rules.permits_destination(cluster, &b);
        rules.permits_kind(&a, &b, &c, false);
        let live = json!({"apiVersion": a, "kind": b, "metadata": {"name": c, "namespace": a}});
        rules.permits_live(&live, cluster);
        let refused = rules.permits_application(&application(&a, &c), "argocd");
        prop_assert!(refused.is_ok() || refused.is_err_and(|why| why.contains("is not permitted")));
    }

    #[test]
    fn pauses_are_bounded(duration in text(), longest in text(), factor in any::<i64>(), earlier in any::<i64>()) {
        let backoff = Backoff { duration, factor: Some(factor), max_duration: longest };
        let strategy = RetryStrategy { backoff: Some(backoff), ..RetryStrategy::default() };
        if let Ok(due) = retry::due(&strategy, Timestamp::UNIX_EPOCH, earlier) {
            prop_assert!(due >= Timestamp::UNIX_EPOCH);
        }
    }
}
