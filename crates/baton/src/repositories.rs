//! Which repositories may be read, and where from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

/// `--repo` and `--allow-local-repos`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RepositoryArguments {
    #[command(flatten)]
    pub(crate) mapped: MappedRepositories,
    /// Allow repoURLs that name a path on this machine (file:// and plain paths).
    #[arg(long)]
    pub(crate) allow_local_repos: bool,
}

/// `--repo`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MappedRepositories {
    /// Read this repository from a directory: what is committed there, or the files themselves where it is no git
    /// repository. May be repeated.
    #[arg(long = "repo", value_name = "URL=PATH")]
    repo: Vec<Mapping>,
}

/// A repository URL and the directory that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    url: String,
    path: PathBuf,
}

impl FromStr for Mapping {
    type Err = String;

    /// The last `=` divides: a URL may hold others, a path seldom does.
    fn from_str(text: &str) -> Result<Mapping, String> {
        let (url, path) = text
            .rsplit_once('=')
            .filter(|(url, path)| !url.is_empty() && !path.is_empty())
            .ok_or("write it as URL=PATH")?;
        let path = Path::new(path);
        if !path.is_dir() {
            return Err(format!("{} is not a directory", path.display()));
        }
        let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Mapping { url: url.to_owned(), path })
    }
}

impl RepositoryArguments {
    /// How repositories are read, with their copies kept under `cache`.
    pub(crate) fn settings(&self, cache: PathBuf) -> baton_source::Settings {
        self.mapped.settings(cache, self.allow_local_repos)
    }
}

impl MappedRepositories {
    pub(crate) fn is_empty(&self) -> bool {
        self.repo.is_empty()
    }

    /// How repositories are read, with their copies kept under `cache`; `allow_local` says whether repoURLs may name
    /// paths on this machine.
    pub(crate) fn settings(&self, cache: PathBuf, allow_local: bool) -> baton_source::Settings {
        let local: BTreeMap<String, PathBuf> =
            self.repo.iter().map(|mapping| (mapping.url.clone(), mapping.path.clone())).collect();
        baton_source::Settings { cache_dir: cache, local, allow_local, ..baton_source::Settings::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_equals_sign_divides() {
        let mapping: Mapping = "https://x.example/a?b=c=/".parse().expect("a mapping");
        assert_eq!(mapping, Mapping { url: "https://x.example/a?b=c".into(), path: "/".into() });
        for bad in ["https://x.example/a", "=/", "https://x.example/a=", "u=/no/such/directory"] {
            assert!(bad.parse::<Mapping>().is_err(), "{bad}");
        }
    }
}
