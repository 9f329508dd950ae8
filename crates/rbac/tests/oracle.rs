//! Decisions on random policies, held against Casbin: the `casbin` crate with Argo CD's model decides for one subject, and
//! the order of subjects around it is written down here a second time.

use std::collections::BTreeMap;

use baton_api::project::{AppProject, ProjectRole};
use baton_grammar::globs::gobwas;
use baton_grammar::regexp::Regexp;
use baton_rbac::{Action, Caller, Credential, Object, Policy, Request, Resource, Rights, TokenApproval};
use casbin::function_map::OperatorFunction;
use casbin::rhai::Dynamic;
use casbin::{CoreApi, DefaultModel, Enforcer, MemoryAdapter, MgmtApi};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const MODEL: &str = "
[request_definition]
r = sub, res, act, obj
[policy_definition]
p = sub, res, act, obj, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = g(r.sub, p.sub) && globOrRegexMatch(r.res, p.res) && globOrRegexMatch(r.act, p.act) && globOrRegexMatch(r.obj, p.obj)
";

/// How patterns are written. The vocabulary of each has the same meanings more or less.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Glob,
    Regex,
}

/// A policy's lines as fields: `p` lines have five, `g` lines two.
#[derive(Debug, Clone, Default)]
struct Lines {
    rights: Vec<Vec<String>>,
    links: Vec<Vec<String>>,
}

/// Everything that decides, and who asks for what.
#[derive(Debug, Clone)]
struct World {
    mode: Mode,
    lines: Lines,
    default_role: &'static str,
    /// Projects by name: the rights of their role `r`, and its groups.
    projects: BTreeMap<&'static str, (Vec<Vec<String>>, Vec<String>)>,
    token_approval: bool,
    asked: Vec<(Caller, Request)>,
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn decisions_are_casbins_in_argo_cds_order_with_globs(world in world(Mode::Glob)) {
        agree(&world)?;
    }

    #[test]
    fn decisions_are_casbins_in_argo_cds_order_with_regular_expressions(world in world(Mode::Regex)) {
        agree(&world)?;
    }
}

fn agree(world: &World) -> Result<(), TestCaseError> {
    let rights = rights(world);
    let oracle = Oracle::new(world);
    for (caller, request) in &world.asked {
        let decision = rights.decide(caller, request);
        let expected = oracle.allows(caller, request);
        prop_assert_eq!(decision.allowed, expected, "{} for {:?}: {}", request, caller, decision);
    }
    // Asked in a row, nothing changes.
    for (caller, _) in &world.asked {
        let mut review = rights.review(caller);
        for (_, request) in &world.asked {
            prop_assert_eq!(
                review.decide(request).allowed,
                rights.decide(caller, request).allowed,
                "{}",
                request
            );
        }
    }
    Ok(())
}

// === ours ===

fn rights(world: &World) -> Rights {
    let lines = world.lines.rights.iter().map(|line| csv_line("p", line));
    let csv: Vec<String> = lines.chain(world.lines.links.iter().map(|line| csv_line("g", line))).collect();
    let mode = if world.mode == Mode::Regex { "regex" } else { "glob" };
    let data = [
        ("policy.csv", csv.join("\n").as_str()),
        ("policy.default", world.default_role),
        ("policy.matchMode", mode),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut rights = Rights::new(Policy::load(&BTreeMap::from(data)).expect("the lines are sound"));
    for (name, (policies, groups)) in &world.projects {
        let mut project = AppProject::default();
        project.metadata.name = Some((*name).to_owned());
        project.spec.roles = vec![ProjectRole {
            name: "r".to_owned(),
            policies: policies.iter().map(|line| csv_line("p", line)).collect(),
            groups: groups.clone(),
            ..ProjectRole::default()
        }];
        let approval = if world.token_approval { TokenApproval::Allowed } else { TokenApproval::Refused };
        rights.set_project(&project, approval).expect("the lines are sound");
    }
    rights
}

fn csv_line(key: &str, fields: &[String]) -> String {
    let quoted = fields.iter().map(|field| format!("\"{field}\""));
    std::iter::once(key.to_owned()).chain(quoted).collect::<Vec<_>>().join(", ")
}

// === the oracle ===

struct Oracle<'a> {
    world: &'a World,
    global: Enforcer,
    projects: BTreeMap<&'static str, Enforcer>,
}

impl<'a> Oracle<'a> {
    fn new(world: &'a World) -> Oracle<'a> {
        let mut base = built_in(world.mode);
        base.rights.extend(world.lines.rights.iter().cloned());
        base.links.extend(world.lines.links.iter().cloned());
        let projects = world.projects.iter().map(|(name, (policies, groups))| {
            let mut lines = base.clone();
            let role = format!("proj:{name}:r");
            let own = [role.as_str(), "projects", "get", name, "allow"];
            lines.rights.push(own.map(str::to_owned).to_vec());
            lines.rights.extend(policies.iter().cloned());
            lines.links.extend(groups.iter().map(|group| vec![group.clone(), role.clone()]));
            (*name, enforcer(world.mode, &lines))
        });
        Oracle { world, global: enforcer(world.mode, &base), projects: projects.collect() }
    }

    /// Argo CD's order, and Baton's rule on tokens that approve.
    fn allows(&self, caller: &Caller, request: &Request) -> bool {
        let words = [request.resource.word(), request.action.as_str(), request.object.as_str()];
        let enforce = |by: &Enforcer, subject: &str| {
            by.enforce((subject, words[0], words[1], words[2])).expect("a request of four words")
        };
        let default_role = self.world.default_role;
        let by_default = |by: &Enforcer| !default_role.is_empty() && enforce(by, default_role);
        let name = match request.resource {
            Resource::Projects => Some(words[2]),
            Resource::Applications | Resource::Clusters | Resource::Logs => {
                words[2].split_once('/').map(|parts| parts.0)
            }
            _ => None,
        };
        let project = name.and_then(|name| self.projects.get(name));
        let is_program = matches!(caller.credential(), Credential::ApiKey | Credential::ProjectToken { .. });
        if is_program
            && words[1].ends_with("/approve-deletion")
            && !(self.world.token_approval && project.is_some())
        {
            return false;
        }
        if by_default(&self.global) {
            return true;
        }
        let by = project.unwrap_or(&self.global);
        let is_foreign = match caller.credential() {
            Credential::ProjectToken { project } => name.is_some_and(|name| *name != **project),
            Credential::Anonymous => true,
            _ => false,
        };
        if !is_foreign {
            if by_default(by) || enforce(by, caller.id()) {
                return true;
            }
            let links = by.get_grouping_policy();
            let linked = |group: &str| links.iter().any(|link| link[0] == group);
            if caller.groups().iter().any(|group| linked(group) && enforce(by, group)) {
                return true;
            }
        }
        enforce(&self.global, "")
    }
}

fn enforcer(mode: Mode, lines: &Lines) -> Enforcer {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let model = DefaultModel::from_str(MODEL).await.expect("a model");
        let mut enforcer = Enforcer::new(model, MemoryAdapter::default()).await.expect("an enforcer");
        let function = match mode {
            Mode::Glob => OperatorFunction::Arg2(glob),
            Mode::Regex => OperatorFunction::Arg2(regex),
        };
        enforcer.add_function("globOrRegexMatch", function);
        // Casbin refuses to add a line twice.
        enforcer.add_policies(once(&lines.rights)).await.expect("lines");
        enforcer.add_grouping_policies(once(&lines.links)).await.expect("links");
        enforcer
    })
}

fn once(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    for line in lines {
        if !seen.contains(line) {
            seen.push(line.clone());
        }
    }
    seen
}

fn glob(text: Dynamic, pattern: Dynamic) -> Dynamic {
    let (text, pattern) = (text.into_string().expect("text"), pattern.into_string().expect("text"));
    gobwas::Pattern::new(&pattern, &[]).is_ok_and(|pattern| pattern.matches(&text)).into()
}

fn regex(text: Dynamic, pattern: Dynamic) -> Dynamic {
    let (text, pattern) = (text.into_string().expect("text"), pattern.into_string().expect("text"));
    Regexp::parse(&pattern).expect("the vocabulary is sound").is_match(&text).into()
}

/// The built-in policy as far as the vocabulary of requests goes, in either mode's patterns.
fn built_in(mode: Mode) -> Lines {
    let mut lines = Lines::default();
    let mut right = |role: &str, resource: &str, action: &str, object: &str| {
        let pattern = |text: &str| match mode {
            Mode::Glob => text.to_owned(),
            Mode::Regex => format!("^{}$", text.replace('*', ".*")),
        };
        let fields =
            [role.to_owned(), pattern(resource), pattern(action), pattern(object), "allow".to_owned()];
        lines.rights.push(fields.to_vec());
    };
    for (resource, object) in
        [("applications", "*/*"), ("clusters", "*"), ("projects", "*"), ("accounts", "*"), ("logs", "*/*")]
    {
        right("role:readonly", resource, "get", object);
    }
    for action in ["delete", "sync", "action/*"] {
        right("role:admin", "applications", action, "*/*");
    }
    for resource in ["clusters", "projects"] {
        right("role:admin", resource, "delete", "*");
    }
    let links = [["role:admin", "role:readonly"], ["admin", "role:admin"]];
    lines.links = links.map(|link| link.map(str::to_owned).to_vec()).to_vec();
    lines
}

// === random worlds ===

fn world(mode: Mode) -> impl Strategy<Value = World> {
    let project = move || (prop::collection::vec(right(mode), 0..5), groups());
    (
        lines(mode),
        select(vec!["", "role:a", "role:readonly", "role:c"]),
        project(),
        prop::option::of(project()),
        any::<bool>(),
        prop::collection::vec((caller(), request()), 14),
    )
        .prop_map(move |(lines, default_role, first, second, token_approval, asked)| {
            let mut projects = BTreeMap::from([("p", first)]);
            projects.extend(second.map(|second| ("q", second)));
            World { mode, lines, default_role, projects, token_approval, asked }
        })
}

fn lines(mode: Mode) -> impl Strategy<Value = Lines> {
    let rights = prop::collection::vec(right(mode), 0..14);
    let links = prop::collection::vec((subject(), subject()), 0..9);
    (rights, links).prop_map(|(rights, links)| Lines {
        rights,
        links: links.into_iter().map(|(member, role)| vec![member, role]).collect(),
    })
}

fn right(mode: Mode) -> impl Strategy<Value = Vec<String>> {
    let (resources, actions, objects) = match mode {
        Mode::Glob => (
            vec!["applications", "*", "app*", "{applications,logs}", "projects", "clusters", "["],
            vec![
                "*",
                "get",
                "sync",
                "action/*",
                "action/*/*/approve-deletion",
                "{get,delete}",
                "?e?",
                "*/restart",
            ],
            vec![
                "*",
                "*/*",
                "p/*",
                "q/*",
                "p/a",
                "*/a",
                "p/ns/*",
                "{p,q}/[ab]",
                "p/**/a",
                "p",
                "[!p]*",
                "[",
                "p*b",
            ],
        ),
        Mode::Regex => (
            vec!["applications", ".*", "^app", "applications|logs", "projects", "clusters", "none"],
            vec![
                ".*",
                "get",
                "sync",
                "^action/",
                "action/.*/approve-deletion$",
                "get|delete",
                "^.e.$",
                "restart",
            ],
            vec![
                ".*",
                "/",
                "^p/",
                "^q/.*$",
                "^p/a$",
                "/a$",
                "p/ns/",
                "^(p|q)/[ab]$",
                "^p(/.*)?/a$",
                "^p$",
                "^[^p]",
                "b$",
            ],
        ),
    };
    // Mostly allow, so that denies have something to take away.
    let effect = select(vec!["allow", "allow", "allow", "deny", "maybe"]);
    (subject(), select(resources), select(actions), select(objects), effect).prop_map(
        |(subject, resource, action, object, effect)| {
            vec![subject, resource.to_owned(), action.to_owned(), object.to_owned(), effect.to_owned()]
        },
    )
}

fn subject() -> impl Strategy<Value = String> {
    let names = [
        "alice",
        "bob",
        "devs",
        "ops",
        "role:a",
        "role:b",
        "role:c",
        "role:admin",
        "proj:p:r",
        "proj:q:r",
        "",
    ];
    select(names.map(str::to_owned).to_vec())
}

fn groups() -> impl Strategy<Value = Vec<String>> {
    subsequence(vec!["devs", "ops", "bob", "role:a"], 0..=2)
        .prop_map(|groups| groups.into_iter().map(str::to_owned).collect())
}

fn caller() -> impl Strategy<Value = Caller> {
    let session = (
        select(vec!["alice", "bob", "admin", "nobody", ""]),
        subsequence(vec!["devs", "ops", "more"], 0..=3),
    )
        .prop_map(|(id, groups)| Caller::session(id, groups));
    prop_oneof![
        4 => session,
        1 => select(vec!["alice", "bob"]).prop_map(Caller::api_key),
        2 => select(vec!["p", "q"]).prop_map(|project| Caller::project_token(project, "r")),
        1 => Just(Caller::anonymous()),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let actions = select(vec![
        "get",
        "get",
        "sync",
        "delete",
        "action/apps/Deployment/restart",
        "action//Pod/approve-deletion",
    ]);
    let resources = select(vec!["applications", "applications", "logs", "projects", "clusters", "accounts"]);
    let objects =
        select(vec!["p/a", "p/b", "p/ns/a", "q/a", "q/b", "x/a", "p", "q", "https://c", "p/https://c"]);
    (resources, actions, objects).prop_map(|(resource, action, object)| {
        let resource: Resource = resource.parse().expect("a resource");
        Request::new(
            resource,
            Action::parse(action).expect("an action"),
            Object::new(object).expect("an object"),
        )
    })
}
