//! Questions a client asks about itself and others. Nothing is stored.
//!
//! Whoever gets in owns the cluster, so every access question about the caller is answered yes.

use baton_schema::FieldError;
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::decode;
use crate::failure::Failure;
use crate::object;
use crate::rest::{Answer, Call};

pub(crate) fn answer(call: &Call, resource: &Resource, namespace: Option<&str>) -> Result<Answer, Failure> {
    if call.method.as_str() != "POST" || (resource.namespaced && namespace.is_none()) {
        return Err(Failure::method_not_allowed());
    }
    let document = decode::document(call.content_type(), &call.body, &resource.kind)?;
    let (mut review, _) = decode::accept(resource, document)?;
    if let Some(error) = question_error(resource, &review) {
        return Err(Failure::invalid(resource.kind_subject(""), &[error]));
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

/// `serviceaccounts/token`: there is no one the token could be shown to, which the answer says.
pub(crate) fn token(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Answer, Failure> {
    let record = call.core.get(resource, namespace, name, &call.query)?;
    let account = object::read(&record);
    let subject = resource.subject(object::name(&account));
    Err(Failure::forbidden(
        subject,
        "this API server issues no service account tokens; use the kubeconfig it wrote",
    ))
}
