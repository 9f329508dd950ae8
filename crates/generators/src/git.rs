//! The git generator: directories or files of a repository.

use std::collections::BTreeSet;

use baton_api::generators::{GitGenerator, GitPath};
use baton_api::names::DEFAULT_PROJECT;
use baton_api::names::application_set::REFRESH;
use baton_grammar::globs::path::Pattern;
use baton_grammar::yaml;
use baton_render::{Engine, Params};
use baton_source::{Access, Commit};
use baton_template::{List, Map, Value, normalize};
use bytes::Bytes;
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::flat;
use crate::list;
use crate::outside::Outside;
use crate::pass::Pass;
use crate::values::Values;
use crate::world::World;

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// One set per directory, or per object in each file.
    pub(crate) async fn git(&self, git: &GitGenerator) -> Result<Vec<Params>, String> {
        if git.directories.is_empty() && git.files.is_empty() {
            return Err("ApplicationSet is empty: neither directories nor files are asked for".to_owned());
        }
        let access = self.access(&git.repo_url).await.map_err(from_git)?;
        let fresh = self.set.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(REFRESH));
        let commit = self.commit(&git.repo_url, &access, &git.revision, fresh).await.map_err(from_git)?;
        if git.directories.is_empty() {
            self.files(git, &access, &commit).await
        } else {
            self.directories(git, &access, &commit).await
        }
    }

    /// Credentials for a repository. Those of a project are used only when the set names that project outright.
    async fn access(&self, url: &str) -> Result<Access, String> {
        let project = match self.set.spec.template.spec.project.as_str() {
            templated if templated.contains("{{") => "",
            "" => DEFAULT_PROJECT,
            named => named,
        };
        if !project.is_empty() {
            self.project_must_allow(project).await?;
        }
        let secrets = self.repository_secrets().await?;
        let trust = self.trust().await?;
        let access = baton_source::access(url, project, &secrets).map_err(|error| error.to_string())?;
        Ok(access.trusting(url, trust))
    }

    async fn directories(
        &self,
        git: &GitGenerator,
        access: &Access,
        commit: &Commit,
    ) -> Result<Vec<Params>, String> {
        let tree = self
            .outside
            .tree(&git.repo_url, access, commit)
            .await
            .map_err(|error| from_git(format!("error getting directories from repo: {error}")))?;
        let wanted = Directories::new(&git.directories);
        let mut values = Values::new(&self.engine, &git.values, &self.budget);
        let mut sets = Vec::new();
        for directory in tree.directories().filter(|directory| wanted.takes(directory)) {
            let params = Map::new([]);
            Place { directory, file: None }.add_to(&params, &git.path_param_prefix, &self.engine);
            values.append(&params).map_err(|message| {
                format!("directory '{directory}': failed to append templated values: {message}")
            })?;
            sets.push(params);
            self.budget.sets(sets.len())?;
        }
        Ok(sets)
    }

    async fn files(
        &self,
        git: &GitGenerator,
        access: &Access,
        commit: &Commit,
    ) -> Result<Vec<Params>, String> {
        let tree = self
            .outside
            .tree(&git.repo_url, access, commit)
            .await
            .map_err(|error| from_git(format!("error retrieving Git files: {error}")))?;
        let mut paths = BTreeSet::new();
        for (excluded, pattern) in in_order(&git.files) {
            let found = if self.settings.new_git_file_globbing {
                tree.files_like_doublestar(pattern)
            } else {
                tree.files_like_pathspec(pattern)
            };
            for path in found.map_err(|error| from_git(error.to_string()))? {
                if excluded {
                    paths.remove(&path);
                } else {
                    paths.insert(path);
                }
            }
        }
        let paths: Vec<String> = paths.into_iter().collect();
        let files = self
            .outside
            .read(&git.repo_url, access, commit, &paths)
            .await
            .map_err(|error| from_git(format!("error retrieving Git files: {error}")))?;
        let mut values = Values::new(&self.engine, &git.values, &self.budget);
        let mut sets = Vec::new();
        for (path, content) in &files {
            let of_file =
                of_file(path, content, git, &self.engine, &mut values, &self.budget).map_err(|message| {
                    from_git(format!(
                        "unable to process file '{path}' from repository '{}': {message}",
                        without_user(&git.repo_url)
                    ))
                })?;
            sets.extend(of_file);
            self.budget.sets(sets.len())?;
        }
        Ok(sets)
    }
}

fn from_git(message: String) -> String {
    format!("error generating params from git: {message}")
}

/// A URL without the user and password it may hold.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{}", &rest[user.len() + 1..]),
        None => url.to_owned(),
    }
}

/// What is taken, then what is left out of it: the order in the set does not matter.
fn in_order(files: &[GitPath]) -> impl Iterator<Item = (bool, &str)> {
    let of = |excluded: bool| files.iter().filter(move |file| file.exclude == excluded);
    of(false).chain(of(true)).map(|file| (file.exclude, file.path.as_str()))
}

/// Which directories are taken.
struct Directories {
    taken: Vec<Pattern>,
    left_out: Vec<Pattern>,
}

impl Directories {
    /// A pattern that is none matches nothing.
    fn new(items: &[GitPath]) -> Directories {
        let (mut taken, mut left_out) = (Vec::new(), Vec::new());
        for item in items {
            match Pattern::new(&item.path) {
                Ok(pattern) if item.exclude => left_out.push(pattern),
                Ok(pattern) => taken.push(pattern),
                Err(error) => tracing::warn!(%error, "a directory pattern matches nothing"),
            }
        }
        Directories { taken, left_out }
    }

    fn takes(&self, directory: &str) -> bool {
        self.taken.iter().any(|pattern| pattern.matches(directory))
            && !self.left_out.iter().any(|pattern| pattern.matches(directory))
    }
}

/// Parameters of each object in a file.
fn of_file(
    path: &str,
    content: &Bytes,
    git: &GitGenerator,
    engine: &Engine,
    values: &mut Values<'_>,
    budget: &Budget,
) -> Result<Vec<Params>, String> {
    let (directory, file) = path.rsplit_once('/').unwrap_or((".", path));
    let mut sets = Vec::new();
    for object in objects(content, budget)? {
        let params = match engine {
            Engine::Go(_) => object,
            Engine::Fast => Map::new(
                flat::flatten(&object).into_iter().map(|(key, value)| (key.into(), Value::from(value))),
            ),
        };
        Place { directory, file: Some(file) }.add_to(&params, &git.path_param_prefix, engine);
        values.append(&params).map_err(|message| format!("failed to append templated values: {message}"))?;
        sets.push(params);
    }
    Ok(sets)
}

/// One object, or each of a list; nothing at all is an object without keys.
fn objects(content: &[u8], budget: &Budget) -> Result<Vec<Params>, String> {
    let text = std::str::from_utf8(content).map_err(|_| "unable to parse file: it is not UTF-8")?;
    let document = yaml::first(text).map_err(|error| format!("unable to parse file: {error}"))?;
    let fail = |_| "unable to parse file: it holds neither an object nor a list of objects".to_owned();
    match &document {
        Json::Array(items) => {
            budget.sets(items.len())?;
            items.iter().map(|item| list::object(item).map_err(fail)).collect()
        }
        other => list::object(other).map(|object| vec![object]).map_err(fail),
    }
}

/// A directory, or a file in one.
struct Place<'p> {
    directory: &'p str,
    file: Option<&'p str>,
}

impl Place<'_> {
    fn add_to(&self, params: &Params, prefix: &str, engine: &Engine) {
        let basename = self.directory.rsplit('/').next().unwrap_or_default();
        let mut texts = vec![("basename", basename.to_owned()), ("basenameNormalized", normalize(basename))];
        if let Some(file) = self.file {
            texts.push(("filename", file.to_owned()));
            texts.push(("filenameNormalized", normalize(file)));
        }
        match engine {
            Engine::Go(_) => {
                let path = Map::new(texts.into_iter().map(|(name, text)| (name.into(), Value::from(text))));
                path.insert("path", Value::from(self.directory));
                path.insert("segments", Value::List(List::strings(self.directory.split('/'))));
                if prefix.is_empty() {
                    params.insert("path", Value::Map(path));
                } else {
                    params.insert(prefix, Value::Map(Map::new([("path".into(), Value::Map(path))])));
                }
            }
            Engine::Fast => {
                let name = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
                for (part, text) in texts {
                    params.insert(format!("{name}.{part}"), Value::from(text));
                }
                for (index, segment) in self.directory.split('/').enumerate() {
                    params.insert(format!("{name}[{index}]"), Value::from(segment));
                }
                params.insert(name, Value::from(self.directory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_template::MissingKey;

    use super::*;
    use crate::settings::Limits;

    const GO: Engine = Engine::Go(MissingKey::Default);

    fn takes(items: &[(&str, bool)], directory: &str) -> bool {
        let items: Vec<GitPath> = items
            .iter()
            .map(|(path, exclude)| GitPath { path: (*path).to_owned(), exclude: *exclude })
            .collect();
        Directories::new(&items).takes(directory)
    }

    #[test]
    fn what_is_left_out_is_left_out_wherever_it_stands() {
        for (items, directory, expected) in [
            (&[("apps/*", false)][..], "apps/a", true),
            (&[("apps/*", false)], "apps/a/b", false),
            (&[("apps/**", false)], "apps/a/b", false),
            (&[("*", false)], "apps", true),
            (&[("apps/a", true), ("apps/*", false)], "apps/a", false),
            (&[("apps/*", false), ("apps/a", true)], "apps/a", false),
            (&[("*/*", false), ("apps", true)], "apps/a", true),
            (&[("apps/*", true)], "apps/a", false),
            (&[("[", false)], "[", false),
            (&[("[", true), ("*", false)], "apps", true),
            (&[("apps/[!a]", false)], "apps/!", true),
            (&[("apps/\\*", false)], "apps/*", true),
        ] {
            assert_eq!(takes(items, directory), expected, "{items:?} {directory}");
        }
    }

    fn placed(place: &Place<'_>, prefix: &str, engine: &Engine) -> String {
        let params =
            Map::new([("path".into(), Value::from("from the file")), ("p".into(), Value::from("kept"))]);
        place.add_to(&params, prefix, engine);
        Value::Map(params).to_string()
    }

    #[test]
    fn paths_become_parameters_in_both_modes() {
        let file = Place { directory: "a/B_c", file: Some("x_1.yaml") };
        assert_eq!(
            placed(&file, "", &GO),
            "map[p:kept path:map[basename:B_c basenameNormalized:b-c filename:x_1.yaml \
             filenameNormalized:x-1.yaml path:a/B_c segments:[a B_c]]]"
        );
        assert_eq!(
            placed(&file, "", &Engine::Fast),
            "map[p:kept path:a/B_c path.basename:B_c path.basenameNormalized:b-c path.filename:x_1.yaml \
             path.filenameNormalized:x-1.yaml path[0]:a path[1]:B_c]"
        );
        let directory = Place { directory: "a", file: None };
        assert_eq!(
            placed(&directory, "p", &GO),
            "map[p:map[path:map[basename:a basenameNormalized:a path:a segments:[a]]] path:from the file]"
        );
        assert_eq!(
            placed(&directory, "p", &Engine::Fast),
            "map[p:kept p.path:a p.path.basename:a p.path.basenameNormalized:a p.path[0]:a path:from the file]"
        );
        let root = Place { directory: ".", file: Some("f") };
        assert!(
            placed(&root, "", &Engine::Fast).contains("path:. path.basename:. path.basenameNormalized: ")
        );
        assert!(placed(&root, "", &Engine::Fast).contains("path[0]:."));
    }

    #[test]
    fn passwords_in_urls_are_not_told() {
        for (url, shown) in [
            ("https://a.b/c@d.git", "https://a.b/c@d.git"),
            ("https://me:hunter2@a.b/c.git", "https://a.b/c.git"),
            ("https://me:hunter@2@a.b/c.git", "https://a.b/c.git"),
            ("https://me:hunter2@", "https://"),
            ("git@a.b:c.git", "git@a.b:c.git"),
        ] {
            assert_eq!(without_user(url), shown);
        }
    }

    #[test]
    fn files_hold_an_object_or_a_list_of_them() {
        let budget = Budget::new(Limits { sets: 3, ..Limits::default() });
        for (content, expected) in [
            ("", Some(1)),
            ("# nothing\n", Some(1)),
            ("null", Some(1)),
            ("{}", Some(1)),
            ("a: b\n---\nc: d\n", Some(1)),
            ("[]", Some(0)),
            ("[{}, null, {a: b}]", Some(3)),
            ("[{}, {}, {}, {}]", None),
            ("text", None),
            ("3", None),
            ("[1]", None),
            ("a: [", None),
            ("a: &a [*a]", None),
        ] {
            assert_eq!(
                objects(content.as_bytes(), &budget).map(|found| found.len()).ok(),
                expected,
                "{content}"
            );
        }
        assert!(
            objects(&[0xff, 0xfe, 0x00], &budget)
                .is_err_and(|message| message.starts_with("unable to parse file"))
        );
    }
}
