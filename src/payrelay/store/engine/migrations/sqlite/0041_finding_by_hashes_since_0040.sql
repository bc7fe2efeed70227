-- Checkouts by the hashes of what their clients named. The indexes by the texts stay, and are empty.
CREATE UNIQUE INDEX checkouts_key_hash ON checkouts (key_hash, principal) WHERE key_hash IS NOT NULL;
CREATE INDEX checkouts_reference_hash ON checkouts (reference_hash, id) WHERE reference_hash IS NOT NULL;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('checkouts', 'checkouts_key_hash', '50000 1 1'),
    ('checkouts', 'checkouts_reference_hash', '50000 2 1');
ANALYZE sqlite_schema;
