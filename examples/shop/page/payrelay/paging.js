/** Lists as iterations, which fetch the next page by themselves. */
/** A list: `for await (const each of list)`, page by page, or all at once. */
export class Pages {
    first;
    constructor(first) {
        this.first = first;
    }
    async *[Symbol.asyncIterator]() {
        for await (const page of this.pages())
            yield* page;
    }
    /** Gives whole pages, each as one answer had it. */
    async *pages() {
        for (let page = await this.first(); page; page = await page.next?.())
            yield page.items;
    }
    /** Gives all in an array. */
    async all() {
        const all = [];
        for await (const each of this)
            all.push(each);
        return all;
    }
}
/** Reads the address of the next page from a Link header; null where there is none. */
export function nextLink(header) {
    for (const link of header?.split(/,\s*(?=<)/) ?? []) {
        const parts = /^\s*<([^>]*)>\s*;(.*)$/.exec(link);
        if (parts?.[1] !== undefined && /(^|;)\s*rel="?next"?\s*(;|$)/.test(parts[2] ?? ""))
            return parts[1];
    }
    return null;
}
/** Gives a member of an address's query; null where it has none. */
export function queryMember(address, name) {
    for (const part of (address.split("?")[1] ?? "").split("#")[0]?.split("&") ?? []) {
        const [key, value = ""] = part.split("=");
        if (key === name)
            return decodeURIComponent(value.replace(/\+/g, " "));
    }
    return null;
}
