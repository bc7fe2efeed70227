-- What is known of each subscription: what notifications told, joined, and what the gateway showed when it was asked.
CREATE TABLE subscriptions (
    merchant        text   NOT NULL,
    subscription_id text   NOT NULL,
    account         text   NOT NULL,
    principal       text,
    order_id        text,
    currency        text,
    amount_minor    bigint,
    told_state      text,
    told_paid       bigint,
    told_next_on    text,
    told_at_ms      bigint,
    seen_state      text,
    seen_at_ms      bigint,
    version         bigint NOT NULL,
    PRIMARY KEY (merchant, subscription_id)
);

-- The installments that were tried, each once: paid, or failed.
CREATE TABLE installments (
    merchant        text   NOT NULL,
    subscription_id text   NOT NULL,
    payment         text   NOT NULL,
    is_paid         bigint NOT NULL,
    amount_minor    bigint,
    at_ms           bigint NOT NULL,
    PRIMARY KEY (merchant, subscription_id, payment)
);
