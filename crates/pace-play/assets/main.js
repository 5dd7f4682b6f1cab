// Entry point: opens the page that the address names.

import { ask } from "./connection.js";
import { el } from "./elements.js";
import { openLobby } from "./lobby.js";
import { notice } from "./notices.js";
import { openReplay } from "./replay_page.js";
import { openSession } from "./session_page.js";
import { openStudy } from "./study.js";

const main = document.getElementById("main");
let opened = new AbortController();

async function start() {
  // Another replay in the same tab: the one before stops, with its timer and its key listener.
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
      return openSession(main, { type: "watch", token: path.slice("/watch/".length) }, { onLeave: () => location.assign("/") });
    }
    const offers = await ask("/api/offers");
    if (offers.is_study) return location.replace(`/study${location.search}`);
    openLobby(main, offers);
  } catch (error) {
    notice(main, "Something went wrong", error.message, el("p", {}, el("a", { href: location.href }, "Try again")));
  }
}

addEventListener("hashchange", () => location.pathname === "/replay" && start());
start();
