/** Server-sent events of one operation or checkout, taken up again where the connection breaks. */
import { newProgress } from "./calls.js";
import { NoAnswer, PayrelayError, Stopped } from "./errors.js";
import { parseJson } from "./json.js";
import { readAnswer } from "./transport.js";
/** Longer than the service is ever silent: a comment comes every 15 s. */
const SILENCE_MS = 45_000;
const BROKEN = { kind: "lost", reason: "no_answer", message: "the stream broke", headers: null };
/**
 * Gives the events of a subject, first those that are known already; ends when the call's time is over.
 *
 * Where the connection breaks it goes on after the last event. Throws as a read does; `Stopped`; and `NoAnswer` with the code
 * `no_stream` where `fetch` gives no streams, as in React Native.
 */
export async function* openStream(caller, subject, options = {}) {
    const deadline = caller.deadline(options);
    const progress = newProgress();
    let after = options.after ?? 0;
    while (deadline.leftS > 0) {
        const connection = new Connection(options, deadline, caller.limits.timeoutS * 1000);
        let broken = BROKEN;
        try {
            const response = await caller.open({ method: "GET", path: "/events/stream", query: { subject, after } }, connection.signal, { Accept: "text/event-stream" });
            connection.hear();
            if (response.status === 200) {
                for await (const event of eventsIn(response, connection)) {
                    progress.tries = 0;
                    after = event.position;
                    yield event;
                }
            }
            else {
                broken = await brokenBy(caller, response, progress);
            }
        }
        catch (error) {
            if (options.signal?.aborted)
                throw new Stopped(false, options.signal.reason);
            if (error instanceof PayrelayError)
                throw error;
            if (deadline.leftS <= 0)
                return;
        }
        finally {
            connection.end();
        }
        progress.tries += 1;
        if (progress.tries >= caller.limits.tries)
            throw caller.errorOf(broken);
        if (!(await caller.waited(broken, deadline, progress, options.signal)))
            return;
    }
}
/** Says what a refused stream means: throws an error that the same request will get again. */
async function brokenBy(caller, response, progress) {
    const got = readAnswer(response, await response.text());
    if (got.kind === "lost")
        return got;
    if (got.status === 401 && !progress.isRefreshed && caller.refresh()) {
        progress.isRefreshed = true;
    }
    else if (got.failure?.retry === "never") {
        throw caller.errorOf(got);
    }
    return { ...BROKEN, message: got.msg, headers: got.headers };
}
/** The signal of one connection, which ends with the call, with its time, and after too long a silence: at first that of a request. */
class Connection {
    options;
    controller = new AbortController();
    total;
    silence;
    abort = () => this.controller.abort();
    constructor(options, deadline, beginsWithinMs) {
        this.options = options;
        if (options.signal?.aborted)
            this.abort();
        options.signal?.addEventListener("abort", this.abort);
        this.total = setTimeout(this.abort, Math.max(1, deadline.leftS * 1000));
        this.abortAfter(beginsWithinMs);
    }
    get signal() {
        return this.controller.signal;
    }
    hear() {
        this.abortAfter(SILENCE_MS);
    }
    abortAfter(ms) {
        clearTimeout(this.silence);
        this.silence = setTimeout(this.abort, ms);
    }
    end() {
        clearTimeout(this.silence);
        clearTimeout(this.total);
        this.options.signal?.removeEventListener("abort", this.abort);
        this.abort();
    }
}
async function* eventsIn(response, connection) {
    if (!response.body)
        throw new NoAnswer("this fetch gives no streams", { code: "no_stream" });
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done)
            return;
        connection.hear();
        text += decoder.decode(value, { stream: true });
        const blocks = text.split(/\r?\n\r?\n/);
        text = blocks.pop() ?? "";
        for (const block of blocks) {
            const data = block
                .split(/\r?\n/)
                .filter((line) => line.startsWith("data:"))
                .map((line) => line.slice("data:".length).trimStart());
            if (data.length > 0)
                yield parseJson(data.join("\n"));
        }
    }
}
