// Entry point: opens the page that the address names.

import { ask } from "./connection.js";
import { notice, reloadButton } from "./notices.js";
import { openReplay } from "./replay_page.js";
import { SessionPage } from "./session_page.js";
import { openStartPage } from "./start_page.js";
import { openStudy } from "./study_pages.js";

const main = document.getElementById("main");
let opened = new AbortController();

async function start() {
  // Stops the timer and the key listener of an earlier replay in the same tab.
  opened.abort();
  opened = new AbortController();
  const path = location.pathname;
  try {
    if (path === "/study") {
      document.getElementById("brand").removeAttribute("href");
      return await openStudy(main);
    }
    if (path === "/replay") return await openReplay(main, decodeURIComponent(location.hash.slice(1)), opened.signal);
    if (path.startsWith("/watch/")) {
      return new SessionPage(main, { type: "watch", token: path.slice("/watch/".length) }, { onLeave: () => location.assign("/") });
    }
    const catalog = await ask("/api/offers");
    if (catalog.is_study) return location.replace(`/study${location.search}`);
    openStartPage(main, catalog);
  } catch (error) {
    notice(main, "Something went wrong", error.message, reloadButton("Try again"));
  }
}

addEventListener("hashchange", () => location.pathname === "/replay" && start());
start();
