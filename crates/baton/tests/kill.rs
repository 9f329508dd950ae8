//! SIGKILL in the middle of writes, again and again: whatever the API acknowledged is there afterwards, and what
//! it did not acknowledge is there whole or not at all.
//!
//! `BATON_TEST_SEED` repeats the choices of a run whose seed was printed.

mod process;

use std::{
    collections::BTreeMap,
    env, fs, mem,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use process::{PATIENCE, Running, client};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

const ROUNDS: usize = 200;
const WRITERS: usize = 8;
/// Few names a writer, so that each is made, changed and deleted many times.
const NAMES: usize = 5;
/// Larger than a page of the store's file, so that a torn write would show.
const LARGEST_PAYLOAD: usize = 20_000;
/// The object that all writers patch at the same time, each in a key of its own.
const SHARED: &str = "shared";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost_in_200_kills() {
    let seed = env::var("BATON_TEST_SEED")
        .map_or_else(|_| rand::random(), |text| text.parse().expect("BATON_TEST_SEED is a number"));
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut writers: Vec<Writer> = (0..WRITERS).map(|index| Writer::new(index, random.random())).collect();
    let mut world = World::default();
    let mut credentials = None;
    let began = Instant::now();

    for round in 1..=ROUNDS {
        let (mut server, client) = start(home.path()).await;
        let now = credentials_in(home.path());
        assert_eq!(*credentials.get_or_insert_with(|| now.clone()), now, "the credentials changed");
        if round == 1 {
            make_shared(&client).await;
        }
        world.check(&client, &mut writers).await;

        let after = random.random_range(1..=40);
        let pause = Duration::from_micros(random.random_range(0..4_000));
        writers = write_until_killed(&mut server, &client, writers, after, pause).await;
        let in_flight = writers.iter().filter(|writer| writer.in_flight()).count();
        world.rounds_in_flight += usize::from(in_flight > 0);
        if round % 20 == 0 {
            println!("{round} kills in {:.1?}: {world:?}", began.elapsed());
        }
    }

    let (server, client) = start(home.path()).await;
    world.check(&client, &mut writers).await;
    assert_eq!(server.terminate().code, Some(0));
    println!("seed {seed}: {world:?}");
    assert!(world.rounds_in_flight > ROUNDS / 2, "too few kills hit a write: {world:?}");
    assert!(world.acknowledged > 10 * ROUNDS, "too few writes: {world:?}");
}

/// Starts the server on what the last one left, and a client of it.
async fn start(home: &Path) -> (Running, Client) {
    let home_argument = home.to_str().expect("temporary paths are UTF-8");
    let mut server =
        Running::start(["apiserver", "--listen", "127.0.0.1:0", "--nodes", "1", "--data-dir", home_argument]);
    // The kubeconfig of the last round names a port that is gone; this line says that it was replaced.
    server.line_with("Kubernetes API on");
    (server, client(&home.join("kubeconfig")).await)
}

/// The kubeconfig without its address, which is a new one each time.
fn credentials_in(home: &Path) -> String {
    let text = fs::read_to_string(home.join("kubeconfig")).expect("the kubeconfig was written");
    text.lines().filter(|line| !line.contains("server:")).collect::<Vec<_>>().join("\n")
}

async fn make_shared(client: &Client) {
    let object = config_map(SHARED, json!({}));
    api(client).create(&PostParams::default(), &object).await.expect("the shared object can be made");
}

/// Lets all writers write; kills the server when `after` writes were acknowledged and `pause` has passed.
async fn write_until_killed(
    server: &mut Running,
    client: &Client,
    writers: Vec<Writer>,
    after: usize,
    pause: Duration,
) -> Vec<Writer> {
    let kill =
        Arc::new(Kill { left: AtomicUsize::new(after), due: Notify::new(), done: AtomicBool::new(false) });
    let mut tasks = JoinSet::new();
    for mut writer in writers {
        let (api, kill) = (api(client), kill.clone());
        tasks.spawn(async move {
            writer.write(&api, &kill).await;
            writer
        });
    }
    tokio::select! {
        () = kill.due.notified() => {}
        // A writer ends only when the server is gone, or by a panic that says what went wrong.
        early = tasks.join_next() => panic!("a writer ended before the kill: {:?}", early.map(|end| end.err())),
    }
    tokio::time::sleep(pause).await;
    kill.done.store(true, Ordering::SeqCst);
    server.kill();
    timeout(PATIENCE, tasks.join_all()).await.expect("every writer sees that the server is gone")
}

/// When the server is to be killed, and whether it was.
struct Kill {
    left: AtomicUsize,
    due: Notify,
    done: AtomicBool,
}

impl Kill {
    fn acknowledged(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.due.notify_one();
        }
    }
}

/// An object as its writer knows it.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    /// `None` while no answer has told it.
    identity: Option<Identity>,
    data: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Identity {
    uid: String,
    revision: u64,
}

/// What one object is, and what it is if the write in flight was made.
#[derive(Clone, Debug, Default)]
struct Slot {
    acknowledged: Option<Known>,
    in_flight: Option<Option<Known>>,
}

/// One client among several. Its objects are its own, so it knows what each must be.
struct Writer {
    index: usize,
    random: StdRng,
    written: u64,
    slots: BTreeMap<String, Slot>,
    /// Its key of the shared object: the acknowledged number, and the one in flight.
    shared: (u64, Option<u64>),
    acknowledged: usize,
    /// The largest revision an answer named.
    newest: u64,
}

// === impl Writer ===

impl Writer {
    fn new(index: usize, seed: u64) -> Self {
        let slots = (0..NAMES).map(|name| (format!("writer-{index}-{name}"), Slot::default())).collect();
        let random = StdRng::seed_from_u64(seed);
        Self { index, random, written: 0, slots, shared: (0, None), acknowledged: 0, newest: 0 }
    }

    fn in_flight(&self) -> bool {
        self.shared.1.is_some() || self.slots.values().any(|slot| slot.in_flight.is_some())
    }

    /// Writes until the server no longer answers.
    async fn write(&mut self, api: &Api<ConfigMap>, kill: &Kill) {
        while let Some(()) = self.write_once(api, kill).await {
            self.acknowledged += 1;
            kill.acknowledged();
        }
    }

    async fn write_once(&mut self, api: &Api<ConfigMap>, kill: &Kill) -> Option<()> {
        self.written += 1;
        if self.random.random_ratio(1, 6) {
            return self.patch_shared(api, kill).await;
        }
        let name = format!("writer-{}-{}", self.index, self.random.random_range(0..NAMES));
        let known = self.slots[&name].acknowledged.clone();
        match (known, self.random.random_range(0..4)) {
            (None, _) => self.create(api, kill, name).await,
            (Some(_), 0) => self.delete(api, kill, name).await,
            (Some(known), 1) => self.replace(api, kill, name, known).await,
            (Some(known), _) => self.patch(api, kill, name, known).await,
        }
    }

    async fn create(&mut self, api: &Api<ConfigMap>, kill: &Kill, name: String) -> Option<()> {
        let data = self.data();
        self.begin(&name, Some(Known { identity: None, data: data.clone() }));
        let made = answered(api.create(&PostParams::default(), &config_map(&name, json!(data))).await, kill)?;
        self.finish(&name, made, data)
    }

    async fn replace(&mut self, api: &Api<ConfigMap>, kill: &Kill, name: String, known: Known) -> Option<()> {
        let data = self.data();
        self.begin(&name, Some(Known { identity: None, data: data.clone() }));
        let mut object = config_map(&name, json!(data));
        object.metadata.resource_version = known.identity.map(|identity| identity.revision.to_string());
        let made = answered(api.replace(&name, &PostParams::default(), &object).await, kill)?;
        self.finish(&name, made, data)
    }

    async fn patch(&mut self, api: &Api<ConfigMap>, kill: &Kill, name: String, known: Known) -> Option<()> {
        let number = self.written.to_string();
        let data =
            BTreeMap::from_iter(known.data.into_iter().chain([("patched".to_owned(), number.clone())]));
        self.begin(&name, Some(Known { identity: None, data: data.clone() }));
        let patch = Patch::Merge(json!({"data": {"patched": number}}));
        let made = answered(api.patch(&name, &PatchParams::default(), &patch).await, kill)?;
        self.finish(&name, made, data)
    }

    async fn delete(&mut self, api: &Api<ConfigMap>, kill: &Kill, name: String) -> Option<()> {
        self.begin(&name, None);
        answered(api.delete(&name, &DeleteParams::default()).await, kill)?;
        self.slots.insert(name, Slot::default());
        Some(())
    }

    async fn patch_shared(&mut self, api: &Api<ConfigMap>, kill: &Kill) -> Option<()> {
        let number = self.written;
        self.shared.1 = Some(number);
        let patch = Patch::Merge(json!({"data": {self.index.to_string(): number.to_string()}}));
        let made = answered(api.patch(SHARED, &PatchParams::default(), &patch).await, kill)?;
        self.newer(revision_of(&made));
        self.shared = (number, None);
        Some(())
    }

    fn data(&mut self) -> BTreeMap<String, String> {
        let length = self.random.random_range(0..LARGEST_PAYLOAD);
        let payload = format!("{}.", self.written).chars().cycle().take(length).collect();
        BTreeMap::from([("number".to_owned(), self.written.to_string()), ("payload".to_owned(), payload)])
    }

    fn begin(&mut self, name: &str, outcome: Option<Known>) {
        self.slots.get_mut(name).expect("a writer writes its own names").in_flight = Some(outcome);
    }

    fn finish(&mut self, name: &str, made: ConfigMap, data: BTreeMap<String, String>) -> Option<()> {
        let known = known(&made);
        assert_eq!(known.data, data, "the answer for {name} is not what was written");
        self.newer(revision_of(&made));
        self.slots.insert(name.to_owned(), Slot { acknowledged: Some(known), in_flight: None });
        Some(())
    }

    /// Its writes follow each other, so each must have a later revision.
    fn newer(&mut self, revision: u64) {
        assert!(revision > self.newest, "revision {revision} follows {}", self.newest);
        self.newest = revision;
    }

    /// Compares one object with what it must be, and takes what is there as the truth of the next round.
    fn settle(&mut self, name: &str, found: Option<Known>) {
        let slot = self.slots.get_mut(name).expect("a writer knows its own names");
        let Slot { acknowledged, in_flight } = mem::take(slot);
        let kept = found == acknowledged;
        let made = in_flight.as_ref().is_some_and(|wanted| made(wanted, &found, &acknowledged));
        assert!(
            kept || made,
            "{name} is neither as acknowledged nor as in flight\nfound: {}\nacknowledged: {}\nin flight: {}",
            brief(&found),
            brief(&acknowledged),
            in_flight.map_or_else(|| "nothing".into(), |wanted| brief(&wanted)),
        );
        slot.acknowledged = found;
    }
}

/// Whether the write in flight explains what was found: its data, at a later revision than was acknowledged.
fn made(wanted: &Option<Known>, found: &Option<Known>, before: &Option<Known>) -> bool {
    match (wanted, found) {
        (None, None) => true,
        (Some(wanted), Some(found)) => {
            let revision = |known: &Known| known.identity.as_ref().map(|identity| identity.revision);
            let earlier = before.as_ref().and_then(revision);
            wanted.data == found.data && revision(found) > earlier
        }
        _ => false,
    }
}

/// What was learned over all rounds.
#[derive(Default)]
struct World {
    newest: u64,
    acknowledged: usize,
    rounds_in_flight: usize,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { newest, acknowledged, rounds_in_flight } = self;
        write!(
            f,
            "{acknowledged} writes acknowledged, {rounds_in_flight} kills hit others, revision {newest}"
        )
    }
}

impl World {
    /// Reads everything back and compares it with what the writers know.
    async fn check(&mut self, client: &Client, writers: &mut [Writer]) {
        let list = api(client).list(&ListParams::default().labels("written-by=kill")).await;
        let list = list.expect("the store can be read after a kill");
        let revision = list.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
        let revision = revision.expect("a list has a revision");
        let acknowledged = writers.iter().map(|writer| writer.newest).max().unwrap_or_default();
        let reached = acknowledged.max(self.newest);
        assert!(revision >= reached, "the revision went back from {reached} to {revision}");
        self.newest = revision;
        self.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();

        let mut found: BTreeMap<String, ConfigMap> = list
            .items
            .into_iter()
            .map(|object| (object.metadata.name.clone().expect("a name"), object))
            .collect();
        let shared = found.remove(SHARED).expect("the shared object stays");
        let numbers = shared.data.unwrap_or_default();
        for writer in writers {
            let (acknowledged, in_flight) = writer.shared;
            let number =
                numbers.get(&writer.index.to_string()).map_or(0, |text| text.parse().expect("a number"));
            assert!(number == acknowledged || Some(number) == in_flight, "{number}: {:?}", writer.shared);
            writer.shared = (number, None);
            // What is in the store now happened before whatever is written next.
            writer.newest = revision;
            for name in writer.slots.keys().cloned().collect::<Vec<_>>() {
                writer.settle(&name, found.remove(&name).as_ref().map(known));
            }
        }
        assert!(found.is_empty(), "nobody wrote {:?}", found.keys());
    }
}

/// The answer to a write. A refusal is wrong at any time, silence only while the server lives.
fn answered<T>(result: kube::Result<T>, kill: &Kill) -> Option<T> {
    match result {
        Ok(answer) => Some(answer),
        Err(kube::Error::Api(status)) => panic!("a write was refused: {status:?}"),
        Err(error) => {
            assert!(kill.done.load(Ordering::SeqCst), "a write failed before the kill: {error:?}");
            None
        }
    }
}

fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn config_map(name: &str, data: Value) -> ConfigMap {
    let metadata = json!({"name": name, "labels": {"written-by": "kill"}});
    serde_json::from_value(json!({"metadata": metadata, "data": data})).expect("a ConfigMap")
}

fn known(object: &ConfigMap) -> Known {
    let uid = object.metadata.uid.clone().expect("a stored object has a uid");
    let identity = Some(Identity { uid, revision: revision_of(object) });
    Known { identity, data: object.data.clone().unwrap_or_default() }
}

fn revision_of(object: &ConfigMap) -> u64 {
    let text = object.metadata.resource_version.as_deref().expect("a stored object has a resourceVersion");
    text.parse().expect("a resourceVersion is a number here")
}

/// Without the payload, which would fill the screen.
fn brief(known: &Option<Known>) -> String {
    known.as_ref().map_or_else(
        || "absent".into(),
        |Known { identity, data }| {
            let (number, patched) = (data.get("number"), data.get("patched"));
            let length = data.get("payload").map(String::len);
            format!("{identity:?}, number {number:?}, patched {patched:?}, payload of {length:?} bytes")
        },
    )
}
