// The shop's server in Node: it holds the key, names orders and prices, and hears what became of them.

import { createHmac, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

// A shop of your own installs the package, and imports "payrelay-client", "payrelay-client/node" and "payrelay-client/webhooks".
import { InvalidRequest, NotFound, Payrelay, PayrelayError, Unauthenticated, WebhookRefused } from "../page/payrelay/index.js";
import { fileStore } from "../page/payrelay/node.js";
import { verifyWebhook } from "../page/payrelay/webhooks.js";

const HOME = fileURLToPath(new URL("..", import.meta.url));
const SHOP = JSON.parse(readFileSync(join(HOME, "shop.json"), "utf8"));
const { PAYRELAY: ADDRESS, SHOP_DATA: DATA, SHOP_SIMULATOR: SIMULATOR = "", PORT = "8090", HOST = "127.0.0.1" } = process.env;
const NEWS_MAX = 20;
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript" };
mkdirSync(DATA, { recursive: true, mode: 0o700 }); // must outlive this program: keys of what was sent, and what shoppers were told
const payrelay = new Payrelay({ address: ADDRESS, credential: process.env.PAYRELAY_KEY, store: fileStore(join(DATA, "keys")) });

/** Gives who asks. The cookie is known to the phone alone, its hash to others too; a real shop has accounts. */
function shopperOf(request) {
  const [, cookie] = /(?:^|; )shopper=([0-9a-f]+)/.exec(request.headers.cookie ?? "") ?? [];
  if (cookie === undefined) throw new Unauthenticated("Open the shop's page first.", { httpStatus: 401 });
  return createHmac("sha256", process.env.SHOP_SECRET).update(cookie).digest("hex").slice(0, 16);
}

/** Names an order, the same for the same press: the phone keeps the number. The name says whose it is, and what. */
function orderOf(what, shopper, number) {
  if (!/^[a-z0-9]{12}$/.test(String(number))) throw new InvalidRequest("A number has twelve letters and digits.", { httpStatus: 400 });
  return `${what}-${shopper}-${number}`;
}

/** Reads a shopper's news, memberships that go on, and what became of orders; or writes it, whole or not at all. */
function told(shopper, change) {
  const file = join(DATA, `${shopper}.json`);
  if (change !== undefined) {
    writeFileSync(`${file}.new`, JSON.stringify(change));
    renameSync(`${file}.new`, file);
  }
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { news: [], clubs: {}, handed: {} };
}

/** Refuses another's card: the shop's key reaches every one. */
async function cardOf(shopper, card) {
  if ((await payrelay.customers.show(card)).reference !== shopper) throw new NotFound("You have no such card.", { httpStatus: 404 });
  return card;
}

/** Opens the gateway's page: after a lost answer the same one, after a failed or cancelled one another. */
async function pageOf(request, what, { number }, wanted) {
  const shopper = shopperOf(request);
  const home = `http://${request.headers.host}/`;
  const who = { customer: SHOP.shopper, customer_reference: shopper, currency: SHOP.currency, return_to: home, cancel_to: home };
  const asked = { ...who, ...wanted, order_id: orderOf(what, shopper, number) };
  const { url, state } = await payrelay.checkouts.open(asked, { again: true });
  return { url, state };
}

const acts = {
  async "GET /me"(request) {
    const shopper = shopperOf(request);
    const cards = await payrelay.customers.list({ reference: shopper, state: "active" }).all();
    const shown = cards.map(({ id, method, card_no_masked }) => ({ id, method, card_no_masked }));
    return { goods: SHOP.goods, club: SHOP.club, currency: SHOP.currency, ...told(shopper), cards: shown, shopper, address: ADDRESS, simulator: SIMULATOR };
  },

  "POST /cards": (request, body) => pageOf(request, "card", body, { type: "preapproval", items: "Approval of a card" }),

  async "DELETE /cards"(request, _body, card) {
    await payrelay.customers.remove(await cardOf(shopperOf(request), card));
    return {};
  },

  /** Gives the phone what it needs to pay one order by itself; the same press is the same order. */
  async "POST /orders"(request, { goods, card, number }) {
    const shopper = shopperOf(request);
    if (!Object.hasOwn(SHOP.goods, goods)) throw new NotFound("We have no such goods.", { httpStatus: 404 });
    const { items, amount } = SHOP.goods[goods];
    const terms = { order_id: orderOf(goods, shopper, number), amount, currency: SHOP.currency };
    const bounds = { ...terms, customer_id: await cardOf(shopper, card), scopes: SHOP.scopes };
    const { token } = await payrelay.clientTokens.issue(bounds);
    return { token, charge: { ...terms, items, type: "PAYMENT", customer_token: card } };
  },

  "POST /club": (request, body) => pageOf(request, "club", body, { type: "recurring", ...SHOP.club }),

  /** Ends the shopper's subscriptions; 202 where nobody knows yet whether one has ended. */
  async "DELETE /club"(request) {
    const goingOn = Object.entries(told(shopperOf(request)).clubs).filter(([, goesOn]) => goesOn);
    const outcomes = await Promise.all(goingOn.map(([club]) => payrelay.subscriptions.cancel(club)));
    return { status: outcomes.every(({ isDone }) => isDone) ? 200 : 202 };
  },

  /** Hears what happened. Goods go out once, and only for their price; what was stopped stays so, in any order. */
  async "POST /webhooks"(request, body) {
    const event = await verifyWebhook(process.env.PAYRELAY_WEBHOOK_SECRET, request.headers, body);
    const [, what, shopper] = /^([a-z]+)-([0-9a-f]{16})-[a-z0-9]{12}$/.exec(String(event.data.order_id)) ?? [];
    if (shopper === undefined) return {};
    const now = told(shopper);
    const { id, type, timestamp, data } = event;
    const sold = Object.hasOwn(SHOP.goods, what) ? SHOP.goods[what] : SHOP.club;
    const [place, name, isDue] = SHOP.events[`${type} ${data.kind ?? ""}`.trim()] ?? [];
    const isPrice = (data.payment_amount ?? data.amount) === sold.amount && data.currency === SHOP.currency;
    const isMeant = data[name] && (!isDue || isPrice);
    const isFirst = isMeant && isDue && !Object.hasOwn(now[place], data[name]);
    if (isMeant) now[place][data[name]] = (now[place][data[name]] ?? true) && isDue;
    now.news = [...now.news.slice(-NEWS_MAX).filter((each) => each.id !== id), { id, type, timestamp, data }];
    told(shopper, now);
    if (isFirst) console.log("hand over", data[name]); // here a real shop's goods go out
    return {};
  },
};

/** Shows the shop, and remembers who it is. The page may talk to the shop and to Payrelay, and to nobody else. */
function show(request, response, path) {
  const file = join(HOME, path === "/" ? "page/index.html" : decodeURIComponent(path));
  if (!file.startsWith(join(HOME, "page") + sep) || !existsSync(file)) return response.writeHead(404).end();
  const policy = SHOP.policy.replace("{payrelay}", `${new URL(ADDRESS).origin} ${SIMULATOR}`);
  const isNew = path === "/" && !/(?:^|; )shopper=/.test(request.headers.cookie ?? "");
  const cookie = isNew ? { "Set-Cookie": `shopper=${randomBytes(16).toString("hex")}; HttpOnly; SameSite=Lax; Path=/` } : {};
  return response.writeHead(200, { "Content-Type": TYPES[extname(file)], "Content-Security-Policy": policy, ...cookie }).end(readFileSync(file));
}

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://shop");
  const [, what, id] = pathname.split("/");
  const act = acts[`${request.method} /${what}`];
  const answer = (status, body) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  try {
    if (act === undefined) return show(request, response, pathname);
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const { status = 200, ...body } = await act(request, what === "webhooks" ? text : JSON.parse(text || "{}"), id);
    return answer(status, body);
  } catch (error) {
    if (!(error instanceof PayrelayError)) console.error(error);
    const message = error instanceof PayrelayError ? error.message : "The shop has a fault.";
    return answer(error instanceof WebhookRefused ? 400 : error.httpStatus || 502, { message });
  }
}).listen(Number(PORT), HOST);
