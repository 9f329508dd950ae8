//! Questions a client asks about itself and others. Nothing is stored.
//!
//! Where nobody asks for rights, whoever gets in owns the cluster, and every access question about the caller is answered yes.

use baton_schema::FieldError;
use serde_json::{Value, json};

use crate::auth::User;
use crate::catalog::Resource;
use crate::decode;
use crate::failure::Failure;
use crate::rest::{Answer, Call};
use crate::tokens;

pub(crate) fn answer(call: &Call, resource: &Resource, namespace: Option<&str>) -> Result<Answer, Failure> {
    if call.method.as_str() != "POST" || (resource.namespaced && namespace.is_none()) {
        return Err(Failure::method_not_allowed());
    }
    let document = decode::document(call.content_type(), &call.body, &resource.kind)?;
    let (mut review, _) = decode::accept(resource, document)?;
    if let Some(error) = question_error(resource, &review) {
        return Err(Failure::invalid(resource.kind_subject(""), &[error]));
    }
    if let Some(status) = by_rights(call, resource, &review["spec"], namespace)? {
        review["status"] = status;
        return Ok(Answer::ok(review).created());
    }
    let user = json!({"username": call.user.name, "groups": call.user.groups});
    review["status"] = match resource.kind.as_str() {
        "SelfSubjectAccessReview" => json!({"allowed": true, "reason": "the caller owns this cluster"}),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => access(&review["spec"]),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        "SelfSubjectReview" => json!({"userInfo": user}),
        "TokenReview" => json!({"authenticated": false, "error": "tokens of this cluster are not reviewed"}),
        "Binding" => return Err(Failure::method_not_allowed()),
        other => return Err(Failure::internal(format!("{other} is not answered"))),
    };
    Ok(Answer::ok(review).created())
}

/// The answer where rights are enforced; none where the question is not about them.
fn by_rights(
    call: &Call,
    resource: &Resource,
    spec: &Value,
    namespace: Option<&str>,
) -> Result<Option<Value>, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let other = || {
        let groups = spec["groups"].as_array().into_iter().flatten().map(text);
        User { name: text(&spec["user"]), groups: groups.collect() }
    };
    let core = &call.core;
    Ok(match resource.kind.as_str() {
        "SelfSubjectAccessReview" => core.review(&call.user, spec),
        "SubjectAccessReview" => core.review(&other(), spec),
        "LocalSubjectAccessReview" => {
            let asked = spec["resourceAttributes"]["namespace"].as_str();
            if asked != namespace {
                let why = "spec.resourceAttributes.namespace must match metadata.namespace";
                return Err(Failure::bad_request(why));
            }
            core.review(&other(), spec)
        }
        "SelfSubjectRulesReview" => core.rules_of(&call.user, spec["namespace"].as_str().unwrap_or_default()),
        "TokenReview" => tokens::review(core, spec),
        _ => None,
    })
}

/// An access review asks about one thing.
fn question_error(resource: &Resource, review: &Value) -> Option<FieldError> {
    if !resource.kind.ends_with("AccessReview") {
        return None;
    }
    let asked = |field: &str| !review["spec"][field].is_null();
    let one = asked("resourceAttributes") != asked("nonResourceAttributes");
    (!one).then(|| {
        FieldError::invalid(
            "spec.resourceAttributes",
            review["spec"]["resourceAttributes"].clone(),
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
    })
}

/// Others have the rights of their groups; only the owners' group has any here.
fn access(spec: &Value) -> Value {
    let owner =
        spec["groups"].as_array().is_some_and(|groups| groups.iter().any(|group| group == "system:masters"));
    if owner {
        json!({"allowed": true, "reason": "system:masters owns this cluster"})
    } else {
        json!({"allowed": false, "reason": "only system:masters has access to this cluster"})
    }
}
