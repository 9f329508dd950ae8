//! Who may do what, where the cluster is asked to care: Kubernetes' RBAC over the objects it holds.

use std::sync::Arc;

use baton_access::{Attributes, Caller, Decision, GROUP, Policy, Request, RoleRef, Rule, uncovered};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::auth::{Secret, User};
use crate::catalog::Resource;
use crate::cluster::Core;
use crate::failure::{Failure, Subject};
use crate::object;
use crate::request::{Query, Target};
use crate::rest::Call;
use crate::tokens::TokenKey;

/// Who may do what.
#[derive(Debug, Clone, Default)]
pub enum Authorization {
    /// Whoever gets in owns the cluster.
    #[default]
    Owner,
    /// What Roles and bindings grant; the owner may do anything. Service accounts have tokens, signed with this key.
    Rbac(Secret),
}

/// What decides where rights are enforced.
pub(crate) struct Authority {
    pub(crate) tokens: TokenKey,
    /// What the stored roles and bindings say; none since one of them changed.
    policy: Mutex<Option<Arc<Policy>>>,
}

/// What a request asks for, in RBAC's words.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    verb: String,
    path: &'a str,
    about: Option<(&'a str, &'a str, &'a str, &'a str, String)>,
}

/// The kinds that say who may do what.
const KINDS: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

// === impl Authorization ===

impl Authorization {
    /// RBAC, with tokens that nobody else can sign.
    pub fn rbac() -> Authorization {
        Authorization::Rbac(TokenKey::generate())
    }

    pub(crate) fn authority(&self) -> Option<Authority> {
        match self {
            Authorization::Owner => None,
            Authorization::Rbac(key) => {
                Some(Authority { tokens: TokenKey::new(key), policy: Mutex::default() })
            }
        }
    }
}

// === impl Question ===

impl<'a> Question<'a> {
    pub(crate) fn of(target: &'a Target, method: &Method, query: &Query, path: &'a str) -> Question<'a> {
        let Target::Resource(asked) = target else {
            return Question { verb: method.as_str().to_ascii_lowercase(), path, about: None };
        };
        let name = asked.name.as_deref();
        let verb = match (method.as_str(), name) {
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            ("GET" | "HEAD", _) if asked.watch || query.flag("watch") => "watch",
            ("GET" | "HEAD", Some(_)) => "get",
            ("GET" | "HEAD", None) => "list",
            (other, _) => &other.to_ascii_lowercase(),
        };
        // A selection by name is as good as the name.
        let selected = || query.get("fieldSelector").and_then(selected_name).map(str::to_owned);
        let name = name.map(str::to_owned).or_else(selected).unwrap_or_default();
        // A namespace lies in itself, so that a Role in it may be about it.
        let own = (asked.group.is_empty() && asked.resource == "namespaces").then_some(asked.name.as_deref());
        let namespace = asked.namespace.as_deref().or(own.flatten()).unwrap_or_default();
        let subresource = asked.subresource.as_deref().unwrap_or_default();
        let about = (asked.group.as_str(), asked.resource.as_str(), subresource, namespace, name);
        Question { verb: verb.to_owned(), path, about: Some(about) }
    }

    fn request(&self) -> Request<'_> {
        match &self.about {
            None => Request::Path { verb: &self.verb, path: self.path },
            Some((group, resource, subresource, namespace, name)) => Request::Resource(Attributes {
                verb: &self.verb,
                group,
                resource,
                subresource,
                namespace,
                name,
            }),
        }
    }
}

/// The name that a field selector asks for, if only one can match.
fn selected_name(selector: &str) -> Option<&str> {
    selector.split(',').find_map(|part| {
        let value = part.strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value)).filter(|name| !name.is_empty())
    })
}

fn caller(user: &User) -> Caller<'_> {
    Caller { name: &user.name, groups: &user.groups }
}

impl Core {
    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, user: &User, question: &Question<'_>) -> Result<(), Failure> {
        self.demand(user, &question.request())
    }

    pub(crate) fn demand(&self, user: &User, request: &Request<'_>) -> Result<(), Failure> {
        let Some(policy) = self.policy() else { return Ok(()) };
        let Decision::Refused(reason) = policy.decide(&caller(user), request) else { return Ok(()) };
        let mut why = request.refused(&user.name);
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        Err(match request {
            Request::Path { .. } => Failure::forbidden(Subject { group: "", resource: "", name: "" }, why),
            Request::Resource(asked) => {
                let subject = Subject { group: asked.group, resource: asked.resource, name: asked.name };
                Failure::forbidden(subject, why)
            }
        })
    }

    /// What the roles and bindings say now, where anybody cares.
    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        let authority = self.authority.as_ref()?;
        // Read under the lock: a change that is stored meanwhile waits to have it forgotten again.
        let mut known = authority.policy.lock();
        let policy = known.get_or_insert_with(|| {
            let stored = KINDS.map(|plural| self.everything(&format!("{plural}.{GROUP}")));
            let objects: Vec<Value> = stored.iter().flatten().map(|record| object::read(record)).collect();
            Arc::new(Policy::read(&objects))
        });
        Some(policy.clone())
    }

    /// To be called once a change of a role or binding is stored.
    pub(crate) fn forget_policy(&self) {
        if let Some(authority) = &self.authority {
            *authority.policy.lock() = None;
        }
    }

    /// Nobody hands out rights they do not have, unless they may `escalate` the role or `bind` it.
    pub(crate) fn admit_rights(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        author: Option<&User>,
    ) -> Result<(), Failure> {
        let (Some(user), GROUP, Some(policy)) = (author, resource.group.as_str(), self.policy()) else {
            return Ok(());
        };
        let unchanged =
            |fields: &[&str]| old.is_some_and(|old| fields.iter().all(|field| old[*field] == object[*field]));
        let (name, namespace) = (object::name(object), object::namespace(object));
        let may = |verb: &str, resource: &str, name: &str| {
            let asked = Attributes { verb, group: GROUP, resource, subresource: "", namespace, name };
            policy.decide(&caller(user), &Request::Resource(asked)).is_allowed()
        };
        let granted: Vec<Rule> = match resource.kind.as_str() {
            "Role" | "ClusterRole" => {
                if unchanged(&["rules", "aggregationRule"]) || may("escalate", &resource.plural, name) {
                    return Ok(());
                }
                let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]);
                match object["aggregationRule"].is_null() {
                    true => Rule::all(object),
                    // Nobody knows what will be in it.
                    false => Rule::all(&json!({ "rules": all })),
                }
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let role = &object["roleRef"];
                let text = |field: &str| role[field].as_str().unwrap_or_default();
                let Some(role) = RoleRef::new(text("kind"), namespace, text("name")) else { return Ok(()) };
                if unchanged(&["roleRef", "subjects"]) || may("bind", role.resource(), role.name()) {
                    return Ok(());
                }
                let subject = Subject { group: GROUP, resource: role.resource(), name: role.name() };
                policy.role(&role).ok_or_else(|| Failure::not_found(subject))?.to_vec()
            }
            _ => return Ok(()),
        };
        let held = policy.rules(&caller(user), namespace);
        let missing: Vec<String> = uncovered(&held, &granted).into_iter().map(compact).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            quoted(user.groups.iter().map(String::as_str)),
            missing.join("\n")
        );
        Err(Failure::forbidden(resource.subject(name), why))
    }

    /// Whom the headers of a request ask to be taken for, if the user may have that.
    pub(crate) fn impersonated(&self, user: User, headers: &http::HeaderMap) -> Result<User, Failure> {
        let all = |name: &str| -> Vec<String> {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
        };
        let (name, mut groups) =
            (all("impersonate-user").pop().unwrap_or_default(), all("impersonate-group"));
        if name.is_empty() {
            return Err(Failure::bad_request("a request cannot impersonate without Impersonate-User"));
        }
        let may = |group, resource, subresource, namespace, name: &str| {
            let asked = Attributes { verb: "impersonate", group, resource, subresource, namespace, name };
            self.demand(&user, &Request::Resource(asked))
        };
        match service_account(&name) {
            Some((namespace, account)) => may("", "serviceaccounts", "", namespace, account)?,
            None => may("", "users", "", "", &name)?,
        }
        for group in &groups {
            may("", "groups", "", "", group)?;
        }
        for uid in all("impersonate-uid") {
            may("authentication.k8s.io", "uids", "", "", &uid)?;
        }
        for key in headers.keys().filter_map(|key| key.as_str().strip_prefix("impersonate-extra-")) {
            for value in all(&format!("impersonate-extra-{key}")) {
                may("authentication.k8s.io", "userextras", key, "", &value)?;
            }
        }
        let own = service_account(&name).filter(|_| groups.is_empty());
        groups.extend(own.map(|(namespace, _)| account_groups(namespace)).into_iter().flatten());
        let known =
            if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
        if !groups.iter().any(|group| group == known) {
            groups.push(known.to_owned());
        }
        Ok(User { name, groups })
    }

    /// The answer to an access review about this user.
    pub(crate) fn review(&self, user: &User, spec: &Value) -> Option<Value> {
        let policy = self.policy()?;
        let resource = &spec["resourceAttributes"];
        let text = |of: &'_ Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let fields = ["verb", "group", "resource", "subresource", "namespace", "name"];
        let [verb, group, kind, subresource, namespace, name] = fields.map(|field| text(resource, field));
        let path = ["verb", "path"].map(|field| text(&spec["nonResourceAttributes"], field));
        let request = match resource.is_null() {
            true => Request::Path { verb: &path[0], path: &path[1] },
            false => Request::Resource(Attributes {
                verb: &verb,
                group: &group,
                resource: &kind,
                subresource: &subresource,
                namespace: &namespace,
                name: &name,
            }),
        };
        let decision = policy.decide(&caller(user), &request);
        let mut status = json!({"allowed": decision.is_allowed()});
        if !decision.reason().is_empty() {
            status["reason"] = decision.reason().into();
        }
        Some(status)
    }

    /// The answer to "what may I do here?".
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> Option<Value> {
        let policy = self.policy()?;
        let rules = policy.rules(&caller(user), namespace);
        let (paths, resources): (Vec<&Rule>, Vec<&Rule>) =
            rules.into_iter().partition(|rule| rule.is_of_paths());
        let values = |rules: Vec<&Rule>| -> Vec<Value> { rules.into_iter().map(Rule::to_value).collect() };
        Some(json!({
            "resourceRules": values(resources), "nonResourceRules": values(paths), "incomplete": false,
        }))
    }

    /// What every cluster lets everybody do: find out what there is, and ask about themselves.
    pub(crate) async fn bootstrap_rights(&self) -> Result<(), Failure> {
        let reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
        let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
        let discovery = [
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        ];
        let everything = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]);
        let asking = json!([
            {"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
        ]);
        let paths = |paths: &[&str]| json!([{"nonResourceURLs": paths, "verbs": ["get"]}]);
        let (known, unknown) = ("system:authenticated", "system:unauthenticated");
        let roles = [
            ("cluster-admin", everything, &[baton_access::MASTERS][..]),
            ("system:basic-user", asking, &[known]),
            ("system:discovery", paths(&discovery), &[known]),
            ("system:public-info-viewer", paths(&public), &[known, unknown]),
        ];
        let version = format!("{GROUP}/v1");
        for (name, rules, groups) in roles {
            let metadata = json!({"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}});
            let role = json!({"metadata": metadata, "rules": rules});
            self.ensure(&version, "ClusterRole", role).await?;
            let subject = |group: &&str| json!({"apiGroup": GROUP, "kind": "Group", "name": group});
            let binding = json!({
                "metadata": metadata,
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
                "subjects": groups.iter().map(subject).collect::<Vec<_>>(),
            });
            self.ensure(&version, "ClusterRoleBinding", binding).await?;
        }
        Ok(())
    }
}

/// Whoever writes an object that is not there yet needs the right to create it too.
pub(crate) fn may_create(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Failure> {
    let (group, resource) = (resource.group.as_str(), resource.plural.as_str());
    let asked = Attributes { verb: "create", group, resource, subresource: "", namespace, name };
    call.core.demand(&call.user, &Request::Resource(asked))
}

/// Namespace and name of the service account that a user name stands for.
fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// The groups of a namespace's service accounts, but for the one of everybody.
pub(crate) fn account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// A rule as Kubernetes tells of it in errors.
fn compact(rule: &Rule) -> String {
    let rule = rule.to_value();
    let parts = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("Verbs", "verbs"),
    ];
    let told = parts.into_iter().filter_map(|(told, field)| {
        let texts = rule[field].as_array()?.iter().filter_map(Value::as_str);
        Some(format!("{told}:{}", quoted(texts)))
    });
    format!("{{{}}}", told.collect::<Vec<_>>().join(", "))
}

fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
