//! `approve-deletion`: a person's word on a mass deletion that the fuse holds.

use baton_api::conditions::application_set::DELETION_HELD;
use baton_rollout::fuse;
use clap::Args;
use serde_json::Value;

use super::sets::Sets;
use crate::failure::Failure;
use crate::objects::{can_ask, confirmed, text};
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
#[command(
    after_help = "When generators suddenly give much less, nothing is deleted before somebody approves it (flag --deletion-fuse, \
annotation baton.dev/deletion-fuse). The approval is for exactly the Applications shown and is used once; if others would go \
meanwhile, it counts for nothing. The same by hand: the annotation baton.dev/deletion-approved that the condition \
DeletionHeld asks for.

Exit codes: 0 approved, or nothing waits; 2 not approved; 3 the set does not say what to approve; 20 no such set, or the API \
refused or cannot be reached.

Examples:
  baton appset approve-deletion web
  baton appset approve-deletion web --yes"
)]
pub(crate) struct Approve {
    /// The ApplicationSet.
    set: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

impl Approve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let sets = Sets::at(&self.place).await?;
        let set = sets.get(&self.set).await?;
        let Some(message) = held(&set) else {
            return print::out(&format!("nothing waits for approval in applicationset {}\n", self.set));
        };
        let Some(asked) = fuse::asked_for(&message) else {
            return Err(Failure::failed(format!("the set does not say what to approve: {message}")));
        };
        if !self.yes {
            let what = message.split("; approve with").next().unwrap_or_default().to_owned();
            let question = format!("{}: {what}.", self.set);
            if can_ask().is_err() {
                return Err(Failure::waiting(format!(
                    "{question} There is no terminal to ask on: add --yes"
                )));
            }
            if !confirmed(&[question])? {
                return Err(Failure::waiting("nothing was approved: no Application is deleted"));
            }
        }
        sets.approve_deletion(&set, &asked.to_string()).await?;
        print::out(&format!("applicationset.argoproj.io/{} deletion approved\n", self.set))
    }
}

/// What the fuse says while it holds.
fn held(set: &Value) -> Option<String> {
    let conditions = set.pointer("/status/conditions")?.as_array()?;
    let held = conditions.iter().find(|condition| condition["type"] == DELETION_HELD)?;
    (held["status"] == "True").then(|| text(held, "/message"))
}
