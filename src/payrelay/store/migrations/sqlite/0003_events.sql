-- What is told of changes, to those who registered for it. A position is given after the commit, in the order in which
-- all can see: a feed that is read by position never finds a lower one later.
CREATE TABLE events (
    id        TEXT    NOT NULL PRIMARY KEY,
    type      TEXT    NOT NULL,
    account   TEXT    NOT NULL,
    merchant  TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    data      TEXT    NOT NULL,
    position  INTEGER
) STRICT;
