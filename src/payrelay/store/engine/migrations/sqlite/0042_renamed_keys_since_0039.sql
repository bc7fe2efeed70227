-- Stands for the digest that an operation's row had before the service put another Idempotency-Key into it: the earlier one
-- named a person whose data was erased.
CREATE TABLE renamed_keys (
    operation_id TEXT    NOT NULL PRIMARY KEY,
    version      INTEGER NOT NULL,
    masked       TEXT    NOT NULL,
    signature    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The statistics of its index, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('renamed_keys', 'renamed_keys', '1000 1');
ANALYZE sqlite_schema;
