// A fleet that moves by itself: what the mock server tells of. It is a picture of rollouts for the eye, and decides nothing as Baton does.

const states = ["Waiting", "Pending", "Progressing", "Healthy", "Failed", "Deleting"];

/** Numbers that look random and are the same on every start. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const sha = (random) => Array.from({ length: 40 }, () => Math.floor(random() * 16).toString(16)).join("");
const iso = (time) => new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
const minutes = (number) => number * 60_000;

const regions = ["eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "af-south"];

export class World {
  constructor(now = Date.now(), seed = 7) {
    this.now = now;
    this.random = randomFrom(seed);
    this.sets = new Map();
    this.audit = [];
    this.approvals = [];
    this.listeners = new Set();
    for (const set of makeSets(this)) this.sets.set(set.name, set);
    this.approvals = makeApprovals(this);
    for (const set of this.sets.values()) retell(set, this);
    this.note("admin", "resume", "ApplicationSet argocd/web", "done", "metrics are quiet again", minutes(42));
    this.note("ci", "sync", "Application argocd/search-eu-west-1", "done", "", minutes(55));
    this.note("mara", "approve-deletion", "Application argocd/legacy-reports", "done", "agreed in the weekly", minutes(130));
    this.note("viewer", "pause", "ApplicationSet argocd/edge", "permission denied", "", minutes(160));
    this.note("mara", "retry", "ApplicationSet argocd/checkout", "done", "", minutes(200));
  }

  note(actor, verb, object, outcome, reason, ago = 0) {
    this.audit.push({ at: iso(this.now - ago), actor, verb, object, outcome, reason });
    this.audit.sort((left, right) => right.at.localeCompare(left.at));
  }

  tell(event) {
    for (const listener of this.listeners) listener(event);
  }

  /** Half a second of the fleet's life. */
  tick(now = Date.now()) {
    this.now = now;
    for (const set of this.sets.values()) {
      const changed = move(set, this);
      if (changed.size > 0 || set.touched) {
        set.touched = false;
        retell(set, this);
        this.tell({ kind: "rollout", set, changed });
      }
    }
  }

  approvalsChanged() {
    for (const set of this.sets.values()) {
      const before = set.approvals;
      retell(set, this);
      if (before !== set.approvals) this.tell({ kind: "rollout", set, changed: new Set() });
    }
    this.tell({ kind: "approvals" });
  }
}

// === what there is ===

function makeSets(world) {
  const { random } = world;
  const web = newSet(world, "web", "storefront", "Phases", [
    lane("phase-0-0", "phase", "canary", "10 % of env In (prod)", targets(world, "web", 2, 1), { gates: [gate("preHook", "open-change"), gate("check", "error-rate"), gate("wait", "soak 1m")], maxUpdate: 2 }),
    lane("phase-0-1", "phase", "europe", "region In (eu)", targets(world, "web", 4, 3), { gates: [gate("preHook", "tell-on-call"), gate("check", "error-rate"), gate("check", "latency-p99")], maxUpdate: 2 }),
    lane("phase-0-2", "phase", "everywhere", "env In (prod)", targets(world, "web", 6, 7), { gates: [gate("preHook", "tell-on-call"), gate("postHook", "close-change")], maxUpdate: 3 }),
  ]);
  web.loops = true;
  web.history = pastRuns(world, web.run, 7);

  const checkout = newSet(world, "checkout", "payments", "RollingSync", [
    lane("step-1", "step", "Step 1", "env In (dev)", targets(world, "checkout-dev", 6, 1)),
    lane("step-2", "step", "Step 2", "env In (staging)", targets(world, "checkout-staging", 14, 1), { maxUpdate: 5 }),
    lane("step-3", "step", "Step 3", "env In (prod)", targets(world, "checkout-prod", 40, 1), { maxUpdate: "20%" }),
  ]);
  advanceTo(checkout, 1, 9, world);
  const failing = checkout.lanes[1].targets[4];
  Object.assign(failing, { state: "Failed", health: "Degraded", sync: "Synced", message: "Deployment checkout-api: 1 of 3 replicas ready; progressDeadline of 10m is over" });
  checkout.held = "Failed";
  checkout.history = pastRuns(world, checkout.run, 4);

  const edge = newSet(world, "edge", "platform", "RollingSync", [
    lane("step-1", "step", "Step 1", "ring In (canary)", targets(world, "edge-pop", 10, 1), { maxUpdate: 5 }),
    lane("step-2", "step", "Step 2", "ring In (early)", targets(world, "edge-pop", 90, 11), { maxUpdate: 20 }),
    lane("step-3", "step", "Step 3", "ring In (wide)", targets(world, "edge-pop", 300, 101), { maxUpdate: 30 }),
    lane("step-4", "step", "Step 4", "ring NotIn (canary, early, wide)", targets(world, "edge-pop", 600, 401), { maxUpdate: "10%" }),
  ]);
  advanceTo(edge, 2, 120, world);
  edge.loops = true;
  for (const index of [17, 64]) Object.assign(edge.lanes[2].targets[index], { state: "Failed", health: "Degraded", message: "ImagePullBackOff: the registry answered 503" });
  edge.tolerates = true;

  const ledger = newSet(world, "ledger", "payments", "RollingSync", [
    lane("step-1", "step", "Step 1", "env In (staging)", targets(world, "ledger-staging", 4, 1)),
    lane("step-2", "step", "Step 2", "env In (prod)", targets(world, "ledger-prod", 12, 1), { maxUpdate: 3, gates: [gate("wait", "healthy for 10m")] }),
    lane("unmatched", "unmatched", "In no step", "", targets(world, "ledger-lab", 2, 1)),
  ]);
  advanceTo(ledger, 1, 5, world);
  ledger.held = "Paused";
  ledger.pausedAt = iso(world.now - minutes(18));

  const search = newSet(world, "search", "discovery", "RollingSync", [
    lane("step-1", "step", "Step 1", "env In (dev)", targets(world, "search-dev", 3, 1)),
    lane("step-2", "step", "Step 2", "env In (prod)", targets(world, "search", 9, 1), { maxUpdate: 3 }),
  ]);
  advanceTo(search, 1, 4, world);
  search.held = "Waiting";

  const retired = newSet(world, "kiosk", "retail", "RollingSync", [lane("step-1", "step", "Step 1", "all", targets(world, "kiosk-store", 60, 1))]);
  advanceTo(retired, 0, 60, world);
  for (const target of retired.lanes[0].targets.slice(0, 34)) Object.assign(target, { state: "Deleting", message: "waits for approval of the deletion fuse" });
  retired.held = "Waiting";

  const broken = newSet(world, "batch", "data", "RollingSync", [lane("step-1", "step", "Step 1", "tier In (a)", targets(world, "batch", 5, 1))]);
  broken.held = "Invalid";

  // Both orders at once, phases of two generators, and more lanes than fit on a screen.
  const atlas = newSet(world, "atlas", "platform", "RollingSync+Phases", []);
  const members = targets(world, "atlas", 24, 1);
  atlas.lanes = [
    lane("step-1", "step", "Step 1", "env In (dev)", members.slice(0, 8)),
    lane("step-2", "step", "Step 2", "env In (prod)", members.slice(8), { maxUpdate: 4 }),
    ...Array.from({ length: 6 }, (_, index) => lane(`phase-0-${index}`, "phase", `ring-${index}`, `ring In (${index})`, members.slice(index * 4, index * 4 + 4), { gates: [gate("check", "error-rate")] })),
    lane("phase-1-0", "phase", "labs", "all", targets(world, "atlas-lab", 2, 30)),
  ];
  for (const each of members) Object.assign(each, { from: atlas.from.slice(0, 7), to: atlas.to.slice(0, 7) });

  // What people write into repositories is not always kind.
  const hostile = newSet(world, `${"very-long-name-of-a-set-".repeat(8)}end`, "default", "RollingSync", [lane("step-1", "step", "<b>Step</b> 1", `name In (${"x".repeat(240)})`, targets(world, "w".repeat(180), 3, 1))]);
  hostile.held = "Failed";
  hostile.repository = "javascript:alert(document.cookie)";
  Object.assign(hostile.lanes[0].targets[0], { state: "Failed", message: `<img src=x onerror="alert(1)"> ${"unbroken".repeat(60)}` });

  const settled = ["auth", "billing", "catalog", "cert-manager", "dns", "fluent", "gateway", "identity", "metrics", "notify", "pricing", "tracing", "vault", "warehouse"].map((name, index) => {
    const set = newSet(world, name, ["platform", "payments", "storefront", "security"][index % 4], index % 5 === 0 ? "AllAtOnce" : "RollingSync", [
      lane("step-1", "step", "Step 1", "all", targets(world, name, 3 + Math.floor(random() * 22), 1)),
    ]);
    advanceTo(set, 0, 1000, world);
    set.finishedAt = iso(world.now - minutes(7 + index * 97));
    set.startedAt = iso(world.now - minutes(16 + index * 97));
    set.idle = true;
    return set;
  });
  return [web, checkout, edge, ledger, search, retired, broken, atlas, hostile, ...settled];
}

function newSet(world, name, project, strategy, lanes) {
  const from = sha(world.random);
  const to = sha(world.random);
  const set = {
    name, namespace: "argocd", project, strategy, lanes, from, to, uid: sha(world.random).slice(0, 32), run: 3 + Math.floor(world.random() * 40), startedAt: iso(world.now - minutes(6 + world.random() * 20)),
    finishedAt: undefined, held: undefined, approvals: 0, version: 1000, touched: false, idle: false, loops: false, tolerates: false, speed: 1, history: [], phaseClock: 0,
  };
  for (const each of lanes) for (const target of each.targets) Object.assign(target, { from: from.slice(0, 7), to: to.slice(0, 7) });
  return set;
}

function lane(id, kind, title, selector, list, { gates = [], maxUpdate } = {}) {
  return { id, kind, title, selector, state: "Pending", gates, targets: list, maxUpdate, openedAt: undefined, waitUntil: undefined, message: undefined };
}

const gate = (kind, name) => ({ kind, name, state: "Pending" });

function targets(world, prefix, number, first) {
  return Array.from({ length: number }, (_, index) => {
    const place = first + index;
    const region = regions[place % regions.length];
    return { name: `${prefix}-${region}-${place}`, namespace: "argocd", cluster: `${region}-${place}`, state: "Waiting", health: "Healthy", sync: "OutOfSync", since: iso(world.now - minutes(9)), left: 0, message: undefined };
  });
}

function pastRuns(world, run, number) {
  return Array.from({ length: number }, (_, index) => {
    const finished = world.now - minutes(180 + index * 1300);
    return { run: run - 1 - index, state: index === 2 ? "Aborted" : index === 4 ? "Failed" : "Complete", revision: sha(world.random), startedAt: iso(finished - minutes(14 + index * 3)), finishedAt: iso(finished) };
  });
}

/** The lanes before are done, and so many of this one. */
function advanceTo(set, laneIndex, done, world) {
  set.lanes.forEach((each, index) => {
    if (each.kind === "unmatched" || index > laneIndex) return;
    each.state = index < laneIndex ? "Done" : "Open";
    each.openedAt = iso(world.now - minutes(5));
    const upTo = index < laneIndex ? each.targets.length : done;
    each.targets.slice(0, upTo).forEach((target) => Object.assign(target, { state: "Healthy", sync: "Synced", since: iso(world.now - minutes(1 + world.random() * 6)) }));
    for (const each_ of each.gates) if (index < laneIndex) Object.assign(each_, { state: "Passed", seconds: 2 + Math.floor(world.random() * 20) });
    if (upTo >= each.targets.length && each.gates.length === 0) each.state = "Done";
  });
}

function makeApprovals(world) {
  const resource = (group, kind, namespace, name, grave = false) => ({ group, kind, namespace, name, approved: false, grave });
  const search = world.sets.get("search").lanes[1].targets;
  const kiosk = world.sets.get("kiosk").lanes[0].targets.filter((target) => target.state === "Deleting");
  const prune = (target, ago) => ({
    id: `prune.${target.name}`, kind: "prune", object: { kind: "Application", namespace: "argocd", name: target.name }, project: "discovery", requestedBy: "auto-sync", since: iso(world.now - minutes(ago)),
    why: "Three resources are no longer in git and are marked Prune=confirm.",
    resources: [resource("", "ConfigMap", "search", "search-synonyms"), resource("apps", "Deployment", "search", "search-indexer"), resource("", "Service", "search", "search-indexer")],
    blast: { resources: 3, applications: 0 },
  });
  const items = [
    ...search.slice(4, 7).map((target, index) => prune(target, 12 + index * 4)),
    {
      id: "delete.legacy-billing", kind: "delete", object: { kind: "Application", namespace: "argocd", name: "legacy-billing" }, project: "payments", requestedBy: "mara", since: iso(world.now - minutes(95)),
      why: "The Application is being deleted, and its resources are marked Delete=confirm.",
      resources: [resource("", "Namespace", "", "legacy-billing", true), resource("", "PersistentVolumeClaim", "legacy-billing", "ledger-data-0", true), resource("", "PersistentVolumeClaim", "legacy-billing", "ledger-data-1", true), resource("apps", "StatefulSet", "legacy-billing", "ledger"), resource("", "Service", "legacy-billing", "ledger"), resource("", "ConfigMap", "legacy-billing", "ledger")],
      blast: { resources: 6, applications: 1 },
    },
    {
      id: "fuse.kiosk", kind: "fuse", object: { kind: "ApplicationSet", namespace: "argocd", name: "kiosk" }, project: "retail", since: iso(world.now - minutes(31)),
      why: "34 of 60 Applications are no longer generated, which is more than the half the fuse allows.",
      resources: kiosk.map((target) => resource("argoproj.io", "Application", "argocd", target.name)), blast: { resources: 34, applications: 34 },
    },
  ];
  return items.map((item) => ({ ...item, setHash: String(item.resources.length * 7919) }));
}

// === how it moves ===

function move(set, world) {
  const changed = new Set();
  if (set.idle || set.held !== undefined) return changed;
  for (let repeat = 0; repeat < set.speed; repeat += 1) step(set, world, changed);
  return changed;
}

function step(set, world, changed) {
  const open = set.lanes.find((each) => each.kind !== "unmatched" && each.state !== "Done");
  if (open === undefined) return finish(set, world);
  if (open.state === "Pending") {
    if (!passGates(open, ["preHook"], world, set)) return;
    open.state = "Open";
    open.openedAt = iso(world.now);
    set.touched = true;
  }
  const limit = typeof open.maxUpdate === "string" ? Math.ceil((parseInt(open.maxUpdate, 10) / 100) * open.targets.length) : (open.maxUpdate ?? open.targets.length);
  let running = 0;
  for (const target of open.targets) {
    if (target.state !== "Progressing") continue;
    target.left -= 1;
    if (target.left <= 0) Object.assign(target, { state: "Healthy", health: "Healthy", sync: "Synced", since: iso(world.now), message: undefined }), changed.add(target);
    else running += 1;
  }
  for (const target of open.targets) {
    if (running >= limit) break;
    if (target.state !== "Waiting" && target.state !== "Pending") continue;
    Object.assign(target, { state: "Progressing", health: "Progressing", since: iso(world.now), left: 6 + Math.floor(world.random() * 12), message: "syncing" });
    changed.add(target);
    running += 1;
  }
  const over = (target) => target.state === "Healthy" || (set.tolerates && target.state === "Failed");
  if (!open.targets.every(over)) return;
  if (passGates(open, ["check", "wait", "postHook"], world, set)) {
    open.state = "Done";
    open.waitUntil = undefined;
    set.touched = true;
  }
}

function passGates(open, kinds, world, set) {
  for (const each of open.gates.filter((gate_) => kinds.includes(gate_.kind))) {
    if (each.state === "Passed") continue;
    if (each.state === "Pending") {
      const length = each.kind === "wait" ? 12_000 : 3_000 + world.random() * 4_000;
      Object.assign(each, { state: "Running", startedAt: iso(world.now), attempt: 1, until: world.now + length });
      if (each.kind === "wait") open.waitUntil = iso(world.now + length);
    } else if (world.now >= each.until) {
      each.seconds = Math.round((world.now - Date.parse(each.startedAt)) / 1000);
      each.state = "Passed";
    } else return false;
    set.touched = true;
    return false;
  }
  return true;
}

/** After a pause, another commit comes. */
function finish(set, world) {
  if (set.finishedAt === undefined) {
    set.finishedAt = iso(world.now);
    set.touched = true;
    set.phaseClock = world.now + 12_000;
    return;
  }
  if (!set.loops || world.now < set.phaseClock) return;
  begin(set, world);
}

export function begin(set, world) {
  set.history = [{ run: set.run, state: "Complete", revision: set.to, startedAt: set.startedAt, finishedAt: set.finishedAt ?? iso(world.now) }, ...set.history].slice(0, 8);
  Object.assign(set, { run: set.run + 1, from: set.to, to: sha(world.random), startedAt: iso(world.now), finishedAt: undefined, touched: true });
  for (const each of set.lanes) {
    each.state = "Pending";
    each.openedAt = undefined;
    for (const gate_ of each.gates) Object.assign(gate_, { state: "Pending", seconds: undefined, startedAt: undefined, attempt: undefined });
    for (const target of each.targets) Object.assign(target, { state: "Waiting", sync: "OutOfSync", since: iso(world.now), from: set.from.slice(0, 7), to: set.to.slice(0, 7) });
  }
  set.restarted = true;
}

// === how it is told ===

export function countsOf(list) {
  const number = (state) => list.filter((target) => target.state === state).length;
  const counts = Object.fromEntries(states.map((state) => [state, number(state)]));
  return { total: list.length, done: counts.Healthy, updating: counts.Progressing, failed: counts.Failed, waiting: counts.Waiting + counts.Pending + counts.Deleting };
}

function retell(set, world) {
  set.version += 1;
  const all = [...new Set(set.lanes.flatMap((each) => each.targets))];
  set.counts = countsOf(all);
  set.approvals = world.approvals.filter((approval) => approval.object.name === set.name || all.some((target) => target.name === approval.object.name)).length;
  const open = set.lanes.find((each) => each.kind !== "unmatched" && each.state !== "Done");
  const failed = all.find((target) => target.state === "Failed");
  set.state = set.held ?? (set.idle || set.finishedAt !== undefined ? "Complete" : "Progressing");
  const running = open?.gates.find((each) => each.state === "Running");
  set.reason = {
    Failed: `${failed?.name} failed in ${open?.title}: not healthy within its progressDeadline. A person retries, skips or aborts it.`,
    Paused: "Paused by mara 18 minutes ago. Nothing more is started until somebody resumes it.",
    Waiting: set.name === "kiosk" ? "The deletion fuse holds: 34 of 60 Applications would go." : "Three prunes wait for approval before Step 2 can go on.",
    Invalid: "spec.strategy.rollingSync.steps[1].maxUpdate: “a few” is neither a number nor a share.",
    Aborted: "Aborted. A new commit or template begins another run.",
    Progressing: running !== undefined ? `${open.title} waits for ${running.name}.` : `${open?.title} is open: ${set.counts.updating} under way, ${set.counts.waiting} to go.`,
    Complete: `All ${all.length} Applications are at ${set.to.slice(0, 7)} and healthy.`,
  }[set.state];
  set.health = set.state === "Failed" || set.state === "Invalid" ? "Degraded" : set.state === "Complete" ? "Healthy" : set.state === "Paused" ? "Suspended" : "Progressing";
}
