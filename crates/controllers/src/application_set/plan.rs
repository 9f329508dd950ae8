//! What is to be done about a set's Applications, decided from what is wanted and what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::desired::Desired;
use crate::cache::Record;
use crate::digest::Digest;
use crate::settings::Policy;

/// Pairs of live and desired digests that were compared in full and need nothing, by name.
pub(crate) type Settled = BTreeMap<Arc<str>, (Digest, Digest)>;

/// What is to be done, each in the order of names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// Applications nobody of this set has yet.
    pub(crate) create: Vec<&'a Desired>,
    /// Applications that may differ from what is wanted.
    pub(crate) compare: Vec<&'a Desired>,
    /// Applications no generator asks for any more.
    pub(crate) delete: Vec<Arc<str>>,
}

/// Plans a pass. Where an order decides about specifications, `ordered`, only the rest is compared.
///
/// `all` is everything generated, `faulty` the names that may not be acted on: those are neither written nor deleted.
/// Applications that are being deleted are left alone.
pub(crate) fn plan<'a>(
    policy: Policy,
    all: &'a [Desired],
    faulty: impl Fn(&str) -> bool,
    owned: &BTreeMap<Arc<str>, Arc<Record>>,
    settled: &Settled,
    ordered: bool,
) -> Plan<'a> {
    let mut valid: Vec<&Desired> = all.iter().filter(|desired| !faulty(&desired.name)).collect();
    valid.sort_by(|a, b| a.name.cmp(&b.name));
    let mut plan = Plan::default();
    for desired in valid {
        match owned.get(&desired.name) {
            None => plan.create.push(desired),
            Some(record) => {
                let live = record.digest.map(|whole| if ordered { record.outline } else { whole });
                let pair = live.map(|live| (live, desired.digest));
                let known = pair.is_some() && settled.get(&desired.name).copied() == pair;
                if policy.allows_update() && record.deleting.is_none() && !known {
                    plan.compare.push(desired);
                }
            }
        }
    }
    if policy.allows_delete() {
        let wanted: BTreeSet<&str> = all.iter().map(|desired| &*desired.name).collect();
        let unwanted =
            owned.iter().filter(|(name, record)| record.deleting.is_none() && !wanted.contains(&***name));
        plan.delete = unwanted.map(|(name, _)| name.clone()).collect();
    }
    plan
}
