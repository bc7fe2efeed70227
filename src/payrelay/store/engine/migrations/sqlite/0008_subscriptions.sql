-- What is known of each subscription: what notifications told, joined, and what the gateway showed when it was asked.
CREATE TABLE subscriptions (
    merchant        TEXT    NOT NULL,
    subscription_id TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    principal       TEXT,
    order_id        TEXT,
    currency        TEXT,
    amount_minor    INTEGER,
    told_state      TEXT,
    told_paid       INTEGER,
    told_next_on    TEXT,
    told_at_ms      INTEGER,
    seen_state      TEXT,
    seen_at_ms      INTEGER,
    version         INTEGER NOT NULL,
    PRIMARY KEY (merchant, subscription_id)
) STRICT, WITHOUT ROWID;

-- The installments that were tried, each once: paid, or failed.
CREATE TABLE installments (
    merchant        TEXT    NOT NULL,
    subscription_id TEXT    NOT NULL,
    payment         TEXT    NOT NULL,
    is_paid         INTEGER NOT NULL,
    amount_minor    INTEGER,
    at_ms           INTEGER NOT NULL,
    PRIMARY KEY (merchant, subscription_id, payment)
) STRICT, WITHOUT ROWID;
