-- What a browser has to bring back once, while somebody signs in. Nothing here is a secret: both names are hashes.
CREATE TABLE console_challenges (
    name       TEXT    NOT NULL PRIMARY KEY,
    bearer     TEXT    NOT NULL,
    way        TEXT    NOT NULL,
    ends_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_challenges_end ON console_challenges (ends_at_ms);

-- The statistics of these indexes, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('console_challenges', 'console_challenges', '100 1'),
    ('console_challenges', 'console_challenges_end', '100 1');
ANALYZE sqlite_schema;
