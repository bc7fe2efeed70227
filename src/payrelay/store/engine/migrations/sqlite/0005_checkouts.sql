-- What customers are asked for on the gateway's pages. The customers' data lies sealed, for as long as it is needed.
CREATE TABLE checkouts (
    id                 TEXT    NOT NULL PRIMARY KEY,
    account            TEXT    NOT NULL,
    merchant           TEXT    NOT NULL,
    principal          TEXT    NOT NULL,
    kind               TEXT    NOT NULL,
    state              TEXT    NOT NULL,
    version            INTEGER NOT NULL,
    order_id           TEXT    NOT NULL,
    guard              TEXT,
    amount_minor       INTEGER,
    first_minor        INTEGER,
    currency           TEXT    NOT NULL,
    secret_hash        TEXT    NOT NULL,
    idempotency_key    TEXT,
    request_id         TEXT    NOT NULL,
    customer_reference TEXT,
    bound_customer_id  TEXT,
    payment_id         TEXT,
    subscription_id    TEXT,
    customer_id        TEXT,
    created_at_ms      INTEGER NOT NULL,
    updated_at_ms      INTEGER NOT NULL,
    expires_at_ms      INTEGER NOT NULL,
    opened_at_ms       INTEGER,
    ends_at_ms         INTEGER NOT NULL,
    look_at_ms         INTEGER NOT NULL,
    sealed             BLOB
) STRICT;

-- One order of a merchant is held by one checkout at a time.
CREATE UNIQUE INDEX checkouts_guard ON checkouts (merchant, guard) WHERE guard IS NOT NULL;
CREATE UNIQUE INDEX checkouts_key ON checkouts (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX checkouts_order ON checkouts (merchant, order_id);
CREATE INDEX checkouts_payment ON checkouts (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX checkouts_ending ON checkouts (ends_at_ms) WHERE state = 'open';
CREATE INDEX checkouts_forgettable ON checkouts (updated_at_ms) WHERE sealed IS NOT NULL AND state <> 'open';
