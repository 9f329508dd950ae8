//! Sync windows: whether a project lets an Application sync now.

use std::sync::LazyLock;

use baton_api::application::Application;
use baton_api::project::SyncWindow;
use baton_grammar::cron::Schedule;
use baton_grammar::duration::Duration;
use baton_grammar::globs::gobwas;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// The time zones that come with the program, so that a bare container knows them too.
static TIME_ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Whether a sync may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict<'a> {
    /// Whether it may.
    pub allowed: bool,
    /// Why the windows could not be judged; nothing is allowed then.
    pub error: Option<String>,
    /// The windows that forbid it: open ones that deny, or closed ones that would allow.
    pub blocking: Vec<&'a SyncWindow>,
    /// When one of the windows opens or closes next, so that the answer may change.
    pub changes_at: Option<Timestamp>,
}

/// Who asks, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asker {
    /// Whether a person asked for the sync.
    pub manual: bool,
    /// When the sync began, where it runs already.
    pub started_at: Option<Timestamp>,
}

/// The windows of a project that hold for an Application.
///
/// A window holds if its applications, its clusters or its namespaces match; with the `and` operator all that it
/// names must.
pub fn matching<'a>(windows: &'a [SyncWindow], application: &Application) -> Vec<&'a SyncWindow> {
    windows.iter().filter(|window| matches(window, application)).collect()
}

fn matches(window: &SyncWindow, application: &Application) -> bool {
    let destination = &application.spec.destination;
    let name = application.metadata.name.as_deref().unwrap_or_default();
    let any = |patterns: &[String], values: &[&str]| {
        patterns.iter().any(|pattern| values.iter().any(|value| glob_matches(pattern, value)))
    };
    let cluster: Vec<&str> = [destination.name.as_str(), destination.server.as_str()]
        .into_iter()
        .filter(|cluster| !cluster.is_empty())
        .collect();
    let selectors = [
        (&window.applications, any(&window.applications, &[name])),
        (&window.clusters, any(&window.clusters, &cluster)),
        (&window.namespaces, any(&window.namespaces, &[&destination.namespace])),
    ];
    let mut named =
        selectors.iter().filter(|(patterns, _)| !patterns.is_empty()).map(|(_, matched)| *matched);
    if window.use_and_operator {
        let mut any = false;
        named.all(|matched| {
            any = true;
            matched
        }) && any
    } else {
        named.any(|matched| matched)
    }
}

fn glob_matches(pattern: &str, value: &str) -> bool {
    pattern == "*" || gobwas::Pattern::new(pattern, &[]).is_ok_and(|pattern| pattern.matches(value))
}

/// Whether the matching windows let a sync run.
///
/// An open window that denies stops it, unless a person asked and all of those allow that, or unless it began while it
/// was allowed and all of those let it overrun. Otherwise an open window that allows lets it run. Otherwise closed
/// windows that would allow stop it, with the same two exceptions.
pub fn judge<'a>(windows: &[&'a SyncWindow], asker: Asker, now: Timestamp) -> Verdict<'a> {
    let states = match states(windows, now) {
        Ok(states) => states,
        Err(error) => {
            let error = format!("invalid sync windows: {error}");
            return Verdict { allowed: false, error: Some(error), blocking: Vec::new(), changes_at: None };
        }
    };
    let changes_at = states.iter().filter_map(|state| state.changes_at).min();
    let blocking = blocking(&states);
    let overruns = || match asker.started_at {
        Some(started) if blocking.iter().all(|window| window.sync_overrun) => {
            let earlier = Asker { started_at: None, ..asker };
            judge(windows, earlier, started).allowed
        }
        _ => false,
    };
    let allowed = blocking.is_empty()
        || (asker.manual && blocking.iter().all(|window| window.manual_sync))
        || overruns();
    Verdict { allowed, error: None, blocking: if allowed { Vec::new() } else { blocking }, changes_at }
}

/// Whether an operation of an Application may go on under its project's windows.
pub fn judge_operation<'a>(
    windows: &'a [SyncWindow],
    application: &Application,
    automated: bool,
    started_at: Option<Timestamp>,
    now: Timestamp,
) -> Verdict<'a> {
    judge(&matching(windows, application), Asker { manual: !automated, started_at }, now)
}

/// One window at one time.
struct State<'a> {
    window: &'a SyncWindow,
    open: bool,
    changes_at: Option<Timestamp>,
}

fn states<'a>(windows: &[&'a SyncWindow], now: Timestamp) -> Result<Vec<State<'a>>, String> {
    windows.iter().map(|window| state(window, now)).collect()
}

/// The windows that stop a sync which nothing exempts.
fn blocking<'a>(states: &[State<'a>]) -> Vec<&'a SyncWindow> {
    let of_kind = |kind: &str, open: bool| -> Vec<&'a SyncWindow> {
        let found = states.iter().filter(|state| state.window.kind == kind && state.open == open);
        found.map(|state| state.window).collect()
    };
    let deny = of_kind("deny", true);
    if !deny.is_empty() {
        return deny;
    }
    if !of_kind("allow", true).is_empty() {
        return Vec::new();
    }
    of_kind("allow", false)
}

/// A window is open by the clock on the wall of its time zone: from a recurrence of its schedule until its duration
/// has passed there, also on days when clocks are changed. One whose schedule never recurs is never open; Argo CD
/// takes it for always open.
fn state(window: &SyncWindow, now: Timestamp) -> Result<State<'_>, String> {
    let schedule = Schedule::parse(&window.schedule)
        .map_err(|error| format!("cannot parse schedule '{}': {error}", window.schedule))?;
    let duration: Duration = window
        .duration
        .parse()
        .map_err(|error| format!("cannot parse duration '{}': {error}", window.duration))?;
    let duration = SignedDuration::from_nanos(duration.nanoseconds());
    let zone = match schedule.time_zone() {
        None => time_zone(&window.time_zone),
        // Of a schedule with a zone of its own that one counts alone; Argo CD adds the window's to it.
        Some("") => TimeZone::UTC,
        Some(name) => TIME_ZONES.get(name).map_err(|_| {
            let fault = format!("provided bad location {name}: unknown time zone {name}");
            format!("cannot parse schedule '{}': {fault}", window.schedule)
        })?,
    };
    let local = zone.to_datetime(now);
    let earliest = local.saturating_sub(duration);
    let recurrence = schedule.next(earliest);
    let open = recurrence.is_some_and(|recurrence| recurrence < local);
    let change = match recurrence {
        Some(recurrence) if open => Some(recurrence.saturating_add(duration)),
        // It is open after its first instant, not in it.
        Some(recurrence) => Some(recurrence.saturating_add(SignedDuration::from_millis(1))),
        None => None,
    };
    let changes_at = change.and_then(|change| zone.to_ambiguous_timestamp(change).compatible().ok());
    Ok(State { window, open, changes_at: changes_at.filter(|change| *change > now) })
}

/// A zone that is not known counts as UTC, as in Argo CD.
fn time_zone(name: &str) -> TimeZone {
    match name {
        "" => TimeZone::UTC,
        name => TIME_ZONES.get(name).unwrap_or(TimeZone::UTC),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn window(value: Value) -> SyncWindow {
        serde_json::from_value(value).expect("a window")
    }

    fn nightly(kind: &str) -> Value {
        json!({"kind": kind, "schedule": "0 22 * * *", "duration": "8h", "applications": ["*"]})
    }

    fn with(mut base: Value, more: Value) -> Value {
        for (field, value) in more.as_object().expect("fields") {
            base[field] = value.clone();
        }
        base
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect(text)
    }

    const NIGHT: &str = "2026-06-10T23:00:00Z";
    const DAY: &str = "2026-06-10T12:00:00Z";

    fn allowed(windows: &[Value], asker: Asker, now: &str) -> bool {
        let windows: Vec<SyncWindow> = windows.iter().cloned().map(window).collect();
        judge(&windows.iter().collect::<Vec<_>>(), asker, at(now)).allowed
    }

    const MANUAL: Asker = Asker { manual: true, started_at: None };
    const AUTOMATIC: Asker = Asker { manual: false, started_at: None };

    #[test]
    fn windows_deny_and_allow() {
        let (deny, allow) = (nightly("deny"), nightly("allow"));
        let deny_manual = with(deny.clone(), json!({"manualSync": true}));
        let allow_manual = with(allow.clone(), json!({"manualSync": true}));
        for (name, windows, asker, night, day) in [
            ("none", vec![], AUTOMATIC, true, true),
            ("deny", vec![deny.clone()], AUTOMATIC, false, true),
            ("deny, manual", vec![deny.clone()], MANUAL, false, true),
            ("deny with manualSync", vec![deny_manual.clone()], AUTOMATIC, false, true),
            ("deny with manualSync, manual", vec![deny_manual.clone()], MANUAL, true, true),
            ("one deny without manualSync", vec![deny_manual, deny.clone()], MANUAL, false, true),
            ("allow", vec![allow.clone()], AUTOMATIC, true, false),
            ("allow, manual", vec![allow.clone()], MANUAL, true, false),
            ("allow with manualSync, manual", vec![allow_manual.clone()], MANUAL, true, true),
            ("one allow without manualSync", vec![allow_manual, allow.clone()], MANUAL, true, false),
            ("deny beats allow", vec![allow, deny], AUTOMATIC, false, false),
        ] {
            assert_eq!(allowed(&windows, asker, NIGHT), night, "{name} at night");
            assert_eq!(allowed(&windows, asker, DAY), day, "{name} by day");
        }
    }

    #[test]
    fn a_window_of_another_kind_says_nothing() {
        assert!(allowed(&[nightly("maybe")], AUTOMATIC, NIGHT));
    }

    #[test]
    fn a_sync_that_began_while_allowed_may_overrun() {
        let overrun = json!({"syncOverrun": true});
        let began = |text| Asker { manual: false, started_at: Some(at(text)) };
        let before = began("2026-06-10T21:59:00Z");
        let deny = with(nightly("deny"), overrun.clone());
        assert!(allowed(std::slice::from_ref(&deny), before, NIGHT));
        assert!(!allowed(std::slice::from_ref(&deny), began("2026-06-10T22:30:00Z"), NIGHT));
        assert!(!allowed(&[deny, nightly("deny")], before, NIGHT));
        let allow = with(nightly("allow"), overrun);
        assert!(allowed(std::slice::from_ref(&allow), began("2026-06-10T05:59:00Z"), DAY));
        assert!(!allowed(std::slice::from_ref(&allow), began("2026-06-10T07:00:00Z"), DAY));
        assert!(!allowed(&[nightly("allow")], began("2026-06-10T05:59:00Z"), DAY));
    }

    #[test]
    fn the_edges_of_a_window_are_outside() {
        for (now, expected) in [
            ("2026-06-10T22:00:00Z", true),
            ("2026-06-10T22:00:00.001Z", false),
            ("2026-06-11T05:59:59.999Z", false),
            ("2026-06-11T06:00:00Z", true),
        ] {
            assert_eq!(allowed(&[nightly("deny")], AUTOMATIC, now), expected, "{now}");
        }
    }

    #[test]
    fn a_window_is_open_by_the_clock_of_its_zone() {
        let zoned = |zone: &str| with(nightly("deny"), json!({"timeZone": zone}));
        for (zone, now, expected) in [
            ("Europe/Berlin", "2026-06-10T20:30:00Z", false),
            ("Europe/Berlin", "2026-06-10T19:30:00Z", true),
            ("Europe/Berlin", "2026-01-10T20:30:00Z", true),
            ("America/New_York", "2026-06-11T02:30:00Z", false),
            ("Nowhere/Land", "2026-06-10T20:30:00Z", true),
            ("", "2026-06-10T22:30:00Z", false),
            // The night of 29 March has seven hours in Berlin; at six by the clock the window is over.
            ("Europe/Berlin", "2026-03-29T03:59:00Z", false),
            ("Europe/Berlin", "2026-03-29T04:01:00Z", true),
        ] {
            assert_eq!(allowed(&[zoned(zone)], AUTOMATIC, now), expected, "{zone} at {now}");
        }
    }

    #[test]
    fn a_zone_inside_the_schedule_counts_alone() {
        let zoned = json!({"schedule": "TZ=Asia/Tokyo 0 22 * * *", "timeZone": "Europe/Berlin"});
        let deny = with(nightly("deny"), zoned);
        assert!(!allowed(std::slice::from_ref(&deny), AUTOMATIC, "2026-06-10T13:30:00Z"));
        assert!(allowed(&[deny], AUTOMATIC, "2026-06-10T12:30:00Z"));
    }

    #[test]
    fn what_cannot_be_read_blocks_with_an_error() {
        for (field, value, expected) in [
            (
                "schedule",
                "@daily",
                "invalid sync windows: cannot parse schedule '@daily': parser does not accept descriptors: @daily",
            ),
            (
                "schedule",
                "TZ=Nowhere 0 22 * * *",
                "invalid sync windows: cannot parse schedule 'TZ=Nowhere 0 22 * * *': provided bad location Nowhere: \
                 unknown time zone Nowhere",
            ),
            (
                "duration",
                "8",
                "invalid sync windows: cannot parse duration '8': time: missing unit in duration \"8\"",
            ),
        ] {
            let bad = window(with(nightly("allow"), json!({field: value})));
            let verdict = judge(&[&bad], MANUAL, at(NIGHT));
            assert_eq!((verdict.allowed, verdict.error.as_deref()), (false, Some(expected)));
        }
    }

    #[test]
    fn a_window_that_never_opens_is_never_open() {
        let never = with(nightly("deny"), json!({"schedule": "0 0 30 2 *"}));
        assert!(allowed(&[never], AUTOMATIC, NIGHT));
        let negative = with(nightly("deny"), json!({"duration": "-1h"}));
        assert!(allowed(&[negative], AUTOMATIC, NIGHT));
    }

    #[test]
    fn the_verdict_says_what_blocks_and_until_when() {
        let deny = window(nightly("deny"));
        let verdict = judge(&[&deny], AUTOMATIC, at(NIGHT));
        assert_eq!(verdict.blocking, [&deny]);
        assert_eq!(verdict.changes_at, Some(at("2026-06-11T06:00:00Z")));
        let verdict = judge(&[&deny], AUTOMATIC, at(DAY));
        assert_eq!(verdict.blocking, Vec::<&SyncWindow>::new());
        assert_eq!(verdict.changes_at, Some(at("2026-06-10T22:00:00.001Z")));
    }

    #[test]
    fn a_window_holds_for_what_it_names() {
        let app: Application = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"destination": {"server": "https://c", "namespace": "shop"}},
        }))
        .expect("an Application");
        for (selectors, expected) in [
            (json!({}), false),
            (json!({"andOperator": true}), false),
            (json!({"applications": ["w*"]}), true),
            (json!({"applications": ["other"]}), false),
            (json!({"clusters": ["https://*"]}), true),
            (json!({"clusters": ["c"]}), false),
            (json!({"namespaces": ["shop"]}), true),
            (json!({"applications": ["other"], "namespaces": ["shop"]}), true),
            (json!({"applications": ["other"], "namespaces": ["shop"], "andOperator": true}), false),
            (json!({"applications": ["web"], "namespaces": ["shop"], "andOperator": true}), true),
            (json!({"applications": ["web"], "clusters": ["x"], "andOperator": true}), false),
            (json!({"applications": ["web"], "andOperator": true}), true),
            (json!({"applications": ["[a"]}), false),
        ] {
            let windows = [window(selectors.clone())];
            assert_eq!(!matching(&windows, &app).is_empty(), expected, "{selectors}");
        }
    }
}
