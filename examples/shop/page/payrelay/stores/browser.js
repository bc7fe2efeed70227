/** Stores of keys in a browser. */
const TABLE = "keys";
/** Keeps keys in the page's IndexedDB, written to disk before a key is sent. */
export function indexedDbStore(databaseName = "payrelay") {
    let opened = null;
    const database = () => {
        opened ??= new Promise((resolve, reject) => {
            const request = indexedDB.open(databaseName, 1);
            request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
            request.onsuccess = () => {
                // Another page may want to change the database; the next use opens it again.
                request.result.onversionchange = () => {
                    request.result.close();
                    opened = null;
                };
                request.result.onclose = () => {
                    opened = null;
                };
                resolve(request.result);
            };
            request.onerror = () => reject(request.error ?? new Error("IndexedDB could not be opened"));
            request.onblocked = () => reject(new Error("IndexedDB is blocked by another page"));
        }).catch((error) => {
            opened = null;
            throw error;
        });
        return opened;
    };
    return {
        async get(name) {
            const transaction = (await database()).transaction(TABLE, "readonly");
            const request = transaction.objectStore(TABLE).get(name);
            await ended(transaction);
            return request.result ?? null;
        },
        async put(name, text) {
            const transaction = (await database()).transaction(TABLE, "readwrite", { durability: "strict" });
            transaction.objectStore(TABLE).put(text, name);
            await ended(transaction);
        },
    };
}
/** Keeps keys in the page's `localStorage`; for browsers without IndexedDB. A browser may write it to disk a little later. */
export function localStorageStore(prefix = "payrelay/", storage = globalThis.localStorage) {
    return {
        get: async (name) => storage.getItem(prefix + name),
        put: async (name, text) => storage.setItem(prefix + name, text),
    };
}
function ended(transaction) {
    return new Promise((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error ?? new Error("IndexedDB gave up"));
        transaction.onerror = () => reject(transaction.error ?? new Error("IndexedDB failed"));
    });
}
