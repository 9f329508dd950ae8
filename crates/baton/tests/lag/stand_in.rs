//! The stand-in for Argo CD's Application controller as a process of its own: this test binary, started again.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use baton_sim::dice::Dice;
use baton_sim::foreign::{self, Git, Parts, Temper};
use jiff::Timestamp;

use crate::fleet::SERVER;
use crate::process::client;
use crate::recorder::{CONTROL_NAMESPACE, MEMBER_NAMESPACE};

/// Names the kubeconfig, and asks for the stand-in.
const KUBECONFIG: &str = "BATON_STAND_IN_KUBECONFIG";
/// How it behaves is drawn from this.
const SEED: &str = "BATON_STAND_IN_SEED";
/// Longest time that it takes for anything: what is late already need not be later for hours.
const LONGEST: Duration = Duration::from_secs(2);

/// What starts it.
pub(crate) fn command(kubeconfig: &str, seed: u64) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["stand_in::runs_where_it_is_asked_for", "--exact", "--nocapture"]);
    command.env(KUBECONFIG, kubeconfig).env(SEED, seed.to_string());
    command
}

/// How the stand-in of a seed behaves.
pub(crate) fn temper(seed: u64) -> Temper {
    let drawn = Temper::new(&mut Dice::new(seed, "temper"));
    Temper { late: drawn.late.min(LONGEST), slow: drawn.slow.min(LONGEST / 4), ..drawn }
}

/// The stand-in itself, in the process that [`command`] starts; nothing in any other.
#[tokio::test]
async fn runs_where_it_is_asked_for() {
    let Ok(kubeconfig) = env::var(KUBECONFIG) else { return };
    let seed = env::var(SEED).ok().and_then(|text| text.parse().ok()).expect("a seed");
    let client = client(&PathBuf::from(kubeconfig)).await;
    foreign::run(Parts {
        // Another life draws otherwise.
        seed: seed ^ u64::from(std::process::id()),
        temper: temper(seed),
        control: client.clone(),
        namespace: CONTROL_NAMESPACE.to_owned(),
        members: [(SERVER.to_owned(), client)].into(),
        target: MEMBER_NAMESPACE.to_owned(),
        git: Arc::new(Local),
        now: Arc::new(Timestamp::now),
    })
    .await;
}

/// Repositories that are directories, read with git itself.
struct Local;

impl Git for Local {
    fn resolve(&self, url: &str, target: &str) -> Result<String, String> {
        git(url, &["rev-parse", "--verify", &format!("refs/heads/{target}^{{commit}}")])
            .map(|commit| commit.trim().to_owned())
    }

    fn file(&self, url: &str, commit: &str, path: &str) -> Result<String, String> {
        git(url, &["show", &format!("{commit}:{path}")])
    }
}

fn git(directory: &str, arguments: &[&str]) -> Result<String, String> {
    let directory = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
