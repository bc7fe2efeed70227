-- Refunds that succeeded, as the gateway answered, and that failed later, as its record shows; and when that was seen.
CREATE TABLE failed_refunds (
    operation_id text   COLLATE "C" NOT NULL PRIMARY KEY,
    merchant     text   COLLATE "C" NOT NULL,
    payment_id   text   COLLATE "C" NOT NULL,
    known_at_ms  bigint NOT NULL,
    row_digest   text   NOT NULL
);
CREATE INDEX failed_refunds_payment ON failed_refunds (merchant, payment_id);
CREATE INDEX failed_refunds_known ON failed_refunds (merchant, known_at_ms, operation_id);
