// Where one is: the path says which page, the query what is filtered.

import { useSyncExternalStore } from "react";

export type Route =
  | { page: "fleet" }
  | { page: "rollout"; namespace: string; name: string }
  | { page: "approvals" }
  | { page: "applications" }
  | { page: "application"; namespace: string; name: string }
  | { page: "settings" }
  | { page: "audit" }
  | { page: "login" }
  | { page: "unknown" };

export function routeOf(path: string): Route {
  const parts = path.split("/").filter((part) => part !== "");
  const [first, namespace, name] = parts.map(decoded);
  if (first === undefined) return { page: "fleet" };
  if (parts.length === 3 && namespace !== undefined && name !== undefined) {
    if (first === "rollouts") return { page: "rollout", namespace, name };
    if (first === "applications") return { page: "application", namespace, name };
  }
  if (parts.length === 1 && (first === "approvals" || first === "applications" || first === "settings" || first === "audit" || first === "login")) return { page: first };
  return { page: "unknown" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const rolloutPath = (namespace: string, name: string) => `/rollouts/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
export const applicationPath = (namespace: string, name: string) => `/applications/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

const moved = new EventTarget();

/** Goes to another page; with `replace` without leaving this one in the history. Only paths of this site are gone to. */
export function navigate(to: string, replace = false): void {
  if (!to.startsWith("/") || to.startsWith("//")) return;
  if (replace) history.replaceState(null, "", to);
  else {
    history.pushState(null, "", to);
    scrollTo(0, 0);
  }
  moved.dispatchEvent(new Event("moved"));
}

function subscribe(reader: () => void): () => void {
  addEventListener("popstate", reader);
  moved.addEventListener("moved", reader);
  return () => {
    removeEventListener("popstate", reader);
    moved.removeEventListener("moved", reader);
  };
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

export function useQuery(): URLSearchParams {
  const search = useSyncExternalStore(subscribe, () => location.search);
  return new URLSearchParams(search);
}

/** Changes one word of the query in place; nothing takes it out. */
export function setQuery(key: string, value: string | undefined): void {
  const query = new URLSearchParams(location.search);
  if (value === undefined || value === "") query.delete(key);
  else query.set(key, value);
  const text = query.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), true);
}
