-- What a browser has to bring back once, while somebody signs in. Nothing here is a secret: both names are hashes.
CREATE TABLE console_challenges (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    bearer     text   NOT NULL,
    way        text   NOT NULL,
    ends_at_ms bigint NOT NULL
);
CREATE INDEX console_challenges_end ON console_challenges (ends_at_ms);
