//! The three lists of calls that a phase has, by what the calls are in it.

use baton_api::phase_status::{HookResult, PhaseStatus};
use baton_hooks::Role;

use crate::config::{CallPlan, PhasePlan};

impl PhasePlan {
    /// The calls of a list.
    pub fn calls(&self, role: Role) -> &[CallPlan] {
        match role {
            Role::PreHook => &self.pre_hooks,
            Role::Check => &self.checks,
            Role::PostHook => &self.post_hooks,
        }
    }
}

/// The results of a list.
pub(crate) trait Lists {
    fn results(&self, role: Role) -> &[HookResult];
    fn results_mut(&mut self, role: Role) -> &mut Vec<HookResult>;
}

impl Lists for PhaseStatus {
    fn results(&self, role: Role) -> &[HookResult] {
        match role {
            Role::PreHook => &self.pre_hooks,
            Role::Check => &self.checks,
            Role::PostHook => &self.post_hooks,
        }
    }

    fn results_mut(&mut self, role: Role) -> &mut Vec<HookResult> {
        match role {
            Role::PreHook => &mut self.pre_hooks,
            Role::Check => &mut self.checks,
            Role::PostHook => &mut self.post_hooks,
        }
    }
}

/// All lists, in the order they run.
pub(crate) const ROLES: [Role; 3] = [Role::PreHook, Role::Check, Role::PostHook];
