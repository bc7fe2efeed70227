-- The last write by which each process showed itself that the database takes writes. A process whose row is gone, or older
-- than it was told, knows that the database is not the one it wrote to.
CREATE TABLE heartbeats (
    process TEXT    NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (process)
) STRICT, WITHOUT ROWID;
