-- The address of an endpoint is often a secret, and lay in clear. It is sealed now, and told apart by a keyed hash. The
-- table is made anew, without its rows: endpoints are registered again.
DROP TABLE IF EXISTS endpoints;
CREATE TABLE endpoints (
    id                TEXT    NOT NULL PRIMARY KEY,
    account           TEXT    NOT NULL,
    merchant          TEXT    NOT NULL,
    principal         TEXT    NOT NULL,
    url_hash          TEXT    NOT NULL,
    sealed_url        BLOB    NOT NULL,
    types             TEXT    NOT NULL,
    label             TEXT,
    state             TEXT    NOT NULL CHECK (state IN ('active', 'paused', 'stopped')),
    reason            TEXT,
    sealed_secret     BLOB    NOT NULL,
    sealed_older      BLOB,
    older_ends_at_ms  INTEGER,
    failing_since_ms  INTEGER,
    held_until_ms     INTEGER NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    updated_at_ms     INTEGER NOT NULL,
    row_digest        TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX endpoints_of ON endpoints (merchant, principal, id);

-- The statistics of these indexes, as in 0024: they went with the table.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('endpoints', 'endpoints_of', '4 4 2 1'),
    ('endpoints', 'sqlite_autoindex_endpoints_1', '4 1');
ANALYZE sqlite_schema;
