//! Fetches into the cache: commits with their trees first, file contents only when they are read.
//!
//! A directory generator never needs a file's content and a file generator few of them, so contents are asked for by
//! name, all those of one call together. A server that cannot leave contents out sends everything, and nothing is
//! missing afterwards; one that gives no single commit is asked for all its branches and tags.

use crate::access::Access;
use crate::cache::Slot;
use crate::command::{Bounds, Failure, Invocation, Runner};
use crate::complaint::explain;
use crate::error::SourceError;
use crate::references::{Commit, References, not_found};
use crate::session::Session;
use crate::settings::Limits;
use crate::tree::Object;

/// One repository that can be asked.
pub(crate) struct Conversation<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) limits: &'a Limits,
    pub(crate) session: &'a Session,
    pub(crate) access: &'a Access,
    pub(crate) repository: &'a str,
}

/// What of a repository is left out of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    Contents,
    /// Trees too: only commits are asked for.
    Trees,
    Nothing,
}

impl Filter {
    fn left_out(self) -> Option<&'static str> {
        match self {
            Filter::Contents => Some("blob:none"),
            Filter::Trees => Some("tree:0"),
            Filter::Nothing => None,
        }
    }
}

impl Conversation<'_> {
    /// The references the repository lists.
    pub(crate) async fn references(&self, directory: &std::path::Path) -> Result<References, SourceError> {
        let mut invocation = self.invocation(directory, Filter::Nothing, &["ls-remote", "--", "origin"]);
        // Nothing is written, so it needs no repository; one that is found by chance must not have a say.
        invocation.environment.push(("GIT_DIR".into(), "/nonexistent".into()));
        let most = self.limits.references;
        let listed = self.runner.run(invocation, move |output| References::read(output, most)).await;
        listed.map_err(|failure| self.explain(failure))
    }

    /// Fetches a commit with its trees.
    pub(crate) async fn commit(&self, slot: &Slot, commit: Commit) -> Result<(), SourceError> {
        let wanted = format!("+{commit}:refs/baton/{commit}");
        let one = self.fetch(slot, Filter::Contents, &["--depth=1", "origin", &wanted], Vec::new()).await;
        match one {
            Err(Failure::Exit(complaint)) if gives_references_only(&complaint) => {
                self.everything(slot, Filter::Contents, true).await
            }
            other => other.map_err(|failure| self.explain(failure)),
        }
    }

    /// Fetches every commit of every branch and tag, without trees.
    pub(crate) async fn commits(&self, slot: &Slot) -> Result<(), SourceError> {
        self.everything(slot, Filter::Trees, false).await
    }

    async fn everything(&self, slot: &Slot, filter: Filter, all: bool) -> Result<(), SourceError> {
        let refspecs: &[&str] = if all {
            &["+refs/*:refs/all/*"]
        } else {
            &["+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*"]
        };
        let mut arguments = vec!["--prune"];
        if slot.directory.join("shallow").exists() {
            arguments.push("--unshallow");
        }
        arguments.push("origin");
        arguments.extend(refspecs);
        let fetched = self.fetch(slot, filter, &arguments, Vec::new()).await;
        fetched.map_err(|failure| self.explain(failure))
    }

    /// Fetches contents that are not here yet. Says whether the server gives single objects at all.
    pub(crate) async fn contents(&self, slot: &Slot, objects: &[Object]) -> Result<bool, SourceError> {
        let names: String = objects.iter().map(|object| format!("{}\n", object.hex())).collect();
        let some = self.fetch(slot, Filter::Contents, &["--stdin", "origin"], names.into_bytes()).await;
        match some {
            Ok(()) => Ok(true),
            Err(Failure::Exit(complaint)) if gives_references_only(&complaint) => Ok(false),
            Err(failure) => Err(self.explain(failure)),
        }
    }

    /// Fetches all there is, contents and all, into an empty slot.
    pub(crate) async fn whole(&self, slot: &Slot) -> Result<(), SourceError> {
        self.everything(slot, Filter::Nothing, true).await
    }

    async fn fetch(
        &self,
        slot: &Slot,
        filter: Filter,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<(), Failure> {
        let leave_out = filter.left_out().map(|left_out| format!("--filter={left_out}"));
        let mut all = vec![
            "fetch",
            "--progress",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-gc",
            "--no-show-forced-updates",
            leave_out.as_deref().unwrap_or("--no-filter"),
        ];
        all.extend(arguments);
        let mut invocation = self.invocation(&slot.directory, filter, &all);
        let git_dir = slot.directory.to_string_lossy().into_owned();
        invocation.environment.push(("GIT_DIR".into(), git_dir));
        if !input.is_empty() {
            // Objects asked for by name have no history to be negotiated about.
            invocation.config.push(("fetch.negotiationAlgorithm".into(), "noop".into()));
        }
        invocation.input = input;
        let objects = slot.directory.join("objects");
        invocation.bounds.growth = Some((objects, self.limits.repository_bytes));
        self.runner.output(invocation, 1 << 20).await.map(drop)
    }

    fn invocation(&self, directory: &std::path::Path, filter: Filter, arguments: &[&str]) -> Invocation {
        let bounds = Bounds { total: self.limits.total, silence: self.limits.silence, growth: None };
        let mut invocation = Invocation::offline(directory, bounds, arguments);
        invocation.protocols = self.session.protocols;
        invocation.environment.clone_from(&self.session.environment);
        invocation.config.clone_from(&self.session.config);
        let mut set = |key: &str, value: &str| invocation.config.push((key.to_owned(), value.to_owned()));
        set("remote.origin.url", &self.session.url);
        if let Some(left_out) = filter.left_out() {
            // Only this run knows that objects are missing on purpose: others then ask nobody for them.
            set("remote.origin.promisor", "true");
            set("remote.origin.partialclonefilter", left_out);
        }
        invocation
    }

    fn explain(&self, failure: Failure) -> SourceError {
        if let Failure::Exit(complaint) = &failure
            && lacks_object(complaint)
        {
            return not_found(self.repository, &named_object(complaint), "the repository has no such commit");
        }
        let failure = match failure {
            Failure::Exit(complaint) => Failure::Exit(self.session.without_file_names(&complaint)),
            other => other,
        };
        explain(self.repository, failure, &self.session.secrets(self.access))
    }
}

/// Whether the server gives what its references lead to and nothing by name: git's first protocol, and servers set up
/// so.
fn gives_references_only(complaint: &str) -> bool {
    ["unadvertised object", "not valid"].iter().any(|sign| complaint.contains(sign))
}

/// Whether the server says it does not have an object, or has one of that name that is no commit.
fn lacks_object(complaint: &str) -> bool {
    ["not our ref", "bad revision"].iter().any(|sign| complaint.contains(sign))
        || gives_references_only(complaint)
}

fn named_object(complaint: &str) -> String {
    let words = complaint.split(|c: char| !c.is_ascii_hexdigit());
    words.filter(|word| word.len() == 40).map(str::to_owned).next().unwrap_or_default()
}
