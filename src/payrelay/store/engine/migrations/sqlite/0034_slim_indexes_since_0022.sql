-- An order, a payment and a request have few operations, which are sorted once they are read: the ids needn't be in these
-- indexes.
CREATE INDEX operations_by_order ON operations (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_by_payment ON operations (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX operations_by_request ON operations (request_id);
DROP INDEX operations_order;
DROP INDEX operations_payment;
DROP INDEX operations_request;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('operations', 'operations_by_order', '1000000 1'),
    ('operations', 'operations_by_payment', '1000000 1'),
    ('operations', 'operations_by_request', '1000000 1');
ANALYZE sqlite_schema;
