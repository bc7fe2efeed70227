// Buttons that let something go wrong at the gateway, where that is a simulator. A real shop has none of this.

import { byId, onPress, say } from "./parts.js";

/** Shows the buttons, where the shop says that there is a simulator. */
export function letItGoWrong(simulator) {
  if (!simulator) return;
  byId("trouble").hidden = false;
  const place = byId("trouble-told");
  for (const button of document.querySelectorAll("#trouble button")) {
    onPress(button, place, async () => {
      const answer = await fetch(`${simulator}/_sim/press/${button.value}`, { method: "POST" }).catch(() => null);
      if (!answer?.ok) throw new Error("The simulator can't be reached.");
      say(place, (await answer.json()).said, "open");
    });
  }
}
