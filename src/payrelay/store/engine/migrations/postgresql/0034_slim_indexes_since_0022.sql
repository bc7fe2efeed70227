-- online
-- An order, a payment and a request have few operations, which are sorted once they are read: the ids needn't be in these
-- indexes.
DROP INDEX CONCURRENTLY IF EXISTS operations_by_order;
CREATE INDEX CONCURRENTLY operations_by_order ON operations (order_id) WHERE order_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS operations_by_payment;
CREATE INDEX CONCURRENTLY operations_by_payment ON operations (payment_id) WHERE payment_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS operations_by_request;
CREATE INDEX CONCURRENTLY operations_by_request ON operations (request_id);
DROP INDEX CONCURRENTLY IF EXISTS operations_order;
DROP INDEX CONCURRENTLY IF EXISTS operations_payment;
DROP INDEX CONCURRENTLY IF EXISTS operations_request;
