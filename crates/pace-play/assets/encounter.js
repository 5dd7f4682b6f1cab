// An encounter as the modules that show it expect it (see text_game.js), made of what the server says about it.

import { ask } from "./connection.js";
import { personOf } from "./elements.js";

const maps = new Map();

/** The map of an agent's latent space, as a promise; of null if it has none. */
function mapOf(offer) {
  if (!maps.has(offer)) {
    const isMap = (map) => (map.landmarks.length > 0 ? map : null);
    maps.set(offer, ask(`/api/offers/${encodeURIComponent(offer)}/map`).then(isMap, () => null));
  }
  return maps.get(offer);
}

/** `message`: the welcome to a session, or a replay. */
export function encounterOf(message) {
  const { slot, offer } = message;
  const person = personOf(message.is_spectator ? "the player" : "you");
  return {
    ...message,
    constants: message.setting,
    peers: message.mind_slots,
    seat: slot + 1,
    person,
    seatNames: ["agent", ...message.roles.map((role, other) => (other === slot ? person.you : role))],
    keypoint: message.nouns.keypoint,
    map: () => mapOf(offer),
  };
}
