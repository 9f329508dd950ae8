// What the server sends, as far as these pages read it. Baton's own paths come first, Argo CD's after them. Everything is optional that
// an older or a refusing server may leave out.

export type RolloutState =
  | "Idle" | "Progressing" | "Paused" | "Waiting" | "Failed" | "Aborted" | "RollingBack" | "Complete" | "Deleting" | "Invalid" | "Superseded";
export type HealthState = "Healthy" | "Progressing" | "Degraded" | "Suspended" | "Missing" | "Unknown";
export type LaneState = "Pending" | "Open" | "Done" | "Failed" | "RollingBack" | "RolledBack" | "Skipped";
export type GateKind = "preHook" | "check" | "postHook" | "wait" | "previous";
export type GateState = "Pending" | "Running" | "Passed" | "Failed" | "Skipped";
export type TargetState = "Waiting" | "Pending" | "Progressing" | "Healthy" | "Failed" | "Deleting";
export type ActionName =
  | "pause" | "resume" | "abort" | "retry" | "skip" | "advance" | "rollback" | "rollback-all" | "approve-deletion";

export interface Counts {
  total: number;
  done: number;
  updating: number;
  failed: number;
  waiting: number;
}

export interface RolloutSummary {
  name: string;
  namespace: string;
  project: string;
  strategy: "AllAtOnce" | "RollingSync" | "Phases" | "RollingSync+Phases";
  state: RolloutState;
  reason: string;
  run?: number;
  revision?: string;
  startedAt?: string;
  finishedAt?: string;
  counts: Counts;
  approvals: number;
  health: HealthState;
}

export interface Gate {
  kind: GateKind;
  name: string;
  state: GateState;
  attempt?: number;
  startedAt?: string;
  seconds?: number;
  message?: string;
}

export interface Target {
  name: string;
  namespace: string;
  cluster: string;
  state: TargetState;
  health: HealthState;
  sync: string;
  since?: string;
  from?: string;
  to?: string;
  message?: string;
}

export interface Lane {
  id: string;
  kind: "step" | "phase" | "unmatched";
  title: string;
  selector: string;
  state: LaneState;
  counts: Counts;
  maxUpdate?: number | string;
  openedAt?: string;
  waitUntil?: string;
  message?: string;
  gates: Gate[];
  targets: Target[];
}

export interface Blocker {
  reason: string;
  object: string;
  message: string;
  since?: string;
  unblocks: string;
  nextCheckAt?: string;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface OfferedAction {
  action: ActionName;
  allowed: boolean;
  sensible: boolean;
  why?: string;
  /** The ids of the lanes it would act on: one word is for every generator that it makes sense for. */
  lanes?: string[];
}

/** A run that is over or under way, as far as the set still tells of it. */
export interface PastRun {
  /** 0 where it is not known: in phases, and of runs that are long over. */
  run: number;
  /** The place of the generator whose phases went through, where it was one. */
  generator?: number;
  state: RolloutState;
  revision?: string;
  startedAt?: string;
  finishedAt?: string;
  /** How many Applications had it in the end, and of how many, where only they tell of it. */
  reached?: number;
  of?: number;
}

export interface Rollout extends RolloutSummary {
  uid?: string;
  resourceVersion?: string;
  message?: string;
  revisions?: { repoURL: string; targetRevision: string; revision: string }[];
  restarts?: number;
  nextCheckAt?: string;
  pausedAt?: string;
  lanes: Lane[];
  blockers: Blocker[];
  conditions: Condition[];
  actions: OfferedAction[];
  command?: string;
  /** Earlier runs, where the server tells of them. */
  history?: PastRun[];
}

/** A lane of an event that changes a rollout: its targets are sent apart. */
export type LaneHead = Omit<Lane, "targets"> & { targets?: Target[] };

export type RolloutEvent =
  | { type: "ADDED"; rollout: Rollout }
  | { type: "DELETED"; rollout: { name: string; namespace: string } }
  | {
      type: "MODIFIED";
      rollout: Omit<Rollout, "lanes"> & { lanes: LaneHead[] };
      targets?: (Target & { lane: string })[];
      removed?: string[];
    };

/** What `?summary=true` tells of the fleet: no lanes, no targets. */
export type FleetEvent =
  | { type: "ADDED" | "MODIFIED"; rollout: RolloutSummary }
  | { type: "DELETED"; rollout: { name: string; namespace: string } };

export interface Plan {
  text: string;
  items?: { application: string; action: "create" | "update" | "delete" | "none"; lane: string; reason?: string }[];
}

export interface ApprovalResource {
  group: string;
  kind: string;
  namespace?: string;
  name: string;
  approved: boolean;
  grave: boolean;
}

export interface Approval {
  id: string;
  kind: "prune" | "delete" | "fuse" | "phase";
  object: { kind: "Application" | "ApplicationSet"; namespace: string; name: string };
  project: string;
  requestedBy?: string;
  since?: string;
  why: string;
  resources: ApprovalResource[];
  blast: { resources: number; applications: number };
  setHash: string;
  allowed: boolean;
  whyNot?: string;
}

export interface ApprovalAnswer {
  items: { id: string; ok: boolean; message?: string }[];
}

export interface AuditEntry {
  at: string;
  actor: string;
  verb: string;
  object: string;
  outcome: string;
  reason?: string;
}

// === Argo CD's shapes ===

export interface UserInfo {
  loggedIn?: boolean;
  username?: string;
  iss?: string;
  groups?: string[] | null;
}

export interface ServerSettings {
  url?: string;
  /** The control plane's namespace, told to those who are signed in. */
  controllerNamespace?: string;
  oidcConfig?: { name?: string };
  dexConfig?: { connectors?: { name?: string }[] | null };
  userLoginsDisabled?: boolean;
}

export interface ResourceRef {
  group?: string;
  version?: string;
  kind: string;
  namespace?: string;
  name: string;
  uid?: string;
}

export interface ResourceStatus extends ResourceRef {
  status?: string;
  health?: { status?: HealthState; message?: string };
  hook?: boolean;
  requiresPruning?: boolean;
  requiresDeletionApproval?: boolean;
  requiresDeletionConfirmation?: boolean;
}

export interface TreeNode extends ResourceRef {
  parentRefs?: ResourceRef[] | null;
  health?: { status?: HealthState; message?: string };
  info?: { name: string; value: string }[] | null;
  images?: string[] | null;
  createdAt?: string;
}

export interface AppSource {
  repoURL?: string;
  path?: string;
  chart?: string;
  targetRevision?: string;
}

export interface Application {
  metadata: {
    name: string;
    namespace: string;
    annotations?: Record<string, string>;
    labels?: Record<string, string>;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    ownerReferences?: { kind: string; name: string }[];
  };
  spec: {
    project: string;
    source?: AppSource;
    sources?: AppSource[] | null;
    destination: { server?: string; name?: string; namespace?: string };
    syncPolicy?: { automated?: { prune?: boolean; selfHeal?: boolean; enabled?: boolean }; syncOptions?: string[] | null };
  };
  operation?: unknown;
  status?: {
    sync?: { status?: string; revision?: string; revisions?: string[] | null };
    health?: { status?: HealthState; message?: string };
    resources?: ResourceStatus[] | null;
    summary?: { images?: string[] | null; externalURLs?: string[] | null };
    conditions?: { type: string; message: string; lastTransitionTime?: string }[] | null;
    history?: { id: number; revision?: string; deployedAt?: string; deployStartedAt?: string; source?: AppSource; initiatedBy?: { username?: string; automated?: boolean } }[] | null;
    operationState?: { phase?: string; message?: string; startedAt?: string; finishedAt?: string };
    reconciledAt?: string;
  };
}

export interface ManagedResource extends ResourceRef {
  targetState?: string;
  liveState?: string;
  normalizedLiveState?: string;
  predictedLiveState?: string;
  hook?: boolean;
}

export interface KubernetesEvent {
  metadata?: { uid?: string; name?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number | null;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  involvedObject?: { kind?: string; name?: string };
}
