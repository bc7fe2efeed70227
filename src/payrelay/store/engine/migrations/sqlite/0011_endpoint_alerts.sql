-- One for each time that an endpoint was stopped by itself; version is when, in milliseconds. The columns mean what they
-- mean in alerts.
CREATE TABLE endpoint_alerts (
    endpoint_id    TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    given_to       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (endpoint_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_alerts_due ON endpoint_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
