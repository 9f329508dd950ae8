//! Processes that die before and after every store, send and mark: nothing is lost, and nothing doubled beyond what is
//! promised.

use std::collections::BTreeMap;

use baton_notifications::{
    Config, Doubt, Entry, Failure, Keeper, Ledger, Message, NotStored, Notified, Outbox, Passed, Post,
    ServiceConfig, State, Subject, Wait, pass,
};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{about_app, annotated, application, config, noon};

/// When a process dies: before or after something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// What a process does that others see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    StoreOutbox,
    StoreNotified,
    Send,
}

/// What is stored and what has arrived. It outlives processes.
#[derive(Default)]
struct World {
    notified: Mutex<Notified>,
    outbox: Mutex<String>,
    arrivals: Mutex<Vec<(String, Message)>>,
    /// Whether the service can be asked what has arrived.
    can_be_asked: bool,
    /// Whether the service has no room.
    crowded: Mutex<bool>,
    /// How many attempts the service still refuses.
    refusals: Mutex<u32>,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    deeds: Vec<Deed>,
    fuse: Option<(usize, Moment)>,
    dead: bool,
    /// Stores of the outbox so far, and those of them that fail although the process lives.
    stores: usize,
    failing_stores: std::ops::Range<usize>,
}

// === impl World ===

impl World {
    fn begin(&self, fuse: Option<(usize, Moment)>) {
        *self.process.lock() = Process { fuse, ..Process::default() };
    }

    /// Does something, unless the process dies of it or is dead already. None tells the dead.
    fn act<T>(&self, deed: Deed, effect: impl FnOnce() -> T) -> Option<T> {
        let mut process = self.process.lock();
        if process.dead {
            return None;
        }
        let place = process.deeds.len();
        process.deeds.push(deed);
        match process.fuse {
            Some((at, Moment::Before)) if at == place => {
                process.dead = true;
                None
            }
            Some((at, Moment::After)) if at == place => {
                process.dead = true;
                effect();
                None
            }
            _ => Some(effect()),
        }
    }

    fn state(&self) -> State {
        let text = self.outbox.lock().clone();
        let outbox =
            if text.is_empty() { Outbox::default() } else { Outbox::parse(&text).expect("an outbox") };
        State { notified: self.notified.lock().clone(), outbox }
    }

    /// How often each message has arrived.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (id, _) in self.arrivals.lock().iter() {
            *counts.entry(id.clone()).or_default() += 1;
        }
        counts
    }

    fn fails_to_store(&self) -> bool {
        let mut process = self.process.lock();
        process.stores += 1;
        process.failing_stores.contains(&(process.stores - 1))
    }
}

impl Keeper for World {
    fn store_outbox<'a>(&'a self, outbox: &'a Outbox) -> BoxFuture<'a, Result<(), NotStored>> {
        if self.fails_to_store() {
            return ready(Err(NotStored("conflict".into()))).boxed();
        }
        let done = self.act(Deed::StoreOutbox, || *self.outbox.lock() = outbox.to_text());
        ready(done.ok_or_else(|| NotStored("dead".into()))).boxed()
    }

    fn store_notified<'a>(&'a self, notified: &'a Notified) -> BoxFuture<'a, Result<(), NotStored>> {
        let done = self.act(Deed::StoreNotified, || *self.notified.lock() = notified.clone());
        ready(done.ok_or_else(|| NotStored("dead".into()))).boxed()
    }
}

impl Post for World {
    fn deliver<'a>(
        &'a self,
        _: &'a ServiceConfig,
        entry: &'a Entry,
        doubt: Doubt,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let id = entry.id.as_str().to_owned();
        let known = self.arrivals.lock().iter().any(|(known, _)| *known == id);
        if self.can_be_asked && doubt == Doubt::MayHaveArrived && known {
            return ready(Ok(())).boxed();
        }
        let refused = {
            let mut refusals = self.refusals.lock();
            let refused = *refusals > 0;
            *refusals = refusals.saturating_sub(1);
            refused
        };
        let failure = |message: &str| Err(Failure { message: message.into(), wait: Wait::Usual });
        let done = self.act(Deed::Send, || {
            if !refused {
                self.arrivals.lock().push((id.clone(), entry.message.clone()));
            }
        });
        ready(match done {
            None => failure("dead"),
            Some(()) if refused => failure("status 500"),
            Some(()) => Ok(()),
        })
        .boxed()
    }

    fn has_room(&self, _: &str) -> bool {
        !*self.crowded.lock()
    }
}

fn three_recipients() -> (Config, Value) {
    let config = config(&[
        ("service.slack", "token: $token"),
        ("template.t", "message: '{{ .app.metadata.name }} at {{ now | date \"15:04:05\" }}'"),
        (
            "trigger.on-x",
            "- when: app.status.bad\n  send: [t]\n- when: app.status.bad\n  oncePer: app.status.run\n  send: [t]",
        ),
    ]);
    (config, subscribed_app(json!({"bad": true, "run": "r1"})))
}

fn subscribed_app(status: Value) -> Value {
    annotated(application(status), &[("notifications.argoproj.io/subscribe.on-x.slack", "a;b;c")])
}

/// One pass of a process over what is stored.
fn once(
    world: &World,
    app: Option<&Value>,
    config: &Config,
    ledger: &Ledger,
    now: Timestamp,
) -> Result<Passed, NotStored> {
    let subject: Option<Subject<'_>> = app.map(about_app);
    let passing = pass(subject.as_ref(), config, world.state(), world, world, ledger, now);
    passing.now_or_never().expect("nothing here waits")
}

/// Passes of one process until nothing is left to be done.
fn until_quiet(world: &World, app: Option<&Value>, config: &Config, from: Timestamp) -> Timestamp {
    let ledger = Ledger::default();
    let mut now = from;
    for _ in 0..200 {
        let before = world.state();
        let passed = once(world, app, config, &ledger, now).expect("nobody dies here");
        match passed.state.outbox.next_at() {
            Some(next) => now = next.max(now),
            None if world.state() == before => return now,
            None => {}
        }
    }
    panic!("it never comes to rest: {:?}", world.state());
}

fn die_everywhere(can_be_asked: bool, check: impl Fn(Option<Deed>, Moment, &World)) {
    let (config, app) = three_recipients();
    for moment in [Moment::Before, Moment::After] {
        for place in 0.. {
            let world = World { can_be_asked, ..World::default() };
            world.begin(Some((place, moment)));
            let result = once(&world, Some(&app), &config, &Ledger::default(), noon());
            let died = world.process.lock().dead;
            assert_eq!(died, result.is_err(), "death at {place} {moment:?} ends the pass");
            let deed = world.process.lock().deeds.get(place).copied();
            world.begin(None);
            until_quiet(&world, Some(&app), &config, noon() + SignedDuration::from_secs(30));
            check(deed.filter(|_| died), moment, &world);
            if !died {
                assert!(place > 8, "there were {place} deeds only");
                break;
            }
        }
    }
}

#[test]
fn nothing_is_lost_and_only_a_death_between_send_and_mark_doubles() {
    die_everywhere(false, |deed, moment, world| {
        let counts = world.counts();
        assert_eq!(counts.len(), 6, "{deed:?} {moment:?}: something is lost");
        let doubled = counts.values().filter(|count| **count == 2).count();
        assert!(counts.values().all(|count| *count <= 2));
        // A death after the send, and one at the mark that follows it before it is stored.
        let window = (deed == Some(Deed::Send) && moment == Moment::After)
            || deed == Some(Deed::StoreOutbox) && moment == Moment::Before;
        assert!(doubled <= usize::from(window), "{deed:?} {moment:?}: {counts:?}");
        if deed == Some(Deed::Send) && moment == Moment::After {
            assert_eq!(doubled, 1, "at least once means twice here");
        }
        assert!(world.state().outbox.is_empty());
        assert_eq!(world.state().notified.len(), 6);
    });
}

#[test]
fn what_is_sent_again_is_the_same_to_the_byte() {
    die_everywhere(false, |_, _, world| {
        let mut messages = BTreeMap::new();
        for (id, message) in world.arrivals.lock().iter() {
            assert_eq!(messages.entry(id.clone()).or_insert_with(|| message.clone()), message);
        }
    });
}

#[test]
fn a_service_that_can_be_asked_gets_everything_exactly_once() {
    die_everywhere(true, |deed, moment, world| {
        let counts = world.counts();
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| *count == 1), "{deed:?} {moment:?}: {counts:?}");
    });
}

#[test]
fn a_process_that_lives_never_doubles_however_often_storing_fails() {
    let (config, app) = three_recipients();
    for first in 0..10 {
        for count in 1..6 {
            let world = World::default();
            world.begin(None);
            world.process.lock().failing_stores = first..first + count;
            let ledger = Ledger::default();
            while once(&world, Some(&app), &config, &ledger, noon()).is_err() {}
            assert!(world.state().outbox.is_empty());
            assert_eq!(world.counts().len(), 6);
            assert!(
                world.counts().values().all(|count| *count == 1),
                "{first} {count}: {:?}",
                world.counts()
            );
        }
    }
}

#[test]
fn a_refusal_is_tried_again_later_and_later() {
    let (config, app) = three_recipients();
    let world = World::default();
    *world.refusals.lock() = 20;
    world.begin(None);
    let ledger = Ledger::default();
    let first = once(&world, Some(&app), &config, &ledger, noon()).expect("it is stored");
    assert!(first.attempts.iter().all(|attempt| attempt.fault.as_deref() == Some("status 500")));
    let wait = |state: &State, now: Timestamp| {
        state
            .outbox
            .entries()
            .iter()
            .map(|entry| entry.next_at.duration_since(now))
            .max()
            .expect("something waits")
    };
    let waited = wait(&first.state, noon());
    assert!(waited >= SignedDuration::from_secs(5) && waited < SignedDuration::from_secs(6), "{waited}");
    assert_eq!(
        once(&world, Some(&app), &config, &ledger, noon()).expect("it is stored").attempts,
        [],
        "not before its time"
    );
    let later = noon() + SignedDuration::from_secs(6);
    let second = once(&world, Some(&app), &config, &ledger, later).expect("it is stored");
    assert!(wait(&second.state, later) >= SignedDuration::from_secs(10));
    until_quiet(&world, Some(&app), &config, later);
    assert!(world.counts().len() == 6 && world.counts().values().all(|count| *count == 1));
}

#[test]
fn what_is_queued_goes_out_although_its_object_is_gone() {
    let (config, app) = three_recipients();
    let world = World::default();
    // Dead before the first send.
    world.begin(Some((1, Moment::Before)));
    assert!(once(&world, Some(&app), &config, &Ledger::default(), noon()).is_err());
    assert_eq!(world.counts().len(), 0);
    world.begin(None);
    until_quiet(&world, None, &config, noon());
    assert_eq!(world.counts().len(), 6);
}

#[test]
fn what_nobody_takes_is_given_up_but_never_while_a_person_is_waited_for() {
    let config = config(&[
        ("service.slack", "token: $token"),
        ("service.webhook.few", "url: https://few.example\nretryMax: 2"),
        ("template.t", "message: told"),
        ("trigger.on-x", "- when: app.status.bad\n  send: [t]"),
        ("trigger.on-approval", "- when: app.status.bad\n  send: [t]\n  untilDelivered: true"),
        ("subscriptions", "- recipients: ['slack:a', few]\n  triggers: [on-x, on-approval]"),
    ]);
    let bad = application(json!({"bad": true}));
    let world = World::default();
    *world.refusals.lock() = u32::MAX;
    world.begin(None);
    let ledger = Ledger::default();
    let mut now = noon();
    let mut complaints = Vec::new();
    let pending = || {
        let entries = world.state().outbox;
        entries
            .entries()
            .iter()
            .map(|entry| format!("{} {}", entry.trigger, entry.service))
            .collect::<Vec<_>>()
    };
    for _ in 0..24 * 4 * 10 {
        let passed = once(&world, Some(&bad), &config, &ledger, now).expect("it is stored");
        complaints.extend(passed.complaints);
        now += SignedDuration::from_mins(15);
    }
    assert_eq!(pending(), ["on-approval few", "on-approval slack"], "ten days later");
    complaints.sort();
    assert!(
        complaints[0].starts_with("on-x for few is given up after 3 attempts: status 500"),
        "{complaints:?}"
    );
    assert!(complaints[1].starts_with("on-x for slack is given up after"), "{complaints:?}");
    // The receivers are back: who waits is told, and what was given up is not told late.
    *world.refusals.lock() = 0;
    now = until_quiet(&world, Some(&bad), &config, now);
    assert_eq!(world.counts().len(), 2);
    // Once nobody waits any more, it is an entry like any other.
    *world.refusals.lock() = u32::MAX;
    let good = application(json!({"bad": false}));
    once(&world, Some(&good), &config, &ledger, now).expect("it is stored");
    once(&world, Some(&bad), &config, &ledger, now).expect("it is stored");
    once(&world, Some(&good), &config, &ledger, now).expect("it is stored");
    assert!(pending().contains(&"on-approval slack".to_owned()));
    for _ in 0..24 * 4 * 4 {
        once(&world, Some(&good), &config, &ledger, now).expect("it is stored");
        now += SignedDuration::from_mins(15);
    }
    assert_eq!(pending(), Vec::<String>::new());
}

#[derive(Debug, Clone)]
enum Event {
    /// The Application is seen so, and a pass dies at a place, or not.
    Seen {
        bad: bool,
        run: u8,
        death: Option<(usize, bool)>,
    },
    Refuse(u32),
    Later(i64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let seen = (any::<bool>(), 0..4_u8, prop::option::of((0..14_usize, any::<bool>())))
        .prop_map(|(bad, run, death)| Event::Seen { bad, run, death });
    let event = prop_oneof![4 => seen, 1 => (0..6_u32).prop_map(Event::Refuse), 1 => (1..4000_i64).prop_map(Event::Later)];
    prop::collection::vec(event, 1..24)
}

proptest! {
    #[test]
    fn in_no_course_of_events_is_anything_lost_or_doubled_more_than_there_were_deaths(course in events()) {
        let (config, _) = three_recipients();
        let world = World::default();
        let mut now = noon();
        let mut deaths = 0;
        let mut stored = std::collections::BTreeSet::new();
        for event in course {
            match event {
                Event::Refuse(count) => *world.refusals.lock() = count,
                Event::Later(seconds) => now += SignedDuration::from_secs(seconds),
                Event::Seen { bad, run, death } => {
                    let moment = |after: bool| if after { Moment::After } else { Moment::Before };
                    world.begin(death.map(|(place, after)| (place, moment(after))));
                    let app = subscribed_app(json!({"bad": bad, "run": format!("r{run}")}));
                    let died = once(&world, Some(&app), &config, &Ledger::default(), now).is_err();
                    deaths += usize::from(died);
                    now += SignedDuration::from_secs(1);
                    stored.extend(world.state().outbox.entries().iter().map(|entry| entry.id.as_str().to_owned()));
                }
            }
        }
        world.begin(None);
        *world.refusals.lock() = 0;
        until_quiet(&world, None, &config, now);
        let counts = world.counts();
        for id in &stored {
            prop_assert!(counts.contains_key(id), "{id} was stored and never arrived");
        }
        let doubled: usize = counts.values().map(|count| count - 1).sum();
        prop_assert!(doubled <= deaths, "{doubled} doubled by {deaths} deaths");
    }
}

#[test]
fn what_there_is_no_room_for_waits_uncounted() {
    let (config, app) = three_recipients();
    let (world, ledger) = (World { crowded: Mutex::new(true), ..World::default() }, Ledger::default());
    let passed = once(&world, Some(&app), &config, &ledger, noon()).expect("nobody dies here");
    assert_eq!((passed.attempts.len(), world.counts().len()), (0, 0));
    assert_eq!(passed.wake, Some(noon() + SignedDuration::from_secs(5)), "not at once");
    assert!(passed.state.outbox.entries().iter().all(|entry| entry.attempts == 0));
    *world.crowded.lock() = false;
    let passed = once(&world, Some(&app), &config, &ledger, noon()).expect("nobody dies here");
    assert_eq!((passed.attempts.len(), passed.wake), (6, None));
}
