//! When generators want to look again.

use std::time::Duration;

use baton_api::generators::{Generator, NestedGenerator};

use crate::kind::{self, Kind};
use crate::settings::Settings;

/// What asks a host or a plugin looks this often when it does not say.
const REMOTE: Duration = Duration::from_secs(30 * 60);

/// The shortest time after which any of the generators wants to look again.
pub(crate) fn after<'a>(
    generators: impl IntoIterator<Item = &'a Generator>,
    settings: &Settings,
) -> Option<Duration> {
    let mut shortest = None;
    for kind in generators.into_iter().flat_map(Kind::all) {
        let wanted = match kind {
            Kind::List(_) | Kind::Clusters(_) => None,
            Kind::Git(git) => interval(git.requeue_after_seconds, settings.default_requeue),
            Kind::ClusterDecisionResource(decision) => {
                interval(decision.requeue_after_seconds, settings.default_requeue)
            }
            Kind::ScmProvider(scm) => interval(scm.requeue_after_seconds, REMOTE),
            Kind::PullRequest(pull_request) => interval(pull_request.requeue_after_seconds, REMOTE),
            Kind::Plugin(plugin) => interval(plugin.requeue_after_seconds, REMOTE),
            Kind::Matrix(matrix) => nested(&matrix.generators, settings),
            Kind::Merge(merge) => nested(&merge.generators, settings),
        };
        shortest = [shortest, wanted].into_iter().flatten().min();
    }
    shortest
}

/// A child that cannot be read wants nothing; generating it fails anyway.
fn nested(generators: &[NestedGenerator], settings: &Settings) -> Option<Duration> {
    let entries: Vec<Box<Generator>> =
        generators.iter().filter_map(|child| kind::entry(child).ok()).collect();
    after(entries.iter().map(|entry| &**entry), settings)
}

/// Zero is never; so is less than zero.
fn interval(seconds: Option<i64>, default: Duration) -> Option<Duration> {
    let wanted = match seconds {
        None => default,
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
    };
    (!wanted.is_zero()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shortest_interval_wins_and_zero_is_never() {
        let git =
            |seconds: i64| json!({"git": {"repoURL": "x", "revision": "y", "requeueAfterSeconds": seconds}});
        for (generators, expected) in [
            (json!([]), None),
            (json!([{"list": {}}, {"clusters": {}}]), None),
            (json!([{"git": {"repoURL": "x", "revision": "y"}}]), Some(180)),
            (json!([{"clusterDecisionResource": {"configMapRef": "x"}}]), Some(180)),
            (json!([{"pullRequest": {}}]), Some(1800)),
            (json!([{"scmProvider": {}}, {"plugin": {"configMapRef": {"name": "x"}}}]), Some(1800)),
            (json!([git(0)]), None),
            (json!([git(-5)]), None),
            (json!([git(60), git(5), git(0)]), Some(5)),
            (json!([{"matrix": {"generators": [{"clusters": {}}, git(7)]}}]), Some(7)),
            (
                json!([{"merge": {"mergeKeys": [], "generators": [{"matrix": {"generators": [git(9), {"list": {}}]}}, git(11)]}}]),
                Some(9),
            ),
            (json!([{"matrix": {"generators": [{"merge": 5}, git(3)]}}]), Some(3)),
        ] {
            let generators: Vec<Generator> = serde_json::from_value(generators).expect("generators");
            let after = after(&generators, &Settings::default());
            assert_eq!(after, expected.map(Duration::from_secs), "{generators:?}");
        }
    }
}
