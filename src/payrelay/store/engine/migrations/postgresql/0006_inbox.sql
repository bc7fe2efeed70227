-- What gateways post of their own accord: each once, however often it comes. The digest is that of the whole body, which
-- lies sealed; in clear is what support needs to find it.
CREATE TABLE notifications (
    id              text   NOT NULL PRIMARY KEY,
    account         text   NOT NULL,
    merchant        text   NOT NULL,
    digest          text   NOT NULL,
    verdict         text   NOT NULL,
    state           text   NOT NULL,
    why             text   NOT NULL,
    version         bigint NOT NULL,
    kind            text   NOT NULL,
    told            text   NOT NULL,
    order_id        text   NOT NULL,
    payment_id      text,
    subscription_id text,
    amount_minor    bigint,
    currency        text   NOT NULL,
    message_type    text,
    received_at_ms  bigint NOT NULL,
    last_at_ms      bigint NOT NULL,
    repeats         bigint NOT NULL,
    attempts        bigint NOT NULL,
    next_at_ms      bigint,
    gives_up_at_ms  bigint NOT NULL,
    updated_at_ms   bigint NOT NULL,
    sealed_body     bytea
);
CREATE UNIQUE INDEX notifications_digest ON notifications (merchant, digest);
CREATE INDEX notifications_due ON notifications (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX notifications_order ON notifications (merchant, order_id, received_at_ms);
CREATE INDEX notifications_state ON notifications (state, id);
CREATE INDEX notifications_refused ON notifications (merchant, received_at_ms) WHERE state = 'refused';
CREATE INDEX notifications_body ON notifications (received_at_ms) WHERE sealed_body IS NOT NULL;

-- Which token was accepted for an order: the first. Another one under the same signature is for a person. The token of a
-- hold lies sealed beside its hash: it is what the hold is captured by.
CREATE TABLE accepted_tokens (
    merchant        text   NOT NULL,
    order_id        text   NOT NULL,
    kind            text   NOT NULL,
    token_hash      text   NOT NULL,
    sealed_token    bytea  NOT NULL,
    notification_id text   NOT NULL,
    accepted_at_ms  bigint NOT NULL,
    PRIMARY KEY (merchant, order_id, kind)
);

-- What was charged back, by payment.
CREATE TABLE chargebacks (
    merchant        text   NOT NULL,
    payment_id      text   NOT NULL,
    order_id        text   NOT NULL,
    account         text   NOT NULL,
    principal       text   NOT NULL,
    operation_id    text,
    amount_minor    bigint,
    currency        text   NOT NULL,
    notification_id text   NOT NULL,
    noted_at_ms     bigint NOT NULL,
    PRIMARY KEY (merchant, payment_id)
);
CREATE INDEX chargebacks_operation ON chargebacks (operation_id) WHERE operation_id IS NOT NULL;
