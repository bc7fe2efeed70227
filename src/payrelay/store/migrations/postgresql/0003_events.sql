-- What is told of changes, to those who registered for it. A position is given after the commit, in the order in which
-- all can see: a feed that is read by position never finds a lower one later.
CREATE TABLE events (
    id        text    NOT NULL PRIMARY KEY,
    type      text    NOT NULL,
    account   text    NOT NULL,
    merchant  text    NOT NULL,
    principal text    NOT NULL,
    subject   text    NOT NULL,
    at_ms     bigint  NOT NULL,
    data      text    NOT NULL,
    position  bigint
);
