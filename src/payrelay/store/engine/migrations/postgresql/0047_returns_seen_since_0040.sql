-- When the gateway's record first showed a payment as being given back, given back or charged back since it showed it as
-- received, and when it showed that. payments_seen has only how it stood when it was read last.
CREATE TABLE returns_seen (
    merchant   text COLLATE "C" NOT NULL,
    payment_id text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    seen_at_ms bigint NOT NULL,
    row_digest text   NOT NULL,
    PRIMARY KEY (merchant, payment_id, status)
);
