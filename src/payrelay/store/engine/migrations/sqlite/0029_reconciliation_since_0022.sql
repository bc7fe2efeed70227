-- What the gateway's and the bank's statements say, what our books of a day came to beside them, and who closed what.

-- The files that were read. What a person said of one's completeness is in statement_days.
CREATE TABLE statement_files (
    merchant       TEXT    NOT NULL,
    digest         TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    profile        TEXT    NOT NULL,
    is_guess       INTEGER NOT NULL,
    summary        TEXT    NOT NULL,
    imported_by    TEXT    NOT NULL,
    imported_at_ms INTEGER NOT NULL,
    is_whole       INTEGER NOT NULL,
    PRIMARY KEY (merchant, digest)
) STRICT, WITHOUT ROWID;

-- Each line once, whatever files have it: content is a digest of what it says. What files say differently of one identity
-- stands here side by side. source is a file, or a search at the gateway.
CREATE TABLE statement_lines (
    merchant           TEXT    NOT NULL,
    movement           TEXT    NOT NULL,
    identity           TEXT    NOT NULL,
    content            TEXT    NOT NULL,
    currency           TEXT    NOT NULL,
    amount_minor       INTEGER NOT NULL,
    day                TEXT    NOT NULL,
    state              TEXT    NOT NULL,
    at_ms              INTEGER,
    fee_minor          INTEGER,
    net_minor          INTEGER,
    expected_fee_minor INTEGER,
    order_id           TEXT,
    payment_id         TEXT,
    payout_id          TEXT,
    source             TEXT    NOT NULL,
    place              TEXT    NOT NULL,
    known_at_ms        INTEGER NOT NULL,
    booked_on          TEXT    NOT NULL,
    PRIMARY KEY (merchant, movement, identity, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX statement_lines_booked ON statement_lines (merchant, booked_on, movement, identity, content);
CREATE INDEX statement_lines_order ON statement_lines (order_id, merchant) WHERE order_id IS NOT NULL;
CREATE INDEX statement_lines_payment ON statement_lines (payment_id, merchant) WHERE payment_id IS NOT NULL;
CREATE INDEX statement_lines_payout ON statement_lines (payout_id, merchant) WHERE payout_id IS NOT NULL;

-- The days of which a person said that the files that were read have everything.
CREATE TABLE statement_days (
    merchant   TEXT    NOT NULL,
    movement   TEXT    NOT NULL,
    day        TEXT    NOT NULL,
    said_by    TEXT    NOT NULL,
    said_at_ms INTEGER NOT NULL,
    rests_on   TEXT    NOT NULL,
    PRIMARY KEY (merchant, movement, day)
) STRICT, WITHOUT ROWID;

-- The orders whose payments the gateway was asked for, to compare a day.
CREATE TABLE statement_searches (
    merchant       TEXT    NOT NULL,
    order_id       TEXT    NOT NULL,
    searched_at_ms INTEGER NOT NULL,
    PRIMARY KEY (merchant, order_id)
) STRICT, WITHOUT ROWID;

-- Differences, each once. Only a person closes one; closed_content is what it said then. now_ columns are what the last
-- run that met it found.
CREATE TABLE differences (
    merchant          TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    account           TEXT    NOT NULL,
    movement          TEXT    NOT NULL,
    identity          TEXT    NOT NULL,
    day               TEXT    NOT NULL,
    booked_on         TEXT    NOT NULL,
    currency          TEXT    NOT NULL,
    content           TEXT    NOT NULL,
    finding           TEXT    NOT NULL,
    concern           TEXT,
    first_found_at_ms INTEGER NOT NULL,
    last_found_at_ms  INTEGER NOT NULL,
    is_open           INTEGER NOT NULL,
    closed_at_ms      INTEGER,
    closed_by         TEXT,
    closed_reason     TEXT,
    alerted_at_ms     INTEGER,
    PRIMARY KEY (merchant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX differences_open ON differences (merchant, booked_on, id) WHERE is_open = 1;
CREATE INDEX differences_day ON differences (merchant, booked_on, id);

-- What each day came to when it was last compared, and, once it is closed, for good.
CREATE TABLE reconciled_days (
    merchant      TEXT    NOT NULL,
    day           TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    report        TEXT    NOT NULL,
    ran_at_ms     INTEGER NOT NULL,
    closed_at_ms  INTEGER,
    closed_by     TEXT,
    closed_reason TEXT,
    act           INTEGER,
    PRIMARY KEY (merchant, day)
) STRICT, WITHOUT ROWID;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('differences', 'differences', '5000 2500 1'),
    ('differences', 'differences_day', '5000 2500 10 1'),
    ('differences', 'differences_open', '500 250 5 1'),
    ('reconciled_days', 'reconciled_days', '2000 1000 1'),
    ('statement_days', 'statement_days', '5000 2500 500 1'),
    ('statement_files', 'statement_files', '1000 500 1'),
    ('statement_lines', 'statement_lines', '1000000 500000 200000 1 1'),
    ('statement_lines', 'statement_lines_booked', '1000000 500000 1000 500 1 1'),
    ('statement_lines', 'statement_lines_order', '1000000 1 1'),
    ('statement_lines', 'statement_lines_payment', '1000000 1 1'),
    ('statement_lines', 'statement_lines_payout', '500000 500 500'),
    ('statement_searches', 'statement_searches', '100000 50000 1');
ANALYZE sqlite_schema;
