// The drawings of the games, by id. A game without one is shown as text.

import * as kuhnPoker from "./kuhn-poker.js";
import * as overcooked from "./overcooked.js";
import * as predatorPrey from "./predator-prey.js";
import { textGame } from "./text.js";

const GAMES = { "kuhn-poker": kuhnPoker, overcooked, "predator-prey": predatorPrey };

export function gameOf(id) {
  return GAMES[id] ?? textGame(id);
}
