-- Refunds that succeeded, as the gateway answered, and that failed later, as its record shows; and when that was seen.
CREATE TABLE failed_refunds (
    operation_id TEXT    NOT NULL PRIMARY KEY,
    merchant     TEXT    NOT NULL,
    payment_id   TEXT    NOT NULL,
    known_at_ms  INTEGER NOT NULL,
    row_digest   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX failed_refunds_payment ON failed_refunds (merchant, payment_id);
CREATE INDEX failed_refunds_known ON failed_refunds (merchant, known_at_ms, operation_id);

-- The statistics of these, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('failed_refunds', 'failed_refunds', '200 1'),
    ('failed_refunds', 'failed_refunds_payment', '200 100 1'),
    ('failed_refunds', 'failed_refunds_known', '200 100 1 1');
ANALYZE sqlite_schema;
