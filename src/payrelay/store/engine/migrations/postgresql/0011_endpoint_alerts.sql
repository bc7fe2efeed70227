-- One for each time that an endpoint was stopped by itself; version is when, in milliseconds. The columns mean what they
-- mean in alerts.
CREATE TABLE endpoint_alerts (
    endpoint_id    text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text    NOT NULL DEFAULT '',
    PRIMARY KEY (endpoint_id, version)
);
CREATE INDEX endpoint_alerts_due ON endpoint_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
