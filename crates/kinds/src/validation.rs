//! What is wrong with an object, in Kubernetes' words.
//!
//! Metadata is judged the same way for every kind, custom ones included ([`baton_schema::names::validate_object_meta`], by
//! [`Kind::name_rule`]), and is not looked at here.

mod access;
mod checks;
mod containers;
mod cron;
mod network;
mod pods;
mod selectors;
mod storage;
mod workloads;

use baton_schema::FieldError;
use serde_json::Value;

use crate::Kind;
use checks::Errors;

impl Kind {
    /// What is wrong with the content of an object that is created (`old` is `None`) or updated, after defaults were filled in.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        self.validate_content(&mut errors, object, old);
        errors
    }

    fn validate_content(&self, errors: &mut Errors, object: &Value, old: Option<&Value>) {
        match (self.group, self.plural) {
            ("", "pods") => pods::pod(errors, object, old),
            ("", "podtemplates") => pods::template(errors, object, "template", &[]),
            ("", "replicationcontrollers") => workloads::replication_controller(errors, object),
            ("apps", "deployments") => workloads::deployment(errors, object, old),
            ("apps", "replicasets") => workloads::replica_set(errors, object, old),
            ("apps", "statefulsets") => workloads::stateful_set(errors, object, old),
            ("apps", "daemonsets") => workloads::daemon_set(errors, object, old),
            ("apps", "controllerrevisions") => workloads::revision(errors, object, old),
            ("batch", "jobs") => workloads::job(errors, object, old),
            ("batch", "cronjobs") => workloads::cron_job(errors, object),
            ("autoscaling", _) => workloads::autoscaler(errors, object),
            ("policy", _) => workloads::disruption_budget(errors, object),
            ("", "services") => network::service(errors, object, old),
            ("", "endpoints") => network::endpoints(errors, object),
            ("discovery.k8s.io", _) => network::endpoint_slice(errors, object, old),
            ("networking.k8s.io", "ingresses") => network::ingress(errors, object),
            ("networking.k8s.io", "ingressclasses") => network::ingress_class(errors, object, old),
            ("networking.k8s.io", "networkpolicies") => network::policy(errors, object),
            ("", "configmaps") => access::config_map(errors, object, old),
            ("", "secrets") => access::secret(errors, object, old),
            ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
                access::role(errors, object, self.namespaced)
            }
            ("rbac.authorization.k8s.io", _) => access::binding(errors, object, old, self.namespaced),
            ("scheduling.k8s.io", _) => access::priority_class(errors, object, old),
            ("coordination.k8s.io", _) => access::lease(errors, object),
            ("", "events") => access::event(errors, object),
            ("", "nodes") => pods::node(errors, object),
            ("", "persistentvolumes") => storage::volume(errors, object, old),
            ("", "persistentvolumeclaims") => storage::claim(errors, object, old),
            ("", "resourcequotas") => storage::quota(errors, object),
            ("", "limitranges") => storage::limit_range(errors, object),
            ("storage.k8s.io", "storageclasses") => storage::class(errors, object, old),
            ("storage.k8s.io", "volumeattachments") => storage::attachment(errors, object, old),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
