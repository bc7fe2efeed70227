-- Notifications that a person must look at: one alert for each order and day, and one for each day with many that were
-- refused, whose subject is empty. Otherwise as ``alerts``.
CREATE TABLE notification_alerts (
    notification_id text   NOT NULL,
    version         bigint NOT NULL,
    merchant        text   NOT NULL,
    subject         text   NOT NULL,
    day             bigint NOT NULL,
    created_at_ms   bigint NOT NULL,
    next_try_at_ms  bigint,
    attempts        bigint NOT NULL DEFAULT 0,
    given_to        text   NOT NULL DEFAULT '',
    PRIMARY KEY (notification_id, version)
);
CREATE UNIQUE INDEX notification_alerts_subject ON notification_alerts (merchant, subject, day);
CREATE INDEX notification_alerts_due ON notification_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
