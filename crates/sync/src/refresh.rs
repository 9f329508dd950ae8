//! When an Application is compared anew, and how thoroughly.

use std::time::Duration;

use baton_api::application::Application;
use baton_api::names::application::{REFRESH, REFRESH_TIMESTAMP, SKIP_RECONCILE};
use baton_api::names::baton::COMPARED;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::normalize::{has_several_sources, sources};

/// How thorough a comparison is. Requests merge to the most thorough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only the tree of resources is looked at.
    Tree,
    /// Compared with the revision of the last comparison.
    Recent,
    /// Compared with the revision the source resolves to, which may be known from a moment ago.
    Latest,
    /// Compared with the revision that the repository is asked for now.
    Resolve,
}

/// How often Applications are compared without a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshSettings {
    /// Time between comparisons; zero is never.
    pub soft: Duration,
    /// Time between comparisons that render anew; zero is never.
    pub hard: Duration,
    /// Spreads Applications over a time after they are due.
    pub jitter: Duration,
}

impl Default for RefreshSettings {
    fn default() -> RefreshSettings {
        RefreshSettings {
            soft: Duration::from_secs(120),
            hard: Duration::ZERO,
            jitter: Duration::from_secs(60),
        }
    }
}

/// A comparison that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// How thorough.
    pub level: Level,
    /// Whether manifests are rendered anew although nothing they depend on changed.
    pub hard: bool,
    /// Why, for the log.
    pub reason: String,
}

/// Whether the controller is to leave the Application alone, even while it is being deleted.
pub fn is_skipped(application: &Application) -> bool {
    // The words Go's ParseBool takes for true.
    annotation(application, SKIP_RECONCILE)
        .is_some_and(|value| matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True"))
}

/// Whether an Application needs a comparison; `requested` is what the controller asked of itself.
pub fn needed(
    application: &Application,
    requested: Option<Level>,
    settings: &RefreshSettings,
    now: Timestamp,
) -> Option<Refresh> {
    let own = own_reason(application, settings, now);
    match (own, requested) {
        (Some(own), Some(level)) => Some(Refresh { level: own.level.max(level), ..own }),
        (Some(own), None) => Some(own),
        (None, Some(level)) => {
            Some(Refresh { level, hard: false, reason: "controller refresh requested".to_owned() })
        }
        (None, None) => None,
    }
}

fn own_reason(application: &Application, settings: &RefreshSettings, now: Timestamp) -> Option<Refresh> {
    let because =
        |level: Level, reason: &str| Some(Refresh { level, hard: false, reason: reason.to_owned() });
    let (spec, status) = (&application.spec, &application.status);
    let compared = &status.sync.compared_to;
    if let Some(value) = annotation(application, REFRESH) {
        let hard = value == "hard";
        let kind = if hard { "hard" } else { "normal" };
        return Some(Refresh { level: Level::Resolve, hard, reason: format!("{kind} refresh requested") });
    }
    if has_several_sources(spec) {
        if spec.sources != compared.sources {
            return because(Level::Resolve, "at least one of the spec.sources differs");
        }
    } else if sources(spec).first().cloned().unwrap_or_default() != compared.source {
        return because(Level::Resolve, "spec.source differs");
    }
    let passed = |period: Duration| expires(application, settings, period).is_some_and(|due| due <= now);
    match &status.reconciled_at {
        None => {
            let hard = !settings.hard.is_zero();
            return Some(Refresh { level: Level::Latest, hard, reason: "never compared".to_owned() });
        }
        Some(_) if passed(settings.hard) => {
            let reason = "comparison expired, requesting hard refresh".to_owned();
            return Some(Refresh { level: Level::Latest, hard: true, reason });
        }
        Some(_) if passed(settings.soft) => {
            return because(Level::Latest, "comparison expired, requesting refresh");
        }
        Some(_) => {}
    }
    if spec.destination != compared.destination {
        return because(Level::Latest, "spec.destination differs");
    }
    if namespace_metadata_changed(application) {
        return because(Level::Latest, "spec.syncPolicy.managedNamespaceMetadata differs");
    }
    if spec.ignore_differences != compared.ignore_differences {
        return because(Level::Latest, "spec.ignoreDifferences differs");
    }
    None
}

/// Whether the namespace is to get other metadata than the last sync gave it.
pub fn namespace_metadata_changed(application: &Application) -> bool {
    let policy = application.spec.sync_policy.as_ref();
    let wanted = policy.and_then(|policy| policy.managed_namespace_metadata.as_ref());
    let last = application.status.operation_state.as_ref();
    match (wanted, last.and_then(|last| last.sync_result.as_ref())) {
        (Some(wanted), Some(result)) => result.managed_namespace_metadata.as_ref() != Some(wanted),
        _ => false,
    }
}

/// When an Application is due for a comparison without any other reason; none where it never is.
///
/// An Application is due at the same moment after each comparison, another one for each Application.
pub fn due(application: &Application, settings: &RefreshSettings) -> Option<Timestamp> {
    [settings.soft, settings.hard]
        .into_iter()
        .filter_map(|period| expires(application, settings, period))
        .min()
}

/// When an Application is due to be rendered anew, by when that was done last; none where it never is.
///
/// [`needed`] goes by the last comparison of any kind, as Argo CD does, so that there a hard period longer than the soft
/// one never passes.
pub fn hard_due(
    application: &Application,
    last_hard: Option<Timestamp>,
    settings: &RefreshSettings,
) -> Option<Timestamp> {
    let last = last_hard.or(application.status.reconciled_at.as_ref().map(|time| time.0))?;
    passes(application, last, settings, settings.hard)
}

fn expires(application: &Application, settings: &RefreshSettings, period: Duration) -> Option<Timestamp> {
    passes(application, application.status.reconciled_at.as_ref()?.0, settings, period)
}

/// When a period after a comparison has passed for this Application; none where there is no period.
fn passes(
    application: &Application,
    compared: Timestamp,
    settings: &RefreshSettings,
    period: Duration,
) -> Option<Timestamp> {
    if period.is_zero() {
        return None;
    }
    let wait = period.saturating_add(share(application, settings.jitter));
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    Some(compared.saturating_add(wait).unwrap_or(Timestamp::MAX))
}

/// The Application's own share of the jitter.
fn share(application: &Application, jitter: Duration) -> Duration {
    let metadata = &application.metadata;
    let identity = [&metadata.namespace, &metadata.name, &metadata.uid];
    // FNV-1a: the same on every machine and in every version.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in identity.into_iter().flatten().flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The upper bits are the better mixed ones.
    jitter.mul_f64((hash >> 11) as f64 / (1u64 << 53) as f64)
}

/// Whether an error of the source is passed over for now, the status left as it is: for a while after it was seen first,
/// unless somebody asked for the newest revision.
pub fn passes_over(first_seen: Option<Timestamp>, level: Level, grace: Duration, now: Timestamp) -> bool {
    let lasted = first_seen.map_or(SignedDuration::ZERO, |first| now.duration_since(first));
    level < Level::Resolve && lasted <= SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX)
}

/// The JSON Patch that takes a served refresh request off an Application.
///
/// `read` is the Application the comparison was made of, `current` the newest version known, after the status that
/// came of it was written. A request that was made since stays, for a comparison of its own: `None`. The patch tests
/// what it removes; where the API refuses it (422), read the Application and ask again.
///
/// # Assumptions
/// Called only after the status was written, or needed no writing: who asked waits for both annotations to be gone and
/// then trusts the status.
pub fn served(read: &Application, current: &Application) -> Option<Value> {
    let request = |application: &Application| {
        let of = |name| annotation(application, name).map(str::to_owned);
        (of(REFRESH), of(REFRESH_TIMESTAMP))
    };
    let (refresh, nonce) = request(read);
    if (refresh.is_none() && nonce.is_none()) || request(current) != (refresh.clone(), nonce.clone()) {
        return None;
    }
    let mut patch = Vec::new();
    if nonce.is_none() {
        // Without a nonce only the version tells whether the same request was made once more.
        let version = current.metadata.resource_version.clone().unwrap_or_default();
        patch.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    }
    let path = |name: &str| format!("/metadata/annotations/{}", name.replace('/', "~1"));
    // Others take requests away also where the status was not written: who asked wants to know that it was.
    let answered = nonce.as_ref().map(|nonce| json!({"op": "add", "path": path(COMPARED), "value": nonce}));
    for (name, value) in [(REFRESH_TIMESTAMP, nonce), (REFRESH, refresh)] {
        if let Some(value) = value {
            let path = path(name);
            patch.push(json!({"op": "test", "path": path, "value": value}));
            patch.push(json!({"op": "remove", "path": path}));
        }
    }
    patch.extend(answered);
    Some(Value::Array(patch))
}

fn annotation<'a>(application: &'a Application, name: &str) -> Option<&'a str> {
    application.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().expect("a time")
    }

    /// An Application that was compared so many seconds ago, changed by `change`.
    fn compared(ago: i64, change: Value) -> Application {
        let at = now().saturating_sub(SignedDuration::from_secs(ago)).expect("a time");
        let source = json!({"repoURL": "r", "path": "p"});
        let mut app = json!({
            "metadata": {"name": "web", "namespace": "argocd", "annotations": {}},
            "spec": {"project": "default", "destination": {"name": "c"}, "source": source},
            "status": {"reconciledAt": at.to_string(),
                "sync": {"status": "Synced", "comparedTo": {"destination": {"name": "c"}, "source": source}}},
        });
        merge(&mut app, &change);
        serde_json::from_value(app).expect("an Application")
    }

    fn merge(into: &mut Value, change: &Value) {
        match (into.as_object_mut(), change.as_object()) {
            (Some(fields), Some(changes)) => {
                for (name, change) in changes {
                    merge(fields.entry(name).or_insert(Value::Null), change);
                }
            }
            _ => *into = change.clone(),
        }
    }

    fn no_jitter() -> RefreshSettings {
        RefreshSettings { jitter: Duration::ZERO, ..RefreshSettings::default() }
    }

    #[test]
    fn an_application_is_compared_for_a_reason() {
        let metadata = json!({"spec": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"a": "b"}}}},
            "status": {"operationState": {"syncResult": {"revision": "x"}}}});
        for (ago, change, expected) in [
            (10, json!({}), None),
            (119, json!({}), None),
            (120, json!({}), Some((Level::Latest, false, "comparison expired, requesting refresh"))),
            (
                10,
                json!({"metadata": {"annotations": {REFRESH: "normal"}}}),
                Some((Level::Resolve, false, "normal refresh requested")),
            ),
            (
                10,
                json!({"metadata": {"annotations": {REFRESH: ""}}}),
                Some((Level::Resolve, false, "normal refresh requested")),
            ),
            (
                10,
                json!({"metadata": {"annotations": {REFRESH: "hard"}}}),
                Some((Level::Resolve, true, "hard refresh requested")),
            ),
            (10, json!({"metadata": {"annotations": {REFRESH_TIMESTAMP: "x"}}}), None),
            (
                10,
                json!({"spec": {"source": {"path": "q"}}}),
                Some((Level::Resolve, false, "spec.source differs")),
            ),
            (
                10,
                json!({"spec": {"sources": [{"repoURL": "r"}]}}),
                Some((Level::Resolve, false, "at least one of the spec.sources differs")),
            ),
            (
                10,
                json!({"spec": {"destination": {"namespace": "n"}}}),
                Some((Level::Latest, false, "spec.destination differs")),
            ),
            (
                10,
                json!({"spec": {"ignoreDifferences": [{"kind": "x"}]}}),
                Some((Level::Latest, false, "spec.ignoreDifferences differs")),
            ),
            (10, json!({"spec": {"syncPolicy": {"automated": {}}}}), None),
            (10, metadata, Some((Level::Latest, false, "spec.syncPolicy.managedNamespaceMetadata differs"))),
            (10, json!({"status": {"reconciledAt": null}}), Some((Level::Latest, false, "never compared"))),
        ] {
            let refresh = needed(&compared(ago, change.clone()), None, &no_jitter(), now());
            let expected = expected.map(|(level, hard, reason): (_, _, &str)| Refresh {
                level,
                hard,
                reason: reason.to_owned(),
            });
            assert_eq!(refresh, expected, "{change} after {ago} seconds");
        }
    }

    #[test]
    fn requests_merge_to_the_most_thorough() {
        let settings = no_jitter();
        let level =
            |app: &Application, requested| needed(app, requested, &settings, now()).map(|need| need.level);
        let fresh = compared(1, json!({}));
        assert_eq!(level(&fresh, Some(Level::Tree)), Some(Level::Tree));
        assert_eq!(level(&fresh, Some(Level::Recent)), Some(Level::Recent));
        let expired = compared(500, json!({}));
        assert_eq!(level(&expired, Some(Level::Tree)), Some(Level::Latest));
        assert_eq!(level(&expired, Some(Level::Resolve)), Some(Level::Resolve));
    }

    #[test]
    fn periods_may_be_off_and_hard() {
        let app = compared(100_000, json!({}));
        let off = RefreshSettings { soft: Duration::ZERO, ..no_jitter() };
        assert_eq!(needed(&app, None, &off, now()), None);
        assert_eq!(due(&app, &off), None);
        let hard = RefreshSettings { hard: Duration::from_secs(3600), ..off };
        assert!(needed(&app, None, &hard, now()).is_some_and(|refresh| refresh.hard));
        let never = compared(0, json!({"status": {"reconciledAt": null}}));
        assert!(needed(&never, None, &hard, now()).is_some_and(|refresh| refresh.hard));
        assert_eq!(due(&never, &hard), None);
    }

    #[test]
    fn a_hard_comparison_is_due_whatever_softer_ones_were_made() {
        let settings = RefreshSettings { hard: Duration::from_secs(3600), ..no_jitter() };
        let app = compared(10, json!({}));
        let ago = |seconds| now().saturating_sub(SignedDuration::from_secs(seconds)).ok();
        assert_eq!(hard_due(&app, ago(4000), &settings), ago(400));
        assert_eq!(hard_due(&app, None, &settings), ago(10 - 3600));
        assert_eq!(hard_due(&app, ago(4000), &no_jitter()), None);
    }

    #[test]
    fn each_application_has_its_own_moment_after_it_is_due() {
        let settings = RefreshSettings::default();
        let wait = |name: &str| {
            let app = compared(0, json!({"metadata": {"name": name}}));
            due(&app, &settings).expect("a time").duration_since(now()).as_secs()
        };
        let waits: Vec<i64> = (0..200).map(|number| wait(&format!("app-{number}"))).collect();
        assert!(waits.iter().all(|wait| (120..180).contains(wait)));
        assert!(waits.iter().any(|wait| *wait < 135) && waits.iter().any(|wait| *wait > 165));
        assert_eq!(wait("app-1"), wait("app-1"));
        let app = compared(0, json!({}));
        let due = due(&app, &settings).expect("a time");
        assert!(needed(&app, None, &settings, due).is_some());
        let before = due.saturating_sub(SignedDuration::from_secs(1)).expect("a time");
        assert_eq!(needed(&app, None, &settings, before), None);
    }

    #[test]
    fn a_served_request_is_removed_by_a_test_on_what_was_read() {
        let with = |annotations: Value, version: &str| {
            compared(0, json!({"metadata": {"annotations": annotations, "resourceVersion": version}}))
        };
        let both = json!({REFRESH: "hard", REFRESH_TIMESTAMP: "1"});
        let read = with(both.clone(), "5");
        let nonce = "/metadata/annotations/argocd.argoproj.io~1refresh-timestamp";
        let refresh = "/metadata/annotations/argocd.argoproj.io~1refresh";
        let patch = served(&read, &with(both, "6"));
        assert_eq!(
            patch,
            Some(json!([
                {"op": "test", "path": nonce, "value": "1"},
                {"op": "remove", "path": nonce},
                {"op": "test", "path": refresh, "value": "hard"},
                {"op": "remove", "path": refresh},
                {"op": "add", "path": "/metadata/annotations/baton.dev~1compared", "value": "1"},
            ]))
        );
        let newer = with(json!({REFRESH: "hard", REFRESH_TIMESTAMP: "2"}), "6");
        assert_eq!(served(&read, &newer), None);
        assert_eq!(served(&with(json!({}), "5"), &newer), None);
        let bare = with(json!({REFRESH: "normal"}), "5");
        assert_eq!(served(&bare, &newer), None);
        let patch = served(&bare, &with(json!({REFRESH: "normal"}), "6")).expect("a patch");
        assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "6"}));
        // What is left of a request without its nonce's companion goes as well.
        let left = with(json!({REFRESH_TIMESTAMP: "1"}), "5");
        assert_eq!(served(&left, &left).and_then(|patch| patch.as_array().map(Vec::len)), Some(3));
    }

    #[test]
    fn an_error_of_the_source_is_passed_over_for_a_while() {
        let grace = Duration::from_secs(180);
        let ago = |seconds| now().saturating_sub(SignedDuration::from_secs(seconds)).ok();
        assert!(passes_over(None, Level::Latest, grace, now()));
        assert!(passes_over(ago(180), Level::Recent, grace, now()));
        assert!(!passes_over(ago(181), Level::Latest, grace, now()));
        assert!(!passes_over(None, Level::Resolve, grace, now()));
    }

    #[test]
    fn an_application_may_ask_to_be_left_alone() {
        for (value, expected) in [("true", true), ("1", true), ("T", true), ("yes", false), ("false", false)]
        {
            let app = compared(0, json!({"metadata": {"annotations": {SKIP_RECONCILE: value}}}));
            assert_eq!(is_skipped(&app), expected, "{value}");
        }
    }
}
