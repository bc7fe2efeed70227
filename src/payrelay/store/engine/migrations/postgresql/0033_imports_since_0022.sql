-- Payments from before Payrelay, as a shop's own tables or files told of them.

-- Each payment once, whatever files have it. place is the file and the line that it came from.
CREATE TABLE imported_payments (
    merchant        text COLLATE "C" NOT NULL,
    payment_id      text COLLATE "C" NOT NULL,
    principal       text COLLATE "C" NOT NULL,
    account         text   NOT NULL,
    order_id        text COLLATE "C" NOT NULL,
    currency        text   NOT NULL,
    amount_minor    bigint NOT NULL,
    status          text   NOT NULL,
    subscription_id text,
    paid_at_ms      bigint,
    imported_at_ms  bigint NOT NULL,
    imported_by     text   NOT NULL,
    place           text   NOT NULL,
    row_digest      text   NOT NULL,
    PRIMARY KEY (merchant, payment_id)
);
CREATE INDEX imported_payments_order ON imported_payments (order_id, merchant);
CREATE INDEX imported_payments_newest ON imported_payments (merchant, length(payment_id), payment_id);
CREATE INDEX imported_payments_of ON imported_payments (principal);
