-- When an order is searched for at the gateway: at most once in each slot of its schedule, whatever waits for it.
-- occasions are those that began the schedule anew. While leased_until_ms is set, a search is under way, or its process
-- has died. reading is what the last search showed of the order's payments, as JSON: every process answers by it.
CREATE TABLE order_searches (
    merchant        TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    searches        INTEGER NOT NULL,
    asked_at_ms     INTEGER NOT NULL,
    next_at_ms      INTEGER NOT NULL,
    leased_until_ms INTEGER,
    read_at_ms      INTEGER,
    occasions       TEXT    NOT NULL,
    reading         TEXT,
    PRIMARY KEY (merchant, order_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX order_searches_old ON order_searches (asked_at_ms);
