/** The client: all calls to one account of a service, grouped by noun. */
import { Caller } from "./calls.js";
import { Effects } from "./effects.js";
import { Keys } from "./keys.js";
import { Checkouts } from "./nouns/checkouts.js";
import { ClientTokens } from "./nouns/client-tokens.js";
import { Customers } from "./nouns/customers.js";
import { Endpoints, Events } from "./nouns/events.js";
import { Operations, Recoveries } from "./nouns/operations.js";
import { Orders } from "./nouns/orders.js";
import { Payments } from "./nouns/payments.js";
import { Subscriptions, SubscriptionStates } from "./nouns/subscriptions.js";
/**
 * Calls one account of a Payrelay service.
 *
 * Calls may run at the same time. Throws TypeError or RangeError for settings that are wrong.
 */
export class Payrelay {
    payments;
    orders;
    subscriptions;
    subscriptionStates;
    checkouts;
    customers;
    operations;
    recovery;
    clientTokens;
    events;
    endpoints;
    constructor(settings) {
        const caller = new Caller(settings);
        const effects = new Effects(caller, settings.store ? new Keys(settings.store, caller.account) : null);
        this.payments = new Payments(caller, effects);
        this.orders = new Orders(caller, effects);
        this.subscriptions = new Subscriptions(caller, effects);
        this.subscriptionStates = new SubscriptionStates(caller, effects);
        this.checkouts = new Checkouts(caller, effects);
        this.customers = new Customers(caller, effects);
        this.operations = new Operations(caller, effects);
        this.recovery = new Recoveries(caller, effects);
        this.clientTokens = new ClientTokens(caller, effects);
        this.events = new Events(caller, effects);
        this.endpoints = new Endpoints(caller, effects);
    }
}
