-- Payments from before Payrelay, as a shop's own tables or files told of them.

-- Each payment once, whatever files have it. place is the file and the line that it came from.
CREATE TABLE imported_payments (
    merchant        TEXT    NOT NULL,
    payment_id      TEXT    NOT NULL,
    principal       TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    currency        TEXT    NOT NULL,
    amount_minor    INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    subscription_id TEXT,
    paid_at_ms      INTEGER,
    imported_at_ms  INTEGER NOT NULL,
    imported_by     TEXT    NOT NULL,
    place           TEXT    NOT NULL,
    row_digest      TEXT    NOT NULL,
    PRIMARY KEY (merchant, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX imported_payments_order ON imported_payments (order_id, merchant);
CREATE INDEX imported_payments_newest ON imported_payments (merchant, length(payment_id), payment_id);
CREATE INDEX imported_payments_of ON imported_payments (principal);

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('imported_payments', 'imported_payments', '100000 50000 1'),
    ('imported_payments', 'imported_payments_order', '100000 2 2'),
    ('imported_payments', 'imported_payments_newest', '100000 50000 5000 1'),
    ('imported_payments', 'imported_payments_of', '100000 50000');
ANALYZE sqlite_schema;
