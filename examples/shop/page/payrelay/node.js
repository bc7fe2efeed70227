/** A store of keys for Node: a folder of files. */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
/**
 * Keeps keys in a folder, which is made where it is missing and only its owner may read. Processes may share it.
 *
 * A text is written to a file of its own, brought to disk and then renamed, so that a crash leaves the old text or the new one. Of two
 * processes that put at the same moment, one comes last.
 */
export function fileStore(folder) {
    const pathOf = (name) => join(folder, `${createHash("sha256").update(name).digest("hex")}.json`);
    return {
        async get(name) {
            try {
                return await readFile(pathOf(name), "utf8");
            }
            catch (error) {
                if (error.code === "ENOENT")
                    return null;
                throw error;
            }
        },
        async put(name, text) {
            const made = await mkdir(folder, { recursive: true, mode: 0o700 });
            const path = pathOf(name);
            const temporary = `${path}.${randomUUID()}.tmp`;
            try {
                await written(temporary, text);
                await rename(temporary, path);
            }
            catch (error) {
                await rm(temporary, { force: true });
                throw error;
            }
            await synced(folder);
            if (made !== undefined)
                await synced(join(folder, ".."));
        },
    };
}
async function written(path, text) {
    const file = await open(path, "wx", 0o600);
    try {
        await file.writeFile(text, "utf8");
        await file.sync();
    }
    finally {
        await file.close();
    }
}
/** Brings a folder's names to disk; Windows has no such call, and writes them by itself. */
async function synced(folder) {
    if (process.platform === "win32")
        return;
    const file = await open(folder, "r");
    try {
        await file.sync();
    }
    finally {
        await file.close();
    }
}
