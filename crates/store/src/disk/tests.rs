//! Behaviour that needs a disk that fails on demand.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;
use crate::body::Body;
use crate::record::Key;
use crate::state::FIRST_REVISION;
use crate::write::{Action, Expect};

/// A disk in memory whose syncs fail once it is told so.
#[derive(Debug)]
struct FailingDisk {
    disk: InMemoryBackend,
    broken: Arc<AtomicBool>,
}

impl StorageBackend for FailingDisk {
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
        match self.broken.load(Ordering::SeqCst) {
            true => Err(io::Error::other("disk on fire")),
            false => self.disk.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.disk.write(offset, data)
    }
}

fn put(name: &str, expect: Expect) -> Write {
    Write { key: Key::new("pods", "default", name), expect, action: Action::Put(Body::new("{}", 1)) }
}

#[tokio::test]
async fn a_failed_disk_write_is_not_visible_and_stops_all_writes() {
    let broken = Arc::new(AtomicBool::new(false));
    let backend = FailingDisk { disk: InMemoryBackend::new(), broken: broken.clone() };
    let file = ObjectFile::on(backend);
    let state = Arc::new(Mutex::new(State::new(Options::default(), FIRST_REVISION, [])));
    let disk = Disk::start(file, state.clone()).unwrap();

    disk.commit(put("a", Expect::Absent)).await.unwrap();
    broken.store(true, Ordering::SeqCst);
    let error = disk.commit(put("b", Expect::Absent)).await.unwrap_err();
    assert!(matches!(error, CommitError::Storage(_)), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("test file") && message.contains("disk on fire"), "{message}");
    broken.store(false, Ordering::SeqCst);
    let error = disk.commit(put("c", Expect::Absent)).await.unwrap_err();
    assert!(matches!(error, CommitError::Storage(_)), "{error:?}");

    let state = state.lock();
    assert_eq!(state.revision(), FIRST_REVISION + 1);
    assert_eq!(state.history(0).len(), 1);
    assert!(state.get(&put("b", Expect::Absent).key).is_none());
}
