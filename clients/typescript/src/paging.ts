/** Lists as iterations, which fetch the next page by themselves. */

/** A page, and how to ask for the one after it; null at the end. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: (() => Promise<Page<T>>) | null;
}

/** A list: `for await (const each of list)`, page by page, or all at once. */
export class Pages<T> implements AsyncIterable<T> {
  constructor(private readonly first: () => Promise<Page<T>>) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page;
  }

  /** Gives whole pages, each as one answer had it. */
  async *pages(): AsyncGenerator<readonly T[], void, undefined> {
    for (let page: Page<T> | undefined = await this.first(); page; page = await page.next?.()) yield page.items;
  }

  /** Gives all in an array. */
  async all(): Promise<T[]> {
    const all: T[] = [];
    for await (const each of this) all.push(each);
    return all;
  }
}

/** Reads the address of the next page from a Link header; null where there is none. */
export function nextLink(header: string | null): string | null {
  for (const link of header?.split(/,\s*(?=<)/) ?? []) {
    const parts = /^\s*<([^>]*)>\s*;(.*)$/.exec(link);
    if (parts?.[1] !== undefined && /(^|;)\s*rel="?next"?\s*(;|$)/.test(parts[2] ?? "")) return parts[1];
  }
  return null;
}

/** Gives a member of an address's query; null where it has none. */
export function queryMember(address: string, name: string): string | null {
  for (const part of (address.split("?")[1] ?? "").split("#")[0]?.split("&") ?? []) {
    const [key, value = ""] = part.split("=");
    if (key === name) return decodeURIComponent(value.replace(/\+/g, " "));
  }
  return null;
}
