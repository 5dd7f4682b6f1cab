// node pages.mjs SCREENSHOTS PAGE…
//
// Opens pages of `pace report` in a headless Chromium, as a person would: at a desk and on a phone, in light and in dark. A page must
// have no error, ask nothing of a network, fit its screen, and its encounters must step forward and back.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { chromium } from "playwright-core";

const SCREENS = [
  { name: "desktop", width: 1280, height: 900, scheme: "light" },
  { name: "desktop-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone", width: 390, height: 844, scheme: "light" },
  { name: "phone-dark", width: 390, height: 844, scheme: "dark" },
];

const [folder, ...pages] = process.argv.slice(2);
if (!folder || pages.length === 0) {
  console.error("usage: node pages.mjs SCREENSHOTS PAGE…");
  process.exit(2);
}
const known = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = known.find((path) => path && existsSync(path));
if (!executablePath) {
  console.error("found no Chromium; install it, or name it by CHROMIUM=PATH");
  process.exit(1);
}
mkdirSync(folder, { recursive: true });

// A browser of a root user, as in a container, has no sandbox to run in.
const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
try {
  for (const path of pages) {
    for (const screen of SCREENS) {
      await check(path, screen);
    }
  }
} finally {
  await browser.close();
}

async function check(path, screen) {
  const { width, height, scheme } = screen;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file://")) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(`file://${resolve(path)}`);

  const replays = await page.$$(".replay-stage");
  const n_records = await page.locator(".replay script[type='application/json']").count();
  assert.equal(replays.length, n_records, "a stage for every encounter");
  for (const stage of replays) {
    await stepThrough(page, stage);
  }
  const numbers = await page.$$("button.origin");
  if (numbers.length > 0) {
    await showOrigin(page, numbers[0]);
  }
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(beyond <= 0, `${path} is ${beyond} pixels wider than a screen of ${width}`);
  const name = `${basename(dirname(resolve(path)))}-${basename(path, ".html")}-${screen.name}.png`;
  await page.screenshot({ path: join(folder, name), fullPage: true });
  assert.deepEqual(complaints, [], `${path} on ${screen.name}`);
  await context.close();
  console.log(`ok  ${path} on ${screen.name}: ${replays.length} encounters, ${numbers.length} numbers`);
}

// Forward and back, by button, by key and by hand, and what is shown follows.
async function stepThrough(page, stage) {
  const now = () => stage.evaluate((node) => Number(node.dataset.moment));
  const shown = () => stage.evaluate((node) => node.querySelector(".replay-view").innerHTML);
  const press = async (label) => (await stage.$(`button[aria-label="${label}"]`)).click();
  const last = await stage.evaluate((node) => Number(node.querySelector("input[type=range]").max));
  assert.ok(last >= 4, `an encounter of ${last + 1} moments`);
  assert.equal(await now(), 0);
  const first = await shown();
  assert.match(first, /<(svg|pre)/, "the game is drawn");

  await press("step forward");
  assert.equal(await now(), 1);
  assert.notEqual(await shown(), first, "the next moment looks otherwise");
  await press("step back");
  assert.equal(await now(), 0);
  assert.equal(await shown(), first, "back is where it was");
  await press("step back");
  assert.equal(await now(), 0, "before the beginning there is nothing");

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
  assert.equal(await now(), last, "after the end there is nothing");
  await page.keyboard.press("Home");
  assert.equal(await now(), 0);

  const scrubber = await stage.$("input[type=range]");
  await scrubber.fill("3");
  assert.equal(await now(), 3);
  const chips = await stage.$$(".replay-strip button");
  await chips[1].click();
  assert.equal(await now(), second, "a chip is an episode");

  // As the agent sees it: what it does not see is gone, and comes back.
  const hidden = () => stage.evaluate((node) => {
    const isHidden = (one) => getComputedStyle(one).visibility === "hidden";
    return [...node.querySelectorAll(".unseen")].filter(isHidden).length;
  });
  await scrubber.fill("0");
  const eyes = await stage.$(".replay-eyes input");
  await eyes.check();
  assert.ok((await hidden()) > 0, "what the agent does not see is hidden");
  await eyes.uncheck();
  assert.equal(await hidden(), 0);

  await stage.focus();
  await page.keyboard.press("Home");
  await press("play");
  await page.waitForFunction((node) => Number(node.dataset.moment) >= 2, stage);
  await press("pause");
  // Something in the middle is more to look at than the beginning.
  await scrubber.fill(String(Math.floor(last / 2)));
}

// A number shows the runs behind it, and hides them again.
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
