-- When an order is searched for at the gateway: at most once in each slot of its schedule, whatever waits for it.
-- occasions are those that began the schedule anew. While leased_until_ms is set, a search is under way, or its process
-- has died. reading is what the last search showed of the order's payments, as JSON: every process answers by it.
CREATE TABLE order_searches (
    merchant        text   NOT NULL,
    order_id        text   NOT NULL,
    searches        bigint NOT NULL,
    asked_at_ms     bigint NOT NULL,
    next_at_ms      bigint NOT NULL,
    leased_until_ms bigint,
    read_at_ms      bigint,
    occasions       text   NOT NULL,
    reading         text,
    PRIMARY KEY (merchant, order_id)
);
CREATE INDEX order_searches_old ON order_searches (asked_at_ms);
