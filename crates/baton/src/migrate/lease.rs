//! Whether a controller still leads. Its clock and this one need not agree: a Lease is believed to be given up when nobody has
//! changed it for as long as it lasts, as measured here.

use std::time::Duration;

use baton_api::names::APPLICATION_SET_LEASE;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::terminal;

/// Between two looks at a Lease that is held.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// No Lease is watched for longer; who asks for more is believed.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a Lease lasts that does not say it, as with client-go.
const USUAL: u64 = 15;

/// Leases that nobody keeps, as last seen, by namespace.
pub(super) struct Leases {
    client: Client,
    seen: Vec<(String, Value)>,
}

impl Leases {
    /// Those of these namespaces, once it is sure that nobody leads there.
    ///
    /// # Errors
    /// If somebody does, or if it cannot be known.
    pub(super) async fn given_up(client: &Client, namespaces: &[&str]) -> Result<Leases, Failure> {
        let mut leases = Leases { client: client.clone(), seen: Vec::new() };
        for namespace in namespaces {
            let spec = leases.look(namespace).await?;
            leases.seen.push(((*namespace).to_owned(), spec));
        }
        let began = Instant::now();
        let mut told = false;
        loop {
            let held = leases.seen.iter().filter(|(_, spec)| holder(spec).is_some());
            let Some((namespace, spec)) = held.max_by_key(|(_, spec)| lasts(spec)).cloned() else { break };
            let (holder, lasts) = (holder(&spec).unwrap_or_default(), lasts(&spec));
            if lasts > LONGEST {
                return Err(Failure::failed(format!(
                    "{holder} still leads in {namespace}, by a Lease of {} s: stop it, and if it is gone already, kubectl -n \
                     {namespace} delete lease {APPLICATION_SET_LEASE}",
                    lasts.as_secs()
                )));
            }
            if began.elapsed() >= lasts {
                break;
            }
            if !told {
                terminal::remark(&format!(
                    "{holder} has the Lease in {namespace}: looking for {} s whether it still renews it",
                    lasts.as_secs()
                ));
                told = true;
            }
            tokio::time::sleep(LOOK_EVERY).await;
            leases.still_nobody().await?;
        }
        Ok(leases)
    }

    /// Looks once more: whoever has changed a Lease since leads.
    pub(super) async fn still_nobody(&mut self) -> Result<(), Failure> {
        for at in 0..self.seen.len() {
            let (namespace, known) = &self.seen[at];
            let spec = self.look(namespace).await?;
            if let Some(holder) = holder(&spec).filter(|_| spec != *known) {
                return Err(Failure::failed(format!(
                    "{holder} still leads: stop the ApplicationSet controller first (kubectl -n {namespace} scale deployment \
                     … --replicas=0), or it puts everything back"
                )));
            }
            self.seen[at].1 = spec;
        }
        Ok(())
    }

    /// What the Lease of a namespace says; nothing where there is none.
    async fn look(&self, namespace: &str) -> Result<Value, Failure> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let found = api.get_opt(APPLICATION_SET_LEASE).await.map_err(|error| {
            Failure::api(format!(
                "the Lease {namespace}/{APPLICATION_SET_LEASE} cannot be read, so nobody knows whether a controller still \
                 leads: {error}"
            ))
        })?;
        Ok(found.map(|mut lease| lease.data["spec"].take()).unwrap_or_default())
    }
}

fn holder(spec: &Value) -> Option<&str> {
    spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())
}

fn lasts(spec: &Value) -> Duration {
    Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(USUAL))
}

#[cfg(test)]
mod tests {
    use baton_apiserver::{Cluster, Options};
    use kube::api::{Patch, PatchParams, PostParams};
    use serde_json::json;

    use super::*;

    struct Held {
        client: Client,
        api: Api<DynamicObject>,
    }

    impl Held {
        /// A Lease that was renewed, by the clock of its holder, at a time that is long ago or to come.
        async fn by(holder: &str, renewed: &str, lasts: u64) -> Held {
            let client = Client::new(Cluster::memory(Options::default()).service(), "default");
            let resource =
                ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
            let spec = json!({"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": lasts});
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": APPLICATION_SET_LEASE},
                "spec": spec,
            });
            let lease = serde_json::from_value(lease).expect("a Lease");
            api.create(&PostParams::default(), &lease).await.expect("a Lease is made");
            Held { client, api }
        }

        async fn renew(&self, renewed: &str) {
            let patch = Patch::Merge(json!({"spec": {"renewTime": renewed}}));
            self.api
                .patch(APPLICATION_SET_LEASE, &PatchParams::default(), &patch)
                .await
                .expect("it is renewed");
        }

        async fn given_up(&self) -> Result<Leases, Failure> {
            Leases::given_up(&self.client, &["default"]).await
        }
    }

    const LONG_AGO: &str = "2020-01-01T00:00:00.000000Z";
    const NOT_YET: &str = "2100-01-01T00:00:00.000000Z";

    #[tokio::test(start_paused = true)]
    async fn who_renews_leads_whatever_clocks_say() {
        let held = Held::by("one", LONG_AGO, 8).await;
        let renewing = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            held.renew("2020-01-01T00:00:05.000000Z").await;
            std::future::pending::<()>().await;
        };
        let refused = tokio::select! {
            answer = held.given_up() => answer.err().expect("it leads"),
            () = renewing => unreachable!("it renews for ever"),
        };
        assert!(refused.to_string().contains("one still leads"), "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_renew_for_as_long_as_the_lease_lasts_leads_no_more() {
        for renewed in [LONG_AGO, NOT_YET] {
            let held = Held::by("one", renewed, 8).await;
            let began = Instant::now();
            let mut leases = held.given_up().await.unwrap_or_else(|error| panic!("{renewed}: {error}"));
            assert!(began.elapsed() >= Duration::from_secs(8), "{renewed}");
            // Who comes back is met at the next look.
            leases.still_nobody().await.expect("nobody yet");
            held.renew("2020-01-01T00:00:01.000000Z").await;
            let refused = leases.still_nobody().await.expect_err("it leads");
            assert!(refused.to_string().contains("one still leads"), "{refused}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_given_up_is_not_waited_for_and_one_of_a_day_neither() {
        let began = Instant::now();
        assert!(Held::by("", LONG_AGO, 8).await.given_up().await.is_ok());
        let refused = Held::by("one", LONG_AGO, 86_400).await.given_up().await.err().expect("it leads");
        assert!(refused.to_string().contains("delete lease"), "{refused}");
        assert!(began.elapsed() < LOOK_EVERY);
    }
}
