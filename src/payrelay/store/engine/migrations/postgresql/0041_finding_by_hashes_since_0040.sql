-- online
-- Checkouts by the hashes of what their clients named. The indexes by the texts stay, and are empty.
DROP INDEX CONCURRENTLY IF EXISTS checkouts_key_hash;
CREATE UNIQUE INDEX CONCURRENTLY checkouts_key_hash ON checkouts (key_hash, principal) WHERE key_hash IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS checkouts_reference_hash;
CREATE INDEX CONCURRENTLY checkouts_reference_hash ON checkouts (reference_hash, id) WHERE reference_hash IS NOT NULL;
