// How grave an approval is: what must be typed before it, and what is said about it.

import type { Approval, ApprovalResource } from "../api/shapes";
import { commandLine, count } from "../parts/format";
import { namespaceFlag } from "../rollout/effect";

/** More resources than this are not approved by a mere click. */
export const clickLimit = 20;

export const isGrave = (approval: Approval): boolean => approval.resources.some((resource) => resource.grave && !resource.approved);

/** What a person types to show that it was read; nothing where a click will do. */
export function wordToType(approvals: Approval[]): string | undefined {
  const resources = approvals.reduce((sum, approval) => sum + approval.blast.resources, 0);
  if (!approvals.some(isGrave) && resources <= clickLimit) return undefined;
  const [only] = approvals;
  if (approvals.length === 1 && only !== undefined) return only.object.name;
  return `approve ${approvals.length}`;
}

/** Kinds and how many of each, grave ones first: `2 Namespaces, 14 Deployments`. */
export function byKind(resources: ApprovalResource[]): { kind: string; number: number; grave: boolean }[] {
  const kinds = new Map<string, { kind: string; number: number; grave: boolean }>();
  for (const resource of resources) {
    const entry = kinds.get(resource.kind) ?? { kind: resource.kind, number: 0, grave: false };
    kinds.set(resource.kind, { kind: resource.kind, number: entry.number + 1, grave: entry.grave || resource.grave });
  }
  return [...kinds.values()].sort((left, right) => Number(right.grave) - Number(left.grave) || right.number - left.number || left.kind.localeCompare(right.kind));
}

export const kindWords: Record<Approval["kind"], { title: string; approving: string; rejecting: string }> = {
  prune: { title: "Prune", approving: "What is no longer in git is deleted, and the sync goes on.", rejecting: "Nothing is deleted. The sync ends, and says who rejected it." },
  delete: { title: "Deletion", approving: "The Application's resources are deleted, and then the Application itself. This cannot be undone.", rejecting: "Nothing is deleted. The Application stays in deletion until it is approved, since Kubernetes cannot take a deletion back." },
  fuse: { title: "Mass deletion", approving: "Exactly these Applications go, in the set's order of deletion. If more vanish meanwhile, the fuse holds again.", rejecting: "Nothing is deleted. The rollout stays held until the generators give the Applications again." },
  phase: { title: "Phase stopped", approving: "The rollout goes on with the next phase.", rejecting: "The run is ended; what is deployed stays." },
};

/** The most that can happen, in a few words. */
export function blastWords(approvals: Approval[]): string {
  const resources = approvals.reduce((sum, approval) => sum + approval.blast.resources, 0);
  const applications = approvals.reduce((sum, approval) => sum + approval.blast.applications, 0);
  const parts = [];
  if (resources > 0) parts.push(count(resources, "resource"));
  if (applications > 0) parts.push(count(applications, "Application"));
  return parts.length === 0 ? "nothing is deleted" : parts.join(", ");
}

/** Waiting longest first; what is grave is not hidden below. */
export function inOrder(approvals: Approval[]): Approval[] {
  return [...approvals].sort((left, right) => Number(isGrave(right)) - Number(isGrave(left)) || (left.since ?? "").localeCompare(right.since ?? "") || left.id.localeCompare(right.id));
}

export function commandFor(decision: "approve" | "reject", approvals: Approval[], reason: string): string {
  const [only] = approvals;
  if (decision === "approve" && approvals.length === 1 && only !== undefined && (only.kind === "prune" || only.kind === "delete") && only.object.kind === "Application") {
    return commandLine(["baton", "app", "confirm-deletion", only.object.name, ...namespaceFlag(only.object.namespace)]);
  }
  // As `baton approvals list` names them.
  const names = approvals.map(({ kind, object }) => `${kind}/${object.namespace}/${object.name}`);
  return commandLine(["baton", "approvals", decision, ...names.slice(0, 6), names.length > 6 && "…", ...(reason === "" ? [] : ["--reason", reason])]);
}
