//! Behaviour that needs a disk that fails or stalls on demand.

use std::io;

use parking_lot::Condvar;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;
use crate::body::Body;
use crate::record::Key;
use crate::state::FIRST_REVISION;
use crate::watch::Watch;
use crate::write::{Action, Expect};

/// What the disk does when it is asked to sync.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Working,
    Broken,
    /// Waits until the mood changes.
    Stalled,
}

#[derive(Debug)]
struct Controls {
    mood: Mutex<Mood>,
    changed: Condvar,
    syncs: Mutex<usize>,
}

impl Controls {
    fn new() -> Arc<Self> {
        Arc::new(Self { mood: Mutex::new(Mood::Working), changed: Condvar::new(), syncs: Mutex::new(0) })
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock() = mood;
        self.changed.notify_all();
    }

    /// Blocks until the disk has been asked to sync more often than this.
    fn await_sync_after(&self, syncs: usize) {
        let mut mood = self.mood.lock();
        while *self.syncs.lock() <= syncs {
            self.changed.wait(&mut mood);
        }
    }

    fn syncs(&self) -> usize {
        *self.syncs.lock()
    }
}

/// A disk in memory under somebody's control.
#[derive(Debug)]
struct MoodyDisk {
    disk: InMemoryBackend,
    controls: Arc<Controls>,
}

impl StorageBackend for MoodyDisk {
    fn len(&self) -> Result<u64, io::Error> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut mood = self.controls.mood.lock();
        *self.controls.syncs.lock() += 1;
        self.controls.changed.notify_all();
        while *mood == Mood::Stalled {
            self.controls.changed.wait(&mut mood);
        }
        if *mood == Mood::Broken { Err(io::Error::other("disk on fire")) } else { self.disk.sync_data() }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.disk.write(offset, data)
    }
}

struct Rig {
    controls: Arc<Controls>,
    state: Arc<Mutex<State>>,
    disk: Arc<Disk>,
}

fn rig() -> Rig {
    let controls = Controls::new();
    let file = ObjectFile::on(MoodyDisk { disk: InMemoryBackend::new(), controls: controls.clone() });
    let state = Arc::new(Mutex::new(State::new(Options::default(), FIRST_REVISION, [])));
    let disk = Arc::new(Disk::start(file, state.clone()).unwrap());
    Rig { controls, state, disk }
}

fn key(name: &str) -> Key {
    Key::new("pods", "default", name)
}

fn create(name: &str) -> Write {
    Write { key: key(name), expect: Expect::Absent, action: Action::Put(Body::new("{}", 1)) }
}

/// Begins a write and lets it reach the queue.
async fn begin(rig: &Rig, write: Write) -> tokio::task::JoinHandle<Result<Arc<Record>, CommitError>> {
    let disk = rig.disk.clone();
    let task = tokio::spawn(async move { disk.commit(write).await });
    tokio::task::yield_now().await;
    task
}

#[tokio::test]
async fn a_failed_disk_write_is_not_visible_and_stops_all_writes() {
    let rig = rig();
    rig.disk.commit(create("a")).await.unwrap();
    rig.controls.set(Mood::Broken);
    let error = rig.disk.commit(create("b")).await.unwrap_err();
    assert!(matches!(error, CommitError::Storage(_)), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("test file") && message.contains("disk on fire"), "{message}");

    rig.controls.set(Mood::Working);
    let error = rig.disk.commit(create("c")).await.unwrap_err();
    assert!(matches!(error, CommitError::Storage(_)), "{error:?}");
    let state = rig.state.lock();
    assert_eq!(state.revision(), FIRST_REVISION + 1);
    assert_eq!(state.history(0).len(), 1);
    assert!(state.get(&key("b")).is_none());
}

#[tokio::test]
async fn nothing_is_visible_before_it_is_durable() {
    let rig = rig();
    let mut watch = Watch::new(&rig.state, "pods", None, FIRST_REVISION).unwrap();
    let syncs = rig.controls.syncs();
    rig.controls.set(Mood::Stalled);
    let write = begin(&rig, create("a")).await;
    rig.controls.await_sync_after(syncs);

    assert!(rig.state.lock().get(&key("a")).is_none());
    assert_eq!(rig.state.lock().revision(), FIRST_REVISION);
    assert!(watch.try_next().unwrap().is_none());
    assert!(!write.is_finished());

    rig.controls.set(Mood::Working);
    assert_eq!(write.await.unwrap().unwrap().revision, FIRST_REVISION + 1);
    assert!(rig.state.lock().get(&key("a")).is_some());
    assert_eq!(watch.try_next().unwrap().unwrap().revision, FIRST_REVISION + 1);
}

#[tokio::test]
async fn writes_that_wait_for_the_disk_share_its_next_sync_and_see_each_other() {
    let rig = rig();
    let before = rig.controls.syncs();
    rig.disk.commit(create("warm-up")).await.unwrap();
    let per_commit = rig.controls.syncs() - before;

    let before = rig.controls.syncs();
    rig.controls.set(Mood::Stalled);
    let mut writes = vec![begin(&rig, create("first")).await];
    rig.controls.await_sync_after(before);
    for index in 0..100 {
        writes.push(begin(&rig, create(&index.to_string())).await);
    }
    let rival = begin(&rig, create("99")).await;
    let after_winner = FIRST_REVISION + 102;
    let successor = Write { expect: Expect::Revision(after_winner), ..create("99") };
    writes.push(begin(&rig, successor).await);
    rig.controls.set(Mood::Working);

    let mut revision = FIRST_REVISION + 1;
    for write in writes {
        revision += 1;
        assert_eq!(write.await.unwrap().unwrap().revision, revision, "in order of arrival");
    }
    let Err(CommitError::Conflict { current: Some(winner) }) = rival.await.unwrap() else {
        panic!("two creations of one object succeeded")
    };
    assert_eq!(winner.revision, after_winner);
    assert_eq!(rig.controls.syncs() - before, 2 * per_commit, "one for the first, one for all others");
}

#[tokio::test]
async fn writers_in_excess_wait_and_none_is_lost() {
    let rig = rig();
    rig.controls.set(Mood::Stalled);
    let mut writes = Vec::new();
    for index in 0..3000 {
        writes.push(begin(&rig, create(&index.to_string())).await);
    }
    assert!(rig.disk.queue.len() <= 1024);
    rig.controls.set(Mood::Working);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(rig.state.lock().revision(), FIRST_REVISION + 3000);
}

#[tokio::test]
async fn a_closed_disk_refuses_writes() {
    let rig = rig();
    rig.disk.commit(create("a")).await.unwrap();
    rig.disk.close();
    let outcome = rig.disk.commit(create("b")).await;
    assert!(matches!(outcome, Err(CommitError::Closed)), "{outcome:?}");
}
