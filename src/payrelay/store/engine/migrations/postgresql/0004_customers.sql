-- Stored customers: who approved a card, and the gateway's token that charges it. In clear is what can be shown anybody;
-- names and the token are sealed, and what is looked for by is hashed with a key of ours.
CREATE TABLE customers (
    id             text    NOT NULL PRIMARY KEY,
    account        text    NOT NULL,
    merchant       text    NOT NULL,
    principal      text    NOT NULL,
    state          text    NOT NULL CHECK (state IN ('active', 'removed', 'erased')),
    version        bigint  NOT NULL,
    method         text,
    card_no_masked text,
    card_expiry    text,
    order_id       text,
    payment_id     text,
    created_at_ms  bigint  NOT NULL,
    updated_at_ms  bigint  NOT NULL,
    token_hash     text    NOT NULL,
    reference_hash text,
    sealed_names   bytea,
    sealed_holder  bytea,
    sealed_token   bytea,
    CHECK ((sealed_token IS NOT NULL) = (state = 'active')),
    CHECK (state <> 'erased' OR (
        sealed_names IS NULL AND sealed_holder IS NULL AND reference_hash IS NULL AND card_no_masked IS NULL
        AND card_expiry IS NULL AND method IS NULL
    ))
);
-- One customer a token, for each principal; one that was removed makes room.
CREATE UNIQUE INDEX customers_active ON customers (merchant, principal, token_hash) WHERE state = 'active';
CREATE INDEX customers_token ON customers (merchant, principal, token_hash, id);
CREATE INDEX customers_of ON customers (merchant, principal, id);
CREATE INDEX customers_reference ON customers (merchant, principal, reference_hash, id)
    WHERE reference_hash IS NOT NULL;

-- The stored customer that an operation was asked for by its handle.
ALTER TABLE operations ADD COLUMN customer_id text;
CREATE INDEX operations_customer ON operations (customer_id, id) WHERE customer_id IS NOT NULL;
