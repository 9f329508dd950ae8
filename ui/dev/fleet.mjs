// A real `baton up` with a fleet that can be held and let go: what the tests of `e2e/real` and the pictures of `docs/img` are about.
// Whoever starts it may hand its folder on: all there is to know of it stands there.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { startReceiver } from "./receiver.mjs";
import { applications, deployment, given, sets } from "./estate.mjs";

const repository = "https://git.example.com/fleet/config.git";
const viewer = "a word for who may only look";
const clusters = ["dev,env=dev", "staging,env=staging", "prod-eu,env=prod", "prod-us,env=prod"];

/** Longest anything of a fleet may take, in milliseconds. */
const bounds = { started: 60_000, program: 200_000, answer: 30_000, state: 180_000, stopped: 20_000 };
const pause = (time) => new Promise((done) => setTimeout(done, time));

/** Starts a fleet and waits until all of it is deployed. `BATON` names the binary; nothing of it is left once `signal` tells to end. */
export async function startFleet({ signal } = {}) {
  const binary = resolve(process.env.BATON ?? "../target/release/baton");
  const home = mkdtempSync(join(tmpdir(), "baton-fleet-"));
  const receiver = await startReceiver();
  const config = join(home, "config");
  mkdirSync(config);
  execFileSync("git", ["init", "-qb", "main", config]);
  const up = spawn(
    binary,
    [
      ["up", "--ephemeral", "--no-demo", "--data-dir", join(home, "up"), "--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0", "--repo", `${repository}=${config}`],
      clusters.flatMap((cluster) => ["--cluster", cluster]),
      ["--hooks-allow-http", "--hooks-allow", "127.0.0.1"],
    ].flat(),
    { env: { ...process.env, HOME: home }, stdio: ["ignore", "pipe", "inherit"], signal },
  );
  const isOver = () => up.pid === undefined || up.exitCode !== null || up.signalCode !== null;
  const stop = async () => {
    const ended = isOver() ? undefined : new Promise((done) => up.once("exit", done));
    up.kill();
    if (ended !== undefined) {
      const late = setTimeout(() => up.kill("SIGKILL"), bounds.stopped);
      await ended;
      clearTimeout(late);
    }
    receiver.stop();
    rmSync(home, { recursive: true, force: true });
  };
  // It also ends when the signal tells so, which is no error of its own.
  up.on("error", () => {});
  try {
    const url = await addressIn(up);
    writeFileSync(join(home, "fleet.json"), JSON.stringify({ binary, url, receiver: receiver.url }));
    const fleet = new Fleet(home, signal);
    await build(fleet);
    return Object.assign(fleet, { stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

function addressIn(up) {
  return new Promise((found, failed) => {
    let told = "";
    up.stdout.on("data", (piece) => {
      told += piece;
      const url = /page +(http:\/\/[0-9.:]+)/.exec(told)?.[1];
      if (url !== undefined) found(url);
    });
    up.once("exit", (code, signal) => failed(new Error(`baton up ended with ${code ?? signal}:\n${told}`)));
    up.once("error", failed);
    setTimeout(() => failed(new Error(`baton up did not tell its address in time:\n${told}`)), bounds.started).unref();
  });
}

export class Fleet {
  #tokens = new Map();
  #signal;

  constructor(home, signal) {
    this.#signal = signal;
    const { binary, url, receiver } = JSON.parse(readFileSync(join(home, "fleet.json"), "utf8"));
    Object.assign(this, { home, binary, url, receiver, repository });
    this.admin = { user: "admin", password: readFileSync(join(home, "up/admin-password"), "utf8").trim() };
    this.viewer = { user: "viewer", password: viewer };
  }

  #run(program, args, input) {
    const env = { ...process.env, HOME: this.home, KUBECONFIG: join(this.home, "up/kubeconfig") };
    const { status, stdout, stderr, error } = spawnSync(program, args, { env, input, encoding: "utf8", timeout: bounds.program });
    if (error !== undefined) throw error;
    return { status, stdout: stdout.trim(), stderr: stderr.trim(), line: `${program} ${args.join(" ")}` };
  }

  #must(program, args, input) {
    const { status, stdout, stderr, line } = this.#run(program, args, input);
    if (status !== 0) throw new Error(`${line}: ${status}\n${stdout}\n${stderr}`);
    return stdout;
  }

  /** kubectl at the control plane. */
  control(...args) {
    return this.#must("kubectl", args);
  }

  /** kubectl at a member. */
  member(cluster, ...args) {
    return this.#must("kubectl", ["--kubeconfig", join(this.home, `up/clusters/${cluster}.kubeconfig`), ...args]);
  }

  apply(...objects) {
    return this.#must("kubectl", ["apply", "-f", "-"], objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  }

  baton(...args) {
    return this.#must(this.binary, args);
  }

  /** Whether kubectl itself says that there is no such object; any other failure is one. */
  isGone(cluster, kind, name, namespace) {
    const where = cluster === undefined ? [] : ["--kubeconfig", join(this.home, `up/clusters/${cluster}.kubeconfig`)];
    const { status, stderr, line } = this.#run("kubectl", [...where, "get", kind, name, ...(namespace === undefined ? [] : ["-n", namespace])]);
    if (status === 0) return false;
    if (/^Error from server \(NotFound\)/.test(stderr)) return true;
    throw new Error(`${line}: ${status}\n${stderr}`);
  }

  /** Waits until something holds, and gives what it gave; when time is up, tells how the fleet stands. */
  async until(what, holds) {
    for (const end = Date.now() + bounds.state; ; await pause(250)) {
      this.#signal?.throwIfAborted();
      const found = await holds();
      if (found) return found;
      if (Date.now() > end) throw new Error(`waited ${bounds.state / 1000} s in vain until ${what}\n${await this.#told()}`);
    }
  }

  /** For people who look for what went wrong. */
  async #told() {
    const sets = await Promise.all(["web", "delivery"].map((set) => this.call(this.admin, "GET", `/api/v1/applicationsets/${set}/rollout`)));
    const inbox = await this.call(this.admin, "GET", "/api/v1/approvals");
    const short = ({ name, state, reason, run, revision, blockers }) => JSON.stringify({ name, state, reason, run, revision, blockers: blockers?.map((one) => one.message) });
    return [
      this.control("get", "applications", "-A"),
      ...sets.map(({ body }) => short(body)),
      ...inbox.body.items.map((item) => JSON.stringify({ kind: item.kind, object: item.object.name, why: item.why, resources: item.resources.length })),
    ].join("\n");
  }

  // === git ===

  write(path, text) {
    const file = join(this.home, "config", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  remove(path) {
    const file = join(this.home, "config", path);
    if (!existsSync(file)) throw new Error(`${path} is not in the repository`);
    rmSync(file);
  }

  /** Commits what was written, and tells the revision. */
  commit(message) {
    const git = (...args) => this.#must("git", ["-C", join(this.home, "config"), "-c", "user.name=Mara", "-c", "user.email=mara@example.com", ...args]);
    git("add", "-A");
    git("commit", "-qm", message);
    return git("rev-parse", "HEAD");
  }

  /** Has everybody look at git at once instead of in a few minutes. */
  look() {
    this.control("annotate", "applicationsets,applications", "-n", "argocd", "--all", "argocd.argoproj.io/refresh=normal", "--overwrite");
    this.control("annotate", "applicationsets", "-n", "argocd", "--all", "argocd.argoproj.io/application-set-refresh=true", "--overwrite");
  }

  /** Has both sets bring a commit, and waits until they are through; a person ends the wait of the first phase. */
  async bring(revision) {
    this.look();
    await this.until("the first phase waits", async () => {
      const delivery = await this.rollout("delivery");
      return isOf(delivery, revision) && delivery.lanes[0].gates.some((gate) => gate.kind === "wait" && gate.state === "Running");
    });
    this.baton("appset", "advance", "delivery");
    for (const set of ["web", "delivery"]) {
      await this.until(`${set} is through with ${revision}`, async () => {
        const rollout = await this.rollout(set);
        return isOf(rollout, revision) && rollout.state === "Complete";
      });
    }
  }

  /** Waits until the controller has looked at a set from now on: it takes the request away when it has. */
  async hasLooked(set) {
    this.control("annotate", "applicationset", set, "-n", "argocd", "argocd.argoproj.io/application-set-refresh=true", "--overwrite");
    await this.until(`the controller has looked at ${set}`, () => this.#annotation("applicationset", set, "argocd.argoproj.io/application-set-refresh") === "");
  }

  #annotation(kind, name, key) {
    return this.control("get", kind, name, "-n", "argocd", "-o", `jsonpath={.metadata.annotations['${key.replaceAll(".", "\\.")}']}`);
  }

  // === what can be held ===

  /** Pods of a workload that do not run yet do not get ready until it is let go. */
  hold(cluster, name) {
    this.member(cluster, "annotate", "deployment", name, "-n", name, "sim.baton.dev/stuck=true", "--overwrite");
  }

  letGo(cluster, name) {
    this.member(cluster, "annotate", "deployment", name, "-n", name, "sim.baton.dev/stuck-");
  }

  /** Which version of a workload is asked for in a cluster. */
  image(cluster, name) {
    return this.member(cluster, "get", "deployment", name, "-n", name, "-o", "jsonpath={.spec.template.spec.containers[0].image}");
  }

  /** Health and sync of an Application, as `Healthy/Synced`. */
  standing(name) {
    return this.control("get", "application", name, "-n", "argocd", "-o", "jsonpath={.status.health.status}/{.status.sync.status}");
  }

  /** What the receiver of hooks and checks answers at a path from now on. */
  async answers(path, status) {
    const answer = await fetch(`${this.receiver}/answers`, { method: "PUT", body: JSON.stringify({ path, status }) });
    if (!answer.ok) throw new Error(`the receiver: ${answer.status}`);
  }

  // === the API ===

  /** A request with a person's own token. */
  async call(who, method, path, body) {
    if (!this.#tokens.has(who.user)) {
      const session = await this.#send(undefined, "POST", "/api/v1/session", { username: who.user, password: who.password });
      if (session.status !== 200) throw new Error(`${who.user} cannot sign in: ${session.status}`);
      this.#tokens.set(who.user, session.body.token);
    }
    return await this.#send(this.#tokens.get(who.user), method, path, body);
  }

  async #send(token, method, path, body) {
    const headers = { "Content-Type": "application/json", ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(this.url + path, { method, headers, signal: AbortSignal.timeout(bounds.answer), ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** The board of a set; nothing while the server has not heard of the set. */
  async rollout(set) {
    const { status, body } = await this.call(this.admin, "GET", `/api/v1/applicationsets/${set}/rollout`);
    if (status === 403) return undefined;
    if (status !== 200) throw new Error(`the board of ${set}: ${status} ${JSON.stringify(body)}`);
    return body;
  }
}

const isOf = (rollout, revision) => rollout?.revision !== undefined && revision.startsWith(rollout.revision);

/** Everything is written, deployed and healthy; a viewer has a password. */
async function build(fleet) {
  fleet.apply(...given);
  for (const name of ["web", "delivery"]) fleet.write(`${name}/deployment.yaml`, deployment(name, "1.0"));
  for (const { name, files } of applications) for (const [file, text] of files) fleet.write(`${name}/${file}`, text);
  const revision = fleet.commit("Version 1.0");
  fleet.apply(...sets(fleet), ...applications.map((one) => one.object(repository)));
  for (const { name } of applications) fleet.baton("app", "sync", name, "--timeout", "180s");
  await fleet.bring(revision);
  const every = 2 * clusters.length + applications.length;
  await fleet.until("everything is deployed", () => {
    const told = fleet.control("get", "applications", "-n", "argocd", "-o", "jsonpath={range .items[*]}{.status.health.status}/{.status.sync.status} {end}").trim().split(" ");
    return told.length === every && told.every((one) => one === "Healthy/Synced");
  });
  const answer = await fleet.call(fleet.admin, "PUT", "/api/v1/account/password", { name: "viewer", currentPassword: fleet.admin.password, newPassword: viewer });
  if (answer.status !== 200) throw new Error(`the viewer gets no password: ${JSON.stringify(answer)}`);
}
