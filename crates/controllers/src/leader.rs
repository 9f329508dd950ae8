//! One controller acts at a time: a Lease, held as client-go holds it.
//!
//! A lease is believed to be given up when it has not changed for its duration as measured here, so that clocks of
//! different machines need not agree. It keeps others from useless work; what keeps order is that every write of a leader
//! is refused where another has written since.

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::objects::{ApiError, Objects};

/// How long a lease lasts, and when a leader gives up. Another leads at most `duration` and one `retry_period` after a
/// leader was last heard of, and at once after one that stopped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long others believe in a lease that does not change; whole seconds.
    pub duration: Duration,
    /// How long a leader goes on without having renewed.
    pub renew_deadline: Duration,
    /// Between two tries.
    pub retry_period: Duration,
}

/// Wants to lead.
pub(crate) struct Elector {
    leases: Objects,
    name: &'static str,
    identity: String,
    clock: Clock,
    times: LeaseTimes,
    /// The lease as last seen to change, and when.
    seen: Option<(Value, Instant)>,
    /// What was last logged, so that what stays in the way is told once.
    told: String,
}

impl Default for LeaseTimes {
    /// Another leads within nine seconds of a leader that vanished.
    fn default() -> LeaseTimes {
        LeaseTimes {
            duration: Duration::from_secs(8),
            renew_deadline: Duration::from_secs(5),
            retry_period: Duration::from_secs(1),
        }
    }
}

impl LeaseTimes {
    /// Whether a leader stops before another begins, and has more than one try until then.
    ///
    /// # Errors
    /// What is wrong, and how it must be.
    pub fn check(self) -> Result<LeaseTimes, String> {
        let LeaseTimes { duration, renew_deadline, retry_period } = self;
        if duration < Duration::from_secs(1) || duration.subsec_nanos() > 0 {
            return Err(format!("a lease lasts whole seconds, at least one, not {duration:?}"));
        }
        if renew_deadline >= duration {
            return Err(format!(
                "a leader must stop before its lease ends: the renew deadline ({renew_deadline:?}) must be less than the \
                 duration ({duration:?})"
            ));
        }
        if retry_period.is_zero() || retry_period * 2 > renew_deadline {
            return Err(format!(
                "a leader must have two tries: the retry period ({retry_period:?}) must be more than zero and at most half \
                 of the renew deadline ({renew_deadline:?})"
            ));
        }
        Ok(self)
    }
}

impl Elector {
    /// For the Lease of this name, in Argo CD's namespace.
    pub(crate) fn new(
        client: &Client,
        namespace: &str,
        name: &'static str,
        clock: Clock,
        times: LeaseTimes,
    ) -> Elector {
        let leases = Objects::new(client.clone(), "coordination.k8s.io/v1", "leases", namespace, false);
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "baton".to_owned());
        let identity = format!("{host}_{:016x}", rand::random::<u64>());
        Elector { leases, name, identity, clock, times, seen: None, told: String::new() }
    }

    /// Returns once this controller leads.
    pub(crate) async fn win(&mut self) {
        loop {
            // An API that hangs is asked anew.
            match tokio::time::timeout(self.times.renew_deadline, self.try_lead()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => self.tell_holder(),
                Ok(Err(error)) => self.tell(&error, "the lease could not be taken"),
                Err(_) => tracing::warn!(lease = self.name, "the API did not answer in time about the lease"),
            }
            tokio::time::sleep(self.times.retry_period).await;
        }
    }

    /// Renews the lease. Returns once it could not be renewed for so long that another may soon lead.
    pub(crate) async fn hold(&mut self) {
        let deadline = self.times.renew_deadline;
        let mut renewed = Instant::now();
        while renewed.elapsed() < deadline {
            tokio::time::sleep(self.times.retry_period).await;
            let began = Instant::now();
            let left = deadline.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.try_lead()).await {
                // Others count from the write, which was no earlier than this.
                Ok(Ok(true)) => renewed = began,
                Ok(Ok(false)) if self.is_held_by_another() => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => self.tell(&error, "the lease could not be renewed"),
                Err(_) => return,
            }
        }
    }

    /// Gives the lease up, so that another need not wait. An API that does not answer is not waited for: the lease ends
    /// by itself.
    pub(crate) async fn release(&mut self) {
        let give_up = async {
            let Some(mut lease) = self.leases.get(self.name).await? else { return Ok(()) };
            if lease["spec"]["holderIdentity"] != self.identity.as_str() {
                return Ok(());
            }
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            self.leases.replace(self.name, &lease).await.map(drop)
        };
        let answer: Result<Result<(), ApiError>, _> =
            tokio::time::timeout(self.times.renew_deadline, give_up).await;
        match answer {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "the lease could not be given up"),
            Err(_) => tracing::warn!(lease = self.name, "the API did not answer: the lease ends by itself"),
        }
    }

    /// Takes or renews the lease, unless another holds it. The whole lease is written, under the version that was read: that
    /// takes the verbs `get`, `create` and `update`, which Argo CD's Role has.
    async fn try_lead(&mut self) -> Result<bool, ApiError> {
        let now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let Some(mut lease) = self.leases.get(self.name).await? else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.name},
                "spec": {
                    "holderIdentity": self.identity, "leaseDurationSeconds": self.times.duration.as_secs(),
                    "renewTime": now, "acquireTime": now, "leaseTransitions": 0,
                },
            });
            return written(self.leases.create(&lease).await);
        };
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != lease["spec"]) {
            self.seen = Some((lease["spec"].clone(), Instant::now()));
        }
        if holder != self.identity {
            let lasts = lease["spec"]["leaseDurationSeconds"].as_u64();
            let lasts = lasts.map_or(self.times.duration, Duration::from_secs);
            let expired = self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= lasts);
            if !holder.is_empty() && !expired {
                return Ok(false);
            }
            let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
            lease["spec"]["acquireTime"] = now.as_str().into();
            lease["spec"]["leaseTransitions"] = transitions.saturating_add(1).into();
        }
        lease["spec"]["holderIdentity"] = self.identity.as_str().into();
        lease["spec"]["leaseDurationSeconds"] = self.times.duration.as_secs().into();
        lease["spec"]["renewTime"] = now.into();
        written(self.leases.replace(self.name, &lease).await)
    }

    fn is_held_by_another(&self) -> bool {
        self.seen.as_ref().is_some_and(|(spec, _)| spec["holderIdentity"] != self.identity.as_str())
    }

    /// Says, once, whom this one follows. One of its own Deployment is as it should be; another may stay for ever.
    fn tell_holder(&mut self) {
        let Some((holder, is_strange)) = self.holder() else { return };
        let told = format!("{holder} {is_strange}");
        if self.told == told {
            return;
        }
        let lease = self.name;
        match is_strange {
            false => tracing::info!(lease, holder, "this controller follows"),
            true => tracing::warn!(
                lease,
                holder,
                "this controller only follows, for another holds the lease: stop that one if it is not meant to, and delete the \
                 lease if it is gone"
            ),
        }
        self.told = told;
    }

    /// Who leads, and whether that is strange: somebody of another Deployment, or one that is not heard of for longer than this
    /// one would wait.
    fn holder(&self) -> Option<(String, bool)> {
        let (spec, since) = self.seen.as_ref()?;
        let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
        let is_silent = since.elapsed() > self.times.duration;
        Some((holder.to_owned(), is_silent || deployment(holder) != deployment(&self.identity)))
    }

    fn tell(&mut self, error: &ApiError, what: &str) {
        let told = error.to_string();
        if self.told == told {
            return tracing::debug!(%error, lease = self.name, "{what}");
        }
        let hint = match error.is_forbidden() {
            true => "; grant get, create and update on leases, or run one replica without --leader-elect",
            false => "",
        };
        tracing::warn!(%error, lease = self.name, "{what}{hint}");
        self.told = told;
    }
}

/// The Deployment of an identity, which is the name of a Pod and something to tell two of them apart.
fn deployment(identity: &str) -> &str {
    let pod = identity.split('_').next().unwrap_or_default();
    pod.rsplitn(3, '-').nth(2).unwrap_or_default()
}

/// Whoever was faster leads.
fn written(answer: Result<Value, ApiError>) -> Result<bool, ApiError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() || error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use baton_apiserver::{Cluster, Options};

    use super::*;

    const LEASE: &str = "a-lease";

    fn elector(client: &Client, times: LeaseTimes) -> Elector {
        Elector::new(client, "default", LEASE, Clock::System, times)
    }

    fn cluster() -> Client {
        Client::new(Cluster::memory(Options::default()).service(), "default")
    }

    #[test]
    fn times_that_let_two_lead_are_refused() {
        let of = |duration: u64, deadline: u64, retry: u64| {
            let [duration, renew_deadline, retry_period] =
                [duration, deadline, retry].map(Duration::from_millis);
            LeaseTimes { duration, renew_deadline, retry_period }.check()
        };
        assert!(LeaseTimes::default().check().is_ok());
        assert!(of(15_000, 10_000, 2_000).is_ok());
        for (duration, deadline, retry) in
            [(0, 0, 0), (1_500, 1_000, 100), (5_000, 5_000, 1_000), (5_000, 4_000, 0), (5_000, 4_000, 2_001)]
        {
            assert!(of(duration, deadline, retry).is_err(), "{duration} {deadline} {retry}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_held_is_nobody_elses_and_one_given_up_is_taken_at_the_next_look() {
        let (client, times) = (cluster(), LeaseTimes::default());
        let [mut first, mut second] = [(); 2].map(|()| elector(&client, times));
        first.win().await;
        assert!(!second.try_lead().await.expect("an answer"));
        let (began, lost) = (Instant::now(), tokio::time::timeout(times.duration * 20, first.hold()).await);
        assert!(lost.is_err(), "who renews leads on");
        assert!(began.elapsed() >= times.duration * 20);
        assert!(!second.try_lead().await.expect("an answer"));
        first.release().await;
        let began = Instant::now();
        second.win().await;
        assert!(began.elapsed() <= times.retry_period, "{:?}", began.elapsed());
        // What is another's is not given up.
        first.release().await;
        assert!(second.try_lead().await.expect("an answer"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_may_stay_for_ever_is_strange() {
        let (client, times) =
            (cluster(), LeaseTimes { duration: Duration::from_secs(8), ..LeaseTimes::default() });
        let named = |pod: &str| Elector { identity: format!("{pod}_1"), ..elector(&client, times) };
        let mut first = named("argocd-applicationset-controller-6d8f-abcde");
        first.win().await;
        for (pod, is_strange) in [
            ("argocd-applicationset-controller-77bb-fghij", false),
            ("baton-applicationset-controller-77bb-fghij", true),
        ] {
            let mut second = named(pod);
            assert!(!second.try_lead().await.expect("an answer"));
            assert_eq!(second.holder(), Some((first.identity.clone(), is_strange)), "{pod}");
        }
        // By its own word it leads for a day, and nothing is heard of it.
        let mut lease = first.leases.get(LEASE).await.expect("an answer").expect("a Lease");
        lease["spec"]["leaseDurationSeconds"] = 86_400.into();
        first.leases.replace(LEASE, &lease).await.expect("it is written");
        let mut second = named("argocd-applicationset-controller-77bb-fghij");
        assert!(!second.try_lead().await.expect("an answer"));
        assert_eq!(second.holder().map(|(_, is_strange)| is_strange), Some(false));
        tokio::time::sleep(times.duration + times.retry_period).await;
        assert!(!second.try_lead().await.expect("an answer"));
        assert_eq!(second.holder().map(|(_, is_strange)| is_strange), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_vanished_is_followed_within_its_lease_and_one_look() {
        let (client, times) = (cluster(), LeaseTimes::default());
        let [mut first, mut second] = [(); 2].map(|()| elector(&client, times));
        first.win().await;
        let began = Instant::now();
        second.win().await;
        let took = began.elapsed();
        assert!(took >= times.duration, "not before its time: {took:?}");
        assert!(took <= times.duration + times.retry_period, "{took:?}");
        // It wakes up: its next look tells that another leads.
        let began = Instant::now();
        first.hold().await;
        assert!(began.elapsed() <= times.retry_period);
    }
}
