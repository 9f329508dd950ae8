//! The directory fetched objects are kept in: one bare repository for each pair of URL and credentials.
//!
//! Several processes may share it. A lease (a shared file lock) keeps a repository from being removed while it is
//! read; a turn (an exclusive one) lets only one at a time fetch into it. Both end with the process that holds them,
//! however it ends, so whatever half-written file is found under a turn is nobody's.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::command::directory_size;

/// What the configuration of a cached repository says, whatever a newer `git` may have added.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/// More packs than this slow reading down; then the repository is fetched anew.
const MAX_PACKS: usize = 200;

/// The cache directory.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    key: hmac::Key,
}

/// One repository's place in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    /// The bare repository.
    pub(crate) directory: PathBuf,
    name: String,
}

/// While it lives, the slot is not removed.
#[derive(Debug)]
pub(crate) struct Lease(#[allow(dead_code, reason = "the lock ends when it is dropped")] Lock);

/// While it lives, nobody else fetches into the slot.
#[derive(Debug)]
pub(crate) struct Turn(#[allow(dead_code, reason = "the lock ends when it is dropped")] Lock);

/// A lock on a file, held as long as it lives.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn shared(file: File) -> io::Result<Lock> {
        file.lock_shared()?;
        Ok(Lock(file))
    }

    /// Waits until nobody else has the lock; `None` after `patience`.
    fn exclusive(file: File, patience: Duration) -> io::Result<Option<Lock>> {
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock(file))),
                Err(TryLockError::Error(fault)) => return Err(fault),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= patience => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Lock {
    /// Closing the file is not enough: a child that another thread is just starting has a copy of it until it becomes
    /// its program, and the lock would live as long as the copy.
    fn drop(&mut self) {
        // Closing the file is what is left when this fails.
        let _ = self.0.unlock();
    }
}

impl Cache {
    /// Opens the directory, making it when it is missing.
    pub(crate) fn open(root: &Path) -> io::Result<Cache> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        for part in ["repositories", "locks"] {
            private.create(root.join(part))?;
            // Who owns it could put objects in it that no server ever sent.
            if fs::symlink_metadata(root.join(part))?.uid() != rustix::process::geteuid().as_raw() {
                return Err(io::Error::other(format!(
                    "{} belongs to another user",
                    root.join(part).display()
                )));
            }
        }
        let root = root.canonicalize()?;
        bury_remains(&root);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &own_key(&root)?);
        Ok(Cache { root, key })
    }

    /// The place of a repository read with credentials of that identity. The name tells nothing about either.
    pub(crate) fn slot(&self, url: &str, identity: &[u8]) -> Slot {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&(url.len() as u64).to_be_bytes());
        context.update(url.as_bytes());
        context.update(identity);
        let name: String =
            context.sign().as_ref().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        Slot { directory: self.root.join("repositories").join(&name), name }
    }

    /// Waits until the slot is not being removed.
    pub(crate) fn lease(&self, slot: &Slot) -> io::Result<Lease> {
        Ok(Lease(Lock::shared(self.lock_file(slot, "use")?)?))
    }

    /// Waits until nobody else fetches into the slot; `None` after `patience`.
    pub(crate) fn turn(&self, slot: &Slot, patience: Duration) -> io::Result<Option<Turn>> {
        let lock = Lock::exclusive(self.lock_file(slot, "fetch")?, patience)?;
        Ok(lock.map(Turn))
    }

    /// Lock files are shared by few slots each and never removed: removing a lock file lets two hold "the" lock.
    fn lock_file(&self, slot: &Slot, kind: &str) -> io::Result<File> {
        let shard = slot.name.get(..3).unwrap_or(&slot.name);
        let path = self.root.join("locks").join(format!("{shard}.{kind}"));
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
    }

    /// Makes the slot ready to be fetched into. Only with the turn. A broken one is made anew as soon as nobody reads
    /// it, within `patience`.
    ///
    /// What has gathered over many fetches is thrown away before it comes near the bound on one repository: the bound
    /// is on what a repository needs, not on what it once needed.
    pub(crate) fn prepare(
        &self,
        slot: &Slot,
        _turn: &Turn,
        most_bytes: u64,
        patience: Duration,
    ) -> io::Result<()> {
        if pack_count(&slot.directory) > MAX_PACKS || directory_size(&slot.directory) > most_bytes / 2 {
            self.try_remove(slot, Duration::ZERO)?;
        }
        if !slot.directory.join("HEAD").is_file() || !slot.directory.join("objects").is_dir() {
            self.create(slot, patience)?;
        }
        clear_leftovers(&slot.directory);
        restore_config(slot)
    }

    /// Ends a turn after a fetch, noting the use. A `git` that wrote down what it left out would make every reader ask
    /// for it.
    pub(crate) fn end(&self, slot: &Slot, turn: Turn) -> io::Result<()> {
        self.touch(slot);
        clear_leftovers(&slot.directory);
        let restored = if slot.directory.exists() { restore_config(slot) } else { Ok(()) };
        drop(turn);
        restored
    }

    /// Writes an empty bare repository. It appears at its place whole.
    fn create(&self, slot: &Slot, patience: Duration) -> io::Result<()> {
        let new = tempfile::Builder::new().prefix("new-").tempdir_in(&self.root)?;
        let directory = new.path().join("repository");
        for part in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            fs::create_dir_all(directory.join(part))?;
        }
        fs::write(directory.join("config"), CONFIG)?;
        fs::write(directory.join("HEAD"), "ref: refs/heads/none\n")?;
        self.remove(slot, patience)?;
        fs::rename(&directory, &slot.directory)
    }

    /// Removes a slot, waiting until nobody reads it.
    pub(crate) fn remove(&self, slot: &Slot, patience: Duration) -> io::Result<()> {
        if self.try_remove(slot, patience)? {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "others still read it"))
        }
    }

    /// Removes a slot if nobody reads it any more within `patience`, and says whether it is gone. What stays is tried
    /// again another time.
    fn try_remove(&self, slot: &Slot, patience: Duration) -> io::Result<bool> {
        if !slot.directory.exists() {
            return Ok(true);
        }
        let Some(alone) = Lock::exclusive(self.lock_file(slot, "use")?, patience)? else { return Ok(false) };
        // Another may have been faster.
        if !slot.directory.exists() {
            return Ok(true);
        }
        // Renamed first: a removal that is cut short leaves no half repository at its place.
        let grave = tempfile::Builder::new().prefix("old-").tempdir_in(&self.root)?;
        fs::rename(&slot.directory, grave.path().join("repository"))?;
        drop(alone);
        grave.close()?;
        Ok(true)
    }

    /// Notes that the slot was just used.
    fn touch(&self, slot: &Slot) {
        let used = File::options().create(true).truncate(false).write(true).open(slot.directory.join("used"));
        // Only the order of removal depends on it.
        let _ = used.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes the longest unused slots until the cache is within its bounds again; never `keep`.
    pub(crate) fn evict(&self, keep: &Slot, most: usize, most_bytes: u64) -> io::Result<()> {
        let mut slots = Vec::new();
        for entry in fs::read_dir(self.root.join("repositories"))?.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let slot = Slot { directory: entry.path(), name };
            let used = fs::metadata(slot.directory.join("used")).and_then(|metadata| metadata.modified());
            slots.push((used.unwrap_or(SystemTime::UNIX_EPOCH), directory_size(&slot.directory), slot));
        }
        slots.sort_by_key(|(used, ..)| *used);
        let (mut count, mut bytes) = (slots.len(), slots.iter().map(|(_, size, _)| size).sum::<u64>());
        for (_, size, slot) in slots {
            if count <= most && bytes <= most_bytes {
                break;
            }
            if slot == *keep {
                continue;
            }
            if self.try_remove(&slot, Duration::ZERO)? {
                count -= 1;
                bytes -= size;
            }
        }
        Ok(())
    }
}

/// Removes directories that a killed process was making or removing. Young ones may be another process's.
fn bury_remains(root: &Path) {
    const OLD: Duration = Duration::from_secs(3600);
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("new-") || name.starts_with("old-"));
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|made| made.elapsed());
        if is_ours && age.is_ok_and(|age| age.is_ok_and(|age| age > OLD)) {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The random key slots are named with, made by whoever comes first.
fn own_key(root: &Path) -> io::Result<Vec<u8>> {
    let path = root.join("key");
    if let Some(key) = fs::read(&path).ok().filter(|key| key.len() == 32) {
        return Ok(key);
    }
    let mut key = [0; 32];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| io::Error::other("the machine gives no random numbers"))?;
    let mut file = tempfile::NamedTempFile::new_in(root)?;
    file.write_all(&key)?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(key.to_vec()),
        Err(clash) if clash.error.kind() == io::ErrorKind::AlreadyExists => {
            let key = fs::read(&path)?;
            if key.len() == 32 {
                Ok(key)
            } else {
                Err(io::Error::other("the cache directory's key is damaged"))
            }
        }
        Err(other) => Err(other.error),
    }
}

/// Removes what a killed `git` left: locks and half-written packs.
fn clear_leftovers(directory: &Path) {
    let is_leftover = |name: &str| name.ends_with(".lock") || name.starts_with("tmp_");
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            match name.to_str() {
                // What cannot be removed is complained about by the fetch that trips over it.
                Some(name) if is_leftover(name) && is_directory => drop(fs::remove_dir_all(path)),
                Some(name) if is_leftover(name) => drop(fs::remove_file(path)),
                _ if is_directory => open.push(path),
                _ => {}
            }
        }
    }
}

fn restore_config(slot: &Slot) -> io::Result<()> {
    let config = slot.directory.join("config");
    if fs::read_to_string(&config).ok().as_deref() == Some(CONFIG) {
        return Ok(());
    }
    // Readers may be about: they must see the old or the new, never half of it.
    let mut file = tempfile::NamedTempFile::new_in(&slot.directory)?;
    file.write_all(CONFIG.as_bytes())?;
    file.persist(&config).map(drop).map_err(|fault| fault.error)
}

fn pack_count(directory: &Path) -> usize {
    let packs = fs::read_dir(directory.join("objects/pack")).into_iter().flatten().flatten();
    packs.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(directory.path()).expect("a cache");
        (directory, cache)
    }

    fn filled(cache: &Cache, url: &str, bytes: usize) -> Slot {
        let slot = cache.slot(url, b"");
        let turn = cache.turn(&slot, Duration::ZERO).expect("a lock").expect("nobody else");
        cache.prepare(&slot, &turn, u64::MAX, Duration::ZERO).expect("prepared");
        fs::write(slot.directory.join("objects/pack/x.pack"), vec![0; bytes]).expect("written");
        slot
    }

    #[test]
    fn a_slot_is_named_by_url_and_credentials_and_stays_so() {
        let (directory, cache) = cache();
        let again = Cache::open(directory.path()).expect("a cache");
        assert_eq!(cache.slot("u", b"a"), again.slot("u", b"a"));
        assert_ne!(cache.slot("u", b"a"), cache.slot("u", b"b"));
        assert_ne!(cache.slot("u", b"a"), cache.slot("ua", b""));
        let (_other_directory, other) = self::cache();
        assert_ne!(cache.slot("u", b"a").name, other.slot("u", b"a").name);
    }

    #[test]
    fn leftovers_of_a_killed_fetch_are_cleared() {
        let (_directory, cache) = cache();
        let slot = filled(&cache, "u", 1);
        let leftovers = ["shallow.lock", "config.lock", "objects/pack/tmp_pack_abc", "refs/heads/x.lock"];
        for leftover in leftovers {
            fs::write(slot.directory.join(leftover), "").expect("written");
        }
        fs::write(slot.directory.join("config"), "[core]\n\thooksPath = /tmp/x\n").expect("written");
        let turn = cache.turn(&slot, Duration::ZERO).expect("a lock").expect("nobody else");
        cache.prepare(&slot, &turn, u64::MAX, Duration::ZERO).expect("prepared");
        for leftover in leftovers {
            assert!(!slot.directory.join(leftover).exists(), "{leftover}");
        }
        assert!(slot.directory.join("objects/pack/x.pack").exists());
        assert_eq!(fs::read_to_string(slot.directory.join("config")).expect("read"), CONFIG);
    }

    #[test]
    fn old_remains_of_killed_processes_are_buried() {
        let (directory, cache) = cache();
        let old = directory.path().join("old-x");
        let young = directory.path().join("new-y");
        for remain in [&old, &young] {
            fs::create_dir_all(remain.join("repository")).expect("made");
        }
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        File::open(&old).and_then(|file| file.set_modified(long_ago)).expect("aged");
        drop(cache);
        Cache::open(directory.path()).expect("a cache");
        assert_eq!((old.exists(), young.exists()), (false, true));
    }

    #[test]
    fn a_leased_slot_stays_and_a_free_one_goes() {
        let (_directory, cache) = cache();
        let slot = filled(&cache, "u", 1);
        let lease = cache.lease(&slot).expect("a lease");
        assert!(!cache.try_remove(&slot, Duration::ZERO).expect("left alone"));
        assert!(slot.directory.exists());
        drop(lease);
        assert!(cache.try_remove(&slot, Duration::ZERO).expect("removed"));
        assert!(!slot.directory.exists());
    }

    #[test]
    fn a_lock_ends_though_a_child_being_started_has_a_copy_of_its_file() {
        let (_directory, cache) = cache();
        let slot = filled(&cache, "u", 1);
        let lease = cache.lease(&slot).expect("a lease");
        // Another name for the same open file, as a child has.
        let copy = lease.0.0.try_clone().expect("a copy");
        drop(lease);
        cache.remove(&slot, Duration::ZERO).expect("removed");
        assert!(!slot.directory.exists());
        drop(copy);
    }

    #[test]
    fn a_broken_slot_is_made_anew_when_its_readers_are_done() {
        let (_directory, cache) = cache();
        let slot = filled(&cache, "u", 1);
        fs::remove_file(slot.directory.join("HEAD")).expect("broken");
        let turn = cache.turn(&slot, Duration::ZERO).expect("a lock").expect("nobody else");
        let lease = cache.lease(&slot).expect("a lease");
        let fault = cache.prepare(&slot, &turn, u64::MAX, Duration::ZERO).expect_err("it is read");
        assert_eq!(fault.kind(), io::ErrorKind::ResourceBusy, "{fault}");
        std::thread::scope(|scope| {
            let prepared = scope.spawn(|| cache.prepare(&slot, &turn, u64::MAX, Duration::MAX));
            drop(lease);
            prepared.join().expect("no panic").expect("prepared");
        });
        assert!(slot.directory.join("HEAD").is_file());
    }

    #[test]
    fn only_one_has_the_turn() {
        let (directory, cache) = cache();
        let slot = cache.slot("u", b"");
        let turn = cache.turn(&slot, Duration::ZERO).expect("a lock").expect("nobody else");
        let other = Cache::open(directory.path()).expect("a cache");
        assert!(other.turn(&slot, Duration::ZERO).expect("a lock").is_none());
        drop(turn);
        assert!(other.turn(&slot, Duration::ZERO).expect("a lock").is_some());
    }

    #[test]
    fn the_longest_unused_slots_are_evicted_first() {
        let (_directory, cache) = cache();
        let slots: Vec<Slot> = ["a", "b", "c", "d"].iter().map(|url| filled(&cache, url, 1000)).collect();
        for (age, slot) in slots.iter().enumerate() {
            cache.touch(slot);
            let used = File::options().write(true).open(slot.directory.join("used")).expect("touched");
            let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + age as u64);
            used.set_modified(when).expect("set");
        }
        let left = || slots.iter().map(|slot| slot.directory.exists()).collect::<Vec<_>>();
        cache.evict(&slots[0], 3, u64::MAX).expect("evicted");
        assert_eq!(left(), [true, false, true, true]);
        cache.evict(&slots[0], 10, 2500).expect("evicted");
        assert_eq!(left(), [true, false, false, true]);
    }
}
