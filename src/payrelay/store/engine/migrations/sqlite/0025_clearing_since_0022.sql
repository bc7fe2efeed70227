-- What the clearing of old data leaves and remembers.

-- Stands for the cleared beginning of a history: the first version that is kept, and the hash and the state before it.
CREATE TABLE history_checkpoints (
    operation_id TEXT    NOT NULL PRIMARY KEY,
    version      INTEGER NOT NULL,
    previous     TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    signature    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- What is left of the journal entries of an anchor's span: their number and the sum over them.
CREATE TABLE anchor_checkpoints (
    number    INTEGER NOT NULL PRIMARY KEY,
    anchor    TEXT    NOT NULL,
    entries   INTEGER NOT NULL,
    total     TEXT    NOT NULL,
    cleared   INTEGER NOT NULL,
    signature TEXT    NOT NULL
) STRICT;

-- How far the clearing of each kind of data has come: reached is the id of the last row that it looked at.
CREATE TABLE clearing (
    kind      TEXT    NOT NULL PRIMARY KEY,
    reached   TEXT    NOT NULL,
    cleared   INTEGER NOT NULL,
    ran_at_ms INTEGER NOT NULL
) STRICT;

-- What the clearing could not clear when it came by, to be tried again: an operation that was open then, or not anchored.
CREATE TABLE clearing_skipped (
    kind        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    tried_at_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX clearing_skipped_tried ON clearing_skipped (kind, tried_at_ms);

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('clearing', 'sqlite_autoindex_clearing_1', '10 1'),
    ('clearing_skipped', 'clearing_skipped', '1000 500 1'),
    ('clearing_skipped', 'clearing_skipped_tried', '1000 500 2'),
    ('history_checkpoints', 'history_checkpoints', '1000000 1');
ANALYZE sqlite_schema;

-- A journal entry is removed only where a checkpoint stands for it.
DROP TRIGGER history_is_not_removed;
CREATE TRIGGER history_is_not_removed BEFORE DELETE ON history
WHEN NOT EXISTS (
    SELECT 1 FROM history_checkpoints WHERE operation_id = OLD.operation_id AND version > OLD.version
)
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;
