// The program under test, a server of it on a free port, a browser, the folder for screenshots, and the accessibility check.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** Folder of the screenshots. */
export const shots = process.env.PACE_SCREENSHOTS ?? join(root, "target/web");
mkdirSync(shots, { recursive: true });

/** Chromium: the one named by `CHROMIUM`, or Debian's. */
export function startBrowser() {
  // Chromium's sandbox does not work for the root user, as in a container.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

/** The program under test: `PACE_BIN`, or the debug or release build. */
export function program() {
  if (process.env.PACE_BIN) return process.env.PACE_BIN;
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  const found = ["debug", "release"].map((profile) => join(target, profile, "pace")).find(existsSync);
  if (!found) throw new Error("build the program first: cargo build -p pace");
  return found;
}

/** An example, built next to the program. */
export function example(name) {
  const found = join(dirname(program()), "examples", name);
  if (!existsSync(found)) throw new Error(`build the example first: cargo build --example ${name}`);
  return found;
}

/** The source of a file below `/assets/`; null for a generated one. */
export function assetFile(path) {
  const game = /^games\/(.*)\.js$/.exec(path)?.[1];
  const folders = game ? [] : ["crates/pace-play/assets", "crates/pace-report/assets"];
  const files = [...folders.map((folder) => join(root, folder, path)), game && join(root, "crates/pace-games/src", game.replaceAll("-", "_"), "page.js")];
  return files.find((file) => file && existsSync(file)) ?? null;
}

/** Starts `pace play`, or an example that serves the same page, and waits for its address. */
export async function startServer(...args) {
  const own = args[0]?.program;
  const child = spawn(own ?? program(), own ? [] : ["play", "--port", "0", ...args], { stdio: ["ignore", "pipe", "pipe"] });
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

/** Runs another command of the program and returns its output. */
export async function run(...args) {
  const child = spawn(program(), args, { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (data) => { out += data; });
  const code = await new Promise((done) => child.on("exit", done));
  if (code !== 0) throw new Error(`pace ${args.join(" ")} ended with ${code}`);
  return out;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Findings of axe-core about the page, one line each: the rule, the element and the reason. */
export async function findings(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}: ${node.failureSummary.replace(/\s+/g, " ")}`));
  });
}
