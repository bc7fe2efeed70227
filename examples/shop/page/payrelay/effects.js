/** Calls that move money: with their key, until the outcome is known or nobody knows it. */
import { newProgress, operationIdOf } from "./calls.js";
import { PayrelayError, Stopped } from "./errors.js";
import { follow, isWithPerson } from "./follow.js";
import {} from "./keys.js";
import { retryAfterS } from "./pauses.js";
import { storedAnswer } from "./transport.js";
/** States of an operation that charged nothing, and whose key keeps that answer. */
const TOOK_NOTHING = new Set(["declined", "refused", "failed"]);
const NO_ANSWER = "no_answer";
const OPEN_SENTENCE = "Whether it took effect isn't known yet.";
/** Makes effects on one account; without keys none is ever sent. */
export class Effects {
    caller;
    keys;
    constructor(caller, keys) {
        this.caller = caller;
        this.keys = keys;
    }
    /** Makes a call that moves money. Throws what says that it took no effect. */
    async run(effect, options = {}) {
        const deadline = this.caller.deadline(options);
        // What can't be written is found before anything is stored.
        await this.caller.request(effect.call);
        const held = await this.held(effect, options);
        const { waitS } = this.caller.limits;
        const request = await this.caller.request(effect.call, {
            ...keyHeader(held),
            ...(waitS > 0 ? { Prefer: `wait=${Math.floor(waitS)}` } : {}),
        });
        return this.settle({ request, held, options, progress: newProgress(held?.wasThere) }, deadline);
    }
    /** Opens a checkout: it moves no money by itself, but has a key as well, since an order must not get two. */
    async openCheckout(call, name, options = {}) {
        await this.caller.request(call);
        const held = await this.held({ kind: "checkout", call, name }, options);
        const progress = newProgress(held?.wasThere);
        const request = await this.caller.request(call, keyHeader(held));
        const got = await this.caller.exchange(request, this.caller.deadline(options), progress, options.signal);
        if (got.kind === "answer" && got.failure === null) {
            const id = got.data?.id;
            await held?.note({ state: "done", ...(typeof id === "string" ? { checkout_id: id } : {}) });
            return got.data;
        }
        const last = got.kind === "gave_up" ? got.last : got;
        if (isRefused(last))
            await held?.note({ refused: true });
        throw this.caller.errorOf(last);
    }
    async held(effect, options) {
        if (this.keys === null)
            return null;
        const name = options.name ?? effect.name;
        if (options.again !== true)
            return this.keys.current(effect.kind, name);
        const look = effect.kind === "checkout" ? this.checkoutOf : this.operationOf;
        return this.keys.another(effect.kind, name, (last) => look(last, options));
    }
    operationOf = async (last, options) => {
        const call = { method: "GET", path: `/operations/by-key/${encodeURIComponent(last.key)}` };
        try {
            const operation = (await this.caller.ask(call, options)).data;
            if (TOOK_NOTHING.has(operation.state))
                return { became: "nothing", operationId: operation.id };
            return { became: operation.state === "succeeded" ? "done" : "open", operationId: operation.id };
        }
        catch (error) {
            if (!(error instanceof PayrelayError) || error.httpStatus !== 404)
                throw error;
            // The service refused the request before it became an operation, or never got it.
            return { became: last.refused === true ? "nothing" : "open", operationId: null };
        }
    };
    checkoutOf = async (last, options) => {
        if (last.checkout_id === undefined) {
            return { became: last.refused === true ? "nothing" : "done", operationId: null };
        }
        const call = { method: "GET", path: `/checkouts/${encodeURIComponent(last.checkout_id)}` };
        const { state } = (await this.caller.ask(call, options)).data;
        const hasEnded = state === "failed" || state === "cancelled" || state === "expired";
        return { became: hasEnded ? "nothing" : "done", operationId: null };
    };
    /** Sends it and follows it, until it is known what became of it or the limits are reached. */
    async settle(sending, deadline) {
        const { request, progress, options } = sending;
        for (;;) {
            const got = await this.caller.exchange(request, deadline, progress, options.signal);
            if (got.kind === "gave_up") {
                if (!progress.isInDoubt)
                    throw this.caller.errorOf(got.last);
                return this.open(sending, got.last, operationIdOf(got.last));
            }
            if (got.status !== 202)
                return this.concluded(sending, got, operationIdOf(got));
            progress.isInDoubt = true;
            const id = operationIdOf(got);
            if (id === null || !(await this.waitedFor(got, deadline, sending)))
                return this.open(sending, got, id);
            const followed = await this.followed(sending, got, id, deadline);
            if (followed !== "not_sent")
                return followed;
            // Nothing was done, and the key is free again: the very same request may go.
            const isOver = progress.tries >= this.caller.limits.tries;
            if (isOver || !(await this.caller.waited(got, deadline, progress, options.signal, null))) {
                return this.open(sending, got, id);
            }
        }
    }
    /** Pauses after a 202 as it says, unless the service has held it already or a person must decide. */
    async waitedFor(got, deadline, { progress, options }) {
        if (got.failure?.code === "needs_attention")
            return false;
        if (got.headers.get("Preference-Applied") !== null)
            return true;
        return this.caller.waited(got, deadline, progress, options.signal);
    }
    async followed(sending, before, id, deadline) {
        let seen;
        try {
            seen = await follow(this.caller, id, "wait", deadline, sending.options.signal);
        }
        catch (error) {
            // Whatever else hinders following, such as a function that gives no credential: the payment was sent.
            if (error instanceof Stopped)
                throw error;
            return this.open(sending, before, id);
        }
        const { operation } = seen;
        if (operation.state === "not_sent")
            return "not_sent";
        if (!operation.is_final)
            return this.open(sending, before, id, operation);
        if (TOOK_NOTHING.has(operation.state))
            await sending.held?.note({ state: "nothing" });
        const { answer } = operation;
        const stored = answer === null ? null : storedAnswer(answer.http_status, answer.body, seen.answer.headers);
        return this.concluded(sending, stored ?? withoutAnswer(operation, seen.answer), id, true);
    }
    async concluded({ held }, answer, operationId, isFollowed = false) {
        if (answer.failure === null) {
            await held?.note({ state: "done" });
            const isReplay = isFollowed || answer.headers.get("Idempotent-Replayed") === "true";
            return { isDone: true, data: answer.data, operationId, isReplay };
        }
        if (answer.failure.code === "declined")
            await held?.note({ state: "nothing" });
        if (isRefused(answer))
            await held?.note({ refused: true });
        throw this.caller.errorOf(answer);
    }
    open(sending, last, id, operation) {
        const reason = last.kind === "lost" ? NO_ANSWER : (last.failure?.code ?? NO_ANSWER);
        return {
            isDone: false,
            operationId: id,
            reason: operation !== undefined && isWithPerson(operation) ? "needs_attention" : reason,
            message: operation?.explanation ?? (last.kind === "answer" ? last.msg : OPEN_SENTENCE),
            isWithPerson: operation === undefined ? reason === "needs_attention" : isWithPerson(operation),
            retryAfterS: retryAfterS(last.headers),
            follow: (options = {}) => this.goOn({ ...sending, options, progress: newProgress(true) }, last, id),
        };
    }
    async goOn(sending, last, id) {
        const deadline = this.caller.deadline(sending.options);
        if (id === null)
            return this.settle(sending, deadline);
        const followed = await this.followed(sending, last, id, deadline);
        return followed === "not_sent" ? this.settle(sending, deadline) : followed;
    }
}
function keyHeader(held) {
    return held === null ? {} : { "Idempotency-Key": held.key };
}
function isRefused(got) {
    return got.kind === "answer" && got.status === 422 && got.failure?.code === "invalid_request";
}
/** What can be said of a final operation whose answer is no longer kept, or isn't shown to this caller. */
function withoutAnswer(operation, seen) {
    const { order_id, payment_id, amount, currency } = operation;
    if (operation.state === "succeeded") {
        return { ...seen, msg: operation.explanation, data: { order_id, payment_id, amount, currency }, failure: null };
    }
    const code = operation.state === "declined" ? "declined" : "conflict";
    const failure = { code, retry: "never", operation_id: operation.id };
    return { ...seen, status: code === "declined" ? 402 : 409, msg: operation.explanation, data: null, failure };
}
