//! `pods/eviction`: deletion that asks disruption budgets first.

use baton_grammar::labels::Selector;
use serde_json::json;

use crate::catalog::Resource;
use crate::decode;
use crate::delete::DeleteOptions;
use crate::failure::Failure;
use crate::object;
use crate::rest::{Answer, Call};

pub(crate) async fn evict(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Answer, Failure> {
    let eviction = decode::document(call.content_type(), &call.body, "Eviction")?.value;
    let pod = call.core.present(resource, &*call.core.get(resource, namespace, name, &call.query)?);
    for record in call.core.everything("poddisruptionbudgets.policy") {
        if &*record.key.namespace != namespace {
            continue;
        }
        let budget = object::read(&record);
        let covers = Selector::from_object(&budget["spec"]["selector"])
            .is_ok_and(|selector| selector.matches_object(&pod));
        if covers && budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) <= 0 {
            return Err(Failure::too_many_requests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
            ));
        }
    }
    let mut options = DeleteOptions::read(&eviction["deleteOptions"], &call.query)?;
    options.dry_run |= call.dry_run()?;
    call.core.delete(resource, namespace, name, &options).await?;
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Answer::ok(status).created())
}
