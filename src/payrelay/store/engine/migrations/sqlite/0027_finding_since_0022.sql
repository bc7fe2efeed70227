-- What people look for in the console: a request by its id, and checkouts by what their clients named.
CREATE INDEX operations_request ON operations (request_id, id);
CREATE INDEX checkouts_request ON checkouts (request_id, id);
CREATE INDEX checkouts_by_reference ON checkouts (customer_reference, id) WHERE customer_reference IS NOT NULL;
CREATE INDEX checkouts_by_key ON checkouts (idempotency_key, id) WHERE idempotency_key IS NOT NULL;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('operations', 'operations_request', '1000000 1 1'),
    ('checkouts', 'checkouts_request', '200000 1 1'),
    ('checkouts', 'checkouts_by_reference', '50000 2 1'),
    ('checkouts', 'checkouts_by_key', '50000 1 1');
ANALYZE sqlite_schema;
