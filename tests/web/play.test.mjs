// The play pages in a headless Chromium, used as a person would use them. Screenshots are written to `target/web`.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { assetFile, example, findings, run, shots, startBrowser, startServer } from "./program.mjs";

let browser;
let server;

before(async () => {
  browser = await startBrowser();
  server = await startServer();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const SMALL_PHONE = { width: 390, height: 664 };

/** Seed of every session, so that tests are repeatable. */
const SEED = 1;

/** Opens a page. Errors and warnings of its console fail the test; the last messages of the server are fields of the view. */

async function open(address, { viewport = DESKTOP, ...more } = {}) {
  const context = await browser.newContext({ viewport, ...more });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  const view = { page, context, complaints, frame: null, welcome: null, seq: 0, stages: [], requests: [] };
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => {
    const message = JSON.parse(payload);
    if (message.type === "welcome") view.welcome = message;
    if (message.frames) {
      view.frame = message.frames.at(-1);
      view.stages.push(...message.frames.map((frame) => frame.scene.stage));
      view.seq = message.seq;
    }
    if (message.type === "over") view.over = message;
  }));
  // Every session gets the same seed.
  await page.route("**/api/sessions", (route) => {
    const asked = route.request().postDataJSON();
    view.requests.push(asked);
    return asked ? route.continue({ postData: JSON.stringify({ seed: SEED, ...asked }) }) : route.continue();
  });
  // For work on the pages: the files of the source tree instead of those of the binary.
  if (process.env.PACE_ASSETS) {
    await page.route("**/assets/**", (route) => {
      const path = assetFile(new URL(route.request().url()).pathname.slice("/assets/".length));
      return path ? route.fulfill({ path }) : route.continue();
    });
  }
  await page.goto(address);
  return view;
}

async function close(view) {
  assert.deepEqual(view.complaints, [], "no errors and warnings in the console");
  await view.context.close();
}

async function shoot(view, name) {
  await view.page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

async function fitsTheWidth(view) {
  const [content, screen] = await view.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= screen, `the page is as wide as the screen: ${content} of ${screen}`);
}

/** Checks that axe-core has no finding, in both colour schemes. */
async function isAccessible(view, name) {
  for (const colorScheme of ["dark", "light"]) {
    // Without motion, no colour is measured during a transition.
    await view.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    assert.deepEqual(await findings(view.page), [], `${name}, ${colorScheme}`);
    if (colorScheme === "dark") await shoot(view, `${name}-dark`);
  }
}

/** Starts a session from the start page. */
async function startSession(view, { game, agent, episodes, beliefs = "after", slot, speed }) {
  const { page } = view;
  await page.getByRole("radio", { name: game }).check({ force: true });
  await page.getByLabel("Agent", { exact: true }).selectOption(agent);
  if (slot !== undefined) await page.getByLabel("Your seat").selectOption(String(slot));
  await page.getByLabel("Length").selectOption(String(episodes));
  await page.getByLabel("The agent’s beliefs").selectOption(beliefs);
  await page.getByRole("button", { name: "Start" }).click();
  await page.locator(".scene svg").waitFor();
  if (speed !== undefined) await page.getByLabel("Speed", { exact: true }).selectOption(speed);
}

/** Waits until a condition holds; `what` names it in the error. */
async function until(view, holds, what) {
  for (let wait = 0; wait < 1500; wait += 1) {
    if (holds()) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`timed out while waiting for ${what}`);
}

/** Presses a key and waits for the step. The page queues one key press ahead, so the next one must wait. */
async function step(view, key) {
  const before = view.seq;
  for (let attempt = 0; attempt < 40 && view.seq === before && !view.over; attempt += 1) {
    await view.page.keyboard.press(key);
    for (let wait = 0; wait < 25 && view.seq === before && !view.over; wait += 1) await new Promise((done) => setTimeout(done, 10));
  }
  assert.ok(view.seq > before || view.over, `the server took ${key}`);
}

/** Checks that text and labels do not address a spectator as the player. */
async function isAboutThePlayer({ page }) {
  const names = await page.evaluate(() => [...document.querySelectorAll("[aria-label]")].map((node) => node.getAttribute("aria-label")).join("\n"));
  assert.doesNotMatch(`${await page.locator("main").innerText()}\n${names}`, /\byou(r|rs)?\b/i, "a spectator is not addressed as the player");
}

/** Checks that ten replays in one tab leave only one key listener. */
async function hasOneKeyListener(view) {
  const { page, context } = view;
  const link = decodeURIComponent(new URL(page.url()).hash.slice(1));
  for (let count = 1; count <= 10; count += 1) {
    // The same link with different escapes.
    const escaped = [...link].map((sign, place) => (place < count ? `%${sign.charCodeAt(0).toString(16)}` : sign)).join("");
    const answer = page.waitForResponse("**/api/replay");
    await page.evaluate((hash) => { location.hash = hash; }, escaped);
    await answer;
    await page.getByLabel("Step of the encounter").waitFor();
  }
  const session = await context.newCDPSession(page);
  const { result } = await session.send("Runtime.evaluate", { expression: "document" });
  const { listeners } = await session.send("DOMDebugger.getEventListeners", { objectId: result.objectId });
  assert.equal(listeners.filter(({ type }) => type === "keydown").length, 1, "earlier replays have removed their listeners");
  await session.detach();
}

test("a Kuhn encounter with a reload, a spectator, beliefs, summary and replay", async () => {
  const view = await open(server.address);
  await view.page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  await shoot(view, "start-desktop");
  await isAccessible(view, "start");
  await startSession(view, { game: "Kuhn Poker", agent: "kuhn-poker.bayes", episodes: 10, beliefs: "live" });
  const { page } = view;
  await page.locator("button[data-action='1']:not([aria-disabled=true])").waitFor();
  await shoot(view, "kuhn-desktop");
  await isAccessible(view, "kuhn");
  assert.equal(await page.locator("button.main").count(), 0, "no action is recommended by its colour");
  await page.locator(".beliefs", { hasText: "Action probabilities" }).getByText("Its last action.").waitFor();

  const link = await page.locator("#watch-link").getAttribute("data-link");
  const spectator = await open(link);
  await spectator.page.locator(".scene svg").waitFor();
  assert.equal(await spectator.page.locator("button[data-action]").count(), 0, "a spectator has nothing to press");
  await isAboutThePlayer(spectator);

  const play = async (n) => {
    for (let hand = 0; hand < n && !view.over; hand += 1) {
      // By mouse and by key in turn; the buttons are enabled only at the player's turn.
      const button = page.locator("button[data-action='1']:not([aria-disabled=true])");
      await Promise.race([button.waitFor({ timeout: 20000 }), page.getByRole("heading", { name: "The encounter is over" }).waitFor({ timeout: 20000 })]).catch(() => {});
      if (await page.getByRole("heading", { name: "The encounter is over" }).isVisible()) return;
      const seq = view.seq;
      if (hand % 2 === 0) await button.click();
      else await page.keyboard.press("c");
      await until(view, () => view.seq > seq, "an answer");
      // Space skips the delay after a hand.
      await page.keyboard.press("Space");
    }
  };
  await play(4);
  await page.locator("button[data-action='1']:not([aria-disabled=true])").waitFor();
  const [mine, theirs] = [view, spectator].map((one) => one.frame);
  await until(spectator, () => JSON.stringify(spectator.frame) === JSON.stringify(view.frame), "the spectator to catch up");
  assert.deepEqual(theirs?.scene && spectator.frame.scene, mine && view.frame.scene, "the spectator sees the same");
  const words = await page.locator(".status-text").textContent();
  await spectator.page.locator(".status-text", { hasText: words.replace("Your turn", "The player’s turn") }).waitFor();
  await isAboutThePlayer(spectator);

  const seq = view.seq;
  const episode = view.frame.episode;
  view.seq = -1;
  await page.reload();
  await page.locator("button[data-action='1']:not([aria-disabled=true])").waitFor();
  assert.equal(view.seq, seq, "a reload continues at the same action");
  assert.equal(view.frame.episode, episode);
  await play(40);
  await page.getByRole("heading", { name: "The encounter is over" }).waitFor();
  await spectator.page.getByRole("heading", { name: "The encounter is over" }).waitFor();
  await isAboutThePlayer(spectator);
  await shoot(view, "kuhn-summary-desktop");
  await isAccessible(view, "kuhn-summary");
  assert.match(await page.locator(".card").first().textContent(), /Oracle, per hand/);

  await page.locator("#replay-link").click();
  await page.getByRole("heading", { name: /^Replay/ }).waitFor();
  const range = page.getByLabel("Step of the encounter");
  const last = Number(await range.getAttribute("max"));
  assert.ok(last > 20, "all steps are there");
  await range.fill(String(Math.floor(last / 2)));
  await shoot(view, "kuhn-replay-desktop");
  await isAccessible(view, "kuhn-replay");
  const address = page.url();
  await hasOneKeyListener(view);
  // Parts that the player did not see are dim, and absent with the box checked.
  const unseen = page.locator(".stage .unseen");
  await page.getByLabel("Step of the encounter").fill("0");
  assert.ok((await unseen.count()) > 0, "the agent’s card is dim");
  await page.getByLabel("only what you saw").check();
  assert.equal(await unseen.count(), 0);
  await page.locator("h1").first().click();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator(".stage").getAttribute("data-step"), "1", "keys step with any focus");
  await close(spectator);
  await close(view);

  // The link works in another browser.
  const other = await open(address);
  await other.page.getByRole("heading", { name: /^Replay/ }).waitFor();
  await close(other);
});

// The next key of a cook that brings its ingredient to the middle, waits at the bell, and serves the ordered dish.
const KEYS = { left: "ArrowLeft", right: "ArrowRight", up: "ArrowUp", down: "ArrowDown" };
const WAYS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };

function cookKey({ frame, welcome }) {
  const { scene } = frame;
  const { tiles } = welcome.setting;
  const you = scene.cooks[1];
  const { left, right } = welcome.part.spec.recipe;
  const things = scene.things;
  const plate = things.find((thing) => thing.kind === "Plate");
  const dish = things.filter((thing) => thing.is_plated).map((thing) => thing.kind);
  const isDish = dish.length === 2 && dish.includes(left) && dish.includes(right);
  const own = things.find((thing) => thing.id === `lower-${right.toLowerCase()}`);
  const isFree = (x, y) => !things.some((thing) => thing.x === x && thing.y === y);
  let goals = [];
  if (you.held === "plate") goals = [[6, 3]];
  else if (you.held) goals = [9, 10, 11, 8, 7].filter((y) => isFree(3, y)).map((y) => [3, y]);
  else if (plate && isDish && plate.holder === null) goals = [[plate.x, plate.y]];
  else if (own && own.holder === null && own.x === 6) goals = [[own.x, own.y]];
  else if (you.y !== 3) goals = [[6, 3]];
  else return ".";
  const key = (x, y) => `${x},${y}`;
  const seen = new Map([[key(you.x, you.y), null]]);
  const queue = [[you.x, you.y]];
  while (queue.length > 0) {
    const [x, y] = queue.shift();
    for (const [name, [dx, dy]] of Object.entries(WAYS)) {
      const [nx, ny] = [x + dx, y + dy];
      const goal = goals.find(([gx, gy]) => gx === nx && gy === ny);
      if (goal) {
        if (x === you.x && y === you.y) {
          const isBell = nx === 6 && ny === 3 && you.held !== "plate";
          return isBell ? "." : you.facing === name ? "Space" : KEYS[name];
        }
        let at = key(x, y);
        while (seen.get(seen.get(at)?.from) !== undefined && seen.get(at).from !== key(you.x, you.y)) at = seen.get(at).from;
        return KEYS[seen.get(at).way];
      }
      if (tiles[ny]?.[nx] === "." && !seen.has(key(nx, ny))) {
        seen.set(key(nx, ny), { from: key(x, y), way: name });
        queue.push([nx, ny]);
      }
    }
  }
  return ".";
}

test("a dish is served in Overcooked with the Bayes agent", async () => {
  const view = await open(server.address);
  await startSession(view, { game: "PO-Overcooked", agent: "overcooked.bayes", episodes: 5, beliefs: "live", speed: "0" });
  await shoot(view, "overcooked-desktop");
  await isAccessible(view, "overcooked");
  await view.page.locator(".beliefs", { hasText: "Action probabilities" }).getByText("Its next action.").waitFor();
  let isShot = false;
  while (!view.over) {
    await step(view, cookKey(view));
    if (!isShot && view.frame.episode === 2 && view.frame.n_moves === 12) {
      isShot = true;
      await shoot(view, "overcooked-later-desktop");
    }
  }
  await view.page.getByRole("heading", { name: "The encounter is over" }).waitFor();
  await shoot(view, "overcooked-summary-desktop");
  await isAccessible(view, "overcooked-summary");
  const served = view.over.summary.episodes.filter((episode) => episode.ending === "succeeded").length;
  assert.ok(served >= 1, `${served} dishes were served`);
  await close(view);
});

// The next key of a predator that observes prey A from a tower, predicts its path, waits there, and chases it.
function chaseKey({ frame, welcome }, seen) {
  const { scene } = frame;
  const { setting, slot } = welcome;
  const distance = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);
  const nearest = (places, place) => [...places].sort((one, other) => distance(one, place) - distance(other, place))[0];
  const own = scene.agents[slot + 1].position;
  const prey = scene.agents[setting.n_predators]?.position;
  if (prey) seen.push(prey);
  const off = (path) => seen.reduce((sum, place) => sum + distance(nearest(path, place), place), 0);
  const path = [...setting.paths].sort((one, other) => off(one) - off(other))[0];
  const goal = seen.length < 6 ? nearest(setting.towers, own) : prey && distance(prey, own) < 0.5 ? prey : path[1];
  const [x, y] = [goal[0] - own[0], goal[1] - own[1]];
  if (Math.hypot(x, y) < 0.06) return "x";
  return Math.abs(x) > Math.abs(y) ? (x > 0 ? "ArrowRight" : "ArrowLeft") : y > 0 ? "ArrowUp" : "ArrowDown";
}

test("a chase in Predator-Prey-W, by key press and at a fixed speed", async () => {
  const view = await open(server.address);
  await startSession(view, { game: "Predator-Prey-W", agent: "predator-prey.bayes", episodes: 5, beliefs: "live", slot: 0, speed: "0" });
  let closest = Infinity;
  const seen = [];
  while (view.frame.episode < 4 && closest > 0.15) {
    await step(view, chaseKey(view, seen));
    const own = view.frame.scene.agents[1].position;
    const prey = view.frame.scene.agents[2]?.position;
    if (prey) closest = Math.min(closest, Math.hypot(own[0] - prey[0], own[1] - prey[1]));
    if (view.frame.scene.sees_everything && view.frame.n_moves % 5 === 0) await shoot(view, "predator-prey-tower-desktop");
  }
  assert.ok(closest < 0.3, `the prey was near: ${closest}`);
  // At 8 steps a second, with a key held down.
  await view.page.getByLabel("Speed", { exact: true }).selectOption("8");
  const seq = view.seq;
  await view.page.keyboard.down("ArrowRight");
  const ready = view.page.getByRole("button", { name: "Ready" });
  // If an episode ends meanwhile, the next one waits for the button.
  for (let look = 0; look < 200 && view.seq < seq + 7; look += 1) {
    if (await ready.isVisible()) await ready.click();
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.ok(view.seq >= seq + 7, "steps continue at a fixed speed");
  await view.page.keyboard.up("ArrowRight");
  await shoot(view, "predator-prey-desktop");
  await isAccessible(view, "predator-prey");
  await close(view);
});

test("phone: every page fits the width and works by touch without motion", async () => {
  const phone = { viewport: PHONE, hasTouch: true, isMobile: true, reducedMotion: "reduce" };
  const view = await open(server.address, phone);
  const { page } = view;
  await page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  await fitsTheWidth(view);
  await shoot(view, "start-phone");
  const sessions = [["Kuhn Poker", "kuhn-poker.nash", 10, "kuhn"], ["PO-Overcooked", "overcooked.bayes", 1, "overcooked"], ["Predator-Prey-W", "predator-prey.static", 1, "predator-prey"]];
  for (const [game, agent, episodes, name] of sessions) {
    await startSession(view, { game, agent, episodes, beliefs: "live", speed: name === "kuhn" ? undefined : "0" });
    const action = page.locator("button[data-action='1']:not([aria-disabled=true])");
    await action.waitFor();
    const seq = view.seq;
    await action.tap();
    await until(view, () => view.seq > seq, "a tap to be taken");
    await fitsTheWidth(view);
    await shoot(view, `${name}-phone`);
    await page.getByRole("button", { name: "Leave" }).tap();
    await page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  }
  await close(view);
});

test("everything can be reached by keyboard and has a name", async () => {
  const view = await open(server.address);
  const { page } = view;
  await page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  // From the first radio button to the form and into the game, without a mouse.
  await page.getByRole("radio", { name: "Kuhn Poker" }).focus();
  for (let hop = 0; hop < 12; hop += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.textContent === "Start")) break;
  }
  await page.keyboard.press("Enter");
  await page.locator("button[data-action='0']:not([aria-disabled=true])").waitFor();
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input, a, svg[role=img]")]
    .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length || node.title)).map((node) => node.outerHTML));
  assert.deepEqual(nameless, []);
  assert.ok((await page.locator("#live").textContent()).length > 0, "turns are announced");
  await close(view);
});

test("a study from consent to code, with a reload and a killed server on the way, and an export with every step", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pace-study-"));
  const file = join(folder, "study.toml");
  writeFileSync(file, `
id = "test-study"
title = "A study of card players"
consent = """
You play a card game with a computer program.

Your actions are recorded under the id in your link, and nothing else."""
tutorial = "Play as well as you can."
agents = ["kuhn-poker.bayes", "kuhn-poker.static"]
assignment = "within"
encounters = 2
episodes = 3
seed = 1
completion_code = "CODE-1234"

[[questions]]
id = "trust"
text = "How well did it understand you?"
kind = "scale"
points = 5
low = "not at all"
high = "very well"

[[questions]]
id = "better"
text = "Which round was better?"
kind = "choice"
choices = ["the first", "the second"]

[[questions]]
id = "words"
text = "Anything else?"
kind = "text"
is_optional = true
`);
  let study = await startServer("--study", file);
  const start = async (more) => open(`${study.address}/study?PROLIFIC_PID=p-1&STUDY_ID=s9&SESSION_ID=v1`, more);
  let view = await start();
  await view.page.getByRole("heading", { name: "A study of card players" }).waitFor();
  await shoot(view, "study-consent-desktop");
  await isAccessible(view, "study-consent");
  await view.page.getByRole("button", { name: "I agree" }).click();
  await view.page.getByRole("button", { name: "I understand" }).waitFor();
  await shoot(view, "study-tutorial-desktop");
  await isAccessible(view, "study-tutorial");
  await view.page.getByRole("button", { name: "I understand" }).click();

  const button = () => view.page.locator("button[data-action='1']:not([aria-disabled=true])");
  const act = async () => {
    await button().waitFor();
    const seq = view.seq;
    await button().click();
    await until(view, () => view.seq > seq, "an answer");
    await view.page.keyboard.press("Space");
  };
  await act();
  await button().waitFor();
  const seq = view.seq;
  await view.page.reload();
  await button().waitFor();
  assert.equal(view.seq, seq, "a reload continues at the same step");
  await act();
  await button().waitFor();
  const kept = view.seq;
  assert.equal(await view.page.locator(".beliefs").count(), 0, "participants do not see the beliefs");
  await study.stop("SIGKILL");
  await view.context.close();
  study = await startServer("--study", file);
  view = await start();
  await button().waitFor();
  assert.equal(view.seq, kept, "a killed server comes back at the same step");

  let n_actions = 0;
  for (let round = 1; round <= 2; round += 1) {
    const over = view.page.getByRole("heading", { name: `Round ${round} of 2 is done` });
    while (!(await over.isVisible())) {
      const isTurn = await Promise.race([button().waitFor().then(() => true), over.waitFor().then(() => false)]);
      if (!isTurn) break;
      await act().catch(() => {});
    }
    n_actions += view.seq;
    await view.page.getByRole("button", { name: round === 1 ? "Next round" : "Continue" }).click();
  }
  await view.page.getByRole("heading", { name: "A few questions" }).waitFor();
  await shoot(view, "study-questions-desktop");
  await isAccessible(view, "study-questions");
  await view.page.getByLabel("4").check();
  await view.page.getByLabel("the second").check();
  await view.page.getByRole("button", { name: "Send" }).click();
  assert.equal(await view.page.locator("#code").textContent(), "CODE-1234");
  await view.page.reload();
  assert.equal(await view.page.locator("#code").textContent(), "CODE-1234", "the code is there again");
  await shoot(view, "study-code-desktop");
  await isAccessible(view, "study-code");
  await close(view);

  const phone = await open(`${study.address}/study?participant=p-2`, { viewport: PHONE, hasTouch: true, isMobile: true });
  await phone.page.getByRole("button", { name: "I agree" }).waitFor();
  await fitsTheWidth(phone);
  await shoot(phone, "study-consent-phone");
  await phone.page.getByRole("button", { name: "I do not want" }).tap();
  await phone.page.getByRole("heading", { name: "Thank you" }).waitFor();
  await close(phone);
  const lost = await open(`${study.address}/study`);
  await lost.page.getByRole("heading", { name: "This link is incomplete" }).waitFor();
  await lost.page.getByText("/study?participant=ID").waitFor();
  await close(lost);
  await study.stop();

  const store = join(folder, "study.sqlite");
  const rows = (await run("study", "export", store, "--jsonl")).trim().split("\n").map((line) => JSON.parse(line));
  const steps = rows.filter((row) => row.table === "steps");
  assert.equal(steps.length, n_actions, "every step is there");
  const encounters = rows.filter((row) => row.table === "encounters");
  assert.deepEqual(encounters.map((row) => row.n_steps).reduce((sum, n) => sum + n, 0), n_actions);
  assert.equal(new Set(encounters.map((row) => row.agent)).size, 2, "both agents were met");
  assert.deepEqual(rows.filter((row) => row.table === "answers").map((row) => [row.question, row.value]), [["better", "the second"], ["trust", 4]]);
  const csv = (await run("study", "export", store, "--csv")).trim().split("\n");
  assert.equal(csv.length, n_actions + 1);
  assert.match(await run("study", "export", store, "--csv", "--table", "answers"), /^p-1,better,the second,\d+$/m);
  assert.match(await run("study", "summary", store), /kuhn-poker\.bayes/);
  assert.match(await run("study", "delete", store, "p-1"), new RegExp(`${n_actions} steps`));
  assert.equal((await run("study", "export", store, "--csv")).trim().split("\n").length, 1);
});

test("a full server refuses new sessions", async () => {
  const small = await startServer("--max-sessions", "1");
  const first = await open(small.address);
  await startSession(first, { game: "Kuhn Poker", agent: "kuhn-poker.nash", episodes: 10 });
  const second = await open(small.address);
  await second.page.getByRole("button", { name: "Start" }).click();
  await second.page.getByRole("heading", { name: "No free place" }).waitFor();
  await shoot(second, "full-desktop");
  await isAccessible(second, "full");
  // The browser logs the refusal with its status.
  second.complaints = second.complaints.filter((text) => !text.includes("503"));
  await close(first);
  await close(second);
  await small.stop();
});

test("participants of a full study wait for a free place", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pace-full-"));
  const file = join(folder, "study.toml");
  writeFileSync(file, `
id = "full"
title = "A small study"
consent = "You play a card game with a computer program."
agents = ["kuhn-poker.nash"]
assignment = "between"
encounters = 1
episodes = 3
seed = 1
completion_code = "CODE"
`);
  const small = await startServer("--study", file, "--max-sessions", "1");
  const begin = async (participant) => {
    const view = await open(`${small.address}/study?participant=${participant}`);
    await view.page.getByRole("button", { name: "I agree" }).click();
    await view.page.getByRole("button", { name: "I understand" }).click();
    return view;
  };
  const first = await begin("p-1");
  await first.page.locator(".scene svg").waitFor();
  await first.page.getByText("A small study · round 1 of 1").waitFor();
  assert.equal(await first.page.getByRole("heading", { level: 1 }).textContent(), "You and the agent", "participants are not told which");
  const second = await begin("p-2");
  await second.page.getByRole("heading", { name: "No free place" }).waitFor();
  await shoot(second, "study-full-desktop");
  // A closed tab frees the place.
  await close(first);
  await second.page.locator(".scene svg").waitFor();
  await close(second);
  await small.stop();
});

test("the default length allows adaptation, and the next session keeps the choice", async () => {
  const view = await open(server.address);
  const { page } = view;
  const length = page.getByLabel("Length");
  for (const [game, episodes] of [["Kuhn Poker", "50"], ["PO-Overcooked", "5"], ["Predator-Prey-W", "5"]]) {
    await page.getByRole("radio", { name: game }).check({ force: true });
    assert.equal(await length.inputValue(), episodes, game);
  }
  await startSession(view, { game: "PO-Overcooked", agent: "overcooked.static", episodes: 1, beliefs: "live", speed: "0" });
  while (!view.over) await step(view, ".");
  await page.getByRole("button", { name: "Play again" }).click();
  await page.locator("button[data-action='1']").waitFor();
  const [first, second] = view.requests.slice(-2);
  assert.deepEqual(second, first, "the same game, agent, seat and length");
  await page.getByRole("button", { name: "Leave" }).click();
  assert.ok(await page.getByRole("radio", { name: "PO-Overcooked" }).isChecked());
  assert.deepEqual([await page.getByLabel("Agent", { exact: true }).inputValue(), await length.inputValue()], ["overcooked.static", "1"]);
  await close(view);
});

test("Kuhn Poker accepts the keys that it shows: C calls a bet and F folds", async () => {
  const view = await open(server.address);
  const { page } = view;
  await startSession(view, { game: "Kuhn Poker", agent: "kuhn-poker.random", episodes: 50 });
  const answered = [];
  for (let hand = 0; hand < 40 && answered.length < 2; hand += 1) {
    await page.locator("button[data-action='1']:not([aria-disabled=true])").waitFor();
    const seq = view.seq;
    const facesBet = view.stages.at(-1) === "peer-faces-bet";
    const shown = await page.locator("button[data-action]").allInnerTexts();
    assert.deepEqual(shown.map((text) => text.replace(/\s+/g, " ")), facesBet ? ["Fold F", "Call C"] : ["Check C", "Bet B"]);
    const key = facesBet && answered.length === 1 ? "f" : "c";
    const before = view.stages.length;
    await page.keyboard.press(key);
    await until(view, () => view.seq > seq, "an answer");
    if (facesBet) answered.push(view.stages[before]);
    await page.keyboard.press("Space");
  }
  assert.deepEqual(answered, ["bet-call", "bet-fold"]);
  await close(view);
});

test("on a small phone the board and all controls are visible", async () => {
  const view = await open(server.address, { viewport: SMALL_PHONE, hasTouch: true, isMobile: true, reducedMotion: "reduce" });
  const { page } = view;
  for (const [game, agent, name] of [["Kuhn Poker", "kuhn-poker.nash", "kuhn"], ["PO-Overcooked", "overcooked.bayes", "overcooked"], ["Predator-Prey-W", "predator-prey.bayes", "predator-prey"]]) {
    await startSession(view, { game, agent, episodes: name === "kuhn" ? 10 : 1, beliefs: "live", speed: name === "kuhn" ? undefined : "0" });
    await page.locator("button[data-action='1']:not([aria-disabled=true])").waitFor();
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(shots, `${name}-small-phone.png`) });
    const boxes = await page.locator(".scene svg, .status-text, button[data-action]").evaluateAll((nodes) => nodes.map((node) => node.getBoundingClientRect().toJSON()));
    const screen = SMALL_PHONE.height;
    assert.ok(boxes.every((box) => box.bottom <= screen), `${game}: the lowest control ends at ${Math.max(...boxes.map((box) => box.bottom))} of ${screen}`);
    const buttons = boxes.slice(2);
    assert.ok(buttons.every((box) => box.width >= 44 && box.height >= 44), `${game}: targets are large enough`);
    await fitsTheWidth(view);
    await page.getByRole("button", { name: "Leave" }).tap();
  }
  await close(view);
});

test("a prey outside the map stays in the picture and gets a direction", async () => {
  const view = await open(server.address, { reducedMotion: "reduce" });
  const { page } = view;
  await startSession(view, { game: "Predator-Prey-W", agent: "predator-prey.static", episodes: 1, slot: 1, speed: "0" });
  const own = () => view.frame.scene.agents[2].position;
  for (let count = 0; count < 30 && own()[0] < 1.6 && !view.over; count += 1) await step(view, "ArrowRight");
  assert.ok(own()[0] >= 1.6, `the prey is outside: ${own()}`);
  const [figure, picture] = await page.evaluate(() => {
    const label = [...document.querySelectorAll(".board text")].find((node) => node.textContent === "you");
    return [label.closest("g"), document.querySelector(".board")].map((node) => node.getBoundingClientRect().toJSON());
  });
  assert.ok(figure.left >= picture.left && figure.right <= picture.right, `the figure is in the picture: ${figure.right} of ${picture.right}`);
  assert.match(await page.locator(".status-text").textContent(), /^Outside the map by \d\.\d\. Push west to come back\.$/);
  await shoot(view, "predator-prey-outside-desktop");
  await close(view);
});

test("the summary has a verdict from the belief, coloured bars and axes", async () => {
  const view = await open(server.address);
  const { page } = view;
  await page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  const summaryOf = (about, summary) => page.evaluate(async ([about, summary]) => {
    const { summaryCard } = await import("/assets/summary.js");
    const { gameOf } = await import("/assets/games/index.js");
    const { personOf } = await import("/assets/elements.js");
    document.getElementById("main").replaceChildren(summaryCard({ ...about, person: personOf("you") }, summary, gameOf(about)));
  }, [about, summary]);
  const main = page.locator("main");
  const about = { game: "predator-prey", slot: 0, role: "predator 1", setting: { horizon_steps: 40, n_predators: 2 } };
  const episode = (task_return, ending) => ({ task_return, score: task_return, ending, n_moves: 40 });
  const summary = {
    episodes: [episode(-8.3, "timed-out"), episode(-5.1, "timed-out"), episode(-1.2, "succeeded")],
    mean_score: -4.9, oracle: -2.5, portrait: { lines: [["mean distance to prey A", "0.31"]] },
    recognition: { kind: "predator after prey A", data: { prefers: 0 }, probability: 1, is_right: false, since_episode: 0, since_moves: 14 },
  };
  await summaryOf(about, summary);
  await shoot(view, "predator-prey-summary-desktop");
  // The role is only suggested in this game, so the belief is neither right nor wrong.
  assert.match(await main.innerText(), /Its belief in the end: a predator after prey A, since move 14 of episode 1, final probability 100\s%\./);
  assert.doesNotMatch(await main.innerText(), /did not (identify|recognise)/);
  const fills = () => page.locator(".chart rect").evaluateAll((nodes) => nodes.map((node) => node.getAttribute("fill")));
  assert.deepEqual(await fills(), ["var(--bad)", "var(--bad)", "var(--good)"], "a predator wants every prey caught");
  await summaryOf({ ...about, slot: 1, role: "prey A" }, summary);
  assert.deepEqual(await fills(), ["var(--good)", "var(--good)", "var(--bad)"], "a prey does not");
  const [chart, ...bars] = await page.locator(".chart > svg, .chart rect").evaluateAll((nodes) => nodes.map((node) => node.getBoundingClientRect().toJSON()));
  assert.ok(bars.at(-1).right - bars[0].left > 0.85 * chart.width, "the bars fill the width");
  assert.deepEqual(await page.locator(".chart-x span").allTextContents(), ["1", "2", "3"]);
  assert.deepEqual(await page.locator(".chart-y span").allTextContents(), ["−10", "−5", "0"]);
  // In a game that enforces the role, the belief is right or wrong.
  const cook = { game: "overcooked", slot: 0, role: "cook", setting: { horizon_steps: 40 } };
  const order = { ...summary, recognition: { ...summary.recognition, kind: "Tomato and Onion", data: { left: "Tomato", right: "Onion" } } };
  await summaryOf(cook, order);
  assert.match(await main.innerText(), /It did not identify you\. Its belief in the end: tomato with onion/);
  await summaryOf(cook, { ...order, recognition: { ...order.recognition, is_right: true } });
  assert.match(await main.innerText(), /It identified you: tomato with onion/);
  await close(view);
});

test("the expected return has a horizon and a unit", async () => {
  const view = await open(server.address);
  await view.page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  await view.page.evaluate(async () => {
    const { BeliefPanel } = await import("/assets/beliefs.js");
    const { gameOf } = await import("/assets/games/index.js");
    const about = { game: "kuhn-poker", slot: 0, action_names: ["pass", "bet"], peers: [], is_simultaneous: false };
    const panel = new BeliefPanel(gameOf(about), about);
    document.getElementById("main").replaceChildren(panel.node);
    panel.add({ scene: { stage: "ego-speaks" }, mind: { slots: [], probabilities: [0.25, 0.75], value: 0.4, place: null } });
  });
  const text = await view.page.locator(".beliefs").innerText();
  assert.match(text, /Expected return/);
  assert.match(text, /discounted reward from this step to the end of the encounter\. Unit: chips\./);
  assert.match(text, /Its next action\./);
  await close(view);
});

/** Rewrites the messages between page and server. Returns a function that sends a message to the page. */
async function rewrite(page, toPage, toServer) {
  let send;
  await page.routeWebSocket(/\/ws$/, (client) => {
    const host = client.connectToServer();
    host.onMessage((message) => client.send(toPage(message)));
    client.onMessage((message) => host.send(toServer(message)));
    send = (message) => client.send(JSON.stringify(message));
  });
  return (message) => send(message);
}

test("a spectator is told while the player is away", async () => {
  const view = await open(server.address);
  await startSession(view, { game: "Kuhn Poker", agent: "kuhn-poker.nash", episodes: 10 });
  const link = await view.page.locator("#watch-link").getAttribute("data-link");
  const spectator = await open("about:blank");
  const tell = await rewrite(spectator.page, (message) => message, (message) => message);
  await spectator.page.goto(link);
  await spectator.page.locator(".scene svg").waitFor();
  const notice = spectator.page.getByText("The player is not connected.");
  assert.equal(await notice.count(), 0);
  tell({ v: 1, type: "presence", is_player_here: false });
  await notice.waitFor();
  await isAccessible(spectator, "spectator");
  tell({ v: 1, type: "presence", is_player_here: true });
  await notice.waitFor({ state: "detached" });
  for (const [game, agent, slot] of [["PO-Overcooked", "overcooked.bayes"], ["Predator-Prey-W", "predator-prey.bayes", 1]]) {
    await view.page.getByRole("button", { name: "Leave" }).click();
    await startSession(view, { game, agent, episodes: 1, beliefs: "live", slot, speed: "0" });
    await spectator.page.goto(await view.page.locator("#watch-link").getAttribute("data-link"));
    await spectator.page.getByRole("heading", { name: "What the agent believes" }).waitFor();
    await step(view, "ArrowUp");
    await isAboutThePlayer(spectator);
  }
  await close(spectator);
  await close(view);
});

test("a game without a drawing is shown as text on all pages", async (test) => {
  const own = await startServer({ program: example("own_game") });
  test.after(() => own.stop());
  const view = await open(own.address);
  const { page } = view;
  await page.getByRole("heading", { name: "Meet an agent" }).waitFor();
  assert.equal(await page.getByRole("radio").count(), 4, "it is offered next to the others");
  await shoot(view, "text-game-start-desktop");
  await page.getByRole("radio", { name: "Matching pennies" }).check({ force: true });
  await page.getByLabel("Agent", { exact: true }).selectOption("pennies.bayes");
  await page.getByLabel("The agent’s beliefs").selectOption("live");
  assert.equal(await page.getByLabel("Length").inputValue(), "10");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Round 1 of 10").waitFor();
  const text = page.getByLabel("The state of the game");
  await page.locator(".status-text", { hasText: "Choose an action." }).waitFor();
  assert.equal(await text.textContent(), "both hands are closed");
  await isAccessible(view, "text-game");
  for (let round = 0; !view.over; round += 1) {
    await until(view, () => view.over || view.frame.is_asked, "a turn");
    if (view.over) break;
    const seq = view.seq;
    // By key and by button in turn.
    if (round % 2 === 0) await step(view, "2");
    else await page.locator("button[data-action='0']:not([aria-disabled=true])").click();
    await until(view, () => view.over || view.seq > seq, "an answer");
    await page.keyboard.press("Space");
  }
  await page.getByRole("heading", { name: "The encounter is over" }).waitFor();
  await page.getByRole("heading", { name: "Rounds, one by one" }).waitFor();
  await shoot(view, "text-game-summary-desktop");
  await isAccessible(view, "text-game-summary");
  await page.locator("#replay-link").click();
  await page.getByRole("heading", { name: /^Replay/ }).waitFor();
  await page.getByRole("button", { name: "step forward" }).click();
  assert.match(await page.getByLabel("The state of the game").textContent(), /^ego (heads|tails), peer tails$/);
  await shoot(view, "text-game-replay-desktop");
  await isAccessible(view, "text-game-replay");
  await close(view);
});
