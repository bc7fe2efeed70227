-- Operations, their history, what is sealed of them, the credentials, and what the store keeps about itself.
-- Times are milliseconds since 1970, UTC; money is in hundredths; ids are text, for a 64-bit id does not fit in JSON.

CREATE TABLE operations (
    id               TEXT    NOT NULL PRIMARY KEY,
    account          TEXT    NOT NULL,
    merchant         TEXT    NOT NULL,
    principal        TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    subject          TEXT    NOT NULL,
    guard            TEXT,
    claim            TEXT,
    claim_ends_at_ms INTEGER,
    idempotency_key  TEXT,
    fingerprint      TEXT    NOT NULL,
    request_id       TEXT    NOT NULL,
    order_id         TEXT,
    payment_id       TEXT,
    subscription_id  TEXT,
    amount_minor     INTEGER,
    currency         TEXT,
    result_ref       TEXT,
    created_at_ms    INTEGER NOT NULL,
    updated_at_ms    INTEGER NOT NULL,
    send_by_ms       INTEGER NOT NULL,
    -- What must not lie in clear. Last, so that a row is read without them where they are not asked for.
    sealed_call      BLOB    NOT NULL,
    sealed_answer    BLOB
) STRICT;

-- The two locks that everything rests on: one operation a claim, one a guard.
CREATE UNIQUE INDEX operations_claim ON operations (claim, principal) WHERE claim IS NOT NULL;
CREATE UNIQUE INDEX operations_guard ON operations (merchant, guard) WHERE guard IS NOT NULL;

CREATE INDEX operations_under_way ON operations (send_by_ms) WHERE state IN ('accepted', 'sending');
CREATE INDEX operations_open ON operations (state, id) WHERE state IN ('pending', 'unknown', 'needs_attention');
CREATE INDEX operations_claim_ends ON operations (claim_ends_at_ms) WHERE claim_ends_at_ms IS NOT NULL;
CREATE INDEX operations_principal ON operations (principal, id);
-- An operation that holds its claim is found by that; only one that gave it back is found here by its key.
CREATE INDEX operations_key ON operations (idempotency_key, id) WHERE idempotency_key IS NOT NULL AND claim IS NULL;
CREATE INDEX operations_order ON operations (order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_payment ON operations (payment_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX operations_subscription ON operations (subscription_id, id) WHERE subscription_id IS NOT NULL;
CREATE INDEX operations_result ON operations (result_ref) WHERE result_ref IS NOT NULL;

CREATE TABLE history (
    operation_id TEXT    NOT NULL REFERENCES operations (id),
    version      INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    event        TEXT,
    state        TEXT    NOT NULL,
    evidence     TEXT    NOT NULL,
    PRIMARY KEY (operation_id, version)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER history_is_not_changed BEFORE UPDATE ON history
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;

CREATE TRIGGER history_is_not_removed BEFORE DELETE ON history
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;

CREATE TABLE credentials (
    id               TEXT    NOT NULL PRIMARY KEY,
    principal        TEXT    NOT NULL,
    key_hash         BLOB    NOT NULL,
    scopes           TEXT    NOT NULL,
    accounts         TEXT,
    amount_max_minor INTEGER,
    rate_count       INTEGER,
    rate_window_s    INTEGER,
    created_at_ms    INTEGER NOT NULL,
    expires_at_ms    INTEGER,
    revoked_at_ms    INTEGER
) STRICT;

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
