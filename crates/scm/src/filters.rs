//! Which repositories, branches and pull requests are taken.

use baton_api::pull_request::PullRequestFilter;
use baton_api::scm::ScmFilter;
use baton_grammar::regexp::Regexp;

use crate::error::ScmError;
use crate::provider::{PullRequest, Repository, RepositoryHost};

/// Filters of a scmProvider generator.
///
/// A filter that looks at branches or paths runs once branches are known, one that does not runs before they
/// are asked for. Filters of one phase are alternatives; the phases must both let a repository pass. A filter
/// without fields belongs to neither phase and does nothing.
pub(crate) struct RepositoryFilters {
    repositories: Vec<RepositoryFilter>,
    branches: Vec<RepositoryFilter>,
}

struct RepositoryFilter {
    repository: Option<Regexp>,
    label: Option<Regexp>,
    branch: Option<Regexp>,
    paths_exist: Vec<String>,
    paths_do_not_exist: Vec<String>,
}

impl RepositoryFilters {
    pub(crate) fn compile(filters: &[ScmFilter]) -> Result<RepositoryFilters, ScmError> {
        let (mut repositories, mut branches) = (Vec::new(), Vec::new());
        for filter in filters {
            let compiled = RepositoryFilter {
                repository: expression("RepositoryMatch", filter.repository_match.as_deref())?,
                label: expression("LabelMatch", filter.label_match.as_deref())?,
                branch: expression("BranchMatch", filter.branch_match.as_deref())?,
                paths_exist: paths(&filter.paths_exist),
                paths_do_not_exist: paths(&filter.paths_do_not_exist),
            };
            if compiled.branch.is_some()
                || !compiled.paths_exist.is_empty()
                || !compiled.paths_do_not_exist.is_empty()
            {
                branches.push(compiled);
            } else if compiled.repository.is_some() || compiled.label.is_some() {
                repositories.push(compiled);
            }
        }
        Ok(RepositoryFilters { repositories, branches })
    }

    /// Whether a repository's branches are worth asking for.
    pub(crate) fn take_repository(&self, repository: &Repository) -> bool {
        self.repositories.is_empty() || self.repositories.iter().any(|filter| filter.names_match(repository))
    }

    /// Whether a branch is taken; asks the host for paths.
    pub(crate) async fn take_branch(
        &self,
        host: &impl RepositoryHost,
        repository: &Repository,
    ) -> Result<bool, ScmError> {
        if self.branches.is_empty() {
            return Ok(true);
        }
        for filter in &self.branches {
            if filter.names_match(repository) && filter.paths_match(host, repository).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl RepositoryFilter {
    fn names_match(&self, repository: &Repository) -> bool {
        matches(&self.repository, &repository.repository)
            && matches(&self.branch, &repository.branch)
            && self
                .label
                .as_ref()
                .is_none_or(|label| repository.labels.iter().any(|name| label.is_match(name)))
    }

    async fn paths_match(
        &self,
        host: &impl RepositoryHost,
        repository: &Repository,
    ) -> Result<bool, ScmError> {
        let wanted = self.paths_exist.iter().map(|path| (path, true));
        let unwanted = self.paths_do_not_exist.iter().map(|path| (path, false));
        for (path, exists) in wanted.chain(unwanted) {
            if host.has_path(repository, path).await? != exists {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn paths(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| path.trim_end_matches('/').to_owned()).collect()
}

/// Filters of a pullRequest generator: alternatives, each of which must match in all its fields.
pub(crate) struct PullRequestFilters(Vec<[Option<Regexp>; 3]>);

impl PullRequestFilters {
    pub(crate) fn compile(filters: &[PullRequestFilter]) -> Result<PullRequestFilters, ScmError> {
        let compile = |filter: &PullRequestFilter| {
            Ok([
                expression("BranchMatch", filter.branch_match.as_deref())?,
                expression("TargetBranchMatch", filter.target_branch_match.as_deref())?,
                expression("TitleMatch", filter.title_match.as_deref())?,
            ])
        };
        Ok(PullRequestFilters(filters.iter().map(compile).collect::<Result<_, ScmError>>()?))
    }

    pub(crate) fn take(&self, request: &PullRequest) -> bool {
        let take = |[branch, target, title]: &[Option<Regexp>; 3]| {
            matches(branch, &request.branch)
                && matches(target, &request.target_branch)
                && matches(title, &request.title)
        };
        self.0.is_empty() || self.0.iter().any(take)
    }
}

fn expression(field: &str, text: Option<&str>) -> Result<Option<Regexp>, ScmError> {
    let compile = |text| {
        Regexp::parse(text)
            .map_err(|error| ScmError::invalid(format!("error compiling {field} regexp {text:?}: {error}")))
    };
    text.map(compile).transpose()
}

fn matches(expression: &Option<Regexp>, text: &str) -> bool {
    expression.as_ref().is_none_or(|expression| expression.is_match(text))
}
