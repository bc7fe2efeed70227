-- The address of an endpoint is often a secret, and lay in clear. It is sealed now, and told apart by a keyed hash. The
-- table is made anew, without its rows: endpoints are registered again.
DROP TABLE IF EXISTS endpoints;
CREATE TABLE endpoints (
    id                text    NOT NULL PRIMARY KEY,
    account           text    NOT NULL,
    merchant          text    NOT NULL,
    principal         text    NOT NULL,
    url_hash          text    NOT NULL,
    sealed_url        bytea   NOT NULL,
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
    updated_at_ms     bigint  NOT NULL,
    row_digest        text    NOT NULL DEFAULT ''
);
CREATE INDEX endpoints_of ON endpoints (merchant, principal, id);
