-- What operators are asked to confirm in the console, and what came of it. act is the number of the line in
-- operator_acts that last changed the row.
CREATE TABLE console_confirmations (
    id            TEXT    NOT NULL PRIMARY KEY,
    act_name      TEXT    NOT NULL,
    subject       TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    principal     TEXT    NOT NULL,
    order_id      TEXT,
    amount_minor  INTEGER,
    currency      TEXT,
    fields        TEXT    NOT NULL,
    seen          TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    made_by       TEXT    NOT NULL,
    proposed_by   TEXT,
    confirmed_by  TEXT,
    reason        TEXT    NOT NULL,
    operation_id  TEXT,
    said          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    act           INTEGER NOT NULL,
    made_at_ms    INTEGER NOT NULL,
    changed_at_ms INTEGER NOT NULL,
    row_digest    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_confirmations_shown ON console_confirmations (made_at_ms) WHERE state = 'shown';
CREATE INDEX console_confirmations_proposed ON console_confirmations (made_at_ms) WHERE state = 'proposed';
CREATE INDEX console_confirmations_act ON console_confirmations (act);

-- Finds the lines of operator_acts about one thing. Lines from before are about operators and sessions, and need none.
CREATE TABLE operator_act_subjects (
    subject TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (subject, number)
) STRICT, WITHOUT ROWID;

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('console_confirmations', 'console_confirmations', '10000 1'),
    ('console_confirmations', 'console_confirmations_act', '10000 1'),
    ('console_confirmations', 'console_confirmations_proposed', '20 1'),
    ('console_confirmations', 'console_confirmations_shown', '100 1'),
    ('operator_act_subjects', 'operator_act_subjects', '100000 4 1');
ANALYZE sqlite_schema;
