-- When the gateway's record last showed a payment as being given back, given back or charged back. payments_seen has only
-- how it stood when it was read last: a record that shows it as received again says that a refund failed.
CREATE TABLE returns_seen (
    merchant   text COLLATE "C" NOT NULL,
    payment_id text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    seen_at_ms bigint NOT NULL,
    row_digest text   NOT NULL,
    PRIMARY KEY (merchant, payment_id, status)
);
