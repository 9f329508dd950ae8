//! Reads objects that are on this machine's disk, and asks nobody for those that are not.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::command::{Bounds, Failure, Invocation, Refusal, Runner};
use crate::references::{Commit, References};
use crate::settings::Limits;
use crate::tree::{Entry, Object, Tree};

/// Largest commit that is read.
const LARGEST_COMMIT: usize = 1 << 20;

/// Objects on disk.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    directory: PathBuf,
    environment: Vec<(String, String)>,
}

/// How much may be read at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// Of one object.
    pub(crate) each: u64,
    /// Of all together.
    pub(crate) all: u64,
}

impl Store {
    /// A bare repository of the cache.
    pub(crate) fn bare(directory: &Path) -> Store {
        let git_dir = directory.to_string_lossy().into_owned();
        Store { directory: directory.to_owned(), environment: vec![("GIT_DIR".into(), git_dir)] }
    }

    /// A repository the operator named: it must be in that very directory, not above it.
    pub(crate) fn local(directory: &Path) -> Store {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let above = directory.parent().unwrap_or(&directory).to_string_lossy().into_owned();
        Store { directory, environment: vec![("GIT_CEILING_DIRECTORIES".into(), above)] }
    }

    fn invocation<const N: usize>(&self, limits: &Limits, arguments: [&str; N]) -> Invocation {
        let bounds = Bounds { total: limits.total, silence: limits.silence, growth: None };
        let mut invocation = Invocation::offline(&self.directory, bounds, arguments);
        invocation.environment.clone_from(&self.environment);
        invocation
    }

    /// All references, annotated tags led to their commits.
    pub(crate) async fn references(&self, runner: &Runner, limits: &Limits) -> Result<References, Failure> {
        let invocation = self.invocation(limits, ["show-ref", "--head", "--dereference"]);
        let most = limits.references;
        runner.run(invocation, move |output| References::read(output, most)).await
    }

    /// The only commit whose name begins so.
    pub(crate) async fn abbreviated(
        &self,
        runner: &Runner,
        limits: &Limits,
        digits: &str,
    ) -> Result<Option<Commit>, Failure> {
        let name = format!("{digits}^{{commit}}");
        let invocation = self.invocation(limits, ["rev-parse", "--verify", "--end-of-options", &name]);
        let output = runner.output(invocation, 200).await?;
        let text = String::from_utf8_lossy(&output);
        // With `--end-of-options`, git repeats that word.
        Ok(text.lines().find_map(Commit::parse))
    }

    /// What kind of object a name stands for; `None` when it is not here.
    pub(crate) async fn kind(
        &self,
        runner: &Runner,
        limits: &Limits,
        name: Commit,
    ) -> Result<Option<String>, Failure> {
        let mut invocation = self.invocation(limits, ["cat-file", "--batch-check=%(objecttype)"]);
        invocation.input = format!("{name}\n").into_bytes();
        let output = runner.output(invocation, 200).await?;
        let text = String::from_utf8_lossy(&output).trim().to_owned();
        Ok((!text.contains(' ')).then_some(text))
    }

    /// A commit as git stores it.
    pub(crate) async fn commit(
        &self,
        runner: &Runner,
        limits: &Limits,
        commit: Commit,
    ) -> Result<Vec<u8>, Failure> {
        let invocation = self.invocation(limits, ["cat-file", "commit", commit.as_str()]);
        runner.output(invocation, LARGEST_COMMIT).await
    }

    /// The entries of a commit's tree; links have no target yet.
    pub(crate) async fn entries(
        &self,
        runner: &Runner,
        limits: &Limits,
        commit: Commit,
    ) -> Result<Vec<Entry>, Failure> {
        let name = format!("{commit}^{{commit}}");
        let invocation = self.invocation(limits, ["ls-tree", "-r", "-z", "--full-tree", &name]);
        let (most, path_bytes) = (limits.entries, limits.path_bytes);
        runner.run(invocation, move |output| Tree::read_entries(output, most, path_bytes)).await
    }

    /// The contents of objects, in their order; `None` for those that are not here.
    pub(crate) async fn contents(
        &self,
        runner: &Runner,
        limits: &Limits,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Vec<Option<Bytes>>, Failure> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let mut invocation = self.invocation(limits, ["cat-file", "--batch", "--buffer"]);
        for object in objects {
            invocation.input.extend(object.hex().as_bytes());
            invocation.input.push(b'\n');
        }
        let count = objects.len();
        runner.run(invocation, move |output| read_batch(output, count, allowance)).await
    }
}

/// Reads the answers of `git cat-file --batch`: a line with name, type and size, the content, a line break.
fn read_batch(
    output: &mut dyn Read,
    count: usize,
    allowance: Allowance,
) -> Result<Vec<Option<Bytes>>, Refusal> {
    const MAX_LINE: u64 = 200;
    let odd = || Refusal::Content("git answered in a form that is not known".to_owned());
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut contents = Vec::with_capacity(count);
    let mut left = allowance.all;
    let mut line = Vec::new();
    for place in 0..count {
        line.clear();
        if output.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Err(Refusal::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        let head = std::str::from_utf8(&line).map_err(|_| odd())?;
        let mut words = head.split_whitespace().skip(1);
        let size = match (words.next(), words.next()) {
            (Some("missing"), _) => {
                contents.push(None);
                continue;
            }
            (Some("blob"), Some(size)) => size.parse::<u64>().map_err(|_| odd())?,
            _ => return Err(odd()),
        };
        if size > allowance.each {
            return Err(Refusal::Large { place, bytes: size });
        }
        left = left.checked_sub(size).ok_or_else(|| {
            Refusal::Limit(format!("the files asked for have more than {} bytes together", allowance.all))
        })?;
        let mut content = Vec::with_capacity(usize::try_from(size).map_err(|_| odd())?);
        let taken = output.by_ref().take(size).read_to_end(&mut content)?;
        let mut end = [0];
        output.read_exact(&mut end)?;
        if taken as u64 != size || end != *b"\n" {
            return Err(odd());
        }
        contents.push(Some(Bytes::from(content)));
    }
    Ok(contents)
}
