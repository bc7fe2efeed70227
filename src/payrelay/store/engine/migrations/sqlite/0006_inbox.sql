-- What gateways post of their own accord: each once, however often it comes. The digest is that of the whole body, which
-- lies sealed; in clear is what support needs to find it.
CREATE TABLE notifications (
    id              TEXT    NOT NULL PRIMARY KEY,
    account         TEXT    NOT NULL,
    merchant        TEXT    NOT NULL,
    digest          TEXT    NOT NULL,
    verdict         TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    why             TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    kind            TEXT    NOT NULL,
    told            TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    payment_id      TEXT,
    subscription_id TEXT,
    amount_minor    INTEGER,
    currency        TEXT    NOT NULL,
    message_type    TEXT,
    received_at_ms  INTEGER NOT NULL,
    last_at_ms      INTEGER NOT NULL,
    repeats         INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    next_at_ms      INTEGER,
    gives_up_at_ms  INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    sealed_body     BLOB
) STRICT;
CREATE UNIQUE INDEX notifications_digest ON notifications (merchant, digest);
CREATE INDEX notifications_due ON notifications (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX notifications_order ON notifications (merchant, order_id, received_at_ms);
CREATE INDEX notifications_state ON notifications (state, id);
CREATE INDEX notifications_refused ON notifications (merchant, received_at_ms) WHERE state = 'refused';
CREATE INDEX notifications_body ON notifications (received_at_ms) WHERE sealed_body IS NOT NULL;

-- Which token was accepted for an order: the first. Another one under the same signature is for a person. The token of a
-- hold lies sealed beside its hash: it is what the hold is captured by.
CREATE TABLE accepted_tokens (
    merchant        TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    token_hash      TEXT    NOT NULL,
    sealed_token    BLOB    NOT NULL,
    notification_id TEXT    NOT NULL,
    accepted_at_ms  INTEGER NOT NULL,
    PRIMARY KEY (merchant, order_id, kind)
) STRICT, WITHOUT ROWID;

-- What was charged back, by payment.
CREATE TABLE chargebacks (
    merchant        TEXT    NOT NULL,
    payment_id      TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    principal       TEXT    NOT NULL,
    operation_id    TEXT,
    amount_minor    INTEGER,
    currency        TEXT    NOT NULL,
    notification_id TEXT    NOT NULL,
    noted_at_ms     INTEGER NOT NULL,
    PRIMARY KEY (merchant, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chargebacks_operation ON chargebacks (operation_id) WHERE operation_id IS NOT NULL;
