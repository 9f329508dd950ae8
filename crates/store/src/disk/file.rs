//! The store's file: opening it with suspicion, writing it with one durable transaction at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::codec;
use super::writer::Overlay;
use crate::error::{OpenError, StorageError};
use crate::record::Record;
use crate::state::FIRST_REVISION;

const FILE_NAME: &str = "objects.redb";
const NEW_FILE_NAME: &str = "objects.redb.new";
const LOCK_NAME: &str = "lock";

const OBJECTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const FORMAT: &str = "format";
const REVISION: &str = "revision";

/// Raised when older programs could misread what newer ones write.
const FORMAT_VERSION: u64 = 1;

/// Objects are read from memory, so the file's cache only serves the inner pages that writes touch.
const CACHE_BYTES: usize = 2 << 20;

/// The open file. Fields drop in order: the database is closed before the lock is released.
#[derive(Debug)]
pub(super) struct ObjectFile {
    database: Database,
    path: Arc<Path>,
    _lock: Option<Lock>,
}

/// What a file holds.
pub(super) struct Contents {
    pub(super) revision: u64,
    pub(super) records: Vec<Record>,
}

impl ObjectFile {
    /// Opens the file in a directory, creating both if they are missing.
    pub(super) fn open(dir: &Path) -> Result<(Self, Contents), OpenError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        create_dir(dir).map_err(at(dir))?;
        let lock = lock(dir)?;
        let path = dir.join(FILE_NAME);
        if !fs::exists(&path).map_err(at(&path))? {
            create(dir, &path)?;
        }
        // An empty file would be taken for a new database, and everything in it for lost.
        if fs::metadata(&path).map_err(at(&path))?.len() == 0 {
            return Err(OpenError::Corrupt { path, reason: "the file is empty".into() });
        }
        let (database, contents) = guarded(&path, || {
            let mut database = redb::Builder::new()
                .set_cache_size(CACHE_BYTES)
                .open(&path)
                .map_err(|error| refused(&path, error))?;
            check(&mut database, &path)?;
            let contents = load(&database, &path)?;
            Ok((database, contents))
        })?;
        Ok((Self { database, path: path.into(), _lock: Some(lock) }, contents))
    }

    /// Makes a batch durable.
    pub(super) fn write(&self, revision: u64, overlay: &Overlay) -> Result<(), StorageError> {
        commit(&self.database, |transaction| {
            let mut objects = transaction.open_table(OBJECTS)?;
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for (object, record) in overlay {
                key.clear();
                codec::encode_key(object, &mut key);
                match record {
                    Some(record) => {
                        value.clear();
                        codec::encode_record(record, &mut value);
                        objects.insert(&*key, &*value)?;
                    }
                    None => {
                        objects.remove(&*key)?;
                    }
                }
            }
            transaction.open_table(NUMBERS)?.insert(REVISION, revision)?;
            Ok(())
        })
        .map_err(|source| StorageError { path: self.path.clone(), source: Arc::new(source) })
    }
}

fn commit(
    database: &Database,
    fill: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    fill(&transaction)?;
    transaction.commit()?;
    Ok(())
}

/// The objects include Secrets: the directory is for its owner only.
fn create_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Exclusive use of a directory.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    /// Closing the file is not enough: a process that another thread is just starting has a copy of it until
    /// it executes its program, and would keep the lock for that moment.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "cannot unlock the store's directory");
        }
    }
}

/// One process at a time, also while the file is being created. The system releases the lock of a process
/// that dies.
fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let path = dir.join(LOCK_NAME);
    let io = |source| OpenError::Io { path: path.clone(), source };
    let file = private(OpenOptions::new().create(true).truncate(false)).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Makes an empty store. It gets its name only when it is complete, so that a crash in between leaves
/// nothing that looks like a damaged store.
fn create(dir: &Path, path: &Path) -> Result<(), OpenError> {
    let new_path = dir.join(NEW_FILE_NAME);
    let io = |source| OpenError::Io { path: new_path.clone(), source };
    let file = private(OpenOptions::new().create(true).truncate(true)).open(&new_path).map_err(io)?;
    let database = redb::Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create_file(file)
        .map_err(|error| refused(&new_path, error))?;
    initialise(&database).map_err(|error| unreadable(&new_path, error))?;
    drop(database);
    fs::rename(&new_path, path).map_err(io)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    commit(database, |transaction| {
        transaction.open_table(OBJECTS)?;
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert(FORMAT, FORMAT_VERSION)?;
        numbers.insert(REVISION, FIRST_REVISION)?;
        Ok(())
    })
}

/// Compares the file with its own checksums, which the database itself only does after a crash.
fn check(database: &mut Database, path: &Path) -> Result<(), OpenError> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(OpenError::Corrupt { path: path.to_owned(), reason: "its checksums do not match".into() })
        }
        Err(error) => Err(refused(path, error)),
    }
}

fn load(database: &Database, path: &Path) -> Result<Contents, OpenError> {
    let corrupt = |reason: &str| OpenError::Corrupt { path: path.to_owned(), reason: reason.into() };
    let (found, revision, records) = read(database).map_err(|error| unreadable(path, error))?;
    let found = found.ok_or_else(|| corrupt("it has no format number"))?;
    if found != FORMAT_VERSION {
        return Err(OpenError::Format { path: path.to_owned(), found, supported: FORMAT_VERSION });
    }
    let revision = revision.ok_or_else(|| corrupt("it has no revision"))?;
    let records = records.ok_or_else(|| corrupt("an object in it cannot be decoded"))?;
    if records.iter().any(|record| record.revision > revision) {
        return Err(corrupt("an object in it is newer than the store"));
    }
    Ok(Contents { revision, records })
}

type Read = (Option<u64>, Option<u64>, Option<Vec<Record>>);

fn read(database: &Database) -> Result<Read, redb::Error> {
    let transaction = database.begin_read()?;
    let numbers = transaction.open_table(NUMBERS)?;
    let number = |name| Ok::<_, redb::Error>(numbers.get(name)?.map(|value| value.value()));
    let objects = transaction.open_table(OBJECTS)?;
    let mut records = Some(Vec::new());
    for entry in objects.iter()? {
        let (key, value) = entry?;
        match (codec::decode(key.value(), value.value()), &mut records) {
            (Some(record), Some(records)) => records.push(record),
            _ => records = None,
        }
    }
    Ok((number(FORMAT)?, number(REVISION)?, records))
}

/// The database library checks some of what it reads with assertions; a damaged file is no reason to panic.
fn guarded<T>(path: &Path, open: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
        Err(OpenError::Corrupt { path: path.to_owned(), reason: "reading it hit an internal check".into() })
    })
}

fn refused(path: &Path, error: DatabaseError) -> OpenError {
    unreadable(path, error.into())
}

fn unreadable(path: &Path, error: redb::Error) -> OpenError {
    let path = PathBuf::from(path);
    match error {
        redb::Error::DatabaseAlreadyOpen => OpenError::InUse { path },
        redb::Error::Io(source) if !says_damaged(&source) => OpenError::Io { path, source },
        other => OpenError::Corrupt { path, reason: other.to_string() },
    }
}

/// Kinds of I/O error by which the database library reports what it read, not that it could not read.
fn says_damaged(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
    )
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.read(true).write(true)
}

#[cfg(test)]
impl ObjectFile {
    /// A new store on any backend.
    pub(super) fn on(backend: impl redb::StorageBackend) -> Self {
        let database = redb::Builder::new().create_with_backend(backend).unwrap();
        initialise(&database).unwrap();
        Self { database, path: Path::new("test file").into(), _lock: None }
    }
}
