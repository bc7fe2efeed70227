-- A keyed digest over those columns of a row that grant something or tell an outcome; empty where the row has none.
ALTER TABLE credentials ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE client_tokens ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE endpoints ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE checkouts ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE notifications ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';

-- One for each row that was found without its digest; row_name is the table and the id. Otherwise as alerts.
CREATE TABLE row_alerts (
    row_name       TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    given_to       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (row_name, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX row_alerts_due ON row_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- The anchors that go out through the alert channels, one a day; version is the day. Otherwise as alerts.
CREATE TABLE anchor_alerts (
    anchor         TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    given_to       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (anchor, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX anchor_alerts_day ON anchor_alerts (version);
CREATE INDEX anchor_alerts_due ON anchor_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
