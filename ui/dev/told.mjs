// The shapes of the contract, made of the world.

import { countsOf } from "./world.mjs";

export function summary(set) {
  const { name, namespace, project, strategy, state, reason, run, startedAt, finishedAt, counts, approvals, health } = set;
  return { name, namespace, project, strategy, state, reason, run, revision: set.to.slice(0, 7), startedAt, finishedAt, counts, approvals, health };
}

const target = ({ name, namespace, cluster, state, health, sync, since, from, to, message }) => ({ name, namespace, cluster, state, health, sync, since, from, to, message });

function laneHead({ id, kind, title, selector, state, gates, targets, maxUpdate, openedAt, waitUntil, message }) {
  return { id, kind, title, selector, state, counts: countsOf(targets), maxUpdate, openedAt, waitUntil, message, gates: gates.map(({ kind: gateKind, name, state: gateState, attempt, startedAt, seconds }) => ({ kind: gateKind, name, state: gateState, attempt, startedAt, seconds })) };
}

export function rollout(set, user, withTargets = true) {
  return {
    ...summary(set), uid: set.uid, resourceVersion: String(set.version), restarts: 0, pausedAt: set.state === "Paused" ? set.pausedAt : undefined,
    revisions: [{ repoURL: set.repository ?? `https://git.example.com/fleet/${set.name}.git`, targetRevision: "main", revision: set.to }],
    lanes: set.lanes.map((lane) => (withTargets ? { ...laneHead(lane), targets: lane.targets.map(target) } : laneHead(lane))),
    blockers: blockers(set), conditions: conditions(set), actions: actions(set, user), command: `baton appset get ${set.name} --watch`, history: set.history.length === 0 ? undefined : set.history,
  };
}

export function modified(set, user, changed) {
  const targets = [];
  for (const lane of set.lanes) for (const each of lane.targets) if (changed.has(each)) targets.push({ lane: lane.id, ...target(each) });
  return { type: "MODIFIED", rollout: rollout(set, user, false), targets, removed: [] };
}

function blockers(set) {
  const since = set.startedAt;
  const failed = set.lanes.flatMap((lane) => lane.targets).find((each) => each.state === "Failed");
  if (set.state === "Failed") return [{ reason: "ApplicationFailed", object: failed.name, message: failed.message, since: failed.since, unblocks: "it to become healthy, or a person to retry or skip it", nextCheckAt: new Date(Date.now() + 95_000).toISOString() }];
  if (set.state === "Paused") return [{ reason: "Paused", object: set.name, message: "The annotation baton.dev/paused holds it.", since: set.pausedAt ?? since, unblocks: "somebody to resume it" }];
  if (set.state === "Waiting" && set.name === "kiosk") return [{ reason: "DeletionFuse", object: set.name, message: "34 of 60 Applications are no longer generated; the fuse allows 30.", since, unblocks: "a person to approve exactly this deletion, or the generators to give them again" }];
  if (set.state === "Waiting") return [{ reason: "AwaitingApproval", object: set.lanes[1].targets[4].name, message: "Its sync waits for approval to prune three resources.", since, unblocks: "a person to approve or reject the prune" }];
  if (set.state === "Invalid") return [{ reason: "InvalidRolloutConfig", object: set.name, message: set.reason, since, unblocks: "the field to be mended" }];
  const gate = set.lanes.flatMap((lane) => lane.gates).find((each) => each.state === "Running");
  if (gate === undefined) return [];
  return [{ reason: "PhaseGate", object: gate.name, message: `The ${gate.kind === "wait" ? "wait" : "call"} is under way.`, since: gate.startedAt, unblocks: gate.kind === "wait" ? "its time to be over, or somebody to advance it" : "the answer 200" }];
}

function conditions(set) {
  const at = set.startedAt;
  return [
    { type: "RolloutProgressing", status: set.state === "Complete" ? "False" : "True", reason: set.state, message: set.reason, lastTransitionTime: at },
    { type: "ResourcesUpToDate", status: set.state === "Complete" ? "True" : "False", reason: "ApplicationSetUpToDate", message: "All Applications have been generated.", lastTransitionTime: at },
  ];
}

const all = ["pause", "resume", "abort", "retry", "skip", "advance", "rollback", "rollback-all", "approve-deletion"];

function actions(set, user) {
  const under = !["Complete", "Idle", "Aborted", "Invalid"].includes(set.state);
  const phased = set.strategy.includes("Phases");
  const failed = set.counts.failed > 0;
  const senses = {
    pause: [under && set.state !== "Paused", set.state === "Paused" ? "it is paused already" : "nothing is under way"],
    resume: [set.state === "Paused", "it is not paused"],
    abort: [under, "no run is under way"],
    retry: [failed, "nothing has failed"],
    skip: [under, "no run is under way"],
    advance: [phased && under, phased ? "no phase is open" : "only phases are advanced"],
    rollback: [phased && under, phased ? "no phase is open" : "only phases keep good states"],
    "rollback-all": [phased && under, phased ? "this run has changed nothing" : "only phases keep good states"],
    "approve-deletion": [set.name === "kiosk" && set.state === "Waiting", "no deletion waits"],
  };
  return all.map((action) => {
    const [sensible, why] = senses[action];
    const allowed = user !== "viewer";
    const open = set.lanes.filter((lane) => lane.kind === "phase" && lane.state === "Open").map((lane) => lane.id);
    const lanes = sensible && ["advance", "rollback", "rollback-all"].includes(action) ? open : undefined;
    return { action, allowed, sensible, lanes, why: !allowed ? `needs applicationsets, action/argoproj.io/ApplicationSet/${action}` : sensible ? undefined : why };
  });
}

const words = {
  pause: () => "Nothing more is started, healed or written until somebody resumes it.",
  resume: () => "The rollout goes on where it was.",
  abort: (set) => `Run ${set.run} ends, and what is deployed stays.`,
  retry: (set, application) => `${application ?? "Every Application that failed"} is tried again.`,
  skip: (set, application) => `${application} counts as done for what this run asks of it, and no longer.`,
  advance: () => "The open phase ends its wait now.",
  rollback: () => "What the open phase has changed goes back to its last good state.",
  "rollback-all": () => "What the whole run has changed goes back to its last good state.",
  "approve-deletion": () => "Exactly the deletion that waits now is approved, once.",
};

export function preview(set, { action, application }) {
  return { text: words[action](set, application) };
}

export function plan(set) {
  const items = set.lanes.flatMap((lane) => lane.targets.map((each) => ({ application: each.name, action: each.state === "Healthy" ? "none" : each.state === "Deleting" ? "delete" : "update", lane: lane.id, reason: each.state === "Healthy" ? "is there already" : `${each.from} → ${each.to}` })));
  const rows = set.lanes.map((lane) => `${lane.title.padEnd(14)} ${String(lane.targets.length).padStart(5)}   ${String(lane.targets.filter((each) => each.state !== "Healthy").length).padStart(7)}   ${lane.maxUpdate ?? "all"}`);
  return { text: [`argocd/${set.name}: ${set.lanes.length} lanes, ${items.length} Applications`, "", "LANE            APPS   CHANGES   AT ONCE", ...rows].join("\n"), items };
}

// === Argo CD's shapes ===

const healthy = { status: "Healthy" };

export function application(set, each) {
  return {
    metadata: { name: each.name, namespace: each.namespace, labels: { set: set.name }, creationTimestamp: "2026-01-09T08:00:00Z", ownerReferences: [{ kind: "ApplicationSet", name: set.name }] },
    spec: { project: set.project, source: { repoURL: `https://git.example.com/fleet/${set.name}.git`, path: "deploy", targetRevision: "main" }, destination: { name: each.cluster, namespace: set.name }, syncPolicy: { syncOptions: ["Prune=confirm"] } },
    status: {
      sync: { status: each.sync, revision: each.state === "Healthy" ? set.to : set.from },
      health: { status: each.health, message: each.state === "Failed" ? each.message : undefined },
      operationState: { phase: each.state === "Progressing" ? "Running" : "Succeeded", startedAt: each.since, finishedAt: each.state === "Progressing" ? undefined : each.since },
      reconciledAt: each.since,
    },
  };
}

const managed = [["", "ConfigMap", ""], ["", "Secret", "-env"], ["", "Service", ""], ["apps", "Deployment", "-api"], ["apps", "Deployment", "-worker"], ["", "PersistentVolumeClaim", "-data"], ["networking.k8s.io", "Ingress", ""], ["autoscaling", "HorizontalPodAutoscaler", "-api"], ["batch", "CronJob", "-report"]];

/** The Application in full; what is waited for is marked. */
export function applicationInFull(set, each, world) {
  const app = application(set, each);
  const waits = world.approvals.find((approval) => approval.object.name === each.name);
  const resources = managed.map(([group, kind, suffix]) => ({ group, version: "v1", kind, namespace: set.name, name: `${set.name}${suffix}`, status: each.sync === "Synced" || kind !== "Deployment" ? "Synced" : "OutOfSync", health: ["Deployment", "Service", "Ingress", "PersistentVolumeClaim"].includes(kind) ? (kind === "Deployment" && each.health !== "Healthy" ? { status: each.health, message: each.message } : healthy) : undefined }));
  for (const resource of waits?.resources ?? []) if (!resource.approved) resources.push({ ...resource, version: "v1", status: "OutOfSync", health: resource.kind === "Deployment" ? healthy : undefined, requiresPruning: true, requiresDeletionApproval: true, requiresDeletionConfirmation: true });
  app.status.resources = resources;
  if (waits !== undefined) {
    app.status.operationState = { phase: "Running", startedAt: waits.since, message: `waiting for pruning confirmation of ${waits.resources[0].kind}/${waits.resources[0].name} and ${waits.resources.length - 1} more resources` };
    app.status.sync.status = "OutOfSync";
  }
  app.status.history = [3, 2, 1, 0].map((back) => ({ id: 12 - back, revision: back === 0 ? set.to : `${back}${set.from.slice(1)}`, deployedAt: new Date(world.now - back * 86_400_000 - 300_000).toISOString(), initiatedBy: back === 2 ? { username: "mara" } : { automated: true } }));
  return app;
}

export function tree(set, each, world) {
  const nodes = [];
  const add = (node) => nodes.push({ version: "v1", namespace: set.name, createdAt: "2026-01-09T08:00:00Z", ...node, uid: `${node.kind}-${node.name}` });
  for (const resource of applicationInFull(set, each, world).status.resources) {
    add({ group: resource.group, kind: resource.kind, namespace: resource.namespace, name: resource.name, health: resource.health });
    if (resource.kind === "Deployment") {
      const parent = { kind: resource.kind, name: resource.name, uid: `${resource.kind}-${resource.name}` };
      const setName = `${resource.name}-7d9f6c5b8`;
      add({ group: "apps", kind: "ReplicaSet", name: setName, parentRefs: [parent], health: healthy, info: [{ name: "Revision", value: "rev:4" }] });
      const pods = resource.name.endsWith("-worker") ? 12 : 3;
      for (let index = 0; index < pods; index += 1) add({ kind: "Pod", name: `${setName}-${"bcdfghjklmnpqrst"[index]}x${index}q`, parentRefs: [{ kind: "ReplicaSet", name: setName, uid: `ReplicaSet-${setName}` }], health: each.state === "Failed" && index > 0 ? { status: "Degraded" } : healthy, info: [{ name: "Status Reason", value: each.state === "Failed" && index > 0 ? "ImagePullBackOff" : "Running" }] });
    }
    if (resource.kind === "Service") add({ group: "discovery.k8s.io", kind: "EndpointSlice", name: `${resource.name}-x7k2p`, parentRefs: [{ kind: "Service", name: resource.name, uid: `Service-${resource.name}` }] });
  }
  return { nodes };
}

export function managedResources(set, each, world, query) {
  const items = applicationInFull(set, each, world).status.resources.map((resource) => {
    const image = (revision) => `registry.example.com/${set.name}:${revision.slice(0, 7)}`;
    const object = (revision) => ({ apiVersion: resource.group === "" ? "v1" : `${resource.group}/v1`, kind: resource.kind, metadata: { name: resource.name, namespace: resource.namespace, labels: { app: set.name } }, ...(resource.kind === "Deployment" ? { spec: { replicas: 3, selector: { matchLabels: { app: set.name } }, template: { spec: { containers: [{ name: "api", image: image(revision), ports: [{ containerPort: 8080 }], resources: { requests: { cpu: "100m", memory: "128Mi" } } }] } } } } : resource.kind === "ConfigMap" ? { data: { LOG_LEVEL: "info", REGION: each.cluster } } : { spec: {} }) });
    const live = JSON.stringify(object(resource.status === "Synced" ? set.to : set.from));
    const target = resource.requiresPruning === true ? "null" : JSON.stringify(object(set.to));
    return { group: resource.group, kind: resource.kind, namespace: resource.namespace, name: resource.name, liveState: live, normalizedLiveState: live, targetState: target, predictedLiveState: target };
  });
  return { items: items.filter((item) => (query.get("kind") ?? item.kind) === item.kind && (query.get("name") ?? item.name) === item.name) };
}

export function events(each, world) {
  const event = (type, reason, message, ago, count = 1) => ({ metadata: { uid: `${reason}-${ago}` }, type, reason, message, count, lastTimestamp: new Date(world.now - ago * 1000).toISOString() });
  return { items: [event("Normal", "OperationStarted", "argocd-applicationset-controller initiated a sync to main", 140), event("Normal", "ResourceUpdated", "Updated health status: Healthy → Progressing", 135), ...(each.state === "Failed" ? [event("Warning", "ResourceUpdated", each.message, 20, 6)] : [event("Normal", "OperationCompleted", "Sync succeeded", 60)])] };
}
