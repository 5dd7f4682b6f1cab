// What the tests share: the program under test, a server of it on a free port, a browser, and the folder for screenshots.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** Where screenshots are left for people to look at. */
export const shots = process.env.PACE_SCREENSHOTS ?? join(root, "target/web");
mkdirSync(shots, { recursive: true });

/** Chromium: the one named by `CHROMIUM`, or Debian's. */
export function startBrowser() {
  // A browser of a root user, as in a container, has no sandbox to run in.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

/** The program under test: `PACE_BIN`, or what cargo has built last. */
export function program() {
  if (process.env.PACE_BIN) return process.env.PACE_BIN;
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  const found = ["debug", "release"].map((profile) => join(target, profile, "pace")).find(existsSync);
  if (!found) throw new Error("build the program first: cargo build -p pace");
  return found;
}

/** Starts `pace play` and waits for its address. */
export async function startServer(...args) {
  const child = spawn(program(), ["play", "--port", "0", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (data) => { said += data; });
  const address = await new Promise((found, failed) => {
    child.stdout.on("data", (data) => found(String(data).trim()));
    child.on("exit", (code) => failed(new Error(`pace play ended with ${code}: ${said}`)));
  });
  return {
    address: new URL(address).origin,
    page: address,
    log: () => said,
    async stop(signal = "SIGTERM") {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((done) => child.on("exit", done));
      child.kill(signal);
      await ended;
    },
  };
}

/** Runs another command of the program and gives what it prints. */
export async function run(...args) {
  const child = spawn(program(), args, { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (data) => { out += data; });
  const code = await new Promise((done) => child.on("exit", done));
  if (code !== 0) throw new Error(`pace ${args.join(" ")} ended with ${code}`);
  return out;
}
