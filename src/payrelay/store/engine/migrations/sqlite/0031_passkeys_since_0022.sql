-- The passkeys of operators. act is the number of the line in operator_acts that last changed the row.
CREATE TABLE operator_passkeys (
    id            TEXT    NOT NULL PRIMARY KEY,
    operator_id   TEXT    NOT NULL,
    credential_id TEXT    NOT NULL UNIQUE,
    credential    TEXT    NOT NULL,
    host          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    sign_count    INTEGER NOT NULL,
    made_at_ms    INTEGER NOT NULL,
    used_at_ms    INTEGER,
    copied_at_ms  INTEGER,
    version       INTEGER NOT NULL,
    act           INTEGER NOT NULL,
    row_digest    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_passkeys_of ON operator_passkeys (operator_id, made_at_ms);

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('operator_passkeys', 'operator_passkeys', '40 1'),
    ('operator_passkeys', 'operator_passkeys_of', '40 2 1'),
    ('operator_passkeys', 'sqlite_autoindex_operator_passkeys_2', '40 1');
ANALYZE sqlite_schema;
