//! `confirm-deletion`: a person's word that what waits may be deleted.

use baton_api::names::application::DELETION_APPROVED;
use clap::Args;
use jiff::Timestamp;

use super::applications::Applications;
use super::{typed, view};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
#[command(after_help = "The approval holds for the sync or deletion that runs now, and for no other.

Examples:
  baton app resources web --needs-approval     what would be deleted
  baton app confirm-deletion web               approve it")]
pub(crate) struct ConfirmDeletion {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
}

impl ConfirmDeletion {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let object = applications.get(&self.name).await?;
        let application = typed(&object)?;
        let state = application.status.operation_state.as_ref();
        let running = state.filter(|state| !state.phase.is_completed() && application.operation.is_some());
        let deletion = application.metadata.deletion_timestamp.as_ref();
        let since = [deletion, running.and_then(|state| state.started_at.as_ref())];
        let Some(since) = since.into_iter().flatten().map(|time| time.0).max() else {
            return Err(Failure::failed(format!(
                "no sync or deletion of {} is under way, so there is nothing to approve; an approval holds for one operation",
                self.name
            )));
        };
        // A clock here that is behind the cluster's must not make the approval look older than what it approves.
        let at = Timestamp::now().max(since);
        applications.approve(&self.name, &object, at).await?;
        let mut said = format!("application.argoproj.io/{} deletion approved at {at}\n", self.name);
        let own = view::unapproved(&application);
        for resource in &own {
            said.push_str(&format!("  {}\n", view::resource_name(resource)));
        }
        if deletion.is_some() && running.is_some() {
            said.push_str(
                "  and, since the Application is being deleted too, all that its deletion asks for:\n",
            );
            let rows = application.status.resources.iter();
            for row in
                rows.filter(|row| row.requires_deletion_confirmation && !row.requires_deletion_approval)
            {
                said.push_str(&format!("  {}\n", view::resource_name(row)));
            }
        }
        print::out(&said)?;
        if let Some(others) = view::waiting(&application).filter(|_| own.is_empty()) {
            crate::terminal::remark(&format!(
                "This covers {}'s own resources. What belongs to others is approved on the object itself \
                 (kubectl annotate … {DELETION_APPROVED}=true): {others}",
                self.name
            ));
        }
        Ok(())
    }
}
