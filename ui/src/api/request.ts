// One way to ask the server: same origin, JSON, errors with the server's own sentence.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

type Query = Record<string, string | number | boolean | undefined>;

/** Puts a path together; each `{}` takes the next part, encoded so that a `/` in a name stays inside its segment. */
export function pathOf(template: string, ...parts: string[]): string {
  let next = 0;
  return template.replace(/\{\}/g, () => encodeURIComponent(parts[next++] ?? ""));
}

export function withQuery(path: string, query: Query): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") search.set(key, String(value));
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

let signedOut: () => void = () => undefined;

/** Whom to tell when a session has ended in the middle of the work. */
export function onSignedOut(tell: () => void): void {
  signedOut = tell;
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return ask<T>("GET", withQuery(path, query), undefined, signal);
}

export function post<T>(path: string, body: unknown, query: Query = {}): Promise<T> {
  return ask<T>("POST", withQuery(path, query), body);
}

export function remove<T>(path: string, query: Query = {}): Promise<T> {
  return ask<T>("DELETE", withQuery(path, query), undefined);
}

async function ask<T>(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  // The server takes nothing else than JSON for what changes something, also without a body: a form of another site cannot send it.
  if (method !== "GET") headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new ApiError(0, "the server does not answer; this page tries again by itself");
  }
  if (!response.ok) throw await refusal(response, path);
  const text = await response.text();
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError(response.status, `the answer to ${path.split("?")[0]} is not JSON; is a proxy in between?`);
  }
}

/** The error of an answer that is none; a lost session is told of once, for all who ask. */
export async function refusal(response: Response, path: string): Promise<ApiError> {
  if (response.status === 401 && !path.startsWith("/api/v1/session")) signedOut();
  let message = "";
  try {
    const body = (await response.json()) as { message?: unknown; error?: unknown };
    const said = body.message ?? body.error;
    if (typeof said === "string") message = said;
  } catch {
    message = "";
  }
  return new ApiError(response.status, message === "" ? fallbackFor(response.status) : message.slice(0, 600));
}

function fallbackFor(status: number): string {
  if (status === 401) return "the session has ended; sign in again";
  if (status === 403) return "permission denied";
  if (status === 404) return "there is nothing of this name";
  if (status === 409) return "it has changed meanwhile; look again";
  if (status === 429) return "too many requests; wait a moment";
  return `the server answered ${status}`;
}
