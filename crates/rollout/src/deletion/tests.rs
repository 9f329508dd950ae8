use std::collections::BTreeSet;

use proptest::prelude::{Strategy, any, prop, prop_assert, proptest};
use serde_json::{Value, json};

use super::*;

fn strategy(value: Value) -> baton_api::strategy::Strategy {
    serde_json::from_value(value).expect("a strategy")
}

fn step(values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": "srv", "operator": "In", "values": values}]})
}

fn order(value: Value) -> Order {
    Order::of(Some(&strategy(value))).expect("an order").0
}

fn position(order: &Order, srv: &str) -> usize {
    order.position(&BTreeMap::from([("srv".to_owned(), srv.to_owned())]))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn app(name: &str, position: usize, since: Option<i64>) -> Doomed {
    Doomed { name: name.into(), uid: name.into(), position, terminating: since.map(at), held_by: None }
}

#[test]
fn seed_000_says_which_goes_first() {
    let rolling = json!({"steps": [step(&["config"]), step(&["db"]), step(&["frontend"])]});
    let reverse = order(json!({"type": "RollingSync", "rollingSync": rolling, "deletionOrder": "reverse"}));
    let all = ["frontend", "db", "config", "other"];
    assert_eq!(all.map(|srv| position(&reverse, srv)), [0, 1, 2, 3]);
    let custom = order(json!({
        "type": "RollingSync", "rollingSync": rolling, "deletionOrder": "Custom",
        "deletionSync": {"steps": [step(&["config"]), step(&["frontend"]), step(&["db"])]},
    }));
    assert_eq!(["config", "frontend", "db", "other"].map(|srv| position(&custom, srv)), [0, 1, 2, 3]);
    for word in ["", "AllAtOnce"] {
        let plain = order(json!({"type": "RollingSync", "rollingSync": rolling, "deletionOrder": word}));
        assert_eq!(plain, Order::AllAtOnce);
    }
}

#[test]
fn an_order_without_its_steps_is_none() {
    for (value, expected) in [
        (json!({"deletionOrder": "Backwards"}), Invalid::Unknown("Backwards".into())),
        (json!({"deletionOrder": "Reverse"}), Invalid::ReverseWithoutSteps),
        (json!({"deletionOrder": "Reverse", "rollingSync": {"steps": [{}]}}), Invalid::ReverseWithoutSteps),
        (
            json!({"type": "RollingSync", "rollingSync": {"steps": []}, "deletionOrder": "Reverse"}),
            Invalid::ReverseWithoutSteps,
        ),
        (json!({"deletionOrder": "Custom"}), Invalid::CustomWithoutSteps),
        (json!({"deletionOrder": "Custom", "deletionSync": {"steps": []}}), Invalid::CustomWithoutSteps),
    ] {
        let found = Order::of(Some(&strategy(value.clone()))).expect_err("no order");
        assert_eq!(found, expected, "{value}");
        assert!(found.advice().ends_with("or set strategy.deletionOrder: AllAtOnce"), "{}", found.advice());
    }
    assert!(order(json!({"deletionOrder": "Custom", "deletionSync": {"steps": [{}]}})) != Order::AllAtOnce);
}

#[test]
fn one_goes_at_a_time_unless_the_step_says_otherwise() {
    let with = |limit: Option<Value>| {
        let mut step = json!({});
        if let Some(limit) = limit {
            step["maxUpdate"] = limit;
        }
        order(json!({"deletionOrder": "Custom", "deletionSync": {"steps": [step]}}))
    };
    for (limit, expected) in [
        (None, 1),
        (Some(json!(0)), 1),
        (Some(json!("0%")), 1),
        (Some(json!(3)), 3),
        (Some(json!("25%")), 2),
        (Some(json!("100%")), 10),
    ] {
        let order = with(limit.clone());
        assert_eq!(order.limit(0, 10), expected, "{limit:?}");
        assert_eq!(order.limit(1, 10), 1, "those in no step go one by one");
    }
    let reverse = order(json!({
        "type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": [{"maxUpdate": 2}, {"maxUpdate": 5}]},
    }));
    assert_eq!([0, 1, 2].map(|position| reverse.limit(position, 10)), [5, 2, 1]);
}

#[test]
fn those_under_way_take_room_and_are_named_when_they_take_long() {
    let order = order(json!({"deletionOrder": "Custom", "deletionSync": {"steps": [{"maxUpdate": 2}]}}));
    let mut apps = vec![app("c", 0, None), app("b", 0, None), app("a", 0, Some(100)), app("z", 1, None)];
    apps[2].held_by = Some("finalizer x".into());
    let progress = Progress::proved(&apps);
    let decision = decide(&order, progress, &apps, at(105));
    assert_eq!(decision.delete, ["b".into()]);
    assert_eq!((decision.step, decision.remaining, decision.read), (1, 4, false));
    assert!(!decision.waits[0].slow);
    let later = decide(&order, progress, &apps, at(110));
    let expected = Wait { name: "a".into(), since: at(100), held_by: Some("finalizer x".into()), slow: true };
    assert_eq!((later.waits, later.wake), (vec![expected], Some(at(120))));
}

#[test]
fn the_end_is_believed_only_after_a_consistent_read() {
    let order = order(json!({"deletionOrder": "Custom", "deletionSync": {"steps": [{}]}}));
    let unread = decide(&order, Progress::default(), &[], at(0));
    assert!(unread.read && !unread.done);
    let one = [app("a", 0, None)];
    let stale = decide(&order, Progress::proved(&one), &[], at(0));
    assert!(stale.read && !stale.done, "the last was there at the last read");
    let read = decide(&order, Progress::proved(&[]), &[], at(0));
    assert!(read.done && !read.read);
}

fn positions() -> impl Strategy<Value = Order> {
    let limit = prop::option::of(0..4i32);
    (prop::collection::vec(limit, 1..4), any::<bool>()).prop_map(|(limits, reverse)| {
        let steps: Vec<Value> = limits
            .iter()
            .enumerate()
            .map(|(at, limit)| {
                let mut step = step(&[&at.to_string()]);
                if let Some(limit) = limit {
                    step["maxUpdate"] = (*limit).into();
                }
                step
            })
            .collect();
        match reverse {
            true => order(
                json!({"type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": steps}}),
            ),
            false => order(json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}})),
        }
    })
}

proptest! {
    /// The view lags behind the truth: it may miss Applications that are there and show some that are gone.
    #[test]
    fn nothing_goes_while_something_earlier_is_there(
        order in positions(),
        labels in prop::collection::vec(0..5usize, 0..9),
        choices in prop::collection::vec((any::<u8>(), any::<u8>()), 0..120),
    ) {
        let mut truth: BTreeMap<String, Doomed> = BTreeMap::new();
        for (number, label) in labels.iter().enumerate() {
            let name = format!("app-{number}");
            truth.insert(name.clone(), app(&name, position(&order, &label.to_string()), None));
        }
        let everything = truth.clone();
        let mut progress = Progress::default();
        let mut blind: BTreeSet<String> = BTreeSet::new();
        let mut ghosts: BTreeSet<String> = BTreeSet::new();
        for (second, (what, which)) in choices.iter().enumerate() {
            let pick = |names: Vec<String>| names.get(usize::from(*which) % names.len().max(1)).cloned();
            match what % 4 {
                // One that is being deleted goes; the view may not know yet.
                0 => {
                    let dying = truth.values().filter(|app| app.terminating.is_some()).map(|app| app.name.to_string());
                    if let Some(name) = pick(dying.collect()) {
                        truth.remove(&name);
                        if which % 2 == 0 {
                            ghosts.insert(name);
                        }
                    }
                }
                1 => drop(pick(truth.keys().cloned().collect()).map(|name| blind.insert(name))),
                2 => (blind.clear(), ghosts.clear()).0,
                _ => {
                    let seen = truth.values().filter(|app| !blind.contains(&*app.name)).cloned();
                    let view: Vec<Doomed> = seen.chain(ghosts.iter().map(|name| everything[name].clone())).collect();
                    let decision = decide(&order, progress, &view, at(second as i64));
                    prop_assert!(!decision.done || truth.is_empty());
                    if decision.read {
                        let all: Vec<Doomed> = truth.values().cloned().collect();
                        progress = Progress::proved(&all);
                    }
                    for name in decision.delete {
                        let Some(going) = truth.get(&*name) else { continue };
                        let position = going.position;
                        prop_assert!(truth.values().all(|app| app.position >= position), "{name} goes too early");
                        if let Some(app) = truth.get_mut(&*name) {
                            app.terminating = Some(at(second as i64));
                        }
                    }
                }
            }
        }
    }

    /// With an honest view every deletion comes to its end, with one read per position.
    #[test]
    fn everything_goes_in_the_end(order in positions(), labels in prop::collection::vec(0..5usize, 0..9)) {
        let mut apps: Vec<Doomed> = Vec::new();
        for (number, label) in labels.iter().enumerate() {
            apps.push(app(&format!("app-{number}"), position(&order, &label.to_string()), None));
        }
        let mut progress = Progress::default();
        let mut reads = 0;
        for second in 0..200 {
            let decision = decide(&order, progress, &apps, at(second));
            if decision.done {
                prop_assert!(apps.is_empty() && reads <= order.positions() + 1);
                return Ok(());
            }
            if decision.read {
                reads += 1;
                progress = Progress::proved(&apps);
            }
            let limit = order.limit(decision.step.saturating_sub(1), labels.len());
            apps.retain(|app| app.terminating.is_none());
            for app in apps.iter_mut().filter(|app| decision.delete.contains(&app.name)) {
                app.terminating = Some(at(second));
            }
            prop_assert!(apps.iter().filter(|app| app.terminating.is_some()).count() <= limit);
        }
        prop_assert!(false, "it does not end");
    }
}
