// A mock of Baton's server for work on these pages and for their tests. It speaks the API over real HTTP, with the real headers, and
// serves `dist` as the binary does. It proves nothing about Baton itself.

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { act, decide, judge } from "./deeds.mjs";
import * as told from "./told.mjs";
import { World } from "./world.mjs";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const policy = "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Accounts: their password is their name. `empty` sees no objects, for `broken` every list fails, `viewer` may only look. */
const users = new Set(["admin", "viewer", "empty", "broken", "stranger"]);

/** Starts a server on the loopback; port 0 takes any that is free. */
export function startMock({ port = 0, tick = 500 } = {}) {
  const world = new World();
  const timer = setInterval(() => world.tick(), tick);
  const server = createServer((request, response) => {
    serve(world, request, response).catch((error) => fail(response, 500, 13, String(error)));
  });
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve({
        url: `http://127.0.0.1:${address.port}`,
        world,
        stop: () => {
          clearInterval(timer);
          server.closeAllConnections();
          return new Promise((done) => server.close(done));
        },
      });
    });
  });
}

async function serve(world, request, response) {
  const url = new URL(request.url, "http://mock");
  response.setHeader("Content-Security-Policy", policy);
  response.setHeader("X-Content-Type-Options", "nosniff");
  if (!url.pathname.startsWith("/api/")) return file(url.pathname, response);
  const user = /argocd\.token=([a-z]+)/.exec(request.headers.cookie ?? "")?.[1];
  if (request.method !== "GET" && request.headers["content-type"] !== "application/json") return fail(response, 415, 3, "Invalid content type");
  const body = request.method === "POST" ? JSON.parse(await text(request)) : undefined;
  const parts = url.pathname.slice("/api/".length).split("/").map(decodeURIComponent);
  if (parts[1] === "session") return session(parts, request, response, body, user);
  if (parts[1] === "settings") return send(response, user === undefined ? {} : { controllerNamespace: "argocd" });
  if (user === undefined) return fail(response, 401, 16, "no session information");
  if (parts[0] === "version") return send(response, { Version: "v3.6.0", BuildDate: "2026-11-01T00:00:00Z", ExtraBuildInfo: "baton 0.9.0", Platform: "linux/amd64" });
  if (user === "broken" && request.method === "GET") return fail(response, 500, 13, "the cache of the control plane is not filled yet");
  return api(world, user, request, response, url, parts.slice(1), body);
}

function session(parts, request, response, body, user) {
  if (parts[2] === "userinfo") return send(response, user === undefined ? { loggedIn: false } : { loggedIn: true, username: user, iss: "argocd", groups: user === "admin" ? ["platform", "release-managers"] : [] });
  if (request.method === "DELETE") {
    response.setHeader("Set-Cookie", "argocd.token=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    return send(response, {});
  }
  if (!users.has(body.username) || body.password !== body.username) return fail(response, 401, 16, "Invalid username or password");
  response.setHeader("Set-Cookie", `argocd.token=${body.username}; Path=/; HttpOnly; SameSite=Strict`);
  return send(response, { token: body.username });
}

function api(world, user, request, response, url, [kind, name, ...rest], body) {
  const sees = user !== "empty" && user !== "stranger";
  const sets = sees ? [...world.sets.values()] : [];
  const set = sees ? world.sets.get(name) : undefined;
  switch (kind) {
    case "rollouts":
      return send(response, { items: sets.map(told.summary) });
    case "applicationsets":
      if (set === undefined) return denied(response);
      if (rest[0] === "rollout") return send(response, told.rollout(set, user));
      if (rest[0] === "plan") return send(response, told.plan(set));
      if (user === "viewer") return denied(response);
      if (body.dryRun === true) return answer(response, judge(world, set, body), () => told.preview(set, body));
      return answer(response, act(world, set, user, body), () => told.rollout(set, user));
    case "stream":
      return stream(world, user, sets, request, response, url, name);
    case "approvals":
      if (request.method === "GET") return send(response, { items: sees ? approvalsFor(world, user) : [] });
      return user === "viewer" ? denied(response) : answer(response, decide(world, user, name, body), (result) => result);
    case "audit":
      return user === "stranger" ? denied(response) : send(response, { items: sees ? world.audit.slice(0, Number(url.searchParams.get("limit") ?? 100)) : [] });
    case "account":
      return send(response, { value: user === "admin" ? "yes" : "no" });
    case "applications":
      return applications(world, user, sets, request, response, url, name, rest, body);
    case "clusters":
      return user === "viewer" ? denied(response) : send(response, { items: sees ? ["in-cluster", "eu-west-1", "us-east-3", "ap-south-5"].map((each, index) => ({ name: each, server: `https://${each}.example.com`, serverVersion: "1.34", connectionState: { status: index === 2 ? "Failed" : "Successful" }, info: { applicationsCount: 12 + index * 31 } })) : null });
    case "projects":
      return send(response, { items: sees ? ["default", "payments", "platform", "storefront"].map((each) => ({ metadata: { name: each }, spec: { description: each === "platform" ? "What everything else stands on" : "" } })) : null });
    case "repositories":
      return send(response, { items: sees ? ["web", "edge", "checkout"].map((each) => ({ repo: `https://git.example.com/fleet/${each}.git`, type: "git", connectionState: { status: "Successful" } })) : null });
    default:
      return fail(response, 404, 5, "Not Found");
  }
}

function approvalsFor(world, user) {
  return world.approvals.map((approval) => (user === "viewer" ? { ...approval, allowed: false, whyNot: `needs applications, action/argoproj.io/${approval.object.kind}/approve-deletion, ${approval.project}/${approval.object.name}` } : { ...approval, allowed: true }));
}

function find(sets, name) {
  for (const set of sets) for (const lane of set.lanes) for (const target of lane.targets) if (target.name === name) return [set, target];
  return undefined;
}

function applications(world, user, sets, request, response, url, name, rest, body) {
  if (name === undefined) return send(response, { metadata: {}, items: sets.flatMap((set) => set.lanes.flatMap((lane) => lane.targets.map((target) => told.application(set, target)))) });
  const found = find(sets, name);
  if (found === undefined) return denied(response);
  const [set, target] = found;
  if (rest[0] === undefined) return send(response, told.applicationInFull(set, target, world));
  if (rest[0] === "resource-tree") return send(response, told.tree(set, target, world));
  if (rest[0] === "managed-resources") return send(response, told.managedResources(set, target, world, url.searchParams));
  if (rest[0] === "events") return send(response, told.events(target, world));
  if (user === "viewer") return denied(response);
  if (rest.join("/") === "resource/actions/v2") {
    const approval = world.approvals.find((each) => each.object.name === name);
    const resource = approval?.resources.find((each) => each.kind === body.kind && each.name === body.resourceName);
    if (resource === undefined) return fail(response, 400, 9, "nothing of this name waits for approval");
    resource.approved = true;
    world.note(user, "approve-deletion", `${body.kind} ${body.resourceName} of Application argocd/${name}`, "done", "");
    if (approval.resources.every((each) => each.approved)) world.approvals = world.approvals.filter((each) => each !== approval);
    world.approvalsChanged();
    world.tell({ kind: "rollout", set, changed: new Set([target]) });
    return send(response, {});
  }
  if (rest[0] === "sync") {
    world.note(user, "sync", `Application argocd/${name}`, "done", "");
    return send(response, told.applicationInFull(set, target, world));
  }
  return send(response, {});
}

function stream(world, user, sets, request, response, url, what) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const tell = (result) => response.write(`data: ${JSON.stringify({ result })}\n\n`);
  const wanted = url.searchParams.get("name");
  const brief = url.searchParams.get("summary") === "true";
  const added = (set) => ({ type: "ADDED", rollout: brief ? told.summary(set) : told.rollout(set, user) });
  const modified = (set, changed) => (brief ? { type: "MODIFIED", rollout: told.summary(set) } : told.modified(set, user, changed));
  const mine = sets.filter((set) => what === "approvals" || wanted === null || set.name === wanted || what === "applications");
  if (what === "rollouts") for (const set of mine) tell(added(set));
  if (what === "approvals") tell({ items: sets.length === 0 ? [] : approvalsFor(world, user) });
  const waiting = new Map();
  const listen = (event) => {
    if (event.kind === "approvals" && what === "approvals") return tell({ items: sets.length === 0 ? [] : approvalsFor(world, user) });
    if (event.kind !== "rollout" || !mine.includes(event.set)) return undefined;
    const changed = waiting.get(event.set) ?? new Set();
    for (const each of event.changed) changed.add(each);
    waiting.set(event.set, changed);
    return undefined;
  };
  // At most one event a second for each set.
  const flush = setInterval(() => {
    for (const [set, changed] of waiting) {
      if (what === "rollouts") tell(set.restarted === true ? added(set) : modified(set, changed));
      if (what === "applications") for (const target of changed) if (wanted === null || target.name === wanted) tell({ type: "MODIFIED", application: wanted === null ? told.application(set, target) : told.applicationInFull(set, target, world) });
      if (what === "rollouts" && set.restarted === true) setTimeout(() => (set.restarted = false), 900);
    }
    waiting.clear();
  }, 1000);
  const alive = setInterval(() => response.write(":\n\n"), 15_000);
  response.write(":\n\n");
  world.listeners.add(listen);
  request.on("close", () => {
    clearInterval(flush);
    clearInterval(alive);
    world.listeners.delete(listen);
  });
}

function answer(response, result, show) {
  return typeof result === "object" && "refused" in result ? fail(response, result.status, 9, result.refused) : send(response, show(result));
}

const denied = (response) => fail(response, 403, 7, "permission denied");

function fail(response, status, code, message) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: message, code, message }));
}

function send(response, value) {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

function file(path, response) {
  const wanted = join(dist, normalize(path));
  const found = wanted.startsWith(dist) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(dist, "index.html");
  if (!existsSync(found)) return fail(response, 404, 5, "run npm run build first");
  response.writeHead(200, { "Content-Type": types[extname(found)] ?? "application/octet-stream" });
  createReadStream(found).pipe(response);
  return undefined;
}

async function text(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { url } = await startMock({ port: Number(process.env.PORT ?? 23100), tick: Number(process.env.TICK ?? 500) });
  console.log(`mock at ${url}; sign in as admin, viewer, empty, stranger or broken, with the name as the password`);
}
