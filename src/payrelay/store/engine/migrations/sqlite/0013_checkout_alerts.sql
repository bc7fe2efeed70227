-- Checkouts whose outcome contradicts what was asked for, so that a person must look: one alert for each subscription
-- that contradicts, whose number is the version. The columns mean what they mean in alerts.
CREATE TABLE checkout_alerts (
    checkout_id    TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    given_to       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (checkout_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkout_alerts_due ON checkout_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
