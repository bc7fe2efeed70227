-- online
-- What people look for in the console: a request by its id, and checkouts by what their clients named.
DROP INDEX CONCURRENTLY IF EXISTS operations_request;
CREATE INDEX CONCURRENTLY operations_request ON operations (request_id, id);
DROP INDEX CONCURRENTLY IF EXISTS checkouts_request;
CREATE INDEX CONCURRENTLY checkouts_request ON checkouts (request_id, id);
DROP INDEX CONCURRENTLY IF EXISTS checkouts_by_reference;
CREATE INDEX CONCURRENTLY checkouts_by_reference ON checkouts (customer_reference, id) WHERE customer_reference IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS checkouts_by_key;
CREATE INDEX CONCURRENTLY checkouts_by_key ON checkouts (idempotency_key, id) WHERE idempotency_key IS NOT NULL;
