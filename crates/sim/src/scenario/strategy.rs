//! The phases of a set, drawn: whom they take, what they call, how long they wait, and what follows their failure.

use serde_json::{Value, json};

use super::count;
use crate::dice::Dice;
use crate::fleet::match_tier;

/// What a phase may say is to follow its failure.
pub(super) const FAILURES: [&str; 4] = ["rollback", "stop", "continue", "abort"];

/// Draws a `deploymentStrategy` for so many tiers. Where an action is given, most phases take it when they fail.
pub(super) fn draw(dice: &mut Dice, tiers: usize, action: Option<&str>) -> Value {
    let of_tier = |tier: usize| (match_tier(tier), Value::Null, Value::Null);
    let groups: Vec<(Value, Value, Value)> = match dice.chance(60) {
        true => (0..tiers).map(of_tier).collect(),
        false => shares(dice),
    };
    let phases: Vec<Value> = groups
        .into_iter()
        .enumerate()
        .map(|(place, (target, percentage, max_update))| {
            let mut phase = phase(dice, place, target, action);
            let shares = [("percentage", percentage), ("maxUpdate", max_update)];
            for (field, share) in shares.into_iter().filter(|(_, share)| !share.is_null()) {
                phase[field] = share;
            }
            phase
        })
        .collect();
    json!({"type": "phaseDeployment", "phases": phases})
}

/// Several phases over the same Applications: more of them each time, and all in the end.
fn shares(dice: &mut Dice) -> Vec<(Value, Value, Value)> {
    let everybody = || json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]});
    let mut all = Vec::new();
    for least in (0..dice.between(1, 2)).map(|number| 25 + 30 * number) {
        let share = match dice.chance(60) {
            true => (everybody(), json!(least + dice.below(25)), Value::Null),
            false => (everybody(), Value::Null, json!(1 + least / 50)),
        };
        all.push(share);
    }
    all.push((everybody(), Value::Null, Value::Null));
    all
}

fn phase(dice: &mut Dice, place: usize, mut target: Value, action: Option<&str>) -> Value {
    let some = |dice: &mut Dice| *dice.pick(&[0, 0, 1, 1, 2]);
    let hooks = |dice: &mut Dice, when: &str| -> Vec<Value> {
        (0..some(dice)).map(|number| hook(dice, &format!("{when}-{place}-{number}"))).collect()
    };
    let before = hooks(dice, "before");
    let checks: Vec<Value> =
        (0..some(dice)).map(|number| check(dice, &format!("check-{place}-{number}"))).collect();
    let after = hooks(dice, "after");
    let drawn = *dice.pick(&FAILURES);
    let action = action.filter(|_| dice.chance(75)).unwrap_or(drawn);
    let deadline = dice.between(60, 110);
    let limit = match dice.below(10) {
        0..5 => Value::Null,
        5..8 => json!(1),
        _ => json!("50%"),
    };
    let wait = dice.chance(30).then(|| dice.between(5, 25));
    if action == "continue" {
        // For the judge: controllers know of neither here.
        target["maxFailures"] = "100%".into();
    }
    if !limit.is_null() {
        target["maxUpdate"] = limit.clone();
    }
    let mut phase = json!({
        "name": format!("p{place}"), "targets": [target], "preHooks": before, "checks": checks,
        "postHooks": after, "progressDeadline": format!("{deadline}s"), "onFailure": {"action": action},
    });
    if !limit.is_null() {
        phase["maxConcurrent"] = limit;
    }
    if let Some(seconds) = wait {
        phase["waitDuration"] = format!("{seconds}s").into();
    }
    phase
}

fn hook(dice: &mut Dice, name: &str) -> Value {
    let mut http = json!({"url": "https://hooks.example.com/"});
    if dice.chance(30) {
        http["method"] = "GET".into();
    }
    let mut hook =
        json!({"name": name, "type": "http", "timeout": format!("{}s", dice.between(3, 10)), "http": http});
    match dice.below(10) {
        0..6 => {}
        6..8 => hook["failurePolicy"] = "ignore".into(),
        _ => hook["failurePolicy"] = "abort".into(),
    }
    if dice.chance(50) {
        let deadline = format!("{}s", dice.between(15, 60));
        hook["retry"] = json!({"interval": "5s", "deadline": deadline});
    }
    if dice.chance(25) {
        hook["parallel"] = true.into();
    }
    scope(dice, &mut hook);
    hook
}

fn check(dice: &mut Dice, name: &str) -> Value {
    let mut check = json!({
        "name": name, "type": "http", "timeout": format!("{}s", dice.between(8, 30)),
        "http": {"url": "https://hooks.example.com/"},
    });
    scope(dice, &mut check);
    check
}

/// Now and then it is called for each Application.
fn scope(dice: &mut Dice, call: &mut Value) {
    call["scope"] = if dice.chance(15) { "target" } else { "phase" }.into();
}

/// A number of tiers.
pub(super) fn tiers(dice: &mut Dice) -> usize {
    count(dice.between(2, 3))
}
