//! Words of requests, and how objects are named.

use baton_rbac::{Action, Object, Request, Resource, SetVerb, Verb};

use crate::CONTROL;

#[test]
fn resources_have_the_words_of_policies() {
    let words = Resource::ALL.map(Resource::word);
    let expected = [
        "clusters",
        "projects",
        "applications",
        "applicationsets",
        "repositories",
        "write-repositories",
        "certificates",
        "accounts",
        "gpgkeys",
        "logs",
        "exec",
        "extensions",
    ];
    assert_eq!(words, expected);
    for word in words {
        assert_eq!(word.parse::<Resource>().expect("its own word").word(), word);
    }
    let error = "Applications".parse::<Resource>().expect_err("another case").to_string();
    assert!(error.contains("unknown resource \"Applications\": it is one of clusters, projects"), "{error}");
}

#[test]
fn actions_are_words_or_name_what_they_are_done_to() {
    for text in [
        "get",
        "create",
        "update",
        "delete",
        "sync",
        "rollback",
        "override",
        "action",
        "invoke",
        "action/apps/Deployment/restart",
        "action//Pod/x",
        "action/g/K/a/b",
        "update/apps/Deployment/ns/web",
        "delete//Pod/ns/x",
        "update//Namespace//x",
        "delete/rbac/ClusterRole//a/b",
    ] {
        assert_eq!(Action::parse(text).expect(text).as_str(), text);
    }
    for text in [
        "",
        "*",
        "Get",
        "action/",
        "action/apps",
        "action/apps/Deployment",
        "action/apps//restart",
        "action/apps/Deployment/",
        "update/apps/Deployment/ns",
        "update/apps/Deployment/ns/",
        "sync/a/b/c/d",
        "get/x",
    ] {
        assert!(Action::parse(text).is_err(), "{text}");
    }
    assert!(Action::parse(&format!("action/a/b/{}", "x".repeat(5_000))).is_err());
}

#[test]
fn actions_that_are_put_together_cannot_be_read_as_others() {
    assert_eq!(Action::run("", "Pod", "x").expect("parts").as_str(), "action//Pod/x");
    let update = Action::on_resource(Verb::Update, "apps", "Deployment", "ns", "web").expect("parts");
    assert_eq!(update.as_str(), "update/apps/Deployment/ns/web");
    assert!(Action::run("a/b", "K", "x").is_err());
    assert!(Action::run("a", "K/L", "x").is_err());
    assert!(Action::on_resource(Verb::Delete, "a", "K", "n/s", "x").is_err());
    assert!(Action::on_resource(Verb::Sync, "a", "K", "ns", "x").is_err());
}

#[test]
fn every_verb_on_a_set_has_an_action_of_its_own() {
    let texts = SetVerb::ALL.map(|verb| Action::on_set(verb).as_str().to_owned());
    let verbs = "pause resume abort retry skip advance rollback rollback-all approve-deletion change-hooks";
    let expected: Vec<String> =
        verbs.split(' ').map(|verb| format!("action/argoproj.io/ApplicationSet/{verb}")).collect();
    assert_eq!(texts.to_vec(), expected);
    for verb in SetVerb::ALL {
        let action = Action::on_set(verb);
        assert_eq!(Action::parse(action.as_str()).expect("an action"), action);
        assert_eq!(action.approves_deletion(), verb == SetVerb::ApproveDeletion);
    }
}

#[test]
fn the_namespace_is_named_where_it_is_not_the_control_planes() {
    let named = |namespace: &str, control: &str| {
        Object::in_project("p", namespace, "web", control).expect("parts").as_str().to_owned()
    };
    assert_eq!(named("argocd", CONTROL), "p/web");
    assert_eq!(named("", CONTROL), "p/web");
    assert_eq!(named("team", CONTROL), "p/team/web");
    assert_eq!(named("team", ""), "p/web");
    assert!(Object::in_project("p/q", "", "web", CONTROL).is_err());
    assert!(Object::in_project("p", "a/b", "web", CONTROL).is_err());
    assert!(Object::in_project("p", "", "a/b", CONTROL).is_err());
}

#[test]
fn clusters_and_repositories_are_named_by_url_after_their_project_if_any() {
    let url = "https://kubernetes.default.svc";
    assert_eq!(Object::at_url(None, url).expect("a URL").as_str(), url);
    assert_eq!(Object::at_url(Some(""), url).expect("a URL").as_str(), url);
    assert_eq!(Object::at_url(Some("p"), url).expect("a URL").as_str(), "p/https://kubernetes.default.svc");
    assert!(Object::at_url(Some("p/q"), url).is_err());
    assert!(Object::new("x".repeat(5_000)).is_err());
}

#[test]
fn the_project_of_a_request_is_the_first_part_of_what_can_belong_to_one() {
    for (resource, object, project) in [
        ("applications", "p/web", Some("p")),
        ("applicationsets", "p/ns/web", Some("p")),
        ("logs", "p/web", Some("p")),
        ("exec", "p/web", Some("p")),
        ("repositories", "p/https://git/x", Some("p")),
        ("clusters", "p/https://x", Some("p")),
        ("applications", "web", None),
        ("projects", "p", Some("p")),
        ("accounts", "p/x", None),
        ("write-repositories", "p/x", None),
        ("extensions", "p/x", None),
    ] {
        let request = Request::parse(resource, "get", object, CONTROL).expect("words");
        assert_eq!(request.project(), project, "{request}");
    }
}

#[test]
fn can_i_leaves_the_control_planes_namespace_out_and_urls_alone() {
    let object = |resource: &str, object: &str| {
        Request::parse(resource, "get", object, CONTROL).expect("words").object.as_str().to_owned()
    };
    assert_eq!(object("applications", "p/argocd/web"), "p/web");
    assert_eq!(object("applications", "p/team/web"), "p/team/web");
    assert_eq!(object("applications", "*"), "*");
    assert_eq!(object("clusters", "https://x"), "https://x");
    assert_eq!(object("accounts", "a/argocd/b"), "a/argocd/b");
}
