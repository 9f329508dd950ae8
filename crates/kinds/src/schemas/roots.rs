//! The types whose definitions are generated; everything they use comes along.

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::{JsonSchema, SchemaGenerator};

/// Generates the definitions.
pub(super) fn register(generator: &mut SchemaGenerator) {
    for root in ROOTS {
        (root.register)(generator);
    }
}

/// The names of the definitions generated from a type listed here.
pub(super) fn names() -> Vec<String> {
    ROOTS.iter().map(|root| (root.name)()).collect()
}

struct Root {
    register: fn(&mut SchemaGenerator),
    name: fn() -> String,
}

const fn root<T: JsonSchema>() -> Root {
    Root {
        register: |generator| drop(generator.subschema_for::<T>()),
        name: || T::schema_name().into_owned(),
    }
}

const ROOTS: &[Root] = &[
    root::<api::core::v1::Binding>(),
    root::<api::core::v1::ConfigMap>(),
    root::<api::core::v1::Endpoints>(),
    root::<api::core::v1::Event>(),
    root::<api::core::v1::LimitRange>(),
    root::<api::core::v1::Namespace>(),
    root::<api::core::v1::Node>(),
    root::<api::core::v1::PersistentVolumeClaim>(),
    root::<api::core::v1::PersistentVolume>(),
    root::<api::core::v1::Pod>(),
    root::<api::core::v1::PodTemplate>(),
    root::<api::core::v1::ReplicationController>(),
    root::<api::core::v1::ResourceQuota>(),
    root::<api::core::v1::Secret>(),
    root::<api::core::v1::ServiceAccount>(),
    root::<api::core::v1::Service>(),
    root::<api::apps::v1::ControllerRevision>(),
    root::<api::apps::v1::DaemonSet>(),
    root::<api::apps::v1::Deployment>(),
    root::<api::apps::v1::ReplicaSet>(),
    root::<api::apps::v1::StatefulSet>(),
    root::<api::events::v1::Event>(),
    root::<api::authentication::v1::SelfSubjectReview>(),
    root::<api::authentication::v1::TokenReview>(),
    root::<api::authorization::v1::LocalSubjectAccessReview>(),
    root::<api::authorization::v1::SelfSubjectAccessReview>(),
    root::<api::authorization::v1::SelfSubjectRulesReview>(),
    root::<api::authorization::v1::SubjectAccessReview>(),
    root::<api::autoscaling::v2::HorizontalPodAutoscaler>(),
    root::<api::batch::v1::CronJob>(),
    root::<api::batch::v1::Job>(),
    root::<api::networking::v1::IngressClass>(),
    root::<api::networking::v1::Ingress>(),
    root::<api::networking::v1::IPAddress>(),
    root::<api::networking::v1::NetworkPolicy>(),
    root::<api::networking::v1::ServiceCIDR>(),
    root::<api::policy::v1::PodDisruptionBudget>(),
    root::<api::rbac::v1::ClusterRoleBinding>(),
    root::<api::rbac::v1::ClusterRole>(),
    root::<api::rbac::v1::RoleBinding>(),
    root::<api::rbac::v1::Role>(),
    root::<api::storage::v1::CSIDriver>(),
    root::<api::storage::v1::CSINode>(),
    root::<api::storage::v1::CSIStorageCapacity>(),
    root::<api::storage::v1::StorageClass>(),
    root::<api::storage::v1::VolumeAttachment>(),
    root::<api::storage::v1::VolumeAttributesClass>(),
    root::<apiextensions::v1::CustomResourceDefinition>(),
    root::<api::scheduling::v1::PriorityClass>(),
    root::<api::coordination::v1::Lease>(),
    root::<api::discovery::v1::EndpointSlice>(),
    root::<api::authentication::v1::TokenRequest>(),
    root::<api::autoscaling::v1::Scale>(),
    root::<api::policy::v1::Eviction>(),
    root::<meta::v1::DeleteOptions>(),
    root::<meta::v1::ListMeta>(),
    root::<meta::v1::Patch>(),
    root::<meta::v1::Status>(),
];
