<?php

declare(strict_types=1);

namespace Payrelay;

/** Where keys are stored: two functions over texts. */
interface Store
{
    /** Gives what was put last under a name; null where nothing was. Throws where it can't be read. */
    public function get(string $name): ?string;

    /** Stores a text in place of the last one, and returns once it is durable. Throws where it isn't. */
    public function put(string $name, string $text): void;
}

/** What is stored of a payment: its newest attempt. @internal */
final class Record
{
    private const KEY_LENGTH_MAX = 255;

    /** @param 'open'|'done'|'nothing' $state */
    public function __construct(
        public readonly string $name,
        public readonly int $attempt,
        public readonly string $state = 'open',
        public readonly bool $isRefused = false,
        public readonly ?string $checkoutId = null,
    ) {
    }

    /** Gives the record of an attempt that begins. @throws NameNeeded where its key would be too long */
    public static function begun(string $name, int $attempt): self
    {
        $record = new self($name, $attempt);
        if (strlen($record->key()) > self::KEY_LENGTH_MAX) {
            throw new NameNeeded('the key would have more than ' . self::KEY_LENGTH_MAX . ' characters');
        }
        return $record;
    }

    /** Gives the name of a payment in the store. @throws NameNeeded where it has none, or one that is no Unicode */
    public static function nameOf(string $kind, string $account, ?string $name): string
    {
        if ($name === null || $name === '') {
            throw new NameNeeded("a $kind needs a name of its own, which is the same after a crash");
        }
        if (preg_match('//u', $name) !== 1) {
            throw new NameNeeded("the name of the $kind is no valid Unicode");
        }
        return "$kind/$account/" . rawurlencode($name);
    }

    /** @throws StoreFailed for what is no record */
    public static function read(string $name, string $text): self
    {
        $members = json_decode($text, true);
        $attempt = is_array($members) ? ($members['attempt'] ?? null) : null;
        if (is_int($attempt) && $attempt > 0 && ($members['v'] ?? null) === 1) {
            $state = $members['state'] ?? null;
            $checkoutId = is_string($members['checkout_id'] ?? null) ? $members['checkout_id'] : null;
            if (in_array($state, ['open', 'done', 'nothing'], true) && ($members['key'] ?? null) === "$name/$attempt") {
                return new self($name, $attempt, $state, ($members['refused'] ?? false) === true, $checkoutId);
            }
        }
        throw new StoreFailed("the store has no record of this package under $name");
    }

    public function key(): string
    {
        return "{$this->name}/{$this->attempt}";
    }

    public function text(): string
    {
        $members = ['v' => 1, 'attempt' => $this->attempt, 'key' => $this->key(), 'state' => $this->state];
        $members += $this->isRefused ? ['refused' => true] : [];
        $members += $this->checkoutId === null ? [] : ['checkout_id' => $this->checkoutId];
        return json_encode($members, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
    }
}

/** A folder with a file for each payment; each text is written to a new file, synced, and put in place of the last one. */
final class FileStore implements Store
{
    public function __construct(private readonly string $folder)
    {
    }

    public function get(string $name): ?string
    {
        $file = $this->file($name);
        clearstatcache(true, $file);
        if (!file_exists($file)) {
            return null;
        }
        $text = @file_get_contents($file);
        return $text === false ? throw new \RuntimeException("$file could not be read") : $text;
    }

    public function put(string $name, string $text): void
    {
        if (!is_dir($this->folder) && !@mkdir($this->folder, 0700, true) && !is_dir($this->folder)) {
            throw new \RuntimeException("the folder {$this->folder} could not be made");
        }
        $file = $this->file($name);
        $new = $file . '.' . bin2hex(random_bytes(8)) . '.new';
        $handle = @fopen($new, 'x');
        try {
            $isWritten = $handle !== false && fwrite($handle, $text) === strlen($text) && fflush($handle) && fsync($handle);
            if ($handle !== false) {
                fclose($handle);
            }
            if (!$isWritten || !@rename($new, $file)) {
                throw new \RuntimeException("$file could not be written");
            }
        } finally {
            if (file_exists($new)) {
                @unlink($new);
            }
        }
        $this->syncFolder();
    }

    private function file(string $name): string
    {
        return $this->folder . '/' . hash('sha256', $name) . '.json';
    }

    /** Where PHP can't open a folder (on Windows), the file system itself orders the rename. */
    private function syncFolder(): void
    {
        $handle = @fopen($this->folder, 'r');
        if ($handle !== false) {
            @fsync($handle);
            fclose($handle);
        }
    }
}

/**
 * A table with a row for each payment, by PDO: name VARCHAR(255) PRIMARY KEY, record TEXT NOT NULL.
 *
 * The connection should be of its own: inside of a transaction of the shop's, nothing is durable, and put() throws.
 */
final class PdoStore implements Store
{
    public function __construct(private readonly \PDO $pdo, private readonly string $table = 'payrelay_keys')
    {
        if (preg_match('/^[A-Za-z_][A-Za-z0-9_.]{0,62}$/D', $table) !== 1) {
            throw new \InvalidArgumentException("$table is no name of a table");
        }
        $pdo->setAttribute(\PDO::ATTR_ERRMODE, \PDO::ERRMODE_EXCEPTION);
    }

    public function createTable(): void
    {
        $this->pdo->exec(
            "CREATE TABLE IF NOT EXISTS {$this->table} (name VARCHAR(255) PRIMARY KEY, record TEXT NOT NULL)"
        );
    }

    public function get(string $name): ?string
    {
        $statement = $this->pdo->prepare("SELECT record FROM {$this->table} WHERE name = ?");
        $statement->execute([$name]);
        $text = $statement->fetchColumn();
        return $text === false ? null : (string) $text;
    }

    public function put(string $name, string $text): void
    {
        if ($this->pdo->inTransaction()) {
            throw new \LogicException('a key is not durable inside of a transaction');
        }
        if ($this->get($name) !== null) {
            $this->pdo->prepare("UPDATE {$this->table} SET record = ? WHERE name = ?")->execute([$text, $name]);
        } else {
            $this->pdo->prepare("INSERT INTO {$this->table} (name, record) VALUES (?, ?)")->execute([$name, $text]);
        }
    }
}
