//! Whether an event concerns an ApplicationSet or an Application.

use std::collections::BTreeSet;

use baton_api::generators::{
    Generator, GitGenerator, NestedGenerator, NestedMatrixGenerator, NestedMergeGenerator, TerminalGenerator,
};
use baton_api::pull_request::PullRequestGenerator;
use baton_api::{ApplicationSetSpec, ApplicationSpec};
use baton_grammar::semver::{Constraint, Version, is_constraint};
use serde::Deserialize;

use super::event::{Event, PullRequest, Push, PushedRef};
use super::url;

/// Repositories and revisions a set has read.
type Read<'r> = Option<&'r BTreeSet<(String, String)>>;

impl Event {
    /// Whether the event may change what the generators of a set produce.
    ///
    /// The second child of a matrix may name its repository by a template over the first child's parameters. What that
    /// comes to is not worked out here: `read` says which repositories and revisions the set read when it was last
    /// generated, and without it a template stands for anything. A plugin may read anything at all.
    pub fn touches(&self, spec: &ApplicationSetSpec, read: Option<&BTreeSet<(String, String)>>) -> bool {
        if matches!(self, Event::Nothing) {
            return false;
        }
        spec.generators.iter().any(|generator| self.touches_generator(generator, read))
    }

    /// Whether the event moves a branch or tag that an Application's manifests are read from.
    pub fn moves_sources(&self, spec: &ApplicationSpec) -> bool {
        let Event::Push(push) = self else { return false };
        let single = spec.source.iter().filter(|_| spec.sources.is_empty());
        let mut sources = single.chain(&spec.sources).filter(|source| source.chart.is_empty());
        sources.any(|source| push.moves(&source.repo_url, &source.target_revision))
    }

    fn touches_generator(&self, generator: &Generator, read: Read<'_>) -> bool {
        // A matrix of more or fewer than two is not generated at all.
        let matrix = generator.matrix.as_ref().map(|matrix| &matrix.generators).filter(|two| two.len() == 2);
        let merge = generator.merge.as_ref().map(|merge| &merge.generators);
        let mut children = matrix.into_iter().chain(merge).flatten();
        generator.plugin.is_some()
            || self.touches_git(generator.git.as_ref(), read)
            || self.touches_requests(generator.pull_request.as_ref())
            || children.any(|child| self.touches_nested(child, read))
    }

    fn touches_nested(&self, generator: &NestedGenerator, read: Read<'_>) -> bool {
        generator.plugin.is_some()
            || self.touches_git(generator.git.as_ref(), read)
            || self.touches_requests(generator.pull_request.as_ref())
            || innermost(generator).iter().any(|terminal| {
                terminal.plugin.is_some()
                    || self.touches_git(terminal.git.as_ref(), read)
                    || self.touches_requests(terminal.pull_request.as_ref())
            })
    }

    fn touches_git(&self, git: Option<&GitGenerator>, read: Read<'_>) -> bool {
        let (Event::Push(push), Some(git)) = (self, git) else { return false };
        let (any_repository, any_revision) = (is_template(&git.repo_url), is_template(&git.revision));
        match read {
            Some(read) if any_repository || any_revision => read.iter().any(|(repository, revision)| {
                (any_repository || *repository == git.repo_url)
                    && (any_revision || *revision == git.revision)
                    && push.moves(repository, revision)
            }),
            _ => {
                (any_repository || push.is_to(&git.repo_url))
                    && (any_revision || push.refs.iter().any(|moved| moved.is(&git.revision)))
            }
        }
    }

    fn touches_requests(&self, generator: Option<&PullRequestGenerator>) -> bool {
        let (Event::PullRequest(request), Some(generator)) = (self, generator) else { return false };
        request.is_for(generator)
    }
}

impl Push {
    fn is_to(&self, repository: &str) -> bool {
        self.repositories.iter().any(|url| url.matches(repository))
    }

    fn moves(&self, repository: &str, revision: &str) -> bool {
        self.is_to(repository) && self.refs.iter().any(|moved| moved.is(revision))
    }
}

impl PushedRef {
    /// Whether a generator's revision follows the branch or tag.
    fn is(&self, revision: &str) -> bool {
        let short = revision.splitn(3, '/').last().unwrap_or_default();
        match short {
            "" | "HEAD" => self.default_branch,
            _ => short == self.name || revision == self.name || (self.tag && self.is_version_in(revision)),
        }
    }

    fn is_version_in(&self, range: &str) -> bool {
        if !is_constraint(range) {
            return false;
        }
        let (range, version) = (Constraint::parse(range), Version::parse(&self.name));
        matches!((range, version), (Ok(range), Ok(version)) if range.matches(&version))
    }
}

impl PullRequest {
    fn is_for(&self, generator: &PullRequestGenerator) -> bool {
        match self {
            PullRequest::GitHub { owner, repository, host } => {
                generator.github.as_ref().is_some_and(|github| {
                    same(&github.owner, owner)
                        && same(&github.repo, repository)
                        && on_host(&github.api, "https://api.github.com/", host)
                })
            }
            PullRequest::GitLab { id, path, host } => generator.gitlab.as_ref().is_some_and(|gitlab| {
                (same(&gitlab.project, id) || same(&gitlab.project, path))
                    && on_host(&gitlab.api, "https://gitlab.com/", host)
            }),
            PullRequest::AzureDevOps { project, repository } => generator
                .azuredevops
                .as_ref()
                .is_some_and(|azure| same(&azure.project, project) && same(&azure.repo, repository)),
            PullRequest::Bitbucket { owner, repository } => generator
                .bitbucket
                .as_ref()
                .is_some_and(|bitbucket| same(&bitbucket.owner, owner) && same(&bitbucket.repo, repository)),
            PullRequest::BitbucketServer { project, repository } => generator
                .bitbucket_server
                .as_ref()
                .is_some_and(|server| same(&server.project, project) && same(&server.repo, repository)),
            PullRequest::Gitea { owner, repository } => generator
                .gitea
                .as_ref()
                .is_some_and(|gitea| same(&gitea.owner, owner) && same(&gitea.repo, repository)),
        }
    }
}

/// Names on these hosts differ in case only where they are the same. A template stands for any name.
fn same(written: &str, name: &str) -> bool {
    is_template(written) || (!name.is_empty() && written.eq_ignore_ascii_case(name))
}

fn on_host(api: &str, default: &str, host: &str) -> bool {
    let api = if api.is_empty() { default } else { api };
    is_template(api) || url::host(api).is_some_and(|api| api.eq_ignore_ascii_case(host))
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// The generators of a matrix or merge inside a matrix or merge; of one that cannot be read, none.
fn innermost(generator: &NestedGenerator) -> Vec<TerminalGenerator> {
    let mut generators = Vec::new();
    if let Some(matrix) = &generator.matrix {
        generators.extend(NestedMatrixGenerator::deserialize(matrix).unwrap_or_default().generators);
    }
    if let Some(merge) = &generator.merge {
        generators.extend(NestedMergeGenerator::deserialize(merge).unwrap_or_default().generators);
    }
    generators
}
