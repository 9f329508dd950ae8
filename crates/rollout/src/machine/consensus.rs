//! What a revision is where nobody can resolve it: what all Applications that ask for it report, each compared anew.
//!
//! Every one of them is asked for a comparison; when all have made it and agree, that is the revision. Where they do
//! not, they are asked again, three times at most; then the run waits, with a name, until one reports something else.

use super::*;
use crate::stamp::Stamp;

/// How often Applications that disagree are asked.
const ROUNDS: u8 = 3;

/// One round of asking.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    number: u8,
    /// Who was asked, and whether the request has been seen on it.
    asked: BTreeMap<Arc<str>, bool>,
    /// Who has answered.
    answered: BTreeSet<Arc<str>>,
}

impl Machine {
    /// Whether Applications are to be asked what a revision is: the resolver failed, and nothing is known or something
    /// speaks against what is known.
    pub(super) fn ask_for_revisions(&mut self, wanted: &Wanted, now: Timestamp) -> Vec<Write> {
        let keys: Vec<SourceKey> = self.disputed.iter().cloned().collect();
        let mut writes = Vec::new();
        for key in keys {
            self.ask_for(wanted, &key, now, &mut writes);
        }
        writes
    }

    fn ask_for(&mut self, wanted: &Wanted, key: &SourceKey, now: Timestamp, writes: &mut Vec<Write>) {
        let Some(mut round) = self.resolutions.get_mut(key).and_then(|resolving| resolving.round.take())
        else {
            return;
        };
        // Who goes back follows something else, and knows nothing of it.
        let follows = |member: &Member| member.back.is_none() && member.sources.contains(key);
        let concerned = |app: &&App| app.member.as_ref().is_some_and(follows);
        let mut votes: BTreeSet<Option<Arc<str>>> = BTreeSet::new();
        let mut complete = true;
        for (name, app) in &self.apps {
            let Some(app) = Some(app).filter(concerned) else { continue };
            // Who is not there yet, or goes, has nothing to say.
            let Some(live) = app.live.as_ref().filter(|live| !live.terminating) else { continue };
            let nonce: Arc<str> = format!("{}-ask-{}", self.head.run.seq, round.number).into();
            let pending = live.nonce.as_ref() == Some(&nonce) && (live.refresh || !live.compared);
            match round.asked.get_mut(name) {
                None if writes.len() < BATCH => {
                    round.asked.insert(name.clone(), false);
                    let stamp = live.stamp.clone().filter(|stamp| *stamp.set == *wanted.set);
                    let none =
                        || Stamp { set: wanted.set.clone(), run: 0, n: 0, pin: Fingerprint::default() };
                    writes.push(Write {
                        name: name.clone(),
                        uid: live.uid.clone(),
                        version: live.version,
                        what: Intent::HardRefresh,
                        stamp: stamp.unwrap_or_else(none),
                        spec: false,
                        revisions: Vec::new(),
                        nonce: Some(nonce),
                    });
                }
                Some(seen) if pending => *seen = true,
                Some(true) => drop(round.answered.insert(name.clone())),
                _ => {}
            }
            if !round.answered.contains(name) {
                complete = false;
                continue;
            }
            let places = app.member.iter().flat_map(|member| member.sources.iter().enumerate());
            votes.extend(
                places.filter(|(_, source)| *source == key).map(|(at, _)| live.reported.get(at).cloned()),
            );
        }
        let agreed = match votes.first() {
            Some(Some(vote)) if votes.len() == 1 && !vote.is_empty() => Some(vote.clone()),
            _ => None,
        };
        match (complete, agreed) {
            (true, Some(vote)) => self.agree(key, vote, now),
            (true, None) if round.number + 1 < ROUNDS && !votes.is_empty() => {
                self.keep_round(key, Some(Round { number: round.number + 1, ..Round::default() }));
            }
            (true, None) => self.keep_round(key, None),
            (false, _) => self.keep_round(key, Some(round)),
        }
    }

    fn agree(&mut self, key: &SourceKey, vote: Arc<str>, now: Timestamp) {
        self.keep_round(key, None);
        let Some(resolving) = self.resolutions.get_mut(key) else { return };
        let resolution = Resolution::exact(vote);
        let changed = resolving.known.as_ref() != Some(&resolution);
        self.unknown -= usize::from(resolving.known.is_none());
        resolving.known = Some(resolution);
        if changed {
            self.look_anew();
            self.unrest(now);
        }
    }

    fn keep_round(&mut self, key: &SourceKey, round: Option<Round>) {
        if round.is_none() {
            self.disputed.remove(key);
        }
        if let Some(resolving) = self.resolutions.get_mut(key) {
            resolving.round = round;
        }
    }

    /// The resolver failed: where that leaves a revision unknown or doubtful, the Applications are asked.
    pub(super) fn dispute(&mut self, key: &SourceKey) {
        if let Some(resolving) = self.resolutions.get_mut(key)
            && resolving.round.is_none()
        {
            resolving.round = Some(Round::default());
            self.disputed.insert(key.clone());
        }
    }

    /// A request for comparison was not made.
    pub(super) fn unask(&mut self, name: &str) {
        for key in &self.disputed {
            if let Some(round) = self.resolutions.get_mut(key).and_then(|resolving| resolving.round.as_mut())
                && round.asked.get(name) == Some(&false)
            {
                round.asked.remove(name);
            }
        }
    }
}
