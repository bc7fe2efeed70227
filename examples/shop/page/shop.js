// The phone's side of the shop. It pays by itself, at Payrelay, with a token that is good for its own order only.

import { AttemptOpen, Conflict, Declined, indexedDbStore, InvalidRequest, Payrelay } from "./payrelay/index.js";
import { ask, byId, onPress, say, told } from "./parts.js";
import { keep, keepFor, kept, newNumber } from "./kept.js";
import { showNews } from "./news.js";
import { letItGoWrong } from "./trouble.js";

const POLL_MS = 2500;
const TOTAL_S = 45;
/** The keys of payments, on the phone's disk: so a reload asks for the same payment, and nobody pays twice. */
const store = indexedDbStore("tea-shop");
const WAITING = "We don't know yet whether this was paid. Press again to ask: you pay once.";
const REASONS = {
  no_answer: "No answer yet",
  time_out: "No answer yet",
  unreadable_answer: "No answer that can be read",
  outcome_unknown: "The bank's answer was lost, and is being looked for",
};
let shop = { cards: [], goods: {}, clubs: {}, news: [] };

/** The card that is chosen, or the newest one. */
function chosenCard() {
  return document.querySelector("[name=card]:checked")?.value ?? shop.cards[0]?.id;
}

/** The client of one order: its token comes from the shop, which names the order and its price. */
async function clientOf(wanted) {
  const first = await ask("POST", "orders", wanted);
  let { token } = first;
  const credential = async () => {
    const mine = token ?? (await ask("POST", "orders", wanted)).token;
    token = null; // the next one is asked for, where this one has ended
    return mine;
  };
  return { credential, charge: first.charge };
}

/** Pays, or asks what became of an earlier press: an order that isn't known to have ended is never replaced by a new one. */
async function pay(goods, place) {
  const purchase = kept(goods) ?? { number: newNumber(), card: chosenCard(), isSent: false, isAgain: false };
  if (purchase.isAgain) purchase.card = chosenCard();
  keep(goods, purchase);
  const { credential, charge } = await clientOf({ goods, number: purchase.number, card: purchase.card });
  const onWait = ({ reason, seconds }) =>
    say(place, `${REASONS[reason] ?? "The service is busy"}. Asking again in ${Math.ceil(seconds)} s; you pay once.`, "open");
  const payrelay = new Payrelay({ address: shop.address, credential, store, totalS: TOTAL_S, onWait });
  keep(goods, { ...purchase, isSent: true });
  say(place, "Paying…", "open");
  try {
    const outcome = await charged(payrelay, charge, purchase.isAgain);
    if (!outcome.isDone) {
      const sentence = outcome.isWithPerson ? "Somebody is looking into it, which may take a day. Don't pay again." : WAITING;
      say(place, sentence, "open");
      return;
    }
    keep(goods, null);
    say(place, `Paid ${charge.currency} ${outcome.data.amount}. Payment ${outcome.data.payment_id}.`, "good");
  } catch (error) {
    if (error instanceof Declined || error instanceof InvalidRequest) {
      keep(goods, { ...purchase, isSent: false, isAgain: true });
      say(place, `Not paid, nothing was taken: ${error.message} Press to try again.`, "bad");
    } else if (error instanceof Conflict) {
      keep(goods, null);
      say(place, `This order can't be paid any more: ${error.message} Look at what the shop heard.`, "bad");
    } else {
      keep(goods, purchase); // this press took nothing; what an earlier one did is as unknown as before
      throw error;
    }
  }
}

/** Charges; begins another attempt only where the last one is known to have taken nothing. */
async function charged(payrelay, charge, isAgain) {
  try {
    return await payrelay.payments.charge(charge, { again: isAgain });
  } catch (error) {
    if (!(error instanceof AttemptOpen)) throw error;
    return payrelay.payments.charge(charge);
  }
}

/** Goes to the gateway's page. The same number opens the same page again, until that one has ended. */
async function goToGateway(what, place) {
  const page = kept(what) ?? { number: newNumber() };
  keep(what, page);
  say(place, "Opening the gateway's page…", "open");
  const { url, state } = await ask("POST", what, { number: page.number });
  if (url !== null) {
    keep("gone-to", what);
    window.location.assign(url);
    return;
  }
  keep(what, null);
  say(place, state === "completed" ? "You had finished that page." : `That page is over: it is ${state}. Press for another one.`);
  await refresh();
}

function showCards() {
  const before = chosenCard();
  byId("no-card").hidden = shop.cards.length > 0;
  byId("approve").textContent = shop.cards.length > 0 ? "Add another card" : "Add a card";
  byId("cards").replaceChildren(
    ...shop.cards.map((card) => {
      const item = byId("one-of-cards").content.cloneNode(true).firstElementChild;
      const name = `${card.method ?? "Card"} …${(card.card_no_masked ?? "").slice(-4)}`;
      item.querySelector(".name").textContent = name;
      const input = item.querySelector("input");
      input.value = card.id;
      input.checked = card.id === before;
      const button = item.querySelector("button");
      button.setAttribute("aria-label", `Remove ${name}`);
      onPress(button, told(item), async () => {
        const isInUse = Object.keys(shop.goods).some((goods) => kept(goods)?.isSent && kept(goods).card === card.id);
        if (isInUse) throw new Error("You paid with it, and we don't know yet what became of that. Ask there first.");
        await ask("DELETE", `cards/${card.id}`);
        await refresh();
        say(byId("approve-told"), `${name} was removed. Nobody can charge it any more.`, "good");
      });
      return item;
    }),
  );
  if (document.querySelector("[name=card]:checked") === null) {
    const [first] = document.querySelectorAll("[name=card]");
    if (first) first.checked = true;
  }
  for (const button of document.querySelectorAll("#goods button")) {
    button.disabled = button.dataset.busy === "yes" || (shop.cards.length === 0 && kept(button.value) === null);
  }
}

function showGoods() {
  for (const [id, { items, amount }] of Object.entries(shop.goods)) {
    const item = byId("one-of-goods").content.cloneNode(true).firstElementChild;
    item.querySelector(".name").textContent = items;
    item.querySelector(".price").textContent = `${shop.currency} ${amount}`;
    const button = item.querySelector("button");
    button.value = id;
    button.setAttribute("aria-label", `Pay ${items}`);
    const place = told(item);
    if (kept(id)?.isSent) say(place, WAITING, "open");
    onPress(button, place, async () => {
      try {
        await pay(id, place);
      } catch (error) {
        const before = kept(id)?.isSent ? ` ${WAITING}` : "";
        throw new Error(`${error.message}${before}`, { cause: error });
      }
    });
    byId("goods").append(item);
  }
}

function showClub() {
  const isMember = Object.values(shop.clubs).includes(true);
  byId("join").hidden = isMember;
  byId("leave").hidden = !isMember;
  if (isMember && kept("club") !== null) {
    keep("club", null);
    say(byId("join-told"), "");
  }
}

/** Asks the shop for all that it knows; where that fails, what is shown stays. */
async function refresh() {
  const now = await ask("GET", "me");
  const isOther = JSON.stringify(now) !== JSON.stringify(shop);
  shop = now;
  if (!isOther) return;
  showCards();
  showClub();
  showNews(shop.news);
}

/** Says what the gateway's page came to, by the address that the customer came back to; the shop's news say it for certain. */
function welcomeBack() {
  const state = new URLSearchParams(window.location.search).get("state");
  if (state === null) return;
  window.history.replaceState(null, "", window.location.pathname);
  const sentences = {
    completed: ["Done. The shop will hear of it in a moment.", "good"],
    open: ["We are waiting to hear what became of it.", "open"],
  };
  const what = kept("gone-to");
  keep("gone-to", null);
  if (what === null) return;
  const place = byId(what === "cards" ? "approve-told" : "join-told");
  say(place, ...(sentences[state] ?? ["You came back without finishing.", ""]));
  if (state === "completed" && what === "cards") keep(what, null);
}

shop = await ask("GET", "me");
keepFor(shop.shopper);
showGoods();
byId("club").textContent = `${shop.club.items}, ${shop.currency} ${shop.club.amount} a month`;
onPress(byId("approve"), byId("approve-told"), () => goToGateway("cards", byId("approve-told")));
onPress(byId("join"), byId("join-told"), () => goToGateway("club", byId("join-told")));
onPress(byId("leave"), byId("leave-told"), async () => {
  say(byId("leave-told"), "Ending your membership…", "open");
  const { isOpen } = await ask("DELETE", "club");
  say(byId("leave-told"), isOpen ? "Not known yet whether it has ended. Press again to ask." : "You left the club.", isOpen ? "open" : "good");
  await refresh();
});
letItGoWrong(shop.simulator);
welcomeBack();
showCards();
showClub();
showNews(shop.news);
setInterval(() => document.hidden || refresh().catch(() => {}), POLL_MS);
