-- What is told of changes, to those who registered for it.

-- Events lie here from the commit that made them until they are published, in the order in which they were written: of
-- two where one was written after the other had been committed, that one has the higher number.
CREATE TABLE outbox (
    seq       bigint  NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id        text    NOT NULL,
    type      text    NOT NULL,
    account   text    NOT NULL,
    merchant  text    NOT NULL,
    principal text    NOT NULL,
    subject   text    NOT NULL,
    at_ms     bigint  NOT NULL,
    data      text    NOT NULL
);

-- The last position that was given. Whoever publishes holds this row: a feed that is read by position never finds a
-- lower one later.
CREATE TABLE feed (
    one      bigint  NOT NULL PRIMARY KEY CHECK (one = 1),
    position bigint  NOT NULL
);
INSERT INTO feed (one, position) VALUES (1, 0);

-- What was published. It is forgotten some weeks later.
CREATE TABLE events (
    position  bigint  NOT NULL PRIMARY KEY,
    id        text    NOT NULL UNIQUE,
    type      text    NOT NULL,
    account   text    NOT NULL,
    merchant  text    NOT NULL,
    principal text    NOT NULL,
    subject   text    NOT NULL,
    at_ms     bigint  NOT NULL,
    data      text    NOT NULL
);
CREATE INDEX events_of ON events (merchant, principal, position);
CREATE INDEX events_about ON events (subject, position);

-- Where events are sent. The secrets are sealed; the older one is used beside the other until its end.
CREATE TABLE endpoints (
    id                text    NOT NULL PRIMARY KEY,
    account           text    NOT NULL,
    merchant          text    NOT NULL,
    principal         text    NOT NULL,
    url               text    NOT NULL,
    types             text    NOT NULL,
    label             text,
    state             text    NOT NULL CHECK (state IN ('active', 'paused', 'stopped')),
    reason            text,
    sealed_secret     bytea   NOT NULL,
    sealed_older      bytea,
    older_ends_at_ms  bigint,
    failing_since_ms  bigint,
    held_until_ms     bigint  NOT NULL,
    created_at_ms     bigint  NOT NULL,
    updated_at_ms     bigint  NOT NULL
);
CREATE INDEX endpoints_of ON endpoints (merchant, principal, id);

-- One event to one endpoint. What waits has a time for its next try; a taken one is put off for as long as the try may
-- last, so that no other process takes it, and so that it comes back when its process dies.
CREATE TABLE deliveries (
    endpoint_id    text    NOT NULL,
    position       bigint  NOT NULL,
    event_id       text    NOT NULL,
    subject        text    NOT NULL,
    state          text    NOT NULL CHECK (state IN ('waiting', 'delivered', 'given_up')),
    attempts       bigint  NOT NULL,
    queued_at_ms   bigint  NOT NULL,
    next_try_at_ms bigint,
    last_try_at_ms bigint,
    last_status    bigint,
    last_failure   text,
    PRIMARY KEY (endpoint_id, position)
);
CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_try_at_ms, position) WHERE next_try_at_ms IS NOT NULL;
CREATE INDEX deliveries_in_order ON deliveries (endpoint_id, subject, position) WHERE next_try_at_ms IS NOT NULL;
