//! Built-in kinds: the defaults a client sees, and what may not change.

use crate::world::{MERGE_PATCH, World, cause_fields, deployment, text};
use serde_json::{Value, json};

pub(crate) async fn a_deployment_has_its_defaults(world: &World) {
    let mut wanted = deployment("web", 0);
    wanted["spec"].as_object_mut().expect("spec").remove("replicas");
    let path = format!("{}?dryRun=All", world.in_group("/apis/apps/v1", "deployments"));
    let made = world.post(&path, &wanted).await.created();
    let spec = &made["spec"];
    assert_eq!(spec["replicas"], 1);
    assert_eq!(
        spec["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
    );
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Always");
    assert_eq!(pod["dnsPolicy"], "ClusterFirst");
    assert_eq!(pod["terminationGracePeriodSeconds"], 30);
    assert_eq!(pod["schedulerName"], "default-scheduler");
    assert_eq!(pod["securityContext"], json!({}));
    let container = &pod["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(container["terminationMessagePolicy"], "File");
    assert_eq!(container["resources"], json!({}));
}

pub(crate) async fn an_untagged_image_is_always_pulled(world: &World) {
    let pod = |image: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]},
        })
    };
    let path = format!("{}?dryRun=All", world.core("pods"));
    for (image, policy) in
        [("example/main", "Always"), ("example/main:latest", "Always"), ("example/main:1", "IfNotPresent")]
    {
        let made = world.post(&path, &pod(image)).await.created();
        assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
        assert_eq!(made["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(made["status"]["phase"], "Pending");
        assert_eq!(made["status"]["qosClass"], "BestEffort");
        assert_eq!(made["spec"]["enableServiceLinks"], true);
    }
}

pub(crate) async fn resource_limits_become_requests(world: &World) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "example/main:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
    });
    let made = world.post(&format!("{}?dryRun=All", world.core("pods")), &pod).await.created();
    assert_eq!(made["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(made["status"]["qosClass"], "Guaranteed");
}

pub(crate) async fn probes_have_their_defaults(world: &World) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{
            "name": "main", "image": "example/main:1",
            "livenessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "s", "mountPath": "/s"}],
        }], "volumes": [{"name": "s", "secret": {"secretName": "s"}}, {"name": "e", "emptyDir": {}}]},
    });
    let made = world.post(&format!("{}?dryRun=All", world.core("pods")), &pod).await.created();
    assert_eq!(
        made["spec"]["containers"][0]["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    let volumes = made["spec"]["volumes"].as_array().expect("volumes");
    assert!(
        volumes.contains(&json!({"name": "s", "secret": {"secretName": "s", "defaultMode": 420}})),
        "{volumes:?}"
    );
}

pub(crate) async fn a_service_gets_an_address(world: &World) {
    let made = world.post(&world.core("services"), &service("web", json!({}))).await.created();
    let spec = &made["spec"];
    let address = text(&made, "/spec/clusterIP");
    assert!(address.parse::<std::net::IpAddr>().is_ok(), "{address}");
    assert_eq!(spec["clusterIPs"], json!([address]));
    assert_eq!(spec["type"], "ClusterIP");
    assert_eq!(spec["sessionAffinity"], "None");
    assert_eq!(spec["ipFamilyPolicy"], "SingleStack");
    assert_eq!(spec["internalTrafficPolicy"], "Cluster");
    assert_eq!(spec["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
    let other = world.post(&world.core("services"), &service("other", json!({}))).await.created();
    assert_ne!(text(&other, "/spec/clusterIP"), address);
}

pub(crate) async fn a_service_address_cannot_change(world: &World) {
    world.post(&world.core("services"), &service("web", json!({}))).await.created();
    let path = world.core("services/web");
    let reply = world
        .patch(&path, MERGE_PATCH, &json!({"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}}))
        .await;
    let status = reply.fails(422, "Invalid");
    assert!(cause_fields(&status).iter().any(|field| field.starts_with("spec.clusterIP")), "{status}");
    // A replacement without the address keeps it.
    let updated = world.put(&path, &service("web", json!({}))).await.ok();
    assert!(
        text(&updated, "/spec/clusterIP").contains('.') || text(&updated, "/spec/clusterIP").contains(':')
    );
}

pub(crate) async fn headless_and_node_port_services(world: &World) {
    let headless =
        world.post(&world.core("services"), &service("quiet", json!({"clusterIP": "None"}))).await.created();
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let open =
        world.post(&world.core("services"), &service("open", json!({"type": "NodePort"}))).await.created();
    let port = open["spec"]["ports"][0]["nodePort"].as_u64().expect("a node port");
    assert!((30_000..=32_767).contains(&port), "{port}");
    assert_eq!(open["spec"]["externalTrafficPolicy"], "Cluster");
}

pub(crate) async fn selectors_of_workloads_are_immutable(world: &World) {
    let deployments = world.in_group("/apis/apps/v1", "deployments");
    world.post(&deployments, &deployment("web", 0)).await.created();
    let patch = json!({"spec": {
        "selector": {"matchLabels": {"app": "other"}},
        "template": {"metadata": {"labels": {"app": "other"}}},
    }});
    let status = world.patch(&format!("{deployments}/web"), MERGE_PATCH, &patch).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("field is immutable"), "{status}");
    assert_eq!(cause_fields(&status), ["spec.selector"]);
}

pub(crate) async fn a_selector_must_match_its_template(world: &World) {
    let mut wanted = deployment("web", 0);
    wanted["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let status =
        world.post(&world.in_group("/apis/apps/v1", "deployments"), &wanted).await.fails(422, "Invalid");
    assert_eq!(cause_fields(&status), ["spec.template.metadata.labels"]);
    assert!(text(&status, "/message").contains("`selector` does not match template `labels`"), "{status}");
}

pub(crate) async fn required_fields_of_workloads(world: &World) {
    let empty =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}});
    let status =
        world.post(&world.in_group("/apis/apps/v1", "deployments"), &empty).await.fails(422, "Invalid");
    let fields = cause_fields(&status);
    assert!(
        fields.contains(&"spec.selector") && fields.contains(&"spec.template.spec.containers"),
        "{status}"
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"image": "x"}]}});
    let status = world.post(&world.core("pods"), &pod).await.fails(422, "Invalid");
    assert_eq!(cause_fields(&status), ["spec.containers[0].name"]);
}

pub(crate) async fn a_pod_spec_is_mostly_immutable(world: &World) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "example/main:1"}]},
    });
    world.post(&world.core("pods"), &pod).await.created();
    let path = world.core("pods/p");
    let status =
        world.patch(&path, MERGE_PATCH, &json!({"spec": {"hostname": "other"}})).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("pod updates may not change fields other than"), "{status}");
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "example/main:2"}]}});
    assert_eq!(
        world.patch(&path, MERGE_PATCH, &patch).await.ok()["spec"]["containers"][0]["image"],
        "example/main:2"
    );
}

pub(crate) async fn jobs_have_their_defaults(world: &World) {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/main:1"}]}}},
    });
    let path = format!("{}?dryRun=All", world.in_group("/apis/batch/v1", "jobs"));
    let made = world.post(&path, &job).await.created();
    let spec = &made["spec"];
    assert_eq!(
        (&spec["backoffLimit"], &spec["completions"], &spec["parallelism"]),
        (&json!(6), &json!(1), &json!(1))
    );
    assert_eq!((&spec["completionMode"], &spec["suspend"]), (&json!("NonIndexed"), &json!(false)));
    let uid = text(&made, "/metadata/uid");
    assert_eq!(spec["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], uid);
    assert_eq!(spec["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "once");
    let mut always = job;
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    let status = world.post(&path, &always).await.fails(422, "Invalid");
    assert_eq!(cause_fields(&status), ["spec.template.spec.restartPolicy"]);
}

pub(crate) async fn other_workloads_have_their_defaults(world: &World) {
    let template = deployment("web", 0)["spec"]["template"].clone();
    let made = |kind: &'static str, plural: &'static str, extra: Value| {
        let template = template.clone();
        async move {
            let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
            for (key, value) in extra.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            let object =
                json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec});
            let path = format!("{}?dryRun=All", world.in_group("/apis/apps/v1", plural));
            world.post(&path, &object).await.created()["spec"].clone()
        }
    };
    let stateful = made("StatefulSet", "statefulsets", json!({"serviceName": "web"})).await;
    assert_eq!(
        (&stateful["podManagementPolicy"], &stateful["replicas"]),
        (&json!("OrderedReady"), &json!(1))
    );
    assert_eq!(
        stateful["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    let daemon = made("DaemonSet", "daemonsets", json!({})).await;
    assert_eq!(
        daemon["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    );
    assert_eq!(made("ReplicaSet", "replicasets", json!({})).await["replicas"], 1);
}

pub(crate) async fn ingress_and_policies_are_stored(world: &World) {
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
        "spec": {"rules": [{"host": "web.example", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
        ]}}]},
    });
    let made =
        world.post(&world.in_group("/apis/networking.k8s.io/v1", "ingresses"), &ingress).await.created();
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny"},
        "spec": {"podSelector": {}},
    });
    let made =
        world.post(&world.in_group("/apis/networking.k8s.io/v1", "networkpolicies"), &policy).await.created();
    assert_eq!(made["spec"]["policyTypes"], json!(["Ingress"]));
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    world.post(&world.in_group("/apis/policy/v1", "poddisruptionbudgets"), &budget).await.created();
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    let path = world.in_group("/apis/autoscaling/v2", "horizontalpodautoscalers");
    let made = world.post(&path, &scaler).await.created();
    assert_eq!(made["spec"]["minReplicas"], 1);
}

pub(crate) async fn roles_and_bindings_are_stored(world: &World) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    world.post(&world.in_group(rbac, "roles"), &role).await.created();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "User", "name": "someone"}],
    });
    let made = world.post(&world.in_group(rbac, "rolebindings"), &binding).await.created();
    assert_eq!(made["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    let patch = json!({"roleRef": {"name": "another"}});
    let reply = world.patch(&world.in_group(rbac, "rolebindings/reader"), MERGE_PATCH, &patch).await;
    reply.fails_saying(422, "Invalid", &["cannot change roleRef"]);
}

pub(crate) async fn volume_claims_start_pending(world: &World) {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let made =
        world.post(&format!("{}?dryRun=All", world.core("persistentvolumeclaims")), &claim).await.created();
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(made["spec"]["volumeMode"], "Filesystem");
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
}

pub(crate) async fn service_accounts_and_quotas_are_stored(world: &World) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}});
    world.post(&world.core("serviceaccounts"), &account).await.created();
    world.until(&world.core("serviceaccounts/default"), "exists", |_| true).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "limits"}, "spec": {"hard": {"pods": "10"}},
    });
    world.post(&world.core("resourcequotas"), &quota).await.created();
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    });
    let made = world.post(&world.core("limitranges"), &range).await.created();
    assert_eq!(made["spec"]["limits"][0]["defaultRequest"], json!({"cpu": "1"}));
}

pub(crate) async fn cluster_scoped_kinds_are_stored(world: &World) {
    let name = format!("behaviour-{}", world.unique());
    for (collection, mut object) in [
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/none"}),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}),
        ),
        (
            "/api/v1/persistentvolumes",
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/none"},
            }}),
        ),
    ] {
        object["metadata"] = json!({"name": name});
        world.delete_at_end(format!("{collection}/{name}"));
        let made = world.post(collection, &object).await.created();
        assert!(made["metadata"].get("namespace").is_none());
        let (field, value) = match text(&made, "/kind") {
            "StorageClass" => ("/volumeBindingMode", json!("Immediate")),
            "PriorityClass" => ("/preemptionPolicy", json!("PreemptLowerPriority")),
            "PersistentVolume" => {
                assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
                // No controller that lifts the protection need be running.
                let patch = json!({"metadata": {"finalizers": null}});
                world.patch(&format!("{collection}/{name}"), MERGE_PATCH, &patch).await.ok();
                ("/spec/persistentVolumeReclaimPolicy", json!("Retain"))
            }
            _ => ("/metadata/name", json!(name)),
        };
        assert_eq!(made.pointer(field), Some(&value), "{collection}");
    }
}

pub(crate) async fn a_deployment_gets_a_replica_set(world: &World) {
    let deployments = world.in_group("/apis/apps/v1", "deployments");
    let owner = world.post(&deployments, &deployment("web", 0)).await.created();
    let path = format!("{deployments}/web");
    world.until(&path, "is observed", |found| found["status"]["observedGeneration"] == 1).await;
    let sets = world.get(&world.in_group("/apis/apps/v1", "replicasets")).await.ok();
    let set = &sets["items"][0];
    let reference = &set["metadata"]["ownerReferences"][0];
    assert_eq!((&reference["uid"], &reference["controller"]), (&owner["metadata"]["uid"], &json!(true)));
    let hash = text(set, "/metadata/labels/pod-template-hash");
    assert_eq!(text(set, "/metadata/name"), format!("web-{hash}"));
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    world.delete_with(&path, &json!({"propagationPolicy": "Foreground"})).await.ok();
    world.until_gone(&path).await;
    let sets = world.get(&world.in_group("/apis/apps/v1", "replicasets")).await.ok();
    assert_eq!(sets["items"], json!([]));
}

fn service(name: &str, extra: Value) -> Value {
    let mut spec = json!({"ports": [{"port": 80}], "selector": {"app": name}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}
