-- What customers are asked for on the gateway's pages. The customers' data lies sealed, for as long as it is needed.
CREATE TABLE checkouts (
    id                 text    NOT NULL PRIMARY KEY,
    account            text    NOT NULL,
    merchant           text    NOT NULL,
    principal          text    NOT NULL,
    kind               text    NOT NULL,
    state              text    NOT NULL,
    version            bigint  NOT NULL,
    order_id           text    NOT NULL,
    guard              text,
    amount_minor       bigint,
    first_minor        bigint,
    currency           text    NOT NULL,
    secret_hash        text    NOT NULL,
    idempotency_key    text,
    request_id         text    NOT NULL,
    customer_reference text,
    bound_customer_id  text,
    payment_id         text,
    subscription_id    text,
    customer_id        text,
    created_at_ms      bigint  NOT NULL,
    updated_at_ms      bigint  NOT NULL,
    expires_at_ms      bigint  NOT NULL,
    opened_at_ms       bigint,
    ends_at_ms         bigint  NOT NULL,
    look_at_ms         bigint  NOT NULL,
    sealed             bytea
);

-- One order of a merchant is held by one checkout at a time.
CREATE UNIQUE INDEX checkouts_guard ON checkouts (merchant, guard) WHERE guard IS NOT NULL;
CREATE UNIQUE INDEX checkouts_key ON checkouts (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX checkouts_order ON checkouts (merchant, order_id);
CREATE INDEX checkouts_payment ON checkouts (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX checkouts_ending ON checkouts (ends_at_ms) WHERE state = 'open';
CREATE INDEX checkouts_forgettable ON checkouts (updated_at_ms) WHERE sealed IS NOT NULL AND state <> 'open';
