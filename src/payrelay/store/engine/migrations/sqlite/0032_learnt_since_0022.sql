-- When it became known that a page or an installment was paid, the first time. Rows of before this table have none.
-- subject is what the books call it: the checkout's id, or sub/, the subscription and the payment.
CREATE TABLE payments_learnt (
    merchant     TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    learnt_at_ms INTEGER NOT NULL,
    PRIMARY KEY (merchant, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_learnt_at ON payments_learnt (merchant, learnt_at_ms, subject);

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('payments_learnt', 'payments_learnt', '300000 150000 1'),
    ('payments_learnt', 'payments_learnt_at', '300000 150000 1 1');
ANALYZE sqlite_schema;
