// What people do to the mock's world.

/** Whether a word can be heard at all. */
export function judge(world, set, { action, run }) {
  if (run !== undefined && run !== set.run) return { refused: `run ${run} is over; ${set.run} is under way`, status: 409 };
  return deeds[action] === undefined ? { refused: `there is no action ${action}`, status: 400 } : set;
}

/** A word to a set; what makes no sense is refused. */
export function act(world, set, user, word) {
  const { action, application, reason } = word;
  const judged = judge(world, set, word);
  if (judged !== set) return judged;
  const problem = deeds[action](set, world, application);
  if (problem !== undefined) return { refused: problem, status: 400 };
  set.touched = true;
  world.note(user, action, `ApplicationSet argocd/${set.name}`, "done", reason ?? "");
  world.tick(Date.now());
  return set;
}

const targetsOf = (set) => set.lanes.flatMap((lane) => lane.targets);

const deeds = {
  pause: (set) => (set.held === "Paused" ? "it is paused already" : void Object.assign(set, { before: set.held, held: "Paused", pausedAt: new Date().toISOString() })),
  resume: (set) => (set.held !== "Paused" ? "it is not paused" : void Object.assign(set, { held: set.before, before: undefined, pausedAt: undefined })),
  abort: (set) => void Object.assign(set, { held: "Aborted" }),
  retry: (set, world, application) => {
    for (const target of targetsOf(set)) if (target.state === "Failed" && (application === undefined || target.name === application)) Object.assign(target, { state: "Pending", message: undefined });
    set.held = undefined;
    set.restarted = true;
  },
  skip: (set, world, application) => {
    const target = targetsOf(set).find((each) => each.name === application);
    if (target === undefined) return "name an Application of the set";
    Object.assign(target, { state: "Healthy", message: "skipped" });
    set.restarted = true;
    if (set.held === "Failed") set.held = undefined;
    return undefined;
  },
  advance: (set) => {
    for (const gate of set.lanes.flatMap((lane) => lane.gates)) if (gate.state === "Running") Object.assign(gate, { state: "Skipped" });
  },
  rollback: (set) => void Object.assign(set, { held: "Aborted" }),
  "rollback-all": (set) => void Object.assign(set, { held: "Aborted" }),
  "approve-deletion": (set, world) => {
    const approval = world.approvals.find((each) => each.object.name === set.name);
    return approval === undefined ? "no deletion waits" : void settle(world, approval, true);
  },
};

/** Approvals and rejections, each bound to what was shown. */
export function decide(world, user, decision, { items, reason }) {
  if (decision === "reject" && (reason ?? "").trim() === "") return { refused: "a rejection needs a reason", status: 400 };
  const results = items.map(({ id, setHash }) => {
    const approval = world.approvals.find((each) => each.id === id);
    if (approval === undefined) return { id, ok: false, message: "it no longer waits" };
    if (approval.setHash !== setHash) return { id, ok: false, message: "the resources have changed since they were shown" };
    settle(world, approval, decision === "approve");
    world.note(user, decision === "approve" ? "approve-deletion" : "reject-deletion", `${approval.object.kind} argocd/${approval.object.name}`, "done", reason ?? "");
    return { id, ok: true };
  });
  world.approvalsChanged();
  return { items: results };
}

function settle(world, approval, approved) {
  world.approvals = world.approvals.filter((each) => each !== approval);
  const set = world.sets.get(approval.object.name);
  if (approval.kind === "fuse" && set !== undefined && approved) {
    for (const lane of set.lanes) lane.targets = lane.targets.filter((target) => target.state !== "Deleting");
    Object.assign(set, { held: undefined, finishedAt: new Date().toISOString(), restarted: true, touched: true });
  }
  const search = world.sets.get("search");
  if (search.held === "Waiting" && !world.approvals.some((each) => each.kind === "prune")) Object.assign(search, { held: undefined, touched: true });
}
