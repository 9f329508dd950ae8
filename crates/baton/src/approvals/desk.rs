//! The inbox and its decisions, at a desk.

use baton_server::Code;
use baton_server::handlers::approvals::{Item, Verdict};
use http::Method;
use serde_json::{Value, json};

use crate::desk::{Desk, items, refused};
use crate::failure::Failure;
use crate::objects::text;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// It may happen.
    Approve,
    /// It may not.
    Reject,
}

// === impl Desk ===

impl Desk {
    /// What waits, as it is now.
    pub(super) async fn waiting(&self) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => remote.get("api/v1/approvals").await?,
            Desk::Core(core) => core.server.approvals(&core.context).await.map_err(refused)?,
        };
        Ok(items(answer))
    }

    /// Decides exactly what was seen; what came of each.
    pub(super) async fn decide(
        &self,
        verb: Verb,
        seen: &[Value],
        reason: &str,
    ) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => {
                let of = |item: &Value| json!({"id": item["id"], "setHash": item["setHash"]});
                let verdict = json!({"items": seen.iter().map(of).collect::<Vec<_>>(), "reason": reason});
                let path = match verb {
                    Verb::Approve => "api/v1/approvals/approve",
                    Verb::Reject => "api/v1/approvals/reject",
                };
                let answer = remote.send(Method::POST, path, Some(&verdict)).await;
                answer.map_err(|refusal| match refusal.is_denied() {
                    true => denied(&Failure::from(refusal).to_string()),
                    false => refusal.into(),
                })?
            }
            Desk::Core(core) => {
                let of = |item: &Value| Item { id: text(item, "/id"), set_hash: text(item, "/setHash") };
                let verdict = Verdict { items: seen.iter().map(of).collect(), reason: reason.to_owned() };
                match verb {
                    Verb::Approve => core.server.approve(&core.context, &verdict).await,
                    Verb::Reject => core.server.reject(&core.context, &verdict).await,
                }
                .map_err(|error| match error.code {
                    Code::PermissionDenied => denied(&error.message),
                    _ => refused(error),
                })?
            }
        };
        Ok(items(answer))
    }
}

/// Nothing of it may be decided by this person; who may decide a part of it is told so of each.
fn denied(why: &str) -> Failure {
    Failure::failed(format!("nothing was decided: {why}"))
}
