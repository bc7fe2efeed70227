-- The people who may use the console. act is the number of the line in operator_acts that last changed the row.
CREATE TABLE operators (
    id               text COLLATE "C" NOT NULL PRIMARY KEY,
    email            text COLLATE "C" NOT NULL UNIQUE,
    name             text    NOT NULL,
    role             text    NOT NULL,
    state            text    NOT NULL,
    password_hash    text,
    second_factor    text,
    totp_step        bigint NOT NULL,
    provider_subject text UNIQUE,
    version          bigint NOT NULL,
    act              bigint NOT NULL,
    created_at_ms    bigint NOT NULL,
    changed_at_ms    bigint NOT NULL,
    sealed_totp      bytea,
    row_digest       text    NOT NULL
);

-- One that ended has no digest, as in console_sessions.
CREATE TABLE operator_invitations (
    id            text COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id   text    NOT NULL,
    token_hash    text COLLATE "C" NOT NULL UNIQUE,
    made_at_ms    bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    ended_at_ms   bigint,
    row_digest    text    NOT NULL
);
CREATE INDEX operator_invitations_open ON operator_invitations (operator_id) WHERE ended_at_ms IS NULL;

CREATE TABLE console_sessions (
    id          text COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id text    NOT NULL,
    token_hash  text COLLATE "C" NOT NULL UNIQUE,
    stage       text    NOT NULL,
    began_at_ms bigint NOT NULL,
    seen_at_ms  bigint NOT NULL,
    ends_at_ms  bigint NOT NULL,
    client      text    NOT NULL,
    browser     text    NOT NULL,
    act         bigint NOT NULL,
    ended_at_ms bigint,
    row_digest  text    NOT NULL
);
CREATE INDEX console_sessions_live ON console_sessions (operator_id, began_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX console_sessions_end ON console_sessions (ends_at_ms);

-- How often somebody tried to sign in, whichever process was asked. A count begins again a while after the last try.
CREATE TABLE sign_in_tries (
    subject    text COLLATE "C" NOT NULL PRIMARY KEY,
    tries      bigint NOT NULL,
    last_at_ms bigint NOT NULL
);
CREATE INDEX sign_in_tries_last ON sign_in_tries (last_at_ms);

-- What operators did. The hash of a line covers the line and the hash of the one before it.
CREATE TABLE operator_acts (
    number      bigint NOT NULL PRIMARY KEY,
    at_ms       bigint NOT NULL,
    operator_id text    NOT NULL,
    name        text    NOT NULL,
    act         text    NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    reason      text    NOT NULL,
    details     text    NOT NULL,
    hash        text    NOT NULL
);
CREATE TRIGGER operator_acts_are_not_changed BEFORE UPDATE OR DELETE ON operator_acts
    FOR EACH ROW EXECUTE FUNCTION history_is_final();
CREATE TRIGGER operator_acts_are_not_removed BEFORE TRUNCATE ON operator_acts
    FOR EACH STATEMENT EXECUTE FUNCTION history_is_final();
