-- What is told of changes, to those who registered for it.

-- Events lie here from the commit that made them until they are published, in the order in which they were written: of
-- two where one was written after the other had been committed, that one has the higher number.
CREATE TABLE outbox (
    seq       INTEGER NOT NULL PRIMARY KEY,
    id        TEXT    NOT NULL,
    type      TEXT    NOT NULL,
    account   TEXT    NOT NULL,
    merchant  TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    data      TEXT    NOT NULL
) STRICT;

-- The last position that was given. Whoever publishes holds this row: a feed that is read by position never finds a
-- lower one later.
CREATE TABLE feed (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL
) STRICT;
INSERT INTO feed (one, position) VALUES (1, 0);

-- What was published. It is forgotten some weeks later.
CREATE TABLE events (
    position  INTEGER NOT NULL PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE,
    type      TEXT    NOT NULL,
    account   TEXT    NOT NULL,
    merchant  TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    data      TEXT    NOT NULL
) STRICT;
CREATE INDEX events_of ON events (merchant, principal, position);
CREATE INDEX events_about ON events (subject, position);

-- Where events are sent. The secrets are sealed; the older one is used beside the other until its end.
CREATE TABLE endpoints (
    id                TEXT    NOT NULL PRIMARY KEY,
    account           TEXT    NOT NULL,
    merchant          TEXT    NOT NULL,
    principal         TEXT    NOT NULL,
    url               TEXT    NOT NULL,
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
    updated_at_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX endpoints_of ON endpoints (merchant, principal, id);

-- One event to one endpoint. What waits has a time for its next try; a taken one is put off for as long as the try may
-- last, so that no other process takes it, and so that it comes back when its process dies.
CREATE TABLE deliveries (
    endpoint_id    TEXT    NOT NULL,
    position       INTEGER NOT NULL,
    event_id       TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('waiting', 'delivered', 'given_up')),
    attempts       INTEGER NOT NULL,
    queued_at_ms   INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    last_try_at_ms INTEGER,
    last_status    INTEGER,
    last_failure   TEXT,
    PRIMARY KEY (endpoint_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_try_at_ms, position) WHERE next_try_at_ms IS NOT NULL;
CREATE INDEX deliveries_in_order ON deliveries (endpoint_id, subject, position) WHERE next_try_at_ms IS NOT NULL;
