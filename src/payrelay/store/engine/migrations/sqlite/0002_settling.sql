-- What settling, the budget that processes share, reads that outlive the gateway, alerts and the audit need.

-- When it is looked for next; NULL where nothing is to be looked for.
ALTER TABLE operations ADD COLUMN probe_at_ms INTEGER;
-- The hash of its newest line of history.
ALTER TABLE operations ADD COLUMN chain TEXT NOT NULL DEFAULT '';
CREATE INDEX operations_probe ON operations (probe_at_ms) WHERE probe_at_ms IS NOT NULL;

-- Digests of the operation's row as this line left it and of the answer that came with it, if one did; and the hash
-- over this line and all before it.
ALTER TABLE history ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN answer_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN hash TEXT NOT NULL DEFAULT '';
CREATE INDEX history_at ON history (at_ms);

-- Each covers all lines of history of a span of time, and the anchor before it.
CREATE TABLE anchors (
    number     INTEGER NOT NULL PRIMARY KEY,
    from_ms    INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    digest     TEXT    NOT NULL,
    made_at_ms INTEGER NOT NULL
) STRICT;

CREATE TRIGGER anchors_are_not_changed BEFORE UPDATE ON anchors
BEGIN
    SELECT RAISE(ABORT, 'anchors are append-only');
END;

CREATE TRIGGER anchors_are_not_removed BEFORE DELETE ON anchors
BEGIN
    SELECT RAISE(ABORT, 'anchors are append-only');
END;

-- One for each time that an operation came to need a person; next_try_at_ms is NULL once it was given. given_to names
-- those of its addressees that have it already, separated by commas.
CREATE TABLE alerts (
    operation_id   TEXT    NOT NULL REFERENCES operations (id),
    version        INTEGER NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    next_try_at_ms INTEGER,
    attempts       INTEGER NOT NULL DEFAULT 0,
    given_to       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts_due ON alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- Accounts on which an operator allows no new effects.
CREATE TABLE paused_accounts (
    account  TEXT    NOT NULL PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    operator TEXT    NOT NULL
) STRICT;

-- The budget of calls to one merchant account: a row for each place, free from a moment on.
CREATE TABLE places (
    merchant   TEXT    NOT NULL,
    slot       INTEGER NOT NULL,
    free_at_ms INTEGER NOT NULL,
    holding    TEXT,
    PRIMARY KEY (merchant, slot)
) STRICT, WITHOUT ROWID;

-- The access token that all processes share, and who is fetching the next one until when.
CREATE TABLE access_tokens (
    account        TEXT    NOT NULL PRIMARY KEY,
    sealed_token   BLOB,
    obtained_at_ms INTEGER NOT NULL,
    ends_at_ms     INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL
) STRICT;

-- Counts what may change any reading of a merchant account's: refunds, releases, retries, cancellations.
CREATE TABLE bumps (
    merchant TEXT    NOT NULL PRIMARY KEY,
    version  INTEGER NOT NULL
) STRICT;

-- The last answer to each read, for when the gateway gives none.
CREATE TABLE readings (
    merchant   TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    sealed     BLOB    NOT NULL,
    read_at_ms INTEGER NOT NULL,
    PRIMARY KEY (merchant, subject)
) STRICT;
CREATE INDEX readings_read_at ON readings (read_at_ms);

-- How each payment stood when it was last seen.
CREATE TABLE payments_seen (
    merchant     TEXT    NOT NULL,
    payment_id   TEXT    NOT NULL,
    order_id     TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    currency     TEXT    NOT NULL,
    amount_minor INTEGER NOT NULL,
    seen_at_ms   INTEGER NOT NULL,
    PRIMARY KEY (merchant, payment_id)
) STRICT, WITHOUT ROWID;
