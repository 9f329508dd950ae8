// Every request these pages make, by name.

import { get, pathOf, post, remove } from "./request";
import type {
  ActionName, Application, Approval, ApprovalAnswer, AuditEntry, KubernetesEvent, ManagedResource, Plan, ResourceRef, Rollout,
  RolloutSummary, ServerSettings, TreeNode, UserInfo,
} from "./shapes";

interface Listed<T> {
  items: T[] | null;
}

const listed = async <T>(answer: Promise<Listed<T> | undefined>): Promise<T[]> => (await answer)?.items ?? [];

// === session ===

export const userInfo = () => get<UserInfo>("/api/v1/session/userinfo");
export const serverSettings = () => get<ServerSettings>("/api/v1/settings");
export const serverVersion = () => get<Record<string, unknown>>("/api/version");
export const signIn = (username: string, password: string) => post<unknown>("/api/v1/session", { username, password });
export const signOut = () => remove<unknown>("/api/v1/session");

/** Whether the caller may; an action such as `action/apps/Deployment/restart` is one segment of the path. */
export async function mayI(resource: string, action: string, object: string): Promise<boolean> {
  const [project = "", ...rest] = object.split("/");
  const path = pathOf("/api/v1/account/can-i/{}/{}/{}", resource, action, project) + rest.map((part) => pathOf("/{}", part)).join("");
  const answer = await get<{ value?: string }>(path);
  return answer.value === "yes";
}

// === rollouts ===

export const rollouts = (signal?: AbortSignal) => listed(get<Listed<RolloutSummary>>("/api/v1/rollouts", {}, signal));

export const rollout = (namespace: string, name: string, signal?: AbortSignal) =>
  get<Rollout>(pathOf("/api/v1/applicationsets/{}/rollout", name), { appsetNamespace: namespace }, signal);

export const plan = (namespace: string, name: string) =>
  get<Plan>(pathOf("/api/v1/applicationsets/{}/plan", name), { appsetNamespace: namespace });

export interface ActionRequest {
  action: ActionName;
  application?: string;
  reason?: string;
  run?: number;
}

export const act = (namespace: string, name: string, request: ActionRequest) =>
  post<Rollout>(pathOf("/api/v1/applicationsets/{}/actions", name), request, { appsetNamespace: namespace });

/** What a word would do, in the server's own sentences; nothing is done. */
export const preview = async (namespace: string, name: string, request: ActionRequest): Promise<string> =>
  (await post<{ text: string }>(pathOf("/api/v1/applicationsets/{}/actions", name), { ...request, dryRun: true }, { appsetNamespace: namespace })).text;

// === approvals and audit ===

export const approvals = (signal?: AbortSignal) => listed(get<Listed<Approval>>("/api/v1/approvals", {}, signal));

export type Decision = "approve" | "reject";

export const decide = (decision: Decision, items: { id: string; setHash: string }[], reason: string) =>
  post<ApprovalAnswer>(`/api/v1/approvals/${decision}`, reason === "" ? { items } : { items, reason });

export const audit = (limit: number) => listed(get<Listed<AuditEntry>>("/api/v1/audit", { limit }));

// === applications ===

export const listFields = [
  "metadata.name", "metadata.namespace", "metadata.labels", "metadata.deletionTimestamp", "spec.project", "spec.destination", "status.sync.status",
  "status.sync.revision", "status.health", "status.operationState.phase", "status.operationState.startedAt",
];

export const applications = (signal?: AbortSignal) =>
  listed(get<Listed<Application>>("/api/v1/applications", { fields: listFields.map((field) => `items.${field}`).join(",") }, signal));

export const application = (namespace: string, name: string, refresh?: "normal" | "hard") =>
  get<Application>(pathOf("/api/v1/applications/{}", name), { appNamespace: namespace, refresh });

export const resourceTree = async (namespace: string, name: string): Promise<TreeNode[]> =>
  (await get<{ nodes?: TreeNode[] | null }>(pathOf("/api/v1/applications/{}/resource-tree", name), { appNamespace: namespace })).nodes ?? [];

export const managedResources = (namespace: string, name: string, only?: ResourceRef) =>
  listed(
    get<Listed<ManagedResource>>(pathOf("/api/v1/applications/{}/managed-resources", name), {
      appNamespace: namespace,
      ...(only === undefined ? {} : { group: only.group ?? "", kind: only.kind, namespace: only.namespace ?? "", name: only.name }),
    }),
  );

export const applicationEvents = (namespace: string, name: string) =>
  listed(get<Listed<KubernetesEvent>>(pathOf("/api/v1/applications/{}/events", name), { appNamespace: namespace }));

export interface SyncRequest {
  revision?: string;
  prune: boolean;
  dryRun: boolean;
  strategy?: { apply?: { force: boolean }; hook?: { force: boolean } };
  resources?: { group: string; kind: string; name: string; namespace?: string }[];
  syncOptions?: { items: string[] };
}

export const sync = (namespace: string, name: string, request: SyncRequest) =>
  post<Application>(pathOf("/api/v1/applications/{}/sync", name), request, { appNamespace: namespace });

export const rollbackTo = (namespace: string, name: string, id: number) =>
  post<Application>(pathOf("/api/v1/applications/{}/rollback", name), { id, prune: false, dryRun: false }, { appNamespace: namespace });

export const terminateOperation = (namespace: string, name: string) =>
  remove<unknown>(pathOf("/api/v1/applications/{}/operation", name), { appNamespace: namespace });

export const approveDeletionOf = (namespace: string, name: string, resource: ResourceRef) =>
  post<unknown>(
    pathOf("/api/v1/applications/{}/resource/actions/v2", name),
    {
      namespace: resource.namespace ?? "",
      resourceName: resource.name,
      version: resource.version ?? "",
      group: resource.group ?? "",
      kind: resource.kind,
      action: "approve-deletion",
    },
    { appNamespace: namespace },
  );

// === what Settings shows ===

export const clusters = () =>
  listed(get<Listed<{ name?: string; server: string; serverVersion?: string; connectionState?: { status?: string; message?: string }; info?: { applicationsCount?: number } }>>("/api/v1/clusters"));
export const projects = () => listed(get<Listed<{ metadata: { name: string }; spec?: { description?: string } }>>("/api/v1/projects"));
export const repositories = () =>
  listed(get<Listed<{ repo: string; type?: string; connectionState?: { status?: string; message?: string } }>>("/api/v1/repositories"));
