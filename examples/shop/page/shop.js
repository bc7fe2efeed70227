// The phone's side of the shop. It pays by itself, at Payrelay, with a token that is good for its own order only.

const byId = (id) => document.getElementById(id);
const ATTEMPTS = 10;
const PAUSE_MS = 3000;
let card = null;

async function ask(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

function tell(text, kind = "", at = new Date()) {
  byId("news").querySelector(".nothing")?.remove();
  const line = document.createElement("li");
  line.className = kind;
  const time = document.createElement("time");
  time.textContent = at.toLocaleTimeString();
  line.append(time, ` ${text}`);
  byId("news").prepend(line);
}

// Runs what a button does, once at a time, and says what went wrong.
function onPress(button, act) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      tell(error.message, "bad");
    } finally {
      button.disabled = card === null && button.dataset.needsCard === "yes";
    }
  });
}

async function goToGateway(path) {
  const { url } = await ask("POST", path);
  window.location.assign(url);
}

// Sends the same again until there is an answer. Other errors say nothing of an earlier attempt, which may have been paid.
async function untilAnswered(send) {
  let answered = {};
  let pause = PAUSE_MS;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (attempt > 0) await new Promise((resume) => setTimeout(resume, pause));
    try {
      const answer = await send();
      pause = Math.max(PAUSE_MS, 1000 * Number(answer.headers.get("Retry-After")));
      answered = { status: answer.status, told: await answer.json() };
      if (answer.ok || answered.told.error.retry === "never") break;
    } catch {
      answered = {}; // no network, or a proxy's page
    }
  }
  return answered;
}

async function pay(goods) {
  // An order without a final answer may be paid. It is asked for again, whatever the customer presses; a new one is not.
  const kept = `unanswered-${goods}`;
  const unanswered = JSON.parse(localStorage.getItem(kept));
  const wanted = unanswered ?? { goods, customer: card.id };
  const { address, token, charge } = await ask("POST", "orders", wanted);
  localStorage.setItem(kept, JSON.stringify({ ...wanted, order: charge.order_id }));
  // The key makes it safe to send again: whatever happens on the way, the order is paid once.
  const send = () =>
    fetch(`${address}/payments/charge`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        "Content-Type": "application/json",
        "Idempotency-Key": charge.order_id,
        Prefer: "wait=20",
      },
      body: JSON.stringify(charge),
    });
  const { status, told } = await untilAnswered(send);
  if (status === 200 || told?.error.retry === "never") localStorage.removeItem(kept);
  if (status === 200) tell(`Paid: ${charge.items}, ${charge.currency} ${charge.amount.toFixed(2)}`, "good");
  else if (told?.error.retry === "never") tell(`${charge.items}: ${told.msg}`, "bad");
  else tell(`${charge.items}: not known yet. Press again to ask; it is paid once`, "open");
}

function showCard() {
  const place = byId("card");
  place.classList.toggle("empty", card === null);
  place.replaceChildren();
  const line = document.createElement("p");
  line.textContent = card === null ? "No card yet." : `${card.method ?? "Card"} ${card.card_no_masked ?? ""}`;
  place.append(line);
  byId("approve").textContent = card === null ? "Add a card" : "Add another card";
  for (const button of document.querySelectorAll("[data-needs-card=yes]")) button.disabled = card === null;
}

function showGoods(goods) {
  for (const [id, [name, price]] of Object.entries(goods)) {
    const item = byId("one-of-goods").content.cloneNode(true);
    item.querySelector(".name").textContent = name;
    item.querySelector(".price").textContent = `LKR ${price}`;
    const button = item.querySelector("button");
    button.dataset.needsCard = "yes";
    button.setAttribute("aria-label", `Pay ${name}`);
    onPress(button, () => pay(id));
    byId("goods").append(item);
  }
}

const WORDS = {
  "customer.created": "Your card was approved, and is kept",
  "checkout.completed": "You finished the gateway's page",
  "checkout.notified": "The gateway reported a hold, which its capture has to prove",
  "checkout.cancelled": "You came back without finishing",
  "checkout.failed": "The gateway did not take the card",
  "checkout.expired": "The gateway's page has ended",
  "operation.succeeded": "Your payment arrived",
  "operation.declined": "Your payment was declined",
  "operation.unknown": "Nobody knows yet whether it was done",
  "subscription.updated": "Your membership has changed",
  "subscription.installment_paid": "A month of the club was paid",
  "subscription.installment_failed": "A month of the club could not be paid",
  "subscription.completed": "Your membership has come to its end",
  "subscription.stopped": "Your membership has ended",
};
const ENDS = ["subscription.completed", "subscription.stopped"];
const heard = new Set();
const memberships = new Map(); // subscription: whether it goes on

// News may come twice, and those of a while ago come again when the page is opened.
async function hear({ id, type, timestamp, data }) {
  if (heard.has(id)) return;
  heard.add(id);
  const hasLeft = type === "operation.succeeded" && data.kind === "cancel";
  const kind = type.endsWith("failed") || type.endsWith("declined") ? "bad" : "good";
  tell(hasLeft ? "You left the club" : (WORDS[type] ?? type), kind, new Date(timestamp));
  if (type.startsWith("customer.")) await refresh();
  if (hasLeft || type.startsWith("subscription.")) {
    const isOver = hasLeft || ENDS.includes(type);
    // What has ended stays so: news of an operation and of its subscription come in any order.
    const goesOn = memberships.get(data.subscription_id) ?? true;
    memberships.set(data.subscription_id, goesOn && !isOver);
    showMembership();
  }
}

function showMembership() {
  const [id] = [...memberships].find(([, goesOn]) => goesOn) ?? [];
  byId("join").hidden = id !== undefined;
  byId("leave").hidden = id === undefined;
  byId("leave").value = id ?? "";
}

async function refresh() {
  ({ card } = await ask("GET", "me"));
  showCard();
}

const { goods, club } = await ask("GET", "me");
showGoods(goods);
byId("club").textContent = `${club[0]}, LKR ${club[1]} a month`;
onPress(byId("approve"), () => goToGateway("cards"));
onPress(byId("join"), () => goToGateway("club"));
onPress(byId("leave"), () => ask("DELETE", `club/${byId("leave").value}`));
new EventSource("live").addEventListener("message", (message) => hear(JSON.parse(message.data)));
await refresh();
