// What is deployed in the fleet: a set in steps, a set in phases, and Applications of which something may go.

const confirm = (option) => ({ "argocd.argoproj.io/sync-options": `${option}=confirm` });

export const deployment = (name, version) =>
  JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name, image: `registry.example.com/${name}:${version}` }] } },
    },
  });

export const setting = (name, annotations = {}) => JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, annotations }, data: { colour: "blue" } });

const volume = (name) =>
  JSON.stringify({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, annotations: confirm("Prune") }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } });

/** Accounts and policies. */
export const given = [
  { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "argocd-cm", namespace: "argocd" }, data: { "accounts.viewer": "login" } },
  { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "argocd-rbac-cm", namespace: "argocd" }, data: { "policy.csv": "g, viewer, role:readonly" } },
];

function template(fleet, name) {
  return {
    metadata: { name: `${name}-{{.name}}`, labels: { env: "{{.metadata.labels.env}}" } },
    spec: {
      project: "default",
      source: { repoURL: fleet.repository, targetRevision: "main", path: name },
      destination: { name: "{{.name}}", namespace: name },
      syncPolicy: { syncOptions: ["CreateNamespace=true"] },
    },
  };
}

const of = (env) => [{ key: "env", operator: "In", values: [env] }];
const members = { selector: { matchLabels: { "argocd.argoproj.io/secret-type": "cluster" } } };

export function sets(fleet) {
  const call = (name) => ({ name, type: "http", http: { url: `${fleet.receiver}/${name}`, method: "POST" } });
  const check = (name) => ({ name, type: "http", timeout: "10m", http: { url: `${fleet.receiver}/${name}` } });
  const phases = [
    { name: "canary", targets: [{ matchExpressions: of("dev") }], preHooks: [call("open-change")], checks: [check("error-rate")], waitDuration: "2h" },
    { name: "staging", targets: [{ matchExpressions: of("staging") }], preHooks: [call("tell-on-call")], checks: [check("latency")] },
    { name: "everywhere", targets: [{ matchExpressions: of("prod") }], maxConcurrent: 1, postHooks: [call("close-change")] },
  ];
  const set = (name, generator, strategy) => ({
    apiVersion: "argoproj.io/v1alpha1",
    kind: "ApplicationSet",
    metadata: { name, namespace: "argocd" },
    spec: { goTemplate: true, generators: [generator], ...strategy, template: template(fleet, name) },
  });
  const automated = set("delivery", { clusters: members, deploymentStrategy: { type: "phaseDeployment", phases } }, {});
  automated.spec.template.spec.syncPolicy.automated = {};
  return [
    set("web", { clusters: members }, { strategy: { type: "RollingSync", rollingSync: { steps: [{ matchExpressions: of("dev") }, { matchExpressions: of("staging") }, { matchExpressions: of("prod"), maxUpdate: 1 }] } } }),
    automated,
  ];
}

const application = (name, finalizers) => (repoURL) => ({
  apiVersion: "argoproj.io/v1alpha1",
  kind: "Application",
  metadata: { name, namespace: "argocd", finalizers },
  spec: { project: "default", source: { repoURL, path: name, targetRevision: "main" }, destination: { name: "dev", namespace: "shop" }, syncPolicy: { syncOptions: ["CreateNamespace=true"] } },
});

const prunable = (name, more = []) => ({
  name,
  files: [["stays.yaml", setting(`${name}-stays`)], ["goes.yaml", setting(`${name}-goes`, confirm("Prune"))], ["too.yaml", setting(`${name}-too`, confirm("Prune"))], ...more],
  object: application(name, []),
});

/** Applications whose `goes.yaml` and `too.yaml` wait for approval once they are taken out of git; `legacy` waits when it is deleted. */
export const applications = [
  prunable("catalog"),
  prunable("ledger"),
  prunable("reports"),
  prunable("search", [["data.yaml", volume("search-data")]]),
  { name: "legacy", files: [["index.yaml", setting("legacy-index", confirm("Delete"))]], object: application("legacy", ["resources-finalizer.argocd.argoproj.io"]) },
];
