-- Notifications that a person must look at: one alert for each order and day, and one for each day with many that were
-- refused, whose subject is empty. Otherwise as ``alerts``.
CREATE TABLE notification_alerts (
    notification_id TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    merchant        TEXT    NOT NULL,
    subject         TEXT    NOT NULL,
    day             INTEGER NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    next_try_at_ms  INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,
    given_to        TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (notification_id, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX notification_alerts_subject ON notification_alerts (merchant, subject, day);
CREATE INDEX notification_alerts_due ON notification_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
