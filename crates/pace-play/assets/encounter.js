// An encounter in the form that the modules shared with reports expect (see text_game.js), from a message of the server.

import { ask } from "./connection.js";
import { personOf } from "./elements.js";

const maps = new Map();

/** The map of an agent's latent space, as a promise; of null if it has none. */
function mapOf(agent) {
  if (!maps.has(agent)) {
    const orNull = (map) => (map.landmarks.length > 0 ? map : null);
    maps.set(agent, ask(`/api/offers/${encodeURIComponent(agent)}/map`).then(orNull, () => null));
  }
  return maps.get(agent);
}

/** `message`: the first message of a session, or a replay. */
export function encounterOf(message) {
  const { slot, offer: agent, setting: constants, mind_slots: peers, nouns: { keypoint } } = message;
  const person = personOf(message.is_spectator ? "the player" : "you");
  const seatNames = ["agent", ...message.roles.map((role, other) => (other === slot ? person.you : role))];
  return { ...message, constants, peers, seat: slot + 1, person, seatNames, keypoint, map: () => mapOf(agent) };
}
