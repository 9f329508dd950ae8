use super::*;
use serde_json::json;

fn project(spec: Value) -> AppProject {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project")
}

fn rules(spec: Value) -> ProjectRules {
    ProjectRules::new(&project(spec), &[], &[], &[])
}

const CLUSTER: DestinationCluster<'_> = DestinationCluster { server: "https://c1", name: "one" };

#[test]
fn sources_are_permitted_by_globs() {
    for (repositories, url, expected) in [
        (json!([]), "https://x/a", false),
        (json!(["*"]), "https://x/a/b", true),
        (json!(["https://x/a"]), "https://X/a.git", true),
        (json!(["https://x/*"]), "https://x/a", true),
        (json!(["https://x/*"]), "https://x/a/b", false),
        (json!(["https://x/**"]), "https://x/a/b", true),
        (json!(["https://x/{a,b}"]), "https://x/b", true),
        (json!(["git@x:team/*"]), "ssh://git@x/team/a.git", true),
        (json!(["https://x/*"]), "https://y/a", false),
        (json!(["*", "!https://x/a"]), "https://x/a", false),
        (json!(["!https://x/a", "*"]), "https://x/b", true),
        (json!(["!https://x/a"]), "https://x/b", true),
        (json!(["!*"]), "https://x/b", true),
        (json!(["!**"]), "https://x/b", false),
        (json!(["[z-a"]), "https://x/b", false),
        (json!(["*", "![z-a"]), "https://x/b", false),
    ] {
        let rules = rules(json!({"sourceRepos": repositories}));
        assert_eq!(rules.permits_source(url), expected, "{repositories} {url}");
    }
}

#[test]
fn destinations_are_permitted_by_globs() {
    for (destinations, namespace, expected) in [
        (json!([]), "a", false),
        (json!([{"server": "*", "namespace": "*"}]), "a", true),
        (json!([{"server": "https://c1", "namespace": "a"}]), "a", true),
        (json!([{"server": "https://c1", "namespace": "a"}]), "b", false),
        (json!([{"server": "https://c2", "namespace": "*"}]), "a", false),
        (json!([{"name": "one", "namespace": "a*"}]), "ab", true),
        (json!([{"name": "o*", "namespace": "*"}]), "a", true),
        (json!([{"name": "two", "namespace": "*"}]), "a", false),
        (
            json!([{"server": "*", "namespace": "*"}, {"server": "https://c1", "namespace": "!kube-*"}]),
            "a",
            true,
        ),
        (
            json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-*"}]),
            "kube-x",
            false,
        ),
        (json!([{"server": "*", "namespace": "*"}, {"server": "!https://c1", "namespace": "*"}]), "a", false),
        (json!([{"server": "*", "namespace": "*"}, {"server": "!https://c2", "namespace": "*"}]), "a", true),
        (json!([{"server": "*", "namespace": "*"}, {"name": "!one", "namespace": "other"}]), "a", false),
        (
            json!([{"server": "*", "namespace": "*"}, {"server": "!https://c1", "namespace": "other"}]),
            "a",
            true,
        ),
        (json!([{"server": "*", "namespace": "*"}, {"server": "https://c2", "namespace": "!a"}]), "a", true),
        (json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "![z-a"}]), "a", false),
    ] {
        let rules = rules(json!({"destinations": destinations}));
        assert_eq!(rules.permits_destination(CLUSTER, namespace), expected, "{destinations} {namespace}");
    }
}

#[test]
fn a_project_may_be_held_to_its_own_clusters() {
    let everywhere = json!([{"server": "*", "namespace": "*"}]);
    let only = project(json!({"destinations": everywhere, "permitOnlyProjectScopedClusters": true}));
    let cluster = |server: &str, name: &str, namespaces: &[&str]| ScopedCluster {
        server: server.to_owned(),
        name: name.to_owned(),
        namespaces: namespaces.iter().map(|namespace| (*namespace).to_owned()).collect(),
    };
    let permits = |clusters: &[ScopedCluster]| {
        ProjectRules::new(&only, clusters, &[], &[]).permits_destination(CLUSTER, "a")
    };
    assert!(!permits(&[]));
    assert!(!permits(&[cluster("https://c2", "two", &[])]));
    assert!(permits(&[cluster("https://c1", "", &[])]));
    assert!(permits(&[cluster("https://elsewhere", "one", &[])]));
    // A cluster of the project is a destination of it, in the namespaces it is limited to.
    let none = project(json!({}));
    let rules =
        ProjectRules::new(&none, &[cluster("https://c1", "one", &["a"])], &["https://x/a".into()], &[]);
    assert!(rules.permits_destination(CLUSTER, "a") && !rules.permits_destination(CLUSTER, "b"));
    assert!(rules.permits_source("https://x/a") && !rules.permits_source("https://x/b"));
}

#[test]
fn kinds_are_permitted_by_lists() {
    let deployments = json!([{"group": "apps", "kind": "Deployment"}]);
    for (spec, group, kind, name, namespaced, expected) in [
        (json!({}), "apps", "Deployment", "x", true, true),
        (json!({"namespaceResourceWhitelist": []}), "apps", "Deployment", "x", true, false),
        (json!({"namespaceResourceWhitelist": deployments}), "apps", "Deployment", "x", true, true),
        (json!({"namespaceResourceWhitelist": deployments}), "", "Service", "x", true, false),
        (json!({"namespaceResourceBlacklist": deployments}), "apps", "Deployment", "x", true, false),
        (
            json!({"namespaceResourceBlacklist": [{"group": "*", "kind": "*"}]}),
            "",
            "Service",
            "x",
            true,
            false,
        ),
        (
            json!({"namespaceResourceBlacklist": [{"group": "a[", "kind": "*"}]}),
            "",
            "Service",
            "x",
            true,
            true,
        ),
        (json!({}), "", "Namespace", "x", false, false),
        (
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}),
            "",
            "Namespace",
            "x",
            false,
            true,
        ),
        (
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "team-*"}]}),
            "",
            "Namespace",
            "team-a",
            false,
            true,
        ),
        (
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "team-*"}]}),
            "",
            "Namespace",
            "other",
            false,
            false,
        ),
        (
            json!({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                   "clusterResourceBlacklist": [{"group": "", "kind": "Namespace", "name": "kube-system"}]}),
            "",
            "Namespace",
            "kube-system",
            false,
            false,
        ),
    ] {
        let permitted = rules(spec.clone()).permits_kind(group, kind, name, namespaced);
        assert_eq!(permitted, expected, "{spec} {group}/{kind} {name}");
    }
}

#[test]
fn a_target_that_is_not_permitted_is_told_why() {
    let rules = rules(json!({
        "destinations": [{"server": "*", "namespace": "shop"}],
        "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
    }));
    let namespaced = KindInfo { plural: "x".into(), namespaced: true };
    let check = |api_version: &str, kind: &str, namespace: &str, info: Option<&KindInfo>| {
        let target = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "x", "namespace": namespace}});
        rules.permits_target(&target, info, CLUSTER).err()
    };
    assert_eq!(check("v1", "ConfigMap", "shop", Some(&namespaced)), None);
    let secret = check("v1", "Secret", "shop", Some(&namespaced));
    assert_eq!(secret.as_deref(), Some("resource :Secret is not permitted in project p"));
    let elsewhere = check("apps/v1", "Deployment", "else", Some(&namespaced));
    assert_eq!(elsewhere.as_deref(), Some("namespace else is not permitted in project 'p'"));
    let unknown = check("apps/v1", "Deployment", "shop", None);
    let expected = "failed to get API resource info for apps/Deployment: unable to verify permissions";
    assert_eq!(unknown.as_deref(), Some(expected));
}

#[test]
fn live_objects_the_project_does_not_permit_are_not_its_business() {
    let rules = rules(json!({
        "destinations": [{"server": "*", "namespace": "shop"}],
        "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
    }));
    let live = |kind: &str, namespace: Value| {
        let live =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
        rules.permits_live(&live, CLUSTER)
    };
    assert!(live("ConfigMap", json!("shop")));
    assert!(!live("ConfigMap", json!("else")));
    assert!(live("Namespace", Value::Null));
    assert!(!live("Node", Value::Null));
}

#[test]
fn applications_may_live_in_listed_namespaces() {
    let rules = rules(json!({"sourceNamespaces": ["team-*", "/^env-[0-9]+$/"]}));
    let check = |namespace: &str| {
        let app = serde_json::from_value(json!({"metadata": {"name": "web", "namespace": namespace}}));
        rules.permits_application(&app.expect("an Application"), "argocd")
    };
    for namespace in ["argocd", "", "team-a", "env-12"] {
        assert_eq!(check(namespace), Ok(()), "{namespace}");
    }
    let refused = check("other").expect_err("not listed");
    assert_eq!(refused, "application 'web' in namespace 'other' is not permitted to use project 'p'");
}

#[test]
fn orphans_are_what_nobody_knows() {
    let rules = rules(json!({
        "orphanedResources": {"warn": true, "ignore": [
            {"group": "apps", "kind": "Dep*"}, {"group": "*", "name": "cache-*"}, {"kind": "Pod"}]},
        "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
    }));
    let key = |text: &str| {
        let parts: Vec<&str> = text.split('/').collect();
        ResourceKey {
            group: parts[0].into(),
            kind: parts[1].into(),
            namespace: parts[2].into(),
            name: parts[3].into(),
        }
    };
    for (text, expected) in [
        ("/ConfigMap/a/mine", true),
        ("/ConfigMap/a/kube-root-ca.crt", false),
        ("/ServiceAccount/a/default", false),
        ("/Service/default/kubernetes", false),
        ("/Service/a/kubernetes", true),
        ("apps/Deployment/a/web", false),
        ("apps/StatefulSet/a/web", true),
        ("batch/Job/a/cache-1", false),
        ("/Pod/a/x", false),
        ("/Secret/a/x", false),
        ("/Namespace//x", false),
    ] {
        assert_eq!(rules.is_orphan(&key(text)), expected, "{text}");
    }
    assert_eq!(rules.orphan_warning(2).as_deref(), Some("Application has 2 orphaned resources"));
    assert_eq!(rules.orphan_warning(0), None);
    let silent = super::tests::rules(json!({"orphanedResources": {}}));
    assert!(silent.looks_for_orphans() && silent.orphan_warning(2).is_none());
}

#[test]
fn global_projects_add_to_a_project() {
    let global = project(json!({
        "sourceRepos": ["https://g/*"],
        "namespaceResourceWhitelist": [{"group": "apps", "kind": "Deployment"}],
        "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
        "syncWindows": [{"kind": "deny"}],
    }));
    let own = project(json!({"sourceRepos": ["https://x/*"]}));
    let rules = ProjectRules::new(&own, &[], &[], &[&global]);
    assert!(rules.permits_source("https://g/a") && rules.permits_source("https://x/a"));
    assert!(rules.permits_kind("apps", "Deployment", "x", true));
    assert!(!rules.permits_kind("", "ConfigMap", "x", true));
    assert_eq!(rules.spec().sync_windows.len(), 1);
    let empty = project(json!({"namespaceResourceWhitelist": []}));
    assert!(ProjectRules::new(&own, &[], &[], &[&empty]).permits_kind("", "ConfigMap", "x", true));
}

#[test]
fn a_project_goes_when_nobody_uses_it() {
    let mut going = project(json!({"sourceNamespaces": ["team"]}));
    going.metadata.finalizers = Some(vec!["other".to_owned(), RESOURCES.to_owned()]);
    let app = |project: &str, namespace: &str| -> Application {
        let metadata = json!({"name": "web", "namespace": namespace});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"project": project}}))
            .expect("an Application")
    };
    let left = |project: &AppProject, app: Application| released(project, [&app], "argocd");
    assert_eq!(left(&going, app("q", "argocd")), None, "it is not being deleted");
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(left(&going, app("p", "argocd")), None);
    assert_eq!(left(&going, app("p", "team")), None);
    // One that may not use it does not hold it.
    assert_eq!(left(&going, app("p", "elsewhere")), Some(vec!["other".to_owned()]));
    assert_eq!(left(&going, app("", "argocd")), Some(vec!["other".to_owned()]));
    going.metadata.finalizers = Some(vec!["other".to_owned()]);
    assert_eq!(left(&going, app("q", "argocd")), None);
}
