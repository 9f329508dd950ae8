//! Killing the process in the middle of writes: nothing acknowledged is lost, nothing is torn.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_store::{Options, Page, Store};

use crate::object::{json, key, remove, run, set};
use crate::random::Random;

const ROUNDS: u64 = 200;
const WRITERS: u64 = 8;
const KEYS_PER_WRITER: u64 = 4;

const DIR: &str = "BATON_STORE_CRASH_DIR";
const SEED: &str = "BATON_STORE_CRASH_SEED";

/// What a key holds: the revision and the number its text was made from. `None` if it is absent.
type Held = Option<(u64, u64)>;

#[test]
fn no_acknowledged_write_is_lost_in_200_kills() {
    let seed = std::env::var(SEED).map_or(20_260_101, |seed| seed.parse().unwrap());
    println!("seed {seed} (set {SEED} to change it)");
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let mut expected = Expected::default();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let child = start_writer(dir.path(), random.next());
        let acknowledgements = random.below(30);
        let pause = Duration::from_micros(random.below(3000));
        acknowledged += expected.follow(child, acknowledgements, pause);
        expected.check(dir.path(), round);
    }
    assert!(acknowledged > ROUNDS * 5, "only {acknowledged} writes in all: the rounds show nothing");
    println!("{acknowledged} acknowledged writes");
}

/// What the store must hold, as told by the killed processes.
#[derive(Default)]
struct Expected {
    held: BTreeMap<String, Held>,
    /// Begun and not acknowledged: the number being put, or `None` for a deletion.
    begun: BTreeMap<String, Option<u64>>,
    revision: u64,
    /// Every revision ever acknowledged.
    taken: BTreeSet<u64>,
}

impl Expected {
    /// Reads what a writer reports, kills it a moment after some acknowledgements, and reads the rest.
    fn follow(&mut self, mut writer: Child, acknowledgements: u64, pause: Duration) -> u64 {
        let mut reports = BufReader::new(writer.stdout.take().unwrap());
        let (mut line, mut acknowledged, mut killed) = (String::new(), 0, false);
        let opened_at = self.revision;
        loop {
            if acknowledged >= acknowledgements && !killed {
                let start = Instant::now();
                while start.elapsed() < pause {
                    std::hint::spin_loop();
                }
                writer.kill().unwrap();
                killed = true;
            }
            line.clear();
            reports.read_line(&mut line).unwrap();
            // The pipe ends after the last whole line or within one that no longer counts.
            let Some(report) = line.strip_suffix('\n') else { break };
            acknowledged += u64::from(self.note(report, opened_at));
        }
        let status = writer.wait().unwrap();
        assert!(killed, "the writer ended by itself: {status}");
        acknowledged
    }

    /// Whether the report is an acknowledgement.
    fn note(&mut self, report: &str, opened_at: u64) -> bool {
        let words: Vec<_> = report.split(' ').collect();
        match words[..] {
            ["begin", name, "put", number] => {
                self.begun.insert(name.to_owned(), Some(number.parse().unwrap()));
            }
            ["begin", name, "delete"] => {
                self.begun.insert(name.to_owned(), None);
            }
            ["done", name, revision] => {
                let revision = revision.parse().unwrap();
                assert!(revision > opened_at, "revision {revision} is not after the opening at {opened_at}");
                assert!(self.taken.insert(revision), "revision {revision} was given twice");
                let number = self.begun.remove(name).unwrap();
                self.held.insert(name.to_owned(), number.map(|number| (revision, number)));
                self.revision = self.revision.max(revision);
                return true;
            }
            // The test harness of the child also writes here.
            _ => {}
        }
        false
    }

    fn check(&mut self, dir: &Path, round: u64) {
        let store = Store::open(dir, Options::default()).unwrap();
        assert!(store.revision() >= self.revision, "round {round}: the revision went back");
        let listing = store.list("things", None, Page::default()).unwrap();
        let mut found = BTreeMap::new();
        let mut revisions = BTreeSet::new();
        for record in listing.records {
            assert!(
                record.created <= record.revision && record.revision <= store.revision(),
                "round {round}"
            );
            assert!(revisions.insert(record.revision), "round {round}: two objects at {}", record.revision);
            found.insert(record.key.name.to_string(), record);
        }
        for (name, held) in &mut self.held {
            let Some(record) = found.remove(name) else {
                let deleted = held.is_none() || self.begun.get(name) == Some(&None);
                assert!(deleted, "round {round}: {name} is lost, acknowledged was {held:?}");
                *held = None;
                continue;
            };
            let number = match (*held, self.begun.get(name)) {
                (Some((revision, number)), _) if revision == record.revision => number,
                (held, Some(Some(number))) if record.revision > held.map_or(0, |(revision, _)| revision) => {
                    *number
                }
                (held, begun) => {
                    panic!(
                        "round {round}: {name} is at {}, acknowledged {held:?}, begun {begun:?}",
                        record.revision
                    )
                }
            };
            let want = json(name, &text_of(number), record.revision);
            assert!(record.json() == want, "round {round}: {name} is torn");
            *held = Some((record.revision, number));
        }
        for (name, record) in found {
            let Some(Some(number)) = self.begun.get(&name) else {
                panic!("round {round}: nobody wrote {name}")
            };
            let want = json(&name, &text_of(*number), record.revision);
            assert!(record.json() == want, "round {round}: {name} is torn");
            self.held.insert(name, Some((record.revision, *number)));
        }
        self.begun.clear();
        self.revision = store.revision();
    }
}

fn start_writer(dir: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writer_process", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The process that the crash test kills: the same test binary, told by the environment to write until then.
#[test]
fn writer_process() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let mut random = Random::new(std::env::var(SEED).expect("set by the crash test").parse().unwrap());
    let store = Store::open(Path::new(&dir), Options::default()).unwrap();
    // Ends the line that the test harness has begun.
    report("");
    run(async {
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            writers.push(tokio::spawn(write_forever(store.clone(), writer, Random::new(random.next()))));
        }
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// Writes to its own keys, so that at most one write of a key is under way.
async fn write_forever(store: Store, writer: u64, mut random: Random) {
    loop {
        let name = format!("{writer}-{}", random.below(KEYS_PER_WRITER));
        let key = key("things", "ns", &name);
        let revision = if store.get(&key).is_some() && random.below(4) == 0 {
            report(&format!("begin {name} delete"));
            remove(&store, &key).await.revision
        } else {
            let number = random.next();
            report(&format!("begin {name} put {number}"));
            set(&store, &key, &text_of(number)).await.revision
        };
        report(&format!("done {name} {revision}"));
    }
}

fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    // One call, so that a line is either in the pipe or not.
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Text of up to 6 KB that only this number gives.
fn text_of(number: u64) -> String {
    let mut random = Random::new(number);
    let words = random.below(350);
    (0..words).map(|_| format!("{:016x} ", random.next())).collect()
}
