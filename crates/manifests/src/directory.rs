//! A directory of plain manifests, read from git's objects.

use baton_api::source::DirectorySource;
use baton_grammar::globs::gobwas::Pattern;
use baton_source::{Astray, Entry, Kind, Place, Tree};
use bytes::Bytes;
use serde_json::Value;

use crate::aside::aside;
use crate::checkout::{Checkout, joined};
use crate::documents;
use crate::error::Fault;
use crate::settings::Limits;

/// A file that holds this anywhere is no manifest.
const SKIP_MARKER: &str = "+argocd:skip-file-rendering";

/// How the names of manifests end.
const EXTENSIONS: [&str; 4] = [".yaml", ".yml", ".json", ".jsonnet"];

/// Reads the objects of a directory in the order a walk by names meets their files.
pub(crate) async fn render(
    checkout: &Checkout,
    directory: &str,
    options: &DirectorySource,
    limits: &Limits,
) -> Result<Vec<Value>, Fault> {
    let files = candidates(&checkout.tree, directory, options)?;
    let paths: Vec<String> = files.iter().map(|file| joined(directory, file)).collect();
    // Files that ask to be skipped are read as well, but do not count.
    let contents = checkout.read(&paths, limits.manifest_bytes.saturating_mul(2)).await;
    let contents = contents.map_err(|fault| too_large(fault, limits))?;
    let (files, limits) = (files.into_iter().map(str::to_owned).collect::<Vec<_>>(), limits.clone());
    aside(move || objects_of_all(&files, &contents, &limits)).await?
}

fn objects_of_all(files: &[String], contents: &[Bytes], limits: &Limits) -> Result<Vec<Value>, Fault> {
    let mut objects = Vec::new();
    let mut counted = 0;
    for (file, content) in files.iter().zip(contents) {
        let text = documents::text(content);
        if text.contains(SKIP_MARKER) {
            continue;
        }
        counted += content.len() as u64;
        if counted > limits.manifest_bytes {
            return Err(over(limits));
        }
        objects.extend(objects_of(file, &text)?);
    }
    Ok(objects)
}

fn objects_of(file: &str, text: &str) -> Result<Vec<Value>, Fault> {
    if file.ends_with(".jsonnet") {
        return Err(Fault::Unsupported(format!(
            "Jsonnet is not supported, and {file:?} is Jsonnet: leave it out with directory.exclude, or commit what it \
             evaluates to"
        )));
    }
    if file.ends_with(".json") {
        return documents::single(text, file).map(|object| vec![object]).map_err(Fault::Options);
    }
    let read = documents::stream(text);
    let looks_like_manifest = || ["apiVersion:", "kind:", "metadata:"].iter().all(|word| text.contains(word));
    match read.fault {
        Some(why) if !read.objects.is_empty() || looks_like_manifest() => {
            Err(Fault::Manifest { file: file.to_owned(), why })
        }
        // Some other YAML, such as the values of a chart.
        _ => Ok(read.objects),
    }
}

/// The files that may be manifests, by their paths from the directory.
fn candidates<'a>(tree: &'a Tree, directory: &str, options: &DirectorySource) -> Result<Vec<&'a str>, Fault> {
    let exclude = pattern("exclude", &options.exclude)?;
    let include = pattern("include", &options.include)?;
    let mut files = Vec::new();
    for entry in tree.beneath(directory) {
        let path = entry.path()[directory.len()..].trim_start_matches('/');
        if !options.recurse && path.contains('/') {
            continue;
        }
        if !options.disable_extension_filter && !EXTENSIONS.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        if leads_to_file(tree, entry)?
            && exclude.as_ref().is_none_or(|glob| !glob.matches(path))
            && include.as_ref().is_none_or(|glob| glob.matches(path))
        {
            files.push(path);
        }
    }
    files.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    Ok(files)
}

fn pattern(field: &str, text: &str) -> Result<Option<Pattern>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let compiled = Pattern::new(text, &[]);
    compiled.map(Some).map_err(|error| Fault::Options(format!("directory.{field}: {error}")))
}

/// Whether an entry is a file, or a link to one. Links to directories are not followed, as a walk does not.
fn leads_to_file(tree: &Tree, entry: &Entry) -> Result<bool, Fault> {
    let refuse = |why: &str| Fault::Link { path: entry.path().to_owned(), why: why.to_owned() };
    match entry.kind() {
        Kind::File => Ok(true),
        Kind::Submodule => Ok(false),
        Kind::Link(_) => match tree.place(entry.path()) {
            Ok(Place::File(_)) => Ok(true),
            Ok(Place::Directory(_)) => Ok(false),
            Err(Astray::Outside) => Err(refuse("illegal filepath in symlink")),
            Err(Astray::Loop) => Err(refuse("failed to evaluate symlink: too many links")),
            Err(_) => {
                tracing::warn!(path = entry.path(), "a link leads nowhere and is passed over");
                Ok(false)
            }
        },
    }
}

fn too_large(fault: Fault, limits: &Limits) -> Fault {
    match fault {
        Fault::Repository(baton_source::SourceError::Limit { .. }) => over(limits),
        other => other,
    }
}

fn over(limits: &Limits) -> Fault {
    Fault::Limit(format!(
        "failed to get potentially valid manifests: exceeded max combined manifest file size ({} bytes)",
        limits.manifest_bytes
    ))
}
