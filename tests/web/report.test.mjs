// Pages of `pace report` in a headless Chromium, on a desktop and a phone, in both colour schemes. A page must have no error, send no
// request, fit the screen, and step its encounters forward and back.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { findings, root, run, shots, startBrowser } from "./program.mjs";

const SCREENS = [
  { name: "desktop", width: 1280, height: 900, scheme: "light" },
  { name: "desktop-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone", width: 390, height: 844, scheme: "light" },
  { name: "phone-dark", width: 390, height: 844, scheme: "dark" },
];

let browser;
let folder;

before(async () => {
  browser = await startBrowser();
  folder = mkdtempSync(join(tmpdir(), "pace-report-"));
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const records = join(root, "crates/pace/tests/records");

test("a report of many runs", async () => {
  for (const screen of SCREENS) await check(join(records, "report/index.html"), "report-of-many", screen);
});

test("the page of one run", async () => {
  const run_folder = readdirSync(join(records, "kept")).find((name) => name.startsWith("overcooked-"));
  await run("report", join(records, "kept", run_folder), "--out", folder);
  for (const screen of SCREENS) await check(join(folder, "report.html"), "report-of-one", screen);
});

test("encounters of every game that are recorded now", async () => {
  for (const game of ["kuhn-poker", "overcooked", "predator-prey"]) {
    const run_folder = join(folder, game);
    const keys = ["encounters_per_tuple=1", "epochs=1", "minibatches=2", "warm_up_steps=0", "hidden_width=8"];
    await run("train", game, "--steps", "2000", "--out", run_folder, ...keys.flatMap((key) => ["--set", key]));
    await run("watch", run_folder, "--peer", "1", "--episodes", "2", "--record");
    await run("adapt", run_folder, "--encounters", "1", "--episodes", "2");
    await run("report", run_folder);
    for (const screen of SCREENS) await check(join(run_folder, "report.html"), `report-of-${game}`, screen);
  }
});

async function check(path, name, screen) {
  const { width, height, scheme } = screen;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file://")) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(`file://${path}`);

  const replays = await page.$$(".replay-stage");
  const n_records = await page.locator(".replay script[type='application/json']").count();
  assert.ok(n_records > 0, "there are encounters to step through");
  assert.equal(replays.length, n_records, "a stage for every encounter");
  for (const stage of replays) {
    await stepThrough(page, stage);
  }
  const numbers = await page.$$("button.origin");
  if (numbers.length > 0) {
    await showOrigin(page, numbers[0]);
  }
  assert.deepEqual(await findings(page), [], `${name} on ${screen.name}`);
  assert.deepEqual(await overlaps(page), [], `texts of figures on ${screen.name}`);
  const links = await page.$$eval(".files a", (nodes) => nodes.map((node) => node.getAttribute("href")));
  assert.ok(links.length > 0, "the files next to the page are linked");
  for (const link of links) assert.ok(existsSync(join(dirname(path), decodeURIComponent(link))), `${link} exists`);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(beyond <= 0, `${name} is ${beyond} pixels wider than a screen of ${width}`);
  await page.screenshot({ path: join(shots, `${name}-${screen.name}.png`), fullPage: true });
  assert.deepEqual(complaints, [], `${name} on ${screen.name}`);
  await context.close();
}

// Texts of figures that overlap or leave their figure.
function overlaps(page) {
  return page.evaluate(() => {
    const found = [];
    for (const figure of document.querySelectorAll("svg.pace-figure")) {
      const frame = figure.getBoundingClientRect();
      const boxes = [...figure.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
      boxes.forEach(([text, box], place) => {
        if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`"${text}" leaves its figure`);
        for (const [other, beside] of boxes.slice(0, place)) {
          const across = Math.min(box.right, beside.right) - Math.max(box.left, beside.left);
          const down = Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top);
          if (across > 2 && down > 4) found.push(`"${text}" covers "${other}"`);
        }
      });
    }
    return found;
  });
}

// Steps forward and back by button, key and slider, and checks the shown step.
async function stepThrough(page, stage) {
  const now = () => stage.evaluate((node) => Number(node.dataset.step));
  const shown = () => stage.evaluate((node) => node.querySelector(".stage-view").innerHTML);
  const press = async (label) => (await stage.$(`button[aria-label="${label}"]`)).click();
  const last = await stage.evaluate((node) => Number(node.querySelector("input[type=range]").max));
  assert.ok(last >= 4, `an encounter of ${last + 1} steps`);
  assert.equal(await now(), 0);
  const first = await shown();
  assert.match(first, /<(svg|pre)/, "the game is drawn");
  assert.match(first, />Action probabilities</);
  assert.match(first, />Belief about /);

  await press("step forward");
  assert.equal(await now(), 1);
  assert.notEqual(await shown(), first, "the next step looks different");
  await press("step back");
  assert.equal(await now(), 0);
  assert.equal(await shown(), first, "stepping back restores the picture");
  await press("step back");
  assert.equal(await now(), 0, "the first step has no predecessor");

  await stage.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await now(), 2);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await now(), 1);
  await page.keyboard.press("PageDown");
  const second = await now();
  assert.ok(second > 1, "the next episode");
  await page.keyboard.press("PageUp");
  await page.keyboard.press("End");
  assert.equal(await now(), last);
  await page.keyboard.press("ArrowRight");
  assert.equal(await now(), last, "the last step has no successor");
  await page.keyboard.press("Home");
  assert.equal(await now(), 0);

  const scrubber = await stage.$("input[type=range]");
  await scrubber.fill("3");
  assert.equal(await now(), 3);
  const chips = await stage.$$(".stage-strip button");
  await chips[1].click();
  assert.equal(await now(), second, "a chip is an episode");

  // As the agent sees it: unseen parts are absent.
  const unseen = () => stage.evaluate((node) => node.querySelectorAll(".unseen").length);
  await scrubber.fill("0");
  assert.ok((await unseen()) > 0, "unseen parts are marked");
  const isSeenOnly = await stage.$(".stage-seen input");
  await isSeenOnly.check();
  assert.equal(await unseen(), 0);
  await isSeenOnly.uncheck();
  assert.ok((await unseen()) > 0);

  await stage.focus();
  await page.keyboard.press("Home");
  await press("play");
  await page.waitForFunction((node) => Number(node.dataset.step) >= 2, stage);
  await press("pause");
  // The screenshot shows a step in the middle.
  await scrubber.fill(String(Math.floor(last / 2)));
}

// Opens and closes the list of runs of a score.
async function showOrigin(page, button) {
  const id = await button.getAttribute("popovertarget");
  const popover = page.locator(`[id="${id}"]`);
  assert.equal(await popover.isVisible(), false);
  await button.click();
  assert.equal(await popover.isVisible(), true);
  assert.match(await popover.innerText(), /commit/);
  const box = await popover.boundingBox();
  const { width } = page.viewportSize();
  assert.ok(box.x >= 0 && box.x + box.width <= width, "the runs fit the screen");
  await page.keyboard.press("Escape");
  assert.equal(await popover.isVisible(), false);
}
