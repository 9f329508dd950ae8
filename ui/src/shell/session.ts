// Who is signed in. The token itself is in a cookie that no script can read.

import * as calls from "../api/calls";
import { onSignedOut } from "../api/request";
import type { UserInfo } from "../api/shapes";
import { asApiError, Source } from "../live/source";

export type Session = { state: "asking" } | { state: "out" } | { state: "in"; user: UserInfo } | { state: "unreachable"; message: string };

export const session = new Source<Session>({ state: "asking" });

/** Asks the server; a page that is opened anew keeps its session by its cookie. */
export async function askWho(): Promise<void> {
  try {
    const user = await calls.userInfo();
    session.write(user.loggedIn === true ? { state: "in", user } : { state: "out" });
  } catch (cause) {
    const error = asApiError(cause);
    session.write(error.status === 401 || error.status === 403 ? { state: "out" } : { state: "unreachable", message: error.message });
  }
}

export async function leave(): Promise<void> {
  await calls.signOut().catch(() => undefined);
  session.write({ state: "out" });
}

onSignedOut(() => {
  if (session.read().state === "in") session.write({ state: "out" });
});
