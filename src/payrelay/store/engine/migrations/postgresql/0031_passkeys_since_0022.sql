-- The passkeys of operators. act is the number of the line in operator_acts that last changed the row.
CREATE TABLE operator_passkeys (
    id            text COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id   text COLLATE "C" NOT NULL,
    credential_id text COLLATE "C" NOT NULL UNIQUE,
    credential    text   NOT NULL,
    host          text   NOT NULL,
    name          text   NOT NULL,
    sign_count    bigint NOT NULL,
    made_at_ms    bigint NOT NULL,
    used_at_ms    bigint,
    copied_at_ms  bigint,
    version       bigint NOT NULL,
    act           bigint NOT NULL,
    row_digest    text   NOT NULL
);
CREATE INDEX operator_passkeys_of ON operator_passkeys (operator_id, made_at_ms);
