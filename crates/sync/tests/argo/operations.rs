//! The life of an operation around its passes.

use std::time::Duration;

use baton_api::application_status::OperationPhase;
use baton_sync::operation::{self, OperationSettings, Step, Write};
use baton_sync::refresh::Level;
use serde_json::{Value, json};

use crate::decisions::application;
use crate::play::Play;
use crate::table::{compare, field, optional};

const REVISION: &str = "3f1c9a2b7d4e5f60718293a4b5c6d7e8f9012345";

#[test]
fn lives_of_operations() {
    compare("operation", |case| {
        let mut play = Play::new(case, application(&case["application"]), &field::<String>(case, "now"));
        play.revision = REVISION.to_owned();
        play.cluster.failures = optional(case, "fail");
        let timeout: u64 = optional(case, "syncTimeout");
        let settings = OperationSettings {
            timeout: (timeout > 0).then(|| Duration::from_secs(timeout)),
            ..OperationSettings::default()
        };
        let write = match operation::step(&play.application, &settings, play.now) {
            Step::None => panic!("nothing is asked for"),
            Step::Wait { until } => return told(&play, None, Some(until.duration_since(play.now).as_secs())),
            Step::End(write) => *write,
            Step::Run { state, .. } => {
                play.state = *state;
                run(&mut play, &settings)
            }
        };
        write.apply(&mut play.application);
        told(&play, Some(&write), None)
    });
}

fn run(play: &mut Play, settings: &OperationSettings) -> Write {
    let windows = play.rules.spec().sync_windows.clone();
    if let Some(write) = operation::hold(&play.application, &play.state, &windows, settings, play.now) {
        return write;
    }
    let request = operation::request(&play.application, &play.state).expect("a request");
    operation::pin(&mut play.state, &request, &[REVISION.to_owned()]);
    let terminating = play.state.phase == OperationPhase::Terminating;
    let (phase, message) = play.pass();
    assert!(!terminating || phase.is_completed(), "a termination ends");
    if phase.is_completed() {
        operation::ended(&play.application, play.state.clone(), phase, &message, play.now)
    } else {
        operation::goes_on(play.state.clone(), &message, settings, play.now)
    }
}

fn told(play: &Play, write: Option<&Write>, again: Option<i64>) -> Value {
    let application = &play.application;
    let state = application.status.operation_state.as_ref().expect("a state");
    let mut told = json!({
        "operation": application.operation.is_some(),
        "history": application.status.history.len(),
        "phase": state.phase,
        "message": state.message,
        "retryCount": state.retry_count,
        "calls": calls(play),
    });
    for (name, time) in [("startedAt", &state.started_at), ("finishedAt", &state.finished_at)] {
        if let Some(time) = time {
            told[name] = json!(time);
        }
    }
    if let Some(result) = &state.sync_result {
        told["results"] = json!(result.resources.len());
        told["revision"] = json!(result.revision);
    }
    if let Some(again) = again {
        told["again"] = json!(again);
    }
    if let Some(level) = write.and_then(|write| write.completion.as_ref()?.refresh) {
        let levels = [Level::Tree, Level::Recent, Level::Latest, Level::Resolve];
        told["refresh"] = json!(levels.iter().position(|known| *known == level));
    }
    told
}

/// Requests, checks first, as the table tells them.
fn calls(play: &Play) -> Vec<String> {
    let short = |call: &String| call.replace("/shop/", "/").replace(" failed", "");
    let checked = play.cluster.checked.iter().map(|call| format!("{} dry", short(call)));
    checked.chain(play.cluster.calls.iter().map(short)).collect()
}
