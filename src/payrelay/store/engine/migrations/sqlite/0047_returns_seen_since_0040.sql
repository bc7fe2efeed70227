-- When the gateway's record first showed a payment as being given back, given back or charged back since it showed it as
-- received, and when it showed that. payments_seen has only how it stood when it was read last.
CREATE TABLE returns_seen (
    merchant   TEXT    NOT NULL,
    payment_id TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    seen_at_ms INTEGER NOT NULL,
    row_digest TEXT    NOT NULL,
    PRIMARY KEY (merchant, payment_id, status)
) STRICT, WITHOUT ROWID;

-- The statistics of this table, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('returns_seen', 'returns_seen', '20000 10000 2 1');
ANALYZE sqlite_schema;
