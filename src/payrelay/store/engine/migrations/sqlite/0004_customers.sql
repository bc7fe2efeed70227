-- Stored customers: who approved a card, and the gateway's token that charges it. In clear is what can be shown anybody;
-- names and the token are sealed, and what is looked for by is hashed with a key of ours.
CREATE TABLE customers (
    id             TEXT    NOT NULL PRIMARY KEY,
    account        TEXT    NOT NULL,
    merchant       TEXT    NOT NULL,
    principal      TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('active', 'removed', 'erased')),
    version        INTEGER NOT NULL,
    method         TEXT,
    card_no_masked TEXT,
    card_expiry    TEXT,
    order_id       TEXT,
    payment_id     TEXT,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    token_hash     TEXT    NOT NULL,
    reference_hash TEXT,
    sealed_names   BLOB,
    sealed_holder  BLOB,
    sealed_token   BLOB,
    CHECK ((sealed_token IS NOT NULL) = (state = 'active')),
    CHECK (state <> 'erased' OR (
        sealed_names IS NULL AND sealed_holder IS NULL AND reference_hash IS NULL AND card_no_masked IS NULL
        AND card_expiry IS NULL AND method IS NULL
    ))
) STRICT;
-- One customer a token, for each principal; one that was removed makes room.
CREATE UNIQUE INDEX customers_active ON customers (merchant, principal, token_hash) WHERE state = 'active';
CREATE INDEX customers_token ON customers (merchant, principal, token_hash, id);
CREATE INDEX customers_of ON customers (merchant, principal, id);
CREATE INDEX customers_reference ON customers (merchant, principal, reference_hash, id)
    WHERE reference_hash IS NOT NULL;

-- The stored customer that an operation was asked for by its handle.
ALTER TABLE operations ADD COLUMN customer_id TEXT;
CREATE INDEX operations_customer ON operations (customer_id, id) WHERE customer_id IS NOT NULL;
