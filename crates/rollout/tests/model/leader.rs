//! A leader: a machine, what it has not heard yet, and the driver that does what the machine says.
//!
//! One turn makes at most one request to the API, so that everything else can happen between any two of them. A leader
//! that is stopped is one that has no turn for a while.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use baton_rollout::head::{Change, Head, Row};
use baton_rollout::machine::{Control, Machine, Member, Wanted, Write};
use baton_rollout::pin::{Resolution, SourceKey};
use jiff::Timestamp;

use crate::judge;
use crate::search::{Met, Setup};
use crate::world::{SET, Stored, Version, World, Written, key, name, print, print_of, rev, time};

/// So many milliseconds after the last news a machine begins a new run.
const QUIET: u64 = 301;

/// How a driver goes about what the machine says. All but the first are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Driver {
    #[default]
    Right,
    /// Writes first, and stores the intent afterwards.
    WritesBeforeRecord,
    /// Stores its head over whatever is there.
    SwapsBlindly,
    /// Writes to an Application whatever its version is.
    WritesBlindly,
    /// Takes over without settling what was intended before.
    ForgetsIntents,
    /// Lists Applications as they were long ago.
    ListsOldVersions,
}

/// How a leader keeps up with the rest of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Anything can happen before its next request, and before it hears of anything.
    Free,
    /// Only other leaders are faster than its next request. What it hears, it hears late all the same: whatever happens
    /// to Applications between two requests could as well happen, unheard, before the first.
    Eager,
    /// It hears of everything at once, too.
    Prompt,
}

/// A leader. One without a machine has crashed.
#[derive(Clone, Hash, Default)]
pub(crate) struct Leader {
    mind: Option<Arc<Mind>>,
    /// Whether it stands still, and does not know it.
    stopped: bool,
    /// Whether nobody else has changed the head since it was read or written here.
    knows_head: bool,
    /// Whether the head is to be read before anything else.
    doubts_head: bool,
    /// Whether the Applications are to be listed before anything else.
    must_list: bool,
    /// How many of the planned changes it has heard of.
    pub(crate) heard: usize,
    /// Versions of each Application that it will hear of, the oldest first.
    pub(crate) news: Vec<VecDeque<Arc<Version>>>,
    /// Requests it has decided on.
    pub(crate) requests: VecDeque<Request>,
    /// Changes of the head that a wrong driver has not stored yet.
    owed: Vec<Owed>,
    rest: Rest,
}

/// A machine. Two are the same if they tell the same of themselves.
struct Mind {
    machine: Machine,
    print: u64,
}

/// A write as it is sent, with the template that its specification is of.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) write: Write,
    pub(crate) template: u8,
}

#[derive(Clone)]
struct Owed(Change);

/// Whether a leader has something to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Rest {
    #[default]
    Busy,
    /// Nothing until something is heard, or until then.
    Until(Option<u64>),
}

// === impl Leader ===

impl Leader {
    /// A leader that begins with nothing but the stored head.
    pub(crate) fn start(world: &mut World, setup: &Setup) -> Leader {
        let mut head = world.head.as_ref().map(|stored| stored.head.clone());
        if let (Driver::ForgetsIntents, Some(head)) = (setup.driver, &mut head) {
            let clean = |row: &Row| Row { intent: None, slot: false, fence: false, ..row.clone() };
            let rows = head.rows().iter().map(clean).collect();
            head.apply(&Change { rows, ..Change::default() });
        }
        let mut machine = Machine::new(head);
        inform(world, setup, &mut machine);
        Leader {
            mind: Mind::new(machine),
            knows_head: true,
            must_list: true,
            heard: world.changes,
            news: vec![VecDeque::new(); world.apps.len()],
            ..Leader::default()
        }
    }

    pub(crate) fn machine(&self) -> Option<&Machine> {
        self.mind.as_ref().map(|mind| &mind.machine)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.mind.is_some()
    }

    /// Whether it takes part in what happens.
    pub(crate) fn is_up(&self) -> bool {
        self.is_alive() && !self.stopped
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_up() && self.rest == Rest::Busy
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(crate) fn go_on(&mut self, now: u64) {
        self.stopped = false;
        self.rouse(now);
    }

    /// When it is to be woken though nothing happens.
    pub(crate) fn wake(&self) -> Option<u64> {
        match self.rest {
            Rest::Until(at) if self.is_up() => at,
            _ => None,
        }
    }

    /// Time has passed.
    pub(crate) fn rouse(&mut self, now: u64) {
        if self.wake().is_some_and(|at| at <= now) {
            self.rest = Rest::Busy;
        }
    }

    /// It will hear of this version. Of more than it can wait for, only the newest come.
    pub(crate) fn expect(&mut self, app: usize, version: Arc<Version>, lag: usize) {
        if !self.is_alive() {
            return;
        }
        self.news[app].push_back(version);
        if self.news[app].len() > lag {
            self.news[app].pop_front();
        }
    }

    /// The requests it makes next, if they are writes: what may still be on its way when it is no more.
    pub(crate) fn about_to_write(&self, world: &World, setup: &Setup) -> Vec<Request> {
        if !self.requests.is_empty() || !self.is_busy() || self.doubts_head || self.must_list {
            return self.requests.iter().cloned().collect();
        }
        let Some(mut machine) = self.machine().cloned() else { return Vec::new() };
        let decision = machine.decide(time(world.now));
        let template = setup.plan[self.heard].template;
        decision.writes.into_iter().map(|write| Request { write, template }).collect()
    }

    fn knows(&mut self, app: usize, version: &Arc<Version>, setup: &Setup) {
        if !setup.echoes {
            self.news[app].retain(|one| one.live.version > version.live.version);
        }
    }
}

/// A leader makes its next request. Its answer may be lost.
pub(crate) fn turn(world: &mut World, setup: &Setup, number: usize, answered: bool) {
    with(world, number, |world, leader, machine| {
        if leader.doubts_head {
            reload(world, leader, machine);
        } else if leader.must_list {
            list(world, setup, leader, machine);
        } else if let Some(request) = leader.requests.pop_front() {
            send(world, setup, number, leader, machine, request, answered);
        } else {
            decide(world, setup, number, leader, machine, answered);
        }
    });
}

/// A leader hears of a version, or of the newest it can hear of.
pub(crate) fn hear(world: &mut World, setup: &Setup, number: usize, app: usize, newest: bool) {
    with(world, number, |_, leader, machine| {
        let news = &mut leader.news[app];
        let version = if newest { news.drain(..).next_back() } else { news.pop_front() };
        let Some(version) = version else { return };
        let refused = machine.stale_reads();
        machine.saw(version.live.clone());
        if machine.stale_reads() > refused {
            setup.met(Met::OldNews);
        }
    });
}

/// A leader hears what the set wants by now, or that the branch has moved.
pub(crate) fn learn(world: &mut World, setup: &Setup, number: usize) {
    with(world, number, |world, leader, machine| {
        leader.heard = world.changes;
        inform(world, setup, machine);
    });
}

/// Tells a machine what is wanted by now. The moment that it then waits for more of the kind passes too, so that a run
/// can be superseded at every point of it.
fn inform(world: &mut World, setup: &Setup, machine: &mut Machine) {
    machine.wants(wanted(setup, world.changes), time(world.now));
    resolve(world, machine, &[key()]);
    world.pass(world.now + QUIET);
}

fn with(world: &mut World, number: usize, act: impl FnOnce(&mut World, &mut Leader, &mut Machine)) {
    let mut leader = std::mem::take(&mut world.leaders[number]);
    if let Some(mut machine) = leader.machine().cloned() {
        act(world, &mut leader, &mut machine);
        settle(world, &mut leader, machine);
    }
    world.leaders[number] = leader;
}

/// Sees whether there is anything to ask of the API. Asking the machine in vain has no effect on anybody else, so that
/// needs no turn.
fn settle(world: &World, leader: &mut Leader, machine: Machine) {
    leader.rest = Rest::Busy;
    let waits = leader.doubts_head || leader.must_list;
    if waits || !leader.requests.is_empty() || !leader.owed.is_empty() {
        leader.mind = Mind::new(machine);
        return;
    }
    let mut asked = machine.clone();
    loop {
        let decision = asked.decide(time(world.now));
        if decision.list || decision.change.is_some() || !decision.writes.is_empty() {
            leader.mind = Mind::new(machine);
            return;
        }
        if decision.resolve.is_empty() {
            leader.rest = Rest::Until(decision.wake.map(milliseconds));
            leader.mind = Mind::new(asked);
            return;
        }
        resolve(world, &mut asked, &decision.resolve);
    }
}

fn decide(
    world: &mut World,
    setup: &Setup,
    number: usize,
    leader: &mut Leader,
    machine: &mut Machine,
    answered: bool,
) {
    let decision = machine.decide(time(world.now));
    if let Some(change) = &decision.change {
        match setup.driver {
            Driver::WritesBeforeRecord => {
                machine.stored(change);
                leader.owed.push(Owed(change.clone()));
            }
            _ => store(world, setup, number, leader, machine, change, answered),
        }
    } else if !decision.writes.is_empty() {
        let template = setup.plan[leader.heard].template;
        leader.requests.extend(decision.writes.into_iter().map(|write| Request { write, template }));
        if let Some(request) = leader.requests.pop_front() {
            send(world, setup, number, leader, machine, request, answered);
        }
    } else if let Some(Owed(change)) = (!leader.owed.is_empty()).then(|| leader.owed.remove(0)) {
        store(world, setup, number, leader, machine, &change, answered);
    } else if decision.list {
        list(world, setup, leader, machine);
    }
    resolve(world, machine, &decision.resolve);
}

fn resolve(world: &World, machine: &mut Machine, keys: &[SourceKey]) {
    for key in keys {
        machine.resolved(key, Ok(Resolution::exact(rev(world.newest.commit))), time(world.now));
    }
}

fn list(world: &World, setup: &Setup, leader: &mut Leader, machine: &mut Machine) {
    leader.must_list = false;
    let now: Vec<Arc<Version>> = world.apps.iter().map(|app| app.version.clone()).collect();
    let shown = match setup.driver {
        Driver::ListsOldVersions if !world.long_ago.is_empty() => &world.long_ago,
        _ => &now,
    };
    for (number, version) in shown.iter().enumerate() {
        leader.knows(number, version, setup);
    }
    let version = now.iter().map(|version| version.live.version).sum();
    machine.listed(version, shown.iter().map(|version| version.live.clone()).collect());
}

fn reload(world: &World, leader: &mut Leader, machine: &mut Machine) {
    leader.doubts_head = false;
    if !leader.knows_head {
        leader.knows_head = true;
        machine.reload(world.head.as_ref().map(|stored| stored.head.clone()));
    }
}

/// A compare-and-swap of the head.
fn store(
    world: &mut World,
    setup: &Setup,
    number: usize,
    leader: &mut Leader,
    machine: &mut Machine,
    change: &Change,
    answered: bool,
) {
    let blindly = setup.driver == Driver::SwapsBlindly;
    if !leader.knows_head && !blindly {
        setup.met(Met::LostSwap);
        leader.knows_head = true;
        leader.owed.clear();
        machine.reload(world.head.as_ref().map(|stored| stored.head.clone()));
        return;
    }
    let before = match (blindly, &world.head) {
        (true, _) => machine.head().clone(),
        (_, Some(stored)) => stored.head.clone(),
        (_, None) => Head::default(),
    };
    if change.anew && before.run.seq > 0 && before.run.finished.is_none() {
        setup.met(Met::Superseded);
    }
    let mut head = before;
    head.apply(change);
    world.head = Some(Stored::new(head));
    for (other, leader) in world.leaders.iter_mut().enumerate() {
        leader.knows_head &= other == number;
    }
    if !answered {
        setup.met(Met::Silence);
        (leader.knows_head, leader.doubts_head) = (false, true);
    } else if setup.driver != Driver::WritesBeforeRecord {
        machine.stored(change);
    }
}

fn send(
    world: &mut World,
    setup: &Setup,
    number: usize,
    leader: &mut Leader,
    machine: &mut Machine,
    request: Request,
    answered: bool,
) {
    let (n, app) = (request.write.stamp.n, place(&request));
    let written = receive(world, setup, request, Some(number));
    let version = world.apps[app].version.clone();
    // Refused, the Application is read, and nothing is tried again before the head was. An answer that was lost makes
    // for a look as well.
    let refused = matches!(written, Written::Refused);
    leader.doubts_head |= refused;
    leader.knows(app, &version, setup);
    machine.saw(version.live.clone());
    if refused || !answered {
        machine.failed(&name(app), n);
    }
}

/// The API takes a write, or refuses it.
pub(crate) fn receive(world: &mut World, setup: &Setup, request: Request, from: Option<usize>) -> Written {
    let app = place(&request);
    let blindly = setup.driver == Driver::WritesBlindly;
    let broken = judge::landing(world, setup, app, &request.write);
    let written = world.apps[app].write(&request.write, request.template, blindly);
    match written {
        Written::Refused => setup.met(Met::Refused),
        Written::Landed => {
            world.judge.landed(app, &request.write, broken);
            setup.met_write(request.write.what);
            world.announce(app, from, setup);
        }
    }
    written
}

fn place(request: &Request) -> usize {
    let number = request.write.name.strip_prefix("app-").and_then(|number| number.parse().ok());
    number.expect("writes are to Applications of the model")
}

fn milliseconds(at: Timestamp) -> u64 {
    // A moment more, so that what is due then is due.
    (at.duration_since(time(0)).as_millis() + 1) as u64
}

fn wanted(setup: &Setup, heard: usize) -> Wanted {
    let content = setup.plan[heard];
    let member = |step: usize| Member {
        step: Some(step),
        spec: Some(print(content.template)),
        sources: vec![key()],
        self_heal: true,
        fault: None,
        back: None,
    };
    let members: BTreeMap<_, _> =
        setup.apps.iter().enumerate().map(|(number, step)| (name(number), member(*step))).collect();
    let edits = setup.plan[..=heard].windows(2).filter(|pair| pair[0].template != pair[1].template);
    Wanted {
        set: SET.into(),
        generation: 1 + edits.count() as i64,
        steps: setup.steps(),
        members,
        frozen: None,
        fuse: None,
        keeps_leavers: false,
        control: Control::default(),
    }
}

// === impl Mind ===

impl Mind {
    fn new(machine: Machine) -> Option<Arc<Mind>> {
        Some(Arc::new(Mind { print: print_of(&machine), machine }))
    }
}

impl Hash for Mind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.print);
    }
}

// === impl Request ===

impl Hash for Request {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let write = &self.write;
        (&write.name, write.version, write.what, &write.stamp, write.spec, self.template).hash(state);
    }
}

// === impl Owed ===

impl Hash for Owed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(print_of(&self.0));
    }
}
