/** A store of keys in React Native. */

import type { KeyStore } from "../keys.js";

/** What `@react-native-async-storage/async-storage` has, and others that are made like it. */
export interface AsyncStorage {
  getItem(name: string): Promise<string | null>;
  setItem(name: string, text: string): Promise<unknown>;
}

/** Keeps keys in an app's AsyncStorage. */
export function asyncStorageStore(storage: AsyncStorage, prefix = "payrelay/"): KeyStore {
  return {
    get: async (name) => (await storage.getItem(prefix + name)) ?? null,
    put: async (name, text) => {
      await storage.setItem(prefix + name, text);
    },
  };
}
