use super::*;
use baton_api::names::application as application_names;
use serde_json::{Value, json};

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

const START: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    at(START)
}

fn application(change: Value) -> Application {
    let mut app = json!({
        "metadata": {"name": "web"},
        "spec": {"project": "default", "destination": {"name": "c"}, "source": {"repoURL": "r", "path": "p"}},
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

/// An Application whose operation runs, as the first step makes it, changed by `change`.
fn running(operation: Value, change: Value) -> Application {
    let mut app = json!({"operation": operation, "status": {"operationState": {
        "operation": operation, "phase": "Running", "startedAt": START,
        "syncResult": {"revision": "abc", "source": {"repoURL": "r", "path": "p"}}}}});
    merge(&mut app, &change);
    application(app)
}

fn state_of(app: &Application) -> OperationState {
    app.status.operation_state.clone().expect("a state")
}

fn run(step: Step) -> (OperationState, bool) {
    match step {
        Step::Run { state, changed } => (*state, changed),
        other => panic!("a pass, not {other:?}"),
    }
}

fn timeout(seconds: u64) -> OperationSettings {
    OperationSettings { timeout: Some(Duration::from_secs(seconds)), ..OperationSettings::default() }
}

fn first_step(app: &Application, now: Timestamp) -> Step {
    step(app, &OperationSettings::default(), now)
}

#[test]
fn without_a_request_nothing_happens() {
    assert_eq!(first_step(&application(json!({})), now()), Step::None);
    let done = json!({"status": {"operationState": {"phase": "Succeeded"}}});
    assert_eq!(first_step(&application(done), now()), Step::None);
}

#[test]
fn a_request_begins_to_run() {
    let operation = json!({"sync": {"revision": "abc"}});
    let app = application(json!({"operation": operation}));
    let (state, changed) = run(first_step(&app, now()));
    assert!(changed);
    assert_eq!(state.phase, OperationPhase::Running);
    assert_eq!(state.started_at, Some(Time(now())));
    assert_eq!(Some(&state.operation), app.operation.as_ref());
    assert_eq!((state.sync_result, state.finished_at), (None, None));
}

#[test]
fn no_two_operations_begin_in_the_same_second() {
    let app = application(json!({"operation": {"sync": {}}, "status": {
        "operationState": {"phase": "Succeeded", "startedAt": START},
        "history": [{"id": 0, "deployedAt": null, "deployStartedAt": "2026-01-01T12:00:03Z"}]}}));
    let began = |text| run(first_step(&app, at(text))).0.started_at.expect("a time").0;
    assert_eq!(began("2026-01-01T12:00:00.5Z"), at("2026-01-01T12:00:04Z"));
    assert_eq!(began("2026-01-01T12:00:09.5Z"), at("2026-01-01T12:00:09Z"));
    // A last start far in the future was another clock's.
    assert_eq!(began("2025-01-01T00:00:00Z"), at("2025-01-01T00:00:00Z"));
}

#[test]
fn no_operation_begins_in_a_second_in_which_something_was_approved_for_another() {
    // The one before was approved and ended in the second in which this one is asked for.
    let ended = json!({"phase": "Succeeded", "startedAt": START, "finishedAt": "2026-01-01T12:00:07Z"});
    for (approved, annotated) in [("2026-01-01T12:00:07Z", false), ("2026-01-01T12:00:08Z", true)] {
        let mut app = application(json!({"operation": {"sync": {}}, "status": {"operationState": ended}}));
        if annotated {
            let annotation = (application_names::DELETION_APPROVED.to_owned(), approved.to_owned());
            app.metadata.annotations = Some([annotation].into());
        }
        let now = at("2026-01-01T12:00:07.9Z");
        let (state, _) = run(first_step(&app, now));
        let began = state.started_at.expect("a time").0;
        assert!(began > at(approved), "{approved} would hold for what began at {began}");
        assert!(began <= at("2026-01-01T12:00:09Z"), "it is put off by no more than it takes: {began}");
    }
}

#[test]
fn a_time_that_lies_far_ahead_puts_nothing_off() {
    let annotation = (application_names::DELETION_APPROVED.to_owned(), "2026-01-01T12:00:30Z".to_owned());
    let mut app = application(json!({"operation": {"sync": {}}}));
    app.metadata.annotations = Some([annotation].into());
    assert_eq!(run(first_step(&app, at(START))).0.started_at, Some(Time(at(START))));
}

#[test]
fn an_operation_that_began_in_a_second_of_its_own_does_not_end_before_it() {
    let app = application(json!({"operation": {}, "status": {
        "operationState": {"phase": "Succeeded", "startedAt": START}}}));
    let Step::End(write) = first_step(&app, at(START)) else { panic!("no operation to run") };
    assert!(write.state.started_at > Some(Time(at(START))));
    assert_eq!(write.state.finished_at, write.state.started_at);
}

#[test]
fn a_request_that_cannot_run_ends_with_an_error() {
    let deleting = json!({"deletionTimestamp": START});
    for (change, expected) in [
        (json!({"operation": {}}), "Invalid operation request: no operation specified"),
        (
            json!({"operation": {"sync": {}}, "metadata": deleting}),
            "Invalid operation request: the application is being deleted",
        ),
    ] {
        let Step::End(write) = first_step(&application(change), now()) else {
            panic!("no end");
        };
        assert_eq!((write.state.phase, write.state.message.as_str()), (OperationPhase::Error, expected));
        assert!(write.completion.is_some_and(|completion| completion.clears_operation));
    }
}

#[test]
fn a_running_operation_goes_on_as_it_is() {
    let app = running(json!({"sync": {}}), json!({}));
    assert_eq!(run(first_step(&app, now())), (state_of(&app), false));
    // A request put in its place meanwhile waits for its end.
    let replaced = running(json!({"sync": {}}), json!({"operation": {"sync": {"revision": "other"}}}));
    assert_eq!(run(first_step(&replaced, now())).0.operation, state_of(&app).operation);
}

#[test]
fn an_operation_whose_request_was_removed_is_terminated() {
    let app = running(json!({"sync": {}}), json!({"operation": null}));
    let (state, changed) = run(first_step(&app, now()));
    assert!(changed);
    assert_eq!(state.phase, OperationPhase::Terminating);
    let write = ended(&app, state, OperationPhase::Failed, "Operation terminated", now());
    assert_eq!(write.state.message, "Operation terminated, triggered by the removal of .operation");
    assert!(!write.completion.expect("an end").clears_operation);
}

#[test]
fn an_operation_that_runs_too_long_is_terminated() {
    let app = running(json!({"sync": {}, "retry": {"limit": 3}}), json!({}));
    let early = step(&app, &timeout(60), at("2026-01-01T12:00:59Z"));
    assert!(!run(early).1);
    let (state, changed) = run(step(&app, &timeout(60), at("2026-01-01T12:01:00Z")));
    assert!(changed);
    assert_eq!((state.phase.clone(), state.message.as_str()), (OperationPhase::Terminating, TIMED_OUT));
    let going = goes_on(state.clone(), "waiting", &timeout(60), now());
    assert_eq!(going.state.message, TIMED_OUT);
    assert_eq!(going.look_again, Some(at("2026-01-01T12:00:30Z")));
    let write = ended(&app, state, OperationPhase::Failed, "Operation terminated", now());
    assert_eq!(write.state.message, "Operation terminated, triggered by controller sync timeout");
    assert_eq!(write.state.phase, OperationPhase::Failed);
}

#[test]
fn a_failed_operation_is_tried_again_when_it_says() {
    let app = running(json!({"sync": {"revision": "abc"}, "retry": {"limit": 2}}), json!({}));
    let failed_at = at("2026-01-01T12:00:00.9Z");
    let write = ended(&app, state_of(&app), OperationPhase::Failed, "it broke", failed_at);
    assert_eq!(write.completion, None);
    assert_eq!((write.state.phase.clone(), write.state.retry_count), (OperationPhase::Running, 1));
    assert_eq!(write.state.message, "it broke. Retrying attempt #1 at 12:00PM.");
    assert_eq!(write.look_again, Some(at("2026-01-01T12:00:05Z")));

    let mut waiting = app.clone();
    write.apply(&mut waiting);
    let due = at("2026-01-01T12:00:05Z");
    assert_eq!(first_step(&waiting, at("2026-01-01T12:00:04.9Z")), Step::Wait { until: due });
    let hurried = at("2026-01-01T12:00:03Z");
    assert_eq!(step(&waiting, &timeout(3), now()), Step::Wait { until: hurried });
    let (state, changed) = run(first_step(&waiting, due));
    assert!(changed);
    assert_eq!(state.message, "Retrying operation. Attempt #1");
    assert_eq!((state.finished_at.clone(), state.sync_result.clone()), (None, None));
    assert_eq!(state.started_at, Some(Time(now())));
    assert_eq!(state.operation.sync.as_ref().expect("a sync").revision, "abc");

    let write = ended(&waiting, state, OperationPhase::Error, "it broke", at("2026-01-01T13:59:55Z"));
    assert_eq!(write.state.message, "it broke. Retrying attempt #2 at 2:00PM.");
    assert_eq!(write.look_again, Some(at("2026-01-01T14:00:05Z")));
    let write = ended(&waiting, write.state, OperationPhase::Failed, "it broke", now());
    assert_eq!(write.state.message, "it broke (retried 2 times).");
    assert_eq!(write.state.phase, OperationPhase::Failed);
    assert!(write.completion.expect("an end").clears_operation);
}

#[test]
fn a_retry_may_take_the_newest_revisions() {
    let operation = json!({"sync": {"revision": "abc"}, "retry": {"limit": -1, "refresh": true}});
    let app = running(
        operation,
        json!({"status": {"operationState": {
        "retryCount": 1, "finishedAt": "2026-01-01T11:00:00Z"}}}),
    );
    let (state, _) = run(first_step(&app, now()));
    assert_eq!(state.message, "Retrying operation with latest revisions. Attempt #1");
    assert_eq!(state.operation.sync.as_ref().expect("a sync").revision, "");
    // Its request is still the one in `.operation`, which goes at the end.
    let write = ended(&app, state, OperationPhase::Succeeded, "done", now());
    assert!(write.completion.expect("an end").clears_operation);
}

#[test]
fn a_pause_that_cannot_be_read_ends_it() {
    let operation = json!({"sync": {}, "retry": {"limit": 1, "backoff": {"duration": "soon"}}});
    let app = running(operation.clone(), json!({}));
    let write = ended(&app, state_of(&app), OperationPhase::Failed, "it broke", now());
    let expected = "it broke (failed to retry: unable to parse soon as a duration)";
    assert_eq!((write.state.phase, write.state.message.as_str()), (OperationPhase::Error, expected));
    let waiting = running(operation, json!({"status": {"operationState": {"finishedAt": START}}}));
    let Step::End(write) = first_step(&waiting, now()) else {
        panic!("no end");
    };
    assert_eq!(write.state.message, "unable to parse soon as a duration");
}

#[test]
fn an_application_that_is_deleted_gets_no_retry() {
    let app = running(
        json!({"sync": {}, "retry": {"limit": -1}}),
        json!({"metadata": {"deletionTimestamp": START}}),
    );
    let write = ended(&app, state_of(&app), OperationPhase::Failed, "it broke", now());
    assert_eq!(write.state.message, "it broke (not retried: the application is being deleted)");
    assert!(write.completion.is_some());
}

#[test]
fn a_terminated_operation_is_not_retried() {
    let app = running(
        json!({"sync": {}, "retry": {"limit": 5}}),
        json!({"status": {"operationState": {"phase": "Terminating", "retryCount": 1}}}),
    );
    let (state, changed) = run(first_step(&app, now()));
    assert!(!changed);
    let write = ended(&app, state, OperationPhase::Failed, "Operation terminated", now());
    assert_eq!(write.state.message, "Operation terminated (retried 1 times).");
    assert_eq!(
        write.completion.expect("an end").event,
        "Sync operation to abc failed: Operation terminated (retried 1 times)."
    );
}

#[test]
fn windows_hold_an_operation_but_not_its_termination() {
    let windows: Vec<SyncWindow> = serde_json::from_value(json!([
        {"kind": "deny", "schedule": "0 11 * * *", "duration": "2h", "applications": ["*"]}]))
    .expect("windows");
    let settings = OperationSettings::default();
    let app = running(json!({"sync": {}}), json!({}));
    let write = hold(&app, &state_of(&app), &windows, &settings, now()).expect("held");
    assert_eq!(write.state.message, "Sync operation blocked by sync window");
    assert_eq!(write.look_again, Some(at("2026-01-01T13:00:00Z")));
    assert_eq!(
        hold(&app, &state_of(&app), &windows, &timeout(60), now()).expect("held").look_again,
        Some(at("2026-01-01T12:01:00Z"))
    );
    let terminating = OperationState { phase: OperationPhase::Terminating, ..state_of(&app) };
    assert_eq!(hold(&app, &terminating, &windows, &settings, now()), None);
    assert_eq!(hold(&app, &state_of(&app), &[], &settings, now()), None);
    let bad: Vec<SyncWindow> = serde_json::from_value(json!([
        {"kind": "allow", "schedule": "x", "duration": "2h", "applications": ["*"]}]))
    .expect("windows");
    let write = hold(&app, &state_of(&app), &bad, &settings, now()).expect("held");
    assert!(write.state.message.starts_with("Sync operation blocked by sync window: invalid sync windows: "));
}

#[test]
fn revisions_are_honoured_exactly() {
    let spec_of_two = json!({"spec": {"sources": [{"repoURL": "a"}, {"repoURL": "b"}]}});
    let revisions = |spec: &Value, sync: Value| {
        let state = OperationState {
            operation: serde_json::from_value(json!({"sync": sync})).expect("an operation"),
            ..OperationState::default()
        };
        request(&application(spec.clone()), &state).map(|request| request.revisions)
    };
    let texts = |texts: &[&str]| Ok(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let one = json!({});
    assert_eq!(revisions(&one, json!({})), texts(&[""]));
    assert_eq!(revisions(&one, json!({"revision": "x"})), texts(&["x"]));
    assert_eq!(revisions(&one, json!({"revisions": ["x"]})), texts(&["x"]));
    assert_eq!(revisions(&one, json!({"revision": "x", "revisions": ["x"]})), texts(&["x"]));
    assert!(revisions(&one, json!({"revision": "x", "revisions": ["y"]})).is_err());
    assert!(revisions(&one, json!({"revisions": ["x", "y"]})).is_err());
    assert_eq!(revisions(&spec_of_two, json!({})), texts(&["", ""]));
    assert_eq!(revisions(&spec_of_two, json!({"revisions": ["x", ""]})), texts(&["x", ""]));
    let error = revisions(&spec_of_two, json!({"revision": "x"})).expect_err("one for two");
    assert_eq!(error, "Invalid operation request: 1 revisions are given for 2 sources; give one for each");
    // Sources of the operation come before those of the spec.
    assert_eq!(revisions(&spec_of_two, json!({"source": {"repoURL": "c"}, "revision": "x"})), texts(&["x"]));
    let three = json!({"sources": [{}, {}, {}], "revisions": ["x", "y", "z"]});
    assert_eq!(revisions(&one, three), texts(&["x", "y", "z"]));
}

#[test]
fn what_was_resolved_once_is_rendered_again() {
    let app = application(json!({"operation": {"sync": {"revision": "main"}}}));
    let (mut state, _) = run(first_step(&app, now()));
    let asked = request(&app, &state).expect("a request");
    pin(&mut state, &asked, &["abc".to_owned()]);
    let result = state.sync_result.as_ref().expect("a result");
    assert_eq!((result.revision.as_str(), result.source.path.as_str()), ("abc", "p"));
    assert_eq!(request(&app, &state).expect("a request").revisions, ["abc"]);

    let app = application(
        json!({"operation": {"sync": {}}, "spec": {"sources": [{"repoURL": "a"}, {"repoURL": "b"}]}}),
    );
    let (mut state, _) = run(first_step(&app, now()));
    let asked = request(&app, &state).expect("a request");
    pin(&mut state, &asked, &["1".to_owned(), "2".to_owned()]);
    let again = request(&app, &state).expect("a request");
    assert_eq!((again.revisions, again.several), (vec!["1".to_owned(), "2".to_owned()], true));
}

#[test]
fn what_a_comparison_found_may_refuse_it() {
    let found: Vec<ApplicationCondition> = serde_json::from_value(json!([
        {"type": "ComparisonError", "message": "no git"}, {"type": "SyncError", "message": "x"}]))
    .expect("conditions");
    assert_eq!(refusal(&found), Some((OperationPhase::Error, "ComparisonError: no git".to_owned())));
    assert_eq!(refusal(&found[1..]), None);
}

#[test]
fn an_end_is_recorded_and_refreshed() {
    let app = running(json!({"sync": {}}), json!({}));
    let write = ended(&app, state_of(&app), OperationPhase::Succeeded, "done", now());
    let completion = write.completion.clone().expect("an end");
    assert_eq!(completion.refresh, Some(Level::Resolve));
    assert_eq!(completion.event, "Sync operation to abc succeeded");
    assert_eq!(completion.history.as_ref().map(Vec::len), Some(1));
    let mut after = app.clone();
    write.apply(&mut after);
    assert_eq!((after.operation, after.status.history.len()), (None, 1));
    assert_eq!(after.status.operation_state.expect("a state").finished_at, Some(Time(now())));
    for (operation, refresh, event) in [
        (json!({"sync": {"dryRun": true}}), None, "Sync operation to abc succeeded"),
        (
            json!({"sync": {"resources": [{"kind": "A", "name": "a"}]}, "initiatedBy": {"automated": true}}),
            Some(Level::Latest),
            "Partial sync operation to abc succeeded",
        ),
    ] {
        let app = running(operation, json!({}));
        let write = ended(&app, state_of(&app), OperationPhase::Succeeded, "done", now());
        let completion = write.completion.expect("an end");
        assert_eq!((completion.refresh, completion.event.as_str()), (refresh, event));
        assert_eq!(completion.history, None);
    }
}

#[test]
fn a_request_put_in_its_place_meanwhile_stays() {
    let app = running(json!({"sync": {}}), json!({"operation": {"sync": {"revision": "other"}}}));
    let write = ended(&app, state_of(&app), OperationPhase::Succeeded, "done", now());
    assert!(!write.completion.as_ref().expect("an end").clears_operation);
    let mut after = app.clone();
    write.apply(&mut after);
    let (state, changed) = run(first_step(&after, at("2026-01-01T12:00:09Z")));
    assert!(changed);
    assert_eq!(state.operation.sync.expect("a sync").revision, "other");
}

#[test]
fn a_write_is_fitted_to_what_changed_meanwhile() {
    let app = running(json!({"sync": {}}), json!({}));
    let write = goes_on(state_of(&app), "waiting", &OperationSettings::default(), now());
    assert_eq!(rebase(&app, write.clone()), Some(write.clone()));
    // A termination asked for meanwhile is kept.
    let change = json!({"status": {"operationState": {"phase": "Terminating"}}});
    let terminating = running(json!({"sync": {}}), change);
    let state = rebase(&terminating, write.clone()).expect("a write").state;
    assert_eq!((state.phase, state.message.as_str()), (OperationPhase::Terminating, TERMINATING));
    // An operation that began later, or an end that is written already, is not overwritten.
    let later = json!({"status": {"operationState": {"startedAt": "2026-01-01T13:00:00Z"}}});
    assert_eq!(rebase(&running(json!({"sync": {}}), later), write.clone()), None);
    let over = json!({"status": {"operationState": {"phase": "Succeeded"}}});
    assert_eq!(rebase(&running(json!({"sync": {}}), over), write.clone()), None);
    let reset = json!({"operation": {"sync": {"revision": "other"}}, "status": {"operationState": null}});
    assert_eq!(rebase(&running(json!({"sync": {}}), reset), write), None);
    // The end does not clear a request that came meanwhile.
    let end = ended(&app, state_of(&app), OperationPhase::Succeeded, "done", now());
    let replaced = running(json!({"sync": {}}), json!({"operation": {"sync": {"revision": "other"}}}));
    let end = rebase(&replaced, end).expect("a write").completion.expect("an end");
    assert!(!end.clears_operation);
}

#[test]
fn the_begin_of_an_operation_survives_other_writes() {
    let app = application(json!({"operation": {"sync": {}}, "status": {
        "operationState": {"phase": "Failed", "startedAt": "2026-01-01T11:00:00Z"}}}));
    let (state, _) = run(first_step(&app, now()));
    let write = Write { state, completion: None, look_again: None };
    assert!(rebase(&app, write.clone()).is_some());
    let withdrawn = Application { operation: None, ..app };
    assert_eq!(rebase(&withdrawn, write), None);
}

#[test]
fn only_what_runs_can_be_terminated() {
    let app = running(json!({"sync": {}}), json!({}));
    assert_eq!(termination(&app).expect("it runs").phase, OperationPhase::Terminating);
    let error = termination(&application(json!({}))).expect_err("nothing runs");
    assert_eq!(error.to_string(), "Unable to terminate operation. No operation is in progress");
}

#[test]
fn an_end_before_anything_was_rendered_says_what_was_tried() {
    let app = application(json!({"operation": {"sync": {"revision": "abc"}}}));
    let (state, _) = run(first_step(&app, now()));
    let write = ended(&app, state, OperationPhase::Error, "ComparisonError: no cluster", now());
    let result = write.state.sync_result.expect("an attempt");
    assert_eq!((result.revision.as_str(), result.source.path.as_str()), ("abc", "p"));
    let event = write.completion.expect("an end").event;
    assert_eq!(event, "Sync operation to abc failed: ComparisonError: no cluster");
    let Step::End(write) = first_step(&application(json!({"operation": {}})), now()) else {
        panic!("no end");
    };
    assert_eq!(write.state.sync_result, None);
}
