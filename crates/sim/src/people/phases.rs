//! What people do about phases that have failed, once faults have stopped.

use serde_json::Value;

use super::People;
use crate::action::Action;
use crate::fleet::SET;
use crate::scenario::Ending;
use crate::world::World;

/// How often they have something tried again before they commit something newer.
const PATIENCE: usize = 4;

impl People<'_> {
    /// Whether they leave a phase that has failed as it is, to the end.
    pub(super) fn leave_it(&self) -> bool {
        self.ending == Ending::Leave && self.phases().iter().any(is_over)
    }

    /// Goes on where a phase has failed. What stood in its way is mended by now; that it is to be tried again, or what else
    /// is to become of it, is for people to say.
    pub(super) async fn mend_phase(&mut self, round: usize) {
        let phases = self.phases();
        if self.ending == Ending::Usual {
            if phases.iter().any(|phase| phase["state"] == "Failed") {
                self.lend(Action::Retry { app: None }).await;
            }
            return;
        }
        let Some(failed) = phases.iter().find(|phase| is_over(phase)) else { return };
        let is_back = failed["failure"]["action"] == "rollback";
        // Somebody looks at it at once, or nothing would be written for a while.
        let noticed: Vec<String> = self.fleet.elements.keys().cloned().collect();
        let act = match self.ending {
            Ending::Commit => Action::Push { branch: 0, noticed },
            // What was put back is not tried again.
            _ if is_back || (round >= PATIENCE && self.has_spare()) => Action::Push { branch: 0, noticed },
            Ending::Advance => Action::Advance,
            Ending::Usual | Ending::Retry | Ending::Leave => Action::Retry { app: None },
        };
        if !matches!(act, Action::Push { .. }) || self.has_spare() {
            self.lend(act).await;
        }
    }

    /// Whether there is a commit that was not pushed yet.
    fn has_spare(&self) -> bool {
        self.pushed[0] + 1 < self.world.repositories.commits(0).len()
    }

    fn phases(&self) -> Vec<Value> {
        let mut sets = World::objects(&self.world.control, "applicationsets.argoproj.io");
        let set = sets.remove(SET).unwrap_or_default();
        let generators = set.pointer("/status/phases").and_then(Value::as_array).into_iter().flatten();
        generators.filter_map(|generator| generator["phases"].as_array()).flatten().cloned().collect()
    }
}

/// Whether a phase has come to an end that nothing follows by itself.
fn is_over(phase: &Value) -> bool {
    let ended = ["Failed", "Aborted", "RolledBack"].into_iter().any(|state| phase["state"] == state);
    let goes_on = ["continue", "advance"].into_iter().any(|action| phase["failure"]["action"] == action);
    ended && !goes_on
}
