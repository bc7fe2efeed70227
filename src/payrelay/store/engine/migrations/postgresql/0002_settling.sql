-- What settling, the budget that processes share, reads that outlive the gateway, alerts and the audit need.

-- When it is looked for next; NULL where nothing is to be looked for.
ALTER TABLE operations ADD COLUMN probe_at_ms bigint;
-- The hash of its newest line of history.
ALTER TABLE operations ADD COLUMN chain text NOT NULL DEFAULT '';
CREATE INDEX operations_probe ON operations (probe_at_ms) WHERE probe_at_ms IS NOT NULL;

-- Digests of the operation's row as this line left it and of the answer that came with it, if one did; and the hash
-- over this line and all before it.
ALTER TABLE history ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN answer_digest text NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN hash text NOT NULL DEFAULT '';
CREATE INDEX history_at ON history (at_ms);

-- Each covers all lines of history of a span of time, and the anchor before it.
CREATE TABLE anchors (
    number     bigint NOT NULL PRIMARY KEY,
    from_ms    bigint NOT NULL,
    until_ms   bigint NOT NULL,
    lines      bigint NOT NULL,
    digest     text    NOT NULL,
    made_at_ms bigint NOT NULL
);

CREATE FUNCTION anchors_are_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'anchors are append-only';
END;
$$;

CREATE TRIGGER anchors_are_not_changed BEFORE UPDATE OR DELETE ON anchors
    FOR EACH ROW EXECUTE FUNCTION anchors_are_final();

CREATE TRIGGER anchors_are_not_removed BEFORE TRUNCATE ON anchors
    FOR EACH STATEMENT EXECUTE FUNCTION anchors_are_final();

-- One for each time that an operation came to need a person; next_try_at_ms is NULL once it was given. given_to names
-- those of its addressees that have it already, separated by commas.
CREATE TABLE alerts (
    operation_id   text COLLATE "C" NOT NULL REFERENCES operations (id),
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text   NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, version)
);
CREATE INDEX alerts_due ON alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- Accounts on which an operator allows no new effects.
CREATE TABLE paused_accounts (
    account  text    NOT NULL PRIMARY KEY,
    since_ms bigint NOT NULL,
    reason   text    NOT NULL,
    operator text    NOT NULL
);

-- The budget of calls to one merchant account: a row for each place, free from a moment on.
CREATE TABLE places (
    merchant   text    NOT NULL,
    slot       bigint NOT NULL,
    free_at_ms bigint NOT NULL,
    holding    text,
    PRIMARY KEY (merchant, slot)
) WITH (fillfactor = 50);

-- The access token that all processes share, and who is fetching the next one until when.
CREATE TABLE access_tokens (
    account        text    NOT NULL PRIMARY KEY,
    sealed_token   bytea,
    obtained_at_ms bigint NOT NULL,
    ends_at_ms     bigint NOT NULL,
    lease_until_ms bigint NOT NULL
);

-- Counts what may change any reading of a merchant account's: refunds, releases, retries, cancellations.
CREATE TABLE bumps (
    merchant text    NOT NULL PRIMARY KEY,
    version  bigint NOT NULL
);

-- The last answer to each read, for when the gateway gives none.
CREATE TABLE readings (
    merchant   text    NOT NULL,
    subject    text    NOT NULL,
    sealed     bytea    NOT NULL,
    read_at_ms bigint NOT NULL,
    PRIMARY KEY (merchant, subject)
);
CREATE INDEX readings_read_at ON readings (read_at_ms);

-- How each payment stood when it was last seen.
CREATE TABLE payments_seen (
    merchant     text    NOT NULL,
    payment_id   text    NOT NULL,
    order_id     text    NOT NULL,
    status       text    NOT NULL,
    currency     text    NOT NULL,
    amount_minor bigint NOT NULL,
    seen_at_ms   bigint NOT NULL,
    PRIMARY KEY (merchant, payment_id)
);
