-- Checkouts whose outcome contradicts what was asked for, so that a person must look: one alert for each subscription
-- that contradicts, whose number is the version. The columns mean what they mean in alerts.
CREATE TABLE checkout_alerts (
    checkout_id    text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text    NOT NULL DEFAULT '',
    PRIMARY KEY (checkout_id, version)
);
CREATE INDEX checkout_alerts_due ON checkout_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
