//! What an Application's spec means: its sources, its normal form, and what is wrong with it.

use std::borrow::Cow;

use baton_api::application::{Application, ApplicationSpec, SyncPolicy};
use baton_api::application_status::ComparedTo;
use baton_api::names::DEFAULT_PROJECT;
use baton_api::source::{DirectorySource, HelmSource, KustomizeSource, Source, SourceHydrator};

use crate::conditions::{Finding, INVALID_SPEC_ERROR, UNKNOWN_ERROR};
use crate::project::{DestinationCluster, ProjectRules};

/// The project whose rules apply.
pub fn project_of(spec: &ApplicationSpec) -> &str {
    if spec.project.is_empty() { DEFAULT_PROJECT } else { &spec.project }
}

/// The sources manifests come from: the hydrator's, else `sources`, else `source`.
pub fn sources(spec: &ApplicationSpec) -> Cow<'_, [Source]> {
    match &spec.source_hydrator {
        Some(hydrator) => Cow::Owned(vec![sync_source(hydrator)]),
        None => Cow::Borrowed(spec.effective_sources()),
    }
}

/// Whether the Application has a list of sources, so that revisions are reported as lists too.
pub fn has_several_sources(spec: &ApplicationSpec) -> bool {
    spec.source_hydrator.is_none() && !spec.sources.is_empty()
}

/// What a comparison against these sources is to be recorded as.
pub fn compared_to(spec: &ApplicationSpec, sources: &[Source]) -> ComparedTo {
    let mut compared = ComparedTo {
        destination: spec.destination.clone(),
        ignore_differences: spec.ignore_differences.clone(),
        ..ComparedTo::default()
    };
    if has_several_sources(spec) {
        compared.sources = sources.to_vec();
    } else {
        compared.source = sources.first().cloned().unwrap_or_default();
    }
    compared
}

/// The spec in its normal form, where it is not in it: the default project named, empty blocks gone.
pub fn normalized(spec: &ApplicationSpec) -> Option<ApplicationSpec> {
    let mut normal = spec.clone();
    if normal.project.is_empty() {
        normal.project = DEFAULT_PROJECT.to_owned();
    }
    normal.sync_policy.take_if(|policy| *policy == SyncPolicy::default());
    match normal.sources.is_empty() {
        true => normal.source.iter_mut().for_each(normalize_source),
        false => normal.sources.iter_mut().for_each(normalize_source),
    }
    (normal != *spec).then_some(normal)
}

fn normalize_source(source: &mut Source) {
    source.kustomize.take_if(|kustomize| *kustomize == KustomizeSource::default());
    source.helm.take_if(|helm| *helm == HelmSource::default());
    source.directory.take_if(|directory| *directory == DirectorySource::default());
}

/// What is known of an Application's project.
#[derive(Debug, Clone, Copy)]
pub enum Project<'a> {
    /// Its rules.
    Found(&'a ProjectRules),
    /// There is no such project.
    Missing,
    /// It could not be read, or the Application may not use it.
    Failed(&'a str),
}

/// What keeps an Application from being compared and synced at all. Nothing found is a spec that is fit.
///
/// `destination` is the resolved cluster, or why there is none, in the resolver's words.
pub fn problems(
    application: &Application,
    project: Project<'_>,
    own_namespace: &str,
    destination: Result<DestinationCluster<'_>, &str>,
) -> Vec<Finding> {
    let spec = &application.spec;
    let rules = match project {
        Project::Found(rules) => rules,
        Project::Missing => {
            let project = project_of(spec);
            let message = format!("Application referencing project {project} which does not exist");
            return vec![Finding::new(INVALID_SPEC_ERROR, message)];
        }
        Project::Failed(why) => return vec![Finding::new(UNKNOWN_ERROR, why)],
    };
    if let Err(why) = rules.permits_application(application, own_namespace) {
        return vec![Finding::new(UNKNOWN_ERROR, why)];
    }
    let mut found = match source_problems(spec, rules) {
        Ok(refused) => refused,
        Err(invalid) => return invalid,
    };
    match destination {
        Err(why) => found.push(Finding::new(INVALID_SPEC_ERROR, why)),
        Ok(cluster) if !rules.permits_destination(cluster, &spec.destination.namespace) => {
            let server = if spec.destination.name.is_empty() { cluster.server } else { cluster.name };
            let namespace = &spec.destination.namespace;
            found.push(Finding::new(
                INVALID_SPEC_ERROR,
                format!(
                    "application destination server '{server}' and namespace '{namespace}' do not match any of the \
                     allowed destinations in project '{}'",
                    rules.name()
                ),
            ));
        }
        Ok(_) => {}
    }
    found
}

/// Sources the project does not permit; or, as an error, what makes further checks pointless.
fn source_problems(spec: &ApplicationSpec, rules: &ProjectRules) -> Result<Vec<Finding>, Vec<Finding>> {
    let invalid = |message: &str| Finding::new(INVALID_SPEC_ERROR, message);
    let refused = |what: &str, url: &str| {
        invalid(&format!("{what} {url} is not permitted in project '{}'", rules.name()))
    };
    let mut found = Vec::new();
    if let Some(hydrator) = &spec.source_hydrator {
        let missing = hydrator_problems(hydrator);
        if !missing.is_empty() {
            return Err(missing.into_iter().map(invalid).collect());
        }
        let (dry, sync) = (&hydrator.dry_source.repo_url, sync_source(hydrator).repo_url);
        if !rules.permits_source(dry) {
            found.push(refused("application repo", dry));
        }
        if sync != *dry && !rules.permits_source(&sync) {
            found.push(refused("sync source repo", &sync));
        }
        return Ok(found);
    }
    let several = has_several_sources(spec);
    let none = [Source::default()];
    let sources = match spec.effective_sources() {
        [] => &none[..],
        sources => sources,
    };
    for (index, source) in sources.iter().enumerate() {
        if let Some(problem) = source_problem(source, several, index) {
            found.push(invalid(&problem));
            return Err(found);
        }
        if !rules.permits_source(&source.repo_url) {
            found.push(refused("application repo", &source.repo_url));
        }
    }
    Ok(found)
}

fn source_problem(source: &Source, several: bool, index: usize) -> Option<String> {
    let nowhere = source.path.is_empty() && source.chart.is_empty();
    if several && (source.repo_url.is_empty() || (nowhere && source.reference.is_empty())) {
        // Argo CD prints the whole source here, which may hold passwords.
        let number = index + 1;
        return Some(format!(
            "spec.source.repoURL and either source.path, source.chart, or source.ref are required for source {number}"
        ));
    }
    if !several && (source.repo_url.is_empty() || nowhere) {
        let message = "spec.source.repoURL and either spec.source.path or spec.source.chart are required";
        return Some(message.to_owned());
    }
    if !source.chart.is_empty() && source.target_revision.is_empty() {
        let message = "spec.source.targetRevision is required if the manifest source is a helm chart";
        return Some(message.to_owned());
    }
    None
}

fn hydrator_problems(hydrator: &SourceHydrator) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if hydrator.dry_source.repo_url.is_empty() {
        missing.push("spec.sourceHydrator.drySource.repoURL is required");
    }
    if hydrator.sync_source.target_branch.is_empty() {
        missing.push("spec.sourceHydrator.syncSource.targetBranch is required");
    }
    if hydrator.hydrate_to.as_ref().is_some_and(|to| to.target_branch.is_empty()) {
        missing.push(
            "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required",
        );
    }
    missing
}

/// Where a hydrated Application is synced from.
fn sync_source(hydrator: &SourceHydrator) -> Source {
    let own = &hydrator.sync_source.repo_url;
    Source {
        repo_url: if own.is_empty() { hydrator.dry_source.repo_url.clone() } else { own.clone() },
        path: hydrator.sync_source.path.clone(),
        target_revision: hydrator.sync_source.target_branch.clone(),
        ..Source::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::project::AppProject;
    use serde_json::{Value, json};

    fn application(spec: Value) -> Application {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "argocd"}, "spec": spec}))
            .expect("an Application")
    }

    fn rules(spec: Value) -> ProjectRules {
        let project: AppProject =
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project");
        ProjectRules::new(&project, &[], &[], &[])
    }

    const CLUSTER: DestinationCluster<'_> = DestinationCluster { server: "https://c", name: "c" };

    fn messages(spec: Value, project: Value) -> Vec<String> {
        let rules = rules(project);
        let found = problems(&application(spec), Project::Found(&rules), "argocd", Ok(CLUSTER));
        assert!(found.iter().all(|finding| finding.kind == INVALID_SPEC_ERROR));
        found.into_iter().map(|finding| finding.message).collect()
    }

    fn everything() -> Value {
        json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]})
    }

    #[test]
    fn what_a_spec_lacks_is_said() {
        let plain = "spec.source.repoURL and either spec.source.path or spec.source.chart are required";
        let several = "spec.source.repoURL and either source.path, source.chart, or source.ref are required for source 2";
        for (spec, expected) in [
            (json!({"source": {"repoURL": "r", "path": "p"}}), vec![]),
            (json!({"source": {"repoURL": "r", "chart": "c", "targetRevision": "1"}}), vec![]),
            (json!({"sources": [{"repoURL": "r", "path": "p"}, {"repoURL": "r", "ref": "values"}]}), vec![]),
            (json!({}), vec![plain]),
            (json!({"source": {"repoURL": "r"}}), vec![plain]),
            (json!({"source": {"path": "p"}}), vec![plain]),
            (json!({"sources": [{"repoURL": "r", "path": "p"}, {"repoURL": "r"}]}), vec![several]),
            (
                json!({"source": {"repoURL": "r", "chart": "c"}}),
                vec!["spec.source.targetRevision is required if the manifest source is a helm chart"],
            ),
            (
                json!({"sourceHydrator": {"hydrateTo": {}}}),
                vec![
                    "spec.sourceHydrator.drySource.repoURL is required",
                    "spec.sourceHydrator.syncSource.targetBranch is required",
                    "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required",
                ],
            ),
        ] {
            assert_eq!(messages(spec.clone(), everything()), expected, "{spec}");
        }
    }

    #[test]
    fn what_the_project_does_not_permit_is_said() {
        let project =
            json!({"sourceRepos": ["https://a/*"], "destinations": [{"server": "*", "namespace": "a"}]});
        let spec = |repository: &str, destination: Value| json!({"source": {"repoURL": repository, "path": "p"}, "destination": destination});
        assert!(
            messages(spec("https://a/x", json!({"name": "c", "namespace": "a"})), project.clone()).is_empty()
        );
        assert_eq!(
            messages(spec("https://b/x", json!({"name": "c", "namespace": "b"})), project.clone()),
            [
                "application repo https://b/x is not permitted in project 'p'",
                "application destination server 'c' and namespace 'b' do not match any of the allowed destinations in \
                 project 'p'",
            ]
        );
        let by_server = messages(spec("https://a/x", json!({"server": "https://c"})), project.clone());
        assert!(by_server[0].starts_with("application destination server 'https://c' and namespace ''"));
        let hydrator = json!({"destination": {"namespace": "a"}, "sourceHydrator": {
            "drySource": {"repoURL": "https://a/x"},
            "syncSource": {"targetBranch": "b", "path": "q", "repoURL": "https://b/x"}}});
        assert_eq!(
            messages(hydrator, project),
            ["sync source repo https://b/x is not permitted in project 'p'"]
        );
    }

    #[test]
    fn projects_and_clusters_that_are_not_there_are_said() {
        let app = application(json!({"source": {"repoURL": "r", "path": "p"}}));
        let found = problems(&app, Project::Missing, "argocd", Ok(CLUSTER));
        let expected = "Application referencing project default which does not exist";
        assert_eq!(found, [Finding::new(INVALID_SPEC_ERROR, expected)]);
        let found = problems(&app, Project::Failed("no list"), "argocd", Ok(CLUSTER));
        assert_eq!(found, [Finding::new(UNKNOWN_ERROR, "no list")]);
        let rules = rules(everything());
        let found =
            problems(&app, Project::Found(&rules), "argocd", Err("there are no clusters with this name: x"));
        assert_eq!(found, [Finding::new(INVALID_SPEC_ERROR, "there are no clusters with this name: x")]);
        let elsewhere = problems(&app, Project::Found(&rules), "other", Ok(CLUSTER));
        assert_eq!(elsewhere[0].kind, UNKNOWN_ERROR);
    }

    #[test]
    fn empty_blocks_have_no_place_in_the_normal_form() {
        let spec = |spec: Value| application(spec).spec;
        let normal = spec(json!({"project": "default", "source": {"repoURL": "r"}}));
        assert_eq!(normalized(&normal), None);
        let odd = json!({"project": "", "syncPolicy": {}, "source": {"repoURL": "r", "helm": {}, "kustomize": {},
            "directory": {"recurse": false}}});
        assert_eq!(normalized(&spec(odd)), Some(normal));
        let kept = json!({"project": "p", "syncPolicy": {"automated": {}}, "sources": [{"directory": {"include": "x"}}]});
        assert_eq!(normalized(&spec(kept)), None);
    }

    #[test]
    fn a_comparison_is_recorded_by_what_was_compared() {
        let one = application(json!({"source": {"repoURL": "r"}, "destination": {"name": "c"}})).spec;
        let compared = compared_to(&one, &sources(&one));
        assert_eq!((compared.source.repo_url.as_str(), compared.sources.len()), ("r", 0));
        assert_eq!(compared.destination.name, "c");
        let two =
            application(json!({"source": {"repoURL": "r"}, "sources": [{"repoURL": "a"}, {"repoURL": "b"}]}))
                .spec;
        let compared = compared_to(&two, &sources(&two));
        assert_eq!((compared.source, compared.sources.len()), (Source::default(), 2));
        let hydrated = application(json!({"sources": [{}], "sourceHydrator": {
            "drySource": {"repoURL": "dry"}, "syncSource": {"targetBranch": "env", "path": "p"}}}))
        .spec;
        assert!(!has_several_sources(&hydrated));
        let source = &sources(&hydrated)[0];
        assert_eq!((source.repo_url.as_str(), source.target_revision.as_str()), ("dry", "env"));
    }
}
