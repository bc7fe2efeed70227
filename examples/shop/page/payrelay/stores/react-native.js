/** A store of keys in React Native. */
/** Keeps keys in an app's AsyncStorage. */
export function asyncStorageStore(storage, prefix = "payrelay/") {
    return {
        get: async (name) => (await storage.getItem(prefix + name)) ?? null,
        put: async (name, text) => {
            await storage.setItem(prefix + name, text);
        },
    };
}
