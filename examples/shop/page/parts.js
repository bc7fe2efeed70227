// What the page is made of: asking the shop, buttons that say at their own place what they do.

export const byId = (id) => document.getElementById(id);

/** Gives the line of an item in which it says what it does. */
export const told = (item) => item.querySelector(".told");

/** Says something where the thumb is. */
export function say(place, text, kind = "") {
  place.textContent = text;
  place.className = `told ${kind}`;
}

/** Asks the shop. Throws an Error whose message a person can read. */
export async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The shop can't be reached.");
  }
  const said = await answer.json().catch(() => ({ message: "The shop's answer can't be read." }));
  if (!answer.ok) throw new Error(said.message);
  return { ...said, isOpen: answer.status === 202 };
}

/** Runs what a button does, once at a time, and says at its place what went wrong. */
export function onPress(button, place, act) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    button.dataset.busy = "yes";
    try {
      await act();
    } catch (error) {
      say(place, error.message, "bad");
    } finally {
      delete button.dataset.busy;
      button.disabled = false;
    }
  });
  button.disabled = false; // before, a press would have been lost
}
