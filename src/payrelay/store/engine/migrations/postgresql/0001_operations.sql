-- Operations, their history, what is sealed of them, the credentials, and what the store keeps about itself.
-- Times are milliseconds since 1970, UTC; money is in hundredths; ids are text, for a 64-bit id does not fit in JSON.

CREATE TABLE operations (
    id               text COLLATE "C"  NOT NULL PRIMARY KEY,
    account          text    NOT NULL,
    merchant         text    NOT NULL,
    principal        text    NOT NULL,
    kind             text    NOT NULL,
    state            text    NOT NULL,
    version          bigint  NOT NULL,
    subject          text    NOT NULL,
    guard            text,
    claim            text,
    claim_ends_at_ms bigint,
    idempotency_key  text,
    fingerprint      text    NOT NULL,
    request_id       text    NOT NULL,
    order_id         text,
    payment_id       text,
    subscription_id  text,
    amount_minor     bigint,
    currency         text,
    result_ref       text,
    created_at_ms    bigint  NOT NULL,
    updated_at_ms    bigint  NOT NULL,
    send_by_ms       bigint  NOT NULL,
    -- What must not lie in clear. Last, so that a row is read without them where they are not asked for.
    sealed_call      bytea   NOT NULL,
    sealed_answer    bytea
);

-- The two locks that everything rests on: one operation a claim, one a guard.
CREATE UNIQUE INDEX operations_claim ON operations (claim, principal) WHERE claim IS NOT NULL;
CREATE UNIQUE INDEX operations_guard ON operations (merchant, guard) WHERE guard IS NOT NULL;

CREATE INDEX operations_under_way ON operations (send_by_ms) WHERE state IN ('accepted', 'sending');
CREATE INDEX operations_open ON operations (state, id) WHERE state IN ('pending', 'unknown', 'needs_attention');
CREATE INDEX operations_claim_ends ON operations (claim_ends_at_ms) WHERE claim_ends_at_ms IS NOT NULL;
CREATE INDEX operations_principal ON operations (principal, id);
-- An operation that holds its claim is found by that; only one that gave it back is found here by its key.
CREATE INDEX operations_key ON operations (idempotency_key, id) WHERE idempotency_key IS NOT NULL AND claim IS NULL;
CREATE INDEX operations_order ON operations (order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_payment ON operations (payment_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX operations_subscription ON operations (subscription_id, id) WHERE subscription_id IS NOT NULL;
CREATE INDEX operations_result ON operations (result_ref) WHERE result_ref IS NOT NULL;

CREATE TABLE history (
    operation_id text COLLATE "C" NOT NULL REFERENCES operations (id),
    version      bigint  NOT NULL,
    at_ms        bigint  NOT NULL,
    event        text,
    state        text    NOT NULL,
    evidence     text    NOT NULL,
    PRIMARY KEY (operation_id, version)
);

CREATE FUNCTION history_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'history is append-only';
END;
$$;

CREATE TRIGGER history_is_not_changed BEFORE UPDATE OR DELETE ON history
    FOR EACH ROW EXECUTE FUNCTION history_is_final();

CREATE TRIGGER history_is_not_removed BEFORE TRUNCATE ON history
    FOR EACH STATEMENT EXECUTE FUNCTION history_is_final();

CREATE TABLE credentials (
    id               text COLLATE "C"  NOT NULL PRIMARY KEY,
    principal        text    NOT NULL,
    key_hash         bytea    NOT NULL,
    scopes           text    NOT NULL,
    accounts         text,
    amount_max_minor bigint,
    rate_count       bigint,
    rate_window_s    bigint,
    created_at_ms    bigint  NOT NULL,
    expires_at_ms    bigint,
    revoked_at_ms    bigint 
);

CREATE TABLE meta (
    name  text NOT NULL PRIMARY KEY,
    value bytea NOT NULL
);
