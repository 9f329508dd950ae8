//! A stand-in for Argo CD's Application controller: it does what upstream's is known to do, where that is harder to
//! live with than what ours does.
//!
//! It decides by a cache that may be old, and writes what differs from it as merge patches. It compares at four levels:
//! 0 tells health alone, 1 compares with the revision that was found last, 2 with the newest it remembers, 3 with the
//! newest there is. `reconciledAt` is when a comparison began, in whole seconds. What it found may be written in two
//! parts. Requests for comparison are taken away either by what was read (`refresh-timestamp` is tested) or, by older
//! ones, whatever was asked for since. The end of an operation is written until an answer comes, and may so be written
//! over what came after. Automatic sync goes by a specification that may be old. Of a single source it names the commit;
//! of several what the reference says, which may be a tag's own id, or the beginning of a commit's.
//!
//! Nothing of the product is in it but the reading of YAML.

mod cache;
mod compare;
mod ground;
mod operate;
mod queue;
mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dice::Dice;
pub use ground::{Git, Memory};
use ground::{Ground, Requests};
use queue::Queue;

/// After how long it looks again by itself.
const RESYNC: Duration = Duration::from_secs(60);

/// How one stand-in behaves where controllers of several versions and loads differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Temper {
    /// Whether it knows `refresh-timestamp`, and takes away only the request that it read.
    pub nonce: bool,
    /// Whether it writes what it found in two parts.
    pub split: bool,
    /// Whether it may write the end of an operation once more after it took effect.
    pub twice: bool,
    /// Of a hundred answers to requests, how many are lost, or the last part of them, though the request is taken away.
    pub loses: u64,
    /// Whether Pods make it look too, at what their Applications' health is and nothing else.
    pub pods: bool,
    /// Whether it brings specifications into a form of its own.
    pub normalizes: bool,
    /// Longest time that it takes to look after it was asked to, or an operation ended.
    pub late: Duration,
    /// Shortest time that it takes.
    pub least: Duration,
    /// Longest time that it takes for a comparison or an operation, after it read what it goes by.
    pub slow: Duration,
    /// How long it remembers what a branch points to.
    pub memory: Duration,
}

impl Temper {
    /// Draws one.
    pub fn new(dice: &mut Dice) -> Temper {
        let millis = |dice: &mut Dice, choice: &[u64]| Duration::from_millis(*dice.pick(choice));
        // Beside, so that whatever is drawn after it stays as it was.
        let mut beside = dice.clone();
        let loses = if beside.chance(25) { 30 } else { 0 };
        Temper {
            loses,
            pods: beside.chance(30),
            nonce: dice.chance(60),
            split: dice.chance(50),
            twice: dice.chance(40),
            normalizes: dice.chance(30),
            late: millis(dice, &[0, 500, 3_000, 12_000]),
            least: Duration::ZERO,
            slow: millis(dice, &[50, 500, 2_000, 6_000]),
            memory: millis(dice, &[0, 20_000, 60_000]),
        }
    }
}

/// What a stand-in works with.
pub struct Parts {
    /// Draws what it draws from this.
    pub seed: u64,
    /// How it behaves.
    pub temper: Temper,
    /// The API with the Applications.
    pub control: Client,
    /// Their namespace.
    pub namespace: String,
    /// By URL of their API: the members.
    pub members: BTreeMap<String, Client>,
    /// Namespace in the members that is looked at.
    pub target: String,
    /// What is in git.
    pub git: Arc<dyn Git>,
    /// The time as it has it.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A stand-in at work.
struct Foreign {
    temper: Temper,
    control: Requests,
    namespace: String,
    ground: Ground,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    dice: Mutex<Dice>,
    /// The Applications as far as they are known.
    cache: Mutex<BTreeMap<String, Value>>,
    queue: Queue,
    /// What branches pointed to when that was last asked.
    revisions: Mutex<BTreeMap<(String, String), (String, Instant)>>,
    /// Applications whose last answer was lost, or looked like the one before.
    lost: Mutex<BTreeSet<String>>,
}

/// Runs until it is dropped.
pub async fn run(parts: Parts) {
    let ground = Ground::new(parts.members, parts.target, parts.git);
    let foreign = Arc::new(Foreign {
        control: Requests::new(parts.control),
        namespace: parts.namespace,
        ground,
        now: parts.now,
        dice: Mutex::new(Dice::new(parts.seed, "foreign")),
        cache: Mutex::default(),
        queue: Queue::default(),
        revisions: Mutex::default(),
        lost: Mutex::default(),
        temper: parts.temper,
    });
    let mut watches = JoinSet::new();
    watches.spawn(cache::applications(foreign.clone()));
    for (server, requests) in foreign.ground.members() {
        for path in foreign.ground.watched() {
            watches.spawn(cache::objects(foreign.clone(), server.clone(), requests.clone(), path));
        }
        if foreign.temper.pods {
            watches.spawn(cache::pods(foreign.clone(), requests.clone()));
        }
    }
    let mut work = JoinSet::new();
    loop {
        let (comparisons, operations) = foreign.queue.due();
        for (name, level) in comparisons {
            let foreign = foreign.clone();
            work.spawn(async move {
                foreign.refresh(&name, level).await;
                foreign.queue.compared(&name);
            });
        }
        for name in operations {
            let foreign = foreign.clone();
            work.spawn(async move {
                foreign.operate(&name).await;
                foreign.queue.operated(&name);
            });
        }
        foreign.queue.changed().await;
        while work.try_join_next().is_some() {}
    }
}

impl Foreign {
    fn path(&self, name: &str) -> String {
        let namespace = &self.namespace;
        format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/{name}")
    }

    fn known(&self, name: &str) -> Option<Value> {
        self.cache.lock().get(name).cloned()
    }

    /// Up to so long, drawn.
    fn up_to(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.dice.lock().below(most + 1))
    }

    /// How long it takes to look now.
    fn lateness(&self) -> Duration {
        self.temper.least + self.up_to(self.temper.late.saturating_sub(self.temper.least))
    }

    fn chance(&self, percent: u64) -> bool {
        self.dice.lock().chance(percent)
    }

    /// Time goes by while it works.
    async fn toil(&self) {
        tokio::time::sleep(self.up_to(self.temper.slow)).await;
    }

    fn second(&self) -> String {
        (self.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// What a branch points to, as far as it is remembered, or anew.
    fn resolve(&self, url: &str, target: &str, anew: bool) -> Result<String, String> {
        let key = (url.to_owned(), target.to_owned());
        if let Some((revision, at)) = self.revisions.lock().get(&key)
            && !anew
            && at.elapsed() < self.temper.memory
        {
            return Ok(revision.clone());
        }
        let revision = self.ground.git().resolve(url, target)?;
        self.revisions.lock().insert(key, (revision.clone(), Instant::now()));
        Ok(revision)
    }
}
