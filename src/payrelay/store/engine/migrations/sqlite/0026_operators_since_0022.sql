-- The people who may use the console. act is the number of the line in operator_acts that last changed the row.
CREATE TABLE operators (
    id               TEXT    NOT NULL PRIMARY KEY,
    email            TEXT    NOT NULL UNIQUE,
    name             TEXT    NOT NULL,
    role             TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    password_hash    TEXT,
    second_factor    TEXT,
    totp_step        INTEGER NOT NULL,
    provider_subject TEXT UNIQUE,
    version          INTEGER NOT NULL,
    act              INTEGER NOT NULL,
    created_at_ms    INTEGER NOT NULL,
    changed_at_ms    INTEGER NOT NULL,
    sealed_totp      BLOB,
    row_digest       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- One that ended has no digest, as in console_sessions.
CREATE TABLE operator_invitations (
    id            TEXT    NOT NULL PRIMARY KEY,
    operator_id   TEXT    NOT NULL,
    token_hash    TEXT    NOT NULL UNIQUE,
    made_at_ms    INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER,
    row_digest    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_invitations_open ON operator_invitations (operator_id) WHERE ended_at_ms IS NULL;

CREATE TABLE console_sessions (
    id          TEXT    NOT NULL PRIMARY KEY,
    operator_id TEXT    NOT NULL,
    token_hash  TEXT    NOT NULL UNIQUE,
    stage       TEXT    NOT NULL,
    began_at_ms INTEGER NOT NULL,
    seen_at_ms  INTEGER NOT NULL,
    ends_at_ms  INTEGER NOT NULL,
    client      TEXT    NOT NULL,
    browser     TEXT    NOT NULL,
    act         INTEGER NOT NULL,
    ended_at_ms INTEGER,
    row_digest  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_live ON console_sessions (operator_id, began_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX console_sessions_end ON console_sessions (ends_at_ms);

-- How often somebody tried to sign in, whichever process was asked. A count begins again a while after the last try.
CREATE TABLE sign_in_tries (
    subject    TEXT    NOT NULL PRIMARY KEY,
    tries      INTEGER NOT NULL,
    last_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_tries_last ON sign_in_tries (last_at_ms);

-- What operators did. The hash of a line covers the line and the hash of the one before it.
CREATE TABLE operator_acts (
    number      INTEGER NOT NULL PRIMARY KEY,
    at_ms       INTEGER NOT NULL,
    operator_id TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    act         TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    details     TEXT    NOT NULL,
    hash        TEXT    NOT NULL
) STRICT;
CREATE TRIGGER operator_acts_are_not_changed BEFORE UPDATE ON operator_acts
BEGIN
    SELECT RAISE(ABORT, 'operator_acts is append-only');
END;
CREATE TRIGGER operator_acts_are_not_removed BEFORE DELETE ON operator_acts
BEGIN
    SELECT RAISE(ABORT, 'operator_acts is append-only');
END;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('console_sessions', 'console_sessions', '1000 1'),
    ('console_sessions', 'console_sessions_end', '1000 1'),
    ('console_sessions', 'console_sessions_live', '20 2 1'),
    ('console_sessions', 'sqlite_autoindex_console_sessions_2', '1000 1'),
    ('operator_invitations', 'operator_invitations', '100 1'),
    ('operator_invitations', 'operator_invitations_open', '20 1'),
    ('operator_invitations', 'sqlite_autoindex_operator_invitations_2', '100 1'),
    ('operators', 'operators', '20 1'),
    ('operators', 'sqlite_autoindex_operators_2', '20 1'),
    ('operators', 'sqlite_autoindex_operators_3', '20 1'),
    ('sign_in_tries', 'sign_in_tries', '1000 1'),
    ('sign_in_tries', 'sign_in_tries_last', '1000 1');
ANALYZE sqlite_schema;
