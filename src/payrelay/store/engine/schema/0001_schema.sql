-- The schema of both databases, written as PostgreSQL reads it, but for WITHOUT ROWID, which only SQLite reads. What
-- one of them needs besides is in the file of this name in its folder.
-- Times are milliseconds since 1970, UTC; money is in hundredths; ids are text, for a 64-bit id does not fit in JSON.
-- A row_digest is a keyed digest over the columns of a row that grant something or tell an outcome; a row that ended
-- has none.

-- === What the store keeps about itself.

-- The check of the encryption key, the key of the audit chain, and other single facts.
CREATE TABLE meta (
    name  text   NOT NULL PRIMARY KEY,
    value bytea  NOT NULL
);

-- The last write by which each process showed itself that the database takes writes. A process whose row is gone, or
-- older than it was told, knows that the database is not the one it wrote to.
CREATE TABLE heartbeats (
    process text   NOT NULL,
    at_ms   bigint NOT NULL,
    PRIMARY KEY (process)
) WITHOUT ROWID;

-- === Operations, their history and what the audit needs.

-- What a client asked the gateway for, and what came of it.
CREATE TABLE operations (
    id               text COLLATE "C" NOT NULL PRIMARY KEY,
    account          text   NOT NULL,
    merchant         text   NOT NULL,
    principal        text   NOT NULL,
    kind             text   NOT NULL,
    state            text   NOT NULL,
    version          bigint NOT NULL,
    subject          text   NOT NULL,
    guard            text,
    claim            text,
    claim_ends_at_ms bigint,
    idempotency_key  text,
    fingerprint      text   NOT NULL,
    request_id       text   NOT NULL,
    order_id         text,
    payment_id       text,
    subscription_id  text,
    amount_minor     bigint,
    currency         text,
    result_ref       text,
    created_at_ms    bigint NOT NULL,
    updated_at_ms    bigint NOT NULL,
    send_by_ms       bigint NOT NULL,
    -- What must not lie in clear. Last, so that a row is read without them where they are not asked for.
    sealed_call      bytea  NOT NULL,
    sealed_answer    bytea,
    -- When it is looked for next; NULL where nothing is to be looked for.
    probe_at_ms      bigint,
    -- The hash of its newest line of history.
    chain            text   NOT NULL DEFAULT '',
    -- The stored customer that an operation was asked for by its handle.
    customer_id      text,
    row_digest       text   NOT NULL DEFAULT '',
    -- What is left of a cleared history: where it was cleared up to, signed, and its newest entry.
    closed_history   text
);
-- The two locks that everything rests on: one operation a claim, one a guard.
CREATE UNIQUE INDEX operations_claim ON operations (claim, principal) WHERE claim IS NOT NULL;
CREATE UNIQUE INDEX operations_guard ON operations (merchant, guard) WHERE guard IS NOT NULL;
CREATE INDEX operations_under_way ON operations (send_by_ms) WHERE state IN ('accepted', 'sending');
CREATE INDEX operations_claim_ends ON operations (claim_ends_at_ms) WHERE claim_ends_at_ms IS NOT NULL;
-- An operation that holds its claim is found by that; only one that gave it back is found here by its key.
CREATE INDEX operations_key ON operations (idempotency_key, id) WHERE idempotency_key IS NOT NULL AND claim IS NULL;
CREATE INDEX operations_subscription ON operations (subscription_id, id) WHERE subscription_id IS NOT NULL;
CREATE INDEX operations_result ON operations (result_ref) WHERE result_ref IS NOT NULL;
CREATE INDEX operations_probe ON operations (probe_at_ms) WHERE probe_at_ms IS NOT NULL;
CREATE INDEX operations_customer ON operations (customer_id, id) WHERE customer_id IS NOT NULL;
-- The calls of which nobody can tell what was signed: where one is, nothing proves what somebody else may have
-- signed.
CREATE INDEX operations_without_text ON operations (merchant)
    WHERE kind = 'authorization' AND (order_id IS NULL OR amount_minor IS NULL OR currency IS NULL);
-- Lists of an account, and of a principal on it.
CREATE INDEX operations_of ON operations (principal, account, id);
CREATE INDEX operations_account ON operations (account, id);
-- An order, a payment and a request have few operations, which are sorted once they are read.
CREATE INDEX operations_by_order ON operations (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_by_payment ON operations (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX operations_by_request ON operations (request_id);
-- The newest entries of cleared histories by time, for the anchors that cover them.
CREATE INDEX operations_closed ON operations (updated_at_ms) WHERE closed_history IS NOT NULL;
-- What ended well is most of them, so what didn't has indexes of its own, and so have the kinds that aren't charges.
CREATE INDEX operations_rare ON operations (state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_rare_account ON operations (account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_rare_of ON operations (principal, account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_kind_account ON operations (account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');
CREATE INDEX operations_kind_of ON operations (principal, account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');
-- Known payments, newest first: ids grow, and are numbers written as text.
CREATE INDEX operations_paid ON operations (merchant, length(payment_id), payment_id)
    WHERE payment_id IS NOT NULL AND kind IN ('authorization', 'capture', 'charge', 'retry');

-- What happened to each operation, line by line; nothing changes or removes one but the clearing of old data.
CREATE TABLE history (
    operation_id  text COLLATE "C" NOT NULL REFERENCES operations (id),
    version       bigint NOT NULL,
    at_ms         bigint NOT NULL,
    event         text,
    state         text   NOT NULL,
    evidence      text   NOT NULL,
    -- Digests of the operation's row as this line left it and of the answer that came with it, if one did; and the
    -- hash over this line and all before it.
    row_digest    text   NOT NULL DEFAULT '',
    answer_digest text   NOT NULL DEFAULT '',
    hash          text   NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, version)
) WITHOUT ROWID;
CREATE INDEX history_at ON history (at_ms);

-- Each covers all lines of history of a span of time, and the anchor before it.
CREATE TABLE anchors (
    number     bigint NOT NULL PRIMARY KEY,
    from_ms    bigint NOT NULL,
    until_ms   bigint NOT NULL,
    lines      bigint NOT NULL,
    digest     text   NOT NULL,
    made_at_ms bigint NOT NULL
);

-- What is left of the journal entries of an anchor's span: their number and the sum over them.
CREATE TABLE anchor_checkpoints (
    number    bigint NOT NULL PRIMARY KEY,
    anchor    text   NOT NULL,
    entries   bigint NOT NULL,
    total     text   NOT NULL,
    cleared   bigint NOT NULL,
    signature text   NOT NULL
);

-- The texts that a gateway signs once it gets a form or a call of ours, each as a keyed digest, kept for good. A form
-- may be used as long as its secret is valid, whatever became of its checkout. No row has anything of a person.
CREATE TABLE signed_texts (
    merchant   text   COLLATE "C" NOT NULL,
    digest     text   COLLATE "C" NOT NULL,
    subject    text   COLLATE "C" NOT NULL,
    kind       text   NOT NULL,
    at_ms      bigint NOT NULL,
    row_digest text   NOT NULL DEFAULT '',
    -- How many texts the row's subject has in all: one that is removed is missed in the others.
    texts      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (merchant, digest, subject)
) WITHOUT ROWID;
CREATE INDEX signed_texts_subject ON signed_texts (subject);

-- === Who may ask for what.

-- API keys; of each a hash alone.
CREATE TABLE credentials (
    id               text COLLATE "C" NOT NULL PRIMARY KEY,
    principal        text   NOT NULL,
    key_hash         bytea  NOT NULL,
    scopes           text   NOT NULL,
    accounts         text,
    amount_max_minor bigint,
    rate_count       bigint,
    rate_window_s    bigint,
    created_at_ms    bigint NOT NULL,
    expires_at_ms    bigint,
    revoked_at_ms    bigint,
    row_digest       text   NOT NULL DEFAULT '',
    -- How many payments an order may have for the key, whoever makes them; null for no limit.
    payments_max     bigint
);

-- Client tokens that were issued and have not ended: what can be listed and revoked. The text of none is here;
-- whoever reads this can't make one.
CREATE TABLE client_tokens (
    id               text COLLATE "C" NOT NULL PRIMARY KEY,
    principal        text   NOT NULL,
    credential_id    text COLLATE "C" NOT NULL,
    account          text   NOT NULL,
    customer_id      text,
    order_id         text,
    scopes           text   NOT NULL,
    issued_at_ms     bigint NOT NULL,
    expires_at_ms    bigint NOT NULL,
    revoked_at_ms    bigint,
    -- What the token may pay: kind, amount, currency, number of payments; null for one that may pay nothing.
    allowance        text,
    row_digest       text   NOT NULL DEFAULT ''
);
CREATE INDEX client_tokens_of ON client_tokens (principal, account, id);
CREATE INDEX client_tokens_customer ON client_tokens (customer_id, principal) WHERE customer_id IS NOT NULL;
CREATE INDEX client_tokens_credential ON client_tokens (credential_id);
CREATE INDEX client_tokens_end ON client_tokens (expires_at_ms);

-- The id is another name of a principal. Rows keep the name under which they were stored.
CREATE TABLE principal_names (
    id         text   NOT NULL PRIMARY KEY,
    principal  text   NOT NULL,
    since_ms   bigint NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);

-- The id is a principal, which is in one group at most.
CREATE TABLE principal_groups (
    id         text   NOT NULL PRIMARY KEY,
    name       text   NOT NULL,
    since_ms   bigint NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);
CREATE INDEX principal_groups_name ON principal_groups (name);

-- === Customers, checkouts, and the keys by which both can be erased.

-- Stored customers: who approved a card, and the gateway's token that charges it. In clear is what can be shown
-- anybody; names and the token are sealed, and what is looked for by is hashed with a key of ours.
CREATE TABLE customers (
    id             text   NOT NULL PRIMARY KEY,
    account        text   NOT NULL,
    merchant       text   NOT NULL,
    principal      text   NOT NULL,
    state          text   NOT NULL CHECK (state IN ('active', 'removed', 'erased')),
    version        bigint NOT NULL,
    order_id       text,
    payment_id     text,
    created_at_ms  bigint NOT NULL,
    updated_at_ms  bigint NOT NULL,
    token_hash     text   NOT NULL,
    reference_hash text,
    sealed_names   bytea,
    sealed_holder  bytea,
    sealed_token   bytea,
    row_digest     text   NOT NULL DEFAULT '',
    CHECK ((sealed_token IS NOT NULL) = (state = 'active')),
    CHECK (state <> 'erased' OR (sealed_names IS NULL AND sealed_holder IS NULL AND reference_hash IS NULL))
);
-- One customer a token, for each principal; one that was removed makes room.
CREATE UNIQUE INDEX customers_active ON customers (merchant, principal, token_hash) WHERE state = 'active';
CREATE INDEX customers_token ON customers (merchant, principal, token_hash, id);
CREATE INDEX customers_of ON customers (merchant, principal, id);
CREATE INDEX customers_reference ON customers (merchant, principal, reference_hash, id)
    WHERE reference_hash IS NOT NULL;
CREATE INDEX customers_principal ON customers (principal, id);
CREATE INDEX customers_of_account ON customers (principal, account, id);
CREATE INDEX customers_account ON customers (account, id);
CREATE INDEX customers_by_reference ON customers (reference_hash, id) WHERE reference_hash IS NOT NULL;
CREATE INDEX customers_rare ON customers (state, id) WHERE state IN ('erased', 'removed');
CREATE INDEX customers_rare_of ON customers (principal, account, state, id) WHERE state IN ('erased', 'removed');

-- What customers are asked for on the gateway's pages. The customers' data lies sealed, for as long as it is needed.
CREATE TABLE checkouts (
    id                 text   NOT NULL PRIMARY KEY,
    account            text   NOT NULL,
    merchant           text   NOT NULL,
    principal          text   NOT NULL,
    kind               text   NOT NULL,
    state              text   NOT NULL,
    version            bigint NOT NULL,
    order_id           text   NOT NULL,
    guard              text,
    amount_minor       bigint,
    first_minor        bigint,
    currency           text   NOT NULL,
    secret_hash        text   NOT NULL,
    request_id         text   NOT NULL,
    bound_customer_id  text,
    payment_id         text,
    subscription_id    text,
    customer_id        text,
    created_at_ms      bigint NOT NULL,
    updated_at_ms      bigint NOT NULL,
    expires_at_ms      bigint NOT NULL,
    opened_at_ms       bigint,
    ends_at_ms         bigint NOT NULL,
    look_at_ms         bigint NOT NULL,
    sealed             bytea,
    row_digest         text   NOT NULL DEFAULT '',
    -- What its client named is found by keyed hashes; the reference lies sealed with a data key of its own.
    key_hash           text,
    reference_hash     text,
    sealed_reference   bytea,
    -- When a client or an operator closed its page; null where something else ended the checkout.
    closed_at_ms       bigint
);
-- One order of a merchant is held by one checkout at a time.
CREATE UNIQUE INDEX checkouts_guard ON checkouts (merchant, guard) WHERE guard IS NOT NULL;
CREATE INDEX checkouts_order ON checkouts (merchant, order_id);
CREATE INDEX checkouts_payment ON checkouts (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX checkouts_ending ON checkouts (ends_at_ms) WHERE state = 'open';
CREATE INDEX checkouts_forgettable ON checkouts (updated_at_ms) WHERE sealed IS NOT NULL AND state <> 'open';
-- By what a person's checkouts are found, to be forgotten: the customer that came of them, and that whose phone opened
-- them.
CREATE INDEX checkouts_customer ON checkouts (customer_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX checkouts_bound ON checkouts (bound_customer_id, id) WHERE bound_customer_id IS NOT NULL;
CREATE INDEX checkouts_subscription ON checkouts (subscription_id) WHERE subscription_id IS NOT NULL;
CREATE INDEX checkouts_paid ON checkouts (merchant, length(payment_id), payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX checkouts_by_order ON checkouts (order_id, id);
CREATE INDEX checkouts_account ON checkouts (account, id);
CREATE INDEX checkouts_principal ON checkouts (principal);
CREATE INDEX checkouts_request ON checkouts (request_id, id);
CREATE UNIQUE INDEX checkouts_key_hash ON checkouts (key_hash, principal) WHERE key_hash IS NOT NULL;
CREATE INDEX checkouts_reference_hash ON checkouts (reference_hash, id) WHERE reference_hash IS NOT NULL;
CREATE INDEX checkouts_rare ON checkouts (state, id) WHERE state IN ('cancelled', 'expired', 'failed', 'notified');
CREATE INDEX checkouts_rare_account ON checkouts (account, state, id)
    WHERE state IN ('cancelled', 'expired', 'failed', 'notified');

-- The keys under which lies sealed what can be erased on request: one for each customer, checkout, notification and
-- cached answer. Whoever destroys a key destroys what it seals, wherever copies of that still are.
-- PostgreSQL has them in parts, so that the part of a destroyed key is rewritten in a moment.
CREATE TABLE data_keys (
    owner      text   NOT NULL PRIMARY KEY,
    sealed_key bytea  NOT NULL
) PARTITION BY HASH (owner);

-- Where a destroyed key may still lie in the database's files, until they are cleared of it.
CREATE TABLE key_residues (
    place text   NOT NULL PRIMARY KEY,
    times bigint NOT NULL
) WITHOUT ROWID;

-- === What gateways tell of their own accord, and what follows from that.

-- What gateways post of their own accord: each once, however often it comes. The digest is that of the whole body,
-- which lies sealed; in clear is what support needs to find it.
CREATE TABLE notifications (
    id               text   NOT NULL PRIMARY KEY,
    account          text   NOT NULL,
    merchant         text   NOT NULL,
    digest           text   NOT NULL,
    verdict          text   NOT NULL,
    state            text   NOT NULL,
    why              text   NOT NULL,
    version          bigint NOT NULL,
    kind             text   NOT NULL,
    told             text   NOT NULL,
    order_id         text   NOT NULL,
    payment_id       text,
    subscription_id  text,
    amount_minor     bigint,
    currency         text   NOT NULL,
    message_type     text,
    received_at_ms   bigint NOT NULL,
    last_at_ms       bigint NOT NULL,
    repeats          bigint NOT NULL,
    attempts         bigint NOT NULL,
    next_at_ms       bigint,
    gives_up_at_ms   bigint NOT NULL,
    updated_at_ms    bigint NOT NULL,
    sealed_body      bytea,
    row_digest       text   NOT NULL DEFAULT '',
    -- An operator may accept a notification that the service doubted: who, why and when. The row's digest covers it.
    accepted_by      text,
    accepted_because text,
    accepted_at_ms   bigint
);
CREATE UNIQUE INDEX notifications_digest ON notifications (merchant, digest);
CREATE INDEX notifications_due ON notifications (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX notifications_order ON notifications (merchant, order_id, received_at_ms);
CREATE INDEX notifications_state ON notifications (state, id);
CREATE INDEX notifications_refused ON notifications (merchant, received_at_ms) WHERE state = 'refused';
CREATE INDEX notifications_body ON notifications (received_at_ms) WHERE sealed_body IS NOT NULL;
CREATE INDEX notifications_by_order ON notifications (order_id, id);
CREATE INDEX notifications_payment ON notifications (payment_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX notifications_account ON notifications (account, id);
CREATE INDEX notifications_rare_account ON notifications (account, state, id)
    WHERE state IN ('ignored', 'needs_attention', 'refused');
-- Chargebacks that were notified, and that no record proves yet: a few at a time.
CREATE INDEX notifications_chargebacks ON notifications (merchant, order_id)
    WHERE kind = 'chargeback' AND state IN ('received', 'waiting');

-- Which token was accepted for an order: the first. Another one under the same signature is for a person. The token
-- of a hold lies sealed beside its hash: it is what the hold is captured by.
CREATE TABLE accepted_tokens (
    merchant        text   NOT NULL,
    order_id        text   NOT NULL,
    kind            text   NOT NULL,
    token_hash      text   NOT NULL,
    sealed_token    bytea  NOT NULL,
    notification_id text   NOT NULL,
    accepted_at_ms  bigint NOT NULL,
    row_digest      text   NOT NULL DEFAULT '',
    PRIMARY KEY (merchant, order_id, kind)
) WITHOUT ROWID;
CREATE INDEX accepted_tokens_hash ON accepted_tokens (token_hash);

-- What was charged back, by payment.
CREATE TABLE chargebacks (
    merchant        text   NOT NULL,
    payment_id      text   NOT NULL,
    order_id        text   NOT NULL,
    account         text   NOT NULL,
    principal       text   NOT NULL,
    operation_id    text,
    amount_minor    bigint,
    currency        text   NOT NULL,
    notification_id text   NOT NULL,
    noted_at_ms     bigint NOT NULL,
    row_digest      text   NOT NULL DEFAULT '',
    -- How much was charged back, where the notification said less than the payment in a field that isn't signed.
    part_minor      bigint,
    PRIMARY KEY (merchant, payment_id)
) WITHOUT ROWID;
CREATE INDEX chargebacks_operation ON chargebacks (operation_id) WHERE operation_id IS NOT NULL;

-- When the gateway's record first showed a payment as being given back, given back or charged back since it showed it
-- as received, and when it showed that. payments_seen has only how it stood when it was read last.
CREATE TABLE returns_seen (
    merchant   text COLLATE "C" NOT NULL,
    payment_id text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    seen_at_ms bigint NOT NULL,
    row_digest text   NOT NULL,
    PRIMARY KEY (merchant, payment_id, status)
) WITHOUT ROWID;

-- Refunds that succeeded, as the gateway answered, and that failed later, as its record shows; and when that was
-- seen.
CREATE TABLE failed_refunds (
    operation_id text   COLLATE "C" NOT NULL PRIMARY KEY,
    merchant     text   COLLATE "C" NOT NULL,
    payment_id   text   COLLATE "C" NOT NULL,
    known_at_ms  bigint NOT NULL,
    row_digest   text   NOT NULL
) WITHOUT ROWID;
CREATE INDEX failed_refunds_payment ON failed_refunds (merchant, payment_id);
CREATE INDEX failed_refunds_known ON failed_refunds (merchant, known_at_ms, operation_id);

-- === Subscriptions.

-- What is known of each subscription: what notifications told, joined, and what the gateway showed when it was asked.
CREATE TABLE subscriptions (
    merchant        text   NOT NULL,
    subscription_id text   NOT NULL,
    account         text   NOT NULL,
    principal       text,
    order_id        text,
    currency        text,
    amount_minor    bigint,
    told_state      text,
    told_paid       bigint,
    told_next_on    text,
    told_at_ms      bigint,
    seen_state      text,
    seen_at_ms      bigint,
    version         bigint NOT NULL,
    row_digest      text   NOT NULL DEFAULT '',
    PRIMARY KEY (merchant, subscription_id)
) WITHOUT ROWID;
CREATE INDEX subscriptions_newest ON subscriptions (subscription_id, merchant);
CREATE INDEX subscriptions_account ON subscriptions (account, subscription_id, merchant);
CREATE INDEX subscriptions_order ON subscriptions (order_id, subscription_id, merchant);
CREATE INDEX subscriptions_of ON subscriptions (merchant, principal, subscription_id);

-- The installments that were tried, each once: paid, or failed.
CREATE TABLE installments (
    merchant        text   NOT NULL,
    subscription_id text   NOT NULL,
    payment         text   NOT NULL,
    is_paid         bigint NOT NULL,
    amount_minor    bigint,
    at_ms           bigint NOT NULL,
    row_digest      text   NOT NULL DEFAULT '',
    PRIMARY KEY (merchant, subscription_id, payment)
) WITHOUT ROWID;
CREATE INDEX installments_payment ON installments (payment);
CREATE INDEX installments_paid ON installments (merchant, length(payment), payment)
    WHERE is_paid = 1 AND payment NOT LIKE 'ntf:%';

-- === Payments beyond operations, and what the gateway showed when it was asked.

-- How each payment stood when it was last seen.
CREATE TABLE payments_seen (
    merchant     text   NOT NULL,
    payment_id   text   NOT NULL,
    order_id     text   NOT NULL,
    status       text   NOT NULL,
    currency     text   NOT NULL,
    amount_minor bigint NOT NULL,
    seen_at_ms   bigint NOT NULL,
    row_digest   text   NOT NULL DEFAULT '',
    PRIMARY KEY (merchant, payment_id)
) WITHOUT ROWID;
CREATE INDEX payments_seen_newest ON payments_seen (merchant, length(payment_id), payment_id);
CREATE INDEX payments_seen_status ON payments_seen (merchant, status, length(payment_id), payment_id);
CREATE INDEX payments_seen_order ON payments_seen (merchant, order_id);

-- When it became known that a page or an installment was paid, the first time.
-- subject is what the books call it: the checkout's id, or sub/, the subscription and the payment.
CREATE TABLE payments_learnt (
    merchant     text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    learnt_at_ms bigint NOT NULL,
    PRIMARY KEY (merchant, subject)
) WITHOUT ROWID;
CREATE INDEX payments_learnt_at ON payments_learnt (merchant, learnt_at_ms, subject);

-- Payments from before Payrelay, as a shop's own tables or files told of them: each once, whatever files have it.
-- place is the file and the line that it came from.
CREATE TABLE imported_payments (
    merchant        text COLLATE "C" NOT NULL,
    payment_id      text COLLATE "C" NOT NULL,
    principal       text COLLATE "C" NOT NULL,
    account         text   NOT NULL,
    order_id        text COLLATE "C" NOT NULL,
    currency        text   NOT NULL,
    amount_minor    bigint NOT NULL,
    status          text   NOT NULL,
    subscription_id text,
    paid_at_ms      bigint,
    imported_at_ms  bigint NOT NULL,
    imported_by     text   NOT NULL,
    place           text   NOT NULL,
    row_digest      text   NOT NULL,
    PRIMARY KEY (merchant, payment_id)
) WITHOUT ROWID;
CREATE INDEX imported_payments_order ON imported_payments (order_id, merchant);
CREATE INDEX imported_payments_newest ON imported_payments (merchant, length(payment_id), payment_id);
CREATE INDEX imported_payments_of ON imported_payments (principal);

-- When an order is searched for at the gateway: at most once in each slot of its schedule, whatever waits for it.
-- occasions are those that began the schedule anew. While leased_until_ms is set, a search is under way, or its
-- process has died. reading is what the last search showed of the order's payments, as JSON: every process answers by
-- it.
CREATE TABLE order_searches (
    merchant        text   NOT NULL,
    order_id        text   NOT NULL,
    searches        bigint NOT NULL,
    asked_at_ms     bigint NOT NULL,
    next_at_ms      bigint NOT NULL,
    leased_until_ms bigint,
    read_at_ms      bigint,
    occasions       text   NOT NULL,
    reading         text,
    PRIMARY KEY (merchant, order_id)
) WITHOUT ROWID;
CREATE INDEX order_searches_old ON order_searches (asked_at_ms);
CREATE INDEX order_searches_leased ON order_searches (leased_until_ms) WHERE leased_until_ms IS NOT NULL;

-- The last answer to each read, for when the gateway gives none.
CREATE TABLE readings (
    merchant   text   NOT NULL,
    subject    text   NOT NULL,
    sealed     bytea  NOT NULL,
    read_at_ms bigint NOT NULL,
    PRIMARY KEY (merchant, subject)
);
CREATE INDEX readings_read_at ON readings (read_at_ms);

-- Counts what may change any reading of a merchant account's: refunds, releases, retries, cancellations.
CREATE TABLE bumps (
    merchant text   NOT NULL PRIMARY KEY,
    version  bigint NOT NULL
);

-- === Calls to the gateway.

-- The budget of calls to one merchant account: a row for each place, free from a moment on.
CREATE TABLE places (
    merchant   text   NOT NULL,
    slot       bigint NOT NULL,
    free_at_ms bigint NOT NULL,
    holding    text,
    -- Whose call a permit was last given for, so that each principal and each app gets its fair share of the budget.
    consumer   text,
    PRIMARY KEY (merchant, slot)
) WITHOUT ROWID;

-- The access token that all processes share, and who is fetching the next one until when.
CREATE TABLE access_tokens (
    account        text   NOT NULL PRIMARY KEY,
    sealed_token   bytea,
    obtained_at_ms bigint NOT NULL,
    ends_at_ms     bigint NOT NULL,
    lease_until_ms bigint NOT NULL
);

-- Accounts on which an operator allows no new effects.
CREATE TABLE paused_accounts (
    account  text   NOT NULL PRIMARY KEY,
    since_ms bigint NOT NULL,
    reason   text   NOT NULL,
    operator text   NOT NULL
);

-- === What is told of changes, to those who registered for it.

-- Events lie here from the commit that made them until they are published, in the order in which they were written:
-- of two where one was written after the other had been committed, that one has the higher number.
CREATE TABLE outbox (
    seq        bigint NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id         text   NOT NULL,
    type       text   NOT NULL,
    account    text   NOT NULL,
    merchant   text   NOT NULL,
    principal  text   NOT NULL,
    subject    text   NOT NULL,
    at_ms      bigint NOT NULL,
    data       text   NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);

-- The last position that was given. Whoever publishes holds this row: a feed that is read by position never finds a
-- lower one later.
CREATE TABLE feed (
    one      bigint NOT NULL PRIMARY KEY CHECK (one = 1),
    position bigint NOT NULL
);
INSERT INTO feed (one, position) VALUES (1, 0);

-- What was published. It is forgotten some weeks later.
CREATE TABLE events (
    position   bigint NOT NULL PRIMARY KEY,
    id         text   NOT NULL UNIQUE,
    type       text   NOT NULL,
    account    text   NOT NULL,
    merchant   text   NOT NULL,
    principal  text   NOT NULL,
    subject    text   NOT NULL,
    at_ms      bigint NOT NULL,
    data       text   NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);
CREATE INDEX events_of ON events (merchant, principal, position);
CREATE INDEX events_about ON events (subject, position);

-- Where events are sent. The address is often a secret: it is sealed, and told apart by a keyed hash. So are the
-- signing secrets; the older one is used beside the other until its end.
CREATE TABLE endpoints (
    id               text   NOT NULL PRIMARY KEY,
    account          text   NOT NULL,
    merchant         text   NOT NULL,
    principal        text   NOT NULL,
    url_hash         text   NOT NULL,
    sealed_url       bytea  NOT NULL,
    types            text   NOT NULL,
    label            text,
    state            text   NOT NULL CHECK (state IN ('active', 'paused', 'stopped')),
    reason           text,
    sealed_secret    bytea  NOT NULL,
    sealed_older     bytea,
    older_ends_at_ms bigint,
    failing_since_ms bigint,
    held_until_ms    bigint NOT NULL,
    created_at_ms    bigint NOT NULL,
    updated_at_ms    bigint NOT NULL,
    row_digest       text   NOT NULL DEFAULT ''
);
CREATE INDEX endpoints_of ON endpoints (merchant, principal, id);

-- One event to one endpoint. What waits has a time for its next try; a taken one is put off for as long as the try
-- may last, so that no other process takes it, and so that it comes back when its process dies.
CREATE TABLE deliveries (
    endpoint_id    text   NOT NULL,
    position       bigint NOT NULL,
    event_id       text   NOT NULL,
    subject        text   NOT NULL,
    state          text   NOT NULL CHECK (state IN ('waiting', 'delivered', 'given_up')),
    attempts       bigint NOT NULL,
    queued_at_ms   bigint NOT NULL,
    next_try_at_ms bigint,
    last_try_at_ms bigint,
    last_status    bigint,
    last_failure   text,
    PRIMARY KEY (endpoint_id, position)
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_try_at_ms, position) WHERE next_try_at_ms IS NOT NULL;
CREATE INDEX deliveries_in_order ON deliveries (endpoint_id, subject, position) WHERE next_try_at_ms IS NOT NULL;
CREATE INDEX deliveries_rare ON deliveries (endpoint_id, state, position) WHERE state IN ('given_up', 'waiting');

-- === What people are told.

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
) WITHOUT ROWID;
CREATE INDEX alerts_due ON alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;
CREATE INDEX alerts_held ON alerts (created_at_ms) WHERE version = 1;

-- Notifications that a person must look at: one alert for each order and day, and one for each day with many that
-- were refused, whose subject is empty. Otherwise as alerts.
CREATE TABLE notification_alerts (
    notification_id text   NOT NULL,
    version         bigint NOT NULL,
    merchant        text   NOT NULL,
    subject         text   NOT NULL,
    day             bigint NOT NULL,
    created_at_ms   bigint NOT NULL,
    next_try_at_ms  bigint,
    attempts        bigint NOT NULL DEFAULT 0,
    given_to        text   NOT NULL DEFAULT '',
    PRIMARY KEY (notification_id, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX notification_alerts_subject ON notification_alerts (merchant, subject, day);
CREATE INDEX notification_alerts_due ON notification_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- One for each time that an endpoint was stopped by itself; version is when, in milliseconds. The columns mean what
-- they mean in alerts.
CREATE TABLE endpoint_alerts (
    endpoint_id    text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text   NOT NULL DEFAULT '',
    PRIMARY KEY (endpoint_id, version)
) WITHOUT ROWID;
CREATE INDEX endpoint_alerts_due ON endpoint_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- Checkouts whose outcome contradicts what was asked for, so that a person must look: one alert for each subscription
-- that contradicts, whose number is the version. The columns mean what they mean in alerts.
CREATE TABLE checkout_alerts (
    checkout_id    text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text   NOT NULL DEFAULT '',
    PRIMARY KEY (checkout_id, version)
) WITHOUT ROWID;
CREATE INDEX checkout_alerts_due ON checkout_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- One for each row that was found without its digest; row_name is the table and the id. Otherwise as alerts.
CREATE TABLE row_alerts (
    row_name       text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text   NOT NULL DEFAULT '',
    PRIMARY KEY (row_name, version)
) WITHOUT ROWID;
CREATE INDEX row_alerts_due ON row_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- The anchors that go out through the alert channels, one a day; version is the day. Otherwise as alerts.
CREATE TABLE anchor_alerts (
    anchor         text COLLATE "C" NOT NULL,
    version        bigint NOT NULL,
    created_at_ms  bigint NOT NULL,
    next_try_at_ms bigint,
    attempts       bigint NOT NULL DEFAULT 0,
    given_to       text   NOT NULL DEFAULT '',
    PRIMARY KEY (anchor, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX anchor_alerts_day ON anchor_alerts (version);
CREATE INDEX anchor_alerts_due ON anchor_alerts (next_try_at_ms) WHERE next_try_at_ms IS NOT NULL;

-- === What the clearing of old data remembers.

-- How far the clearing of each kind of data has come: reached is the id of the last row that it looked at.
CREATE TABLE clearing (
    kind      text   NOT NULL PRIMARY KEY,
    reached   text COLLATE "C" NOT NULL,
    cleared   bigint NOT NULL,
    ran_at_ms bigint NOT NULL
);

-- What the clearing could not clear when it came by, to be tried again: an operation that was open then, or not
-- anchored.
CREATE TABLE clearing_skipped (
    kind        text   NOT NULL,
    id          text COLLATE "C" NOT NULL,
    tried_at_ms bigint NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX clearing_skipped_tried ON clearing_skipped (kind, tried_at_ms);

-- === What the gateway's and the bank's statements say, what our books of a day came to, and who closed what.

-- The files that were read. What a person said of one's completeness is in statement_days.
CREATE TABLE statement_files (
    merchant       text COLLATE "C" NOT NULL,
    digest         text COLLATE "C" NOT NULL,
    name           text   NOT NULL,
    profile        text   NOT NULL,
    is_guess       bigint NOT NULL,
    summary        text   NOT NULL,
    imported_by    text   NOT NULL,
    imported_at_ms bigint NOT NULL,
    is_whole       bigint NOT NULL,
    PRIMARY KEY (merchant, digest)
) WITHOUT ROWID;

-- Each line once, whatever files have it: content is a digest of what it says. What files say differently of one
-- identity stands here side by side. source is a file, or a search at the gateway.
CREATE TABLE statement_lines (
    merchant           text COLLATE "C" NOT NULL,
    movement           text COLLATE "C" NOT NULL,
    identity           text COLLATE "C" NOT NULL,
    content            text COLLATE "C" NOT NULL,
    currency           text   NOT NULL,
    amount_minor       bigint NOT NULL,
    day                text COLLATE "C" NOT NULL,
    state              text   NOT NULL,
    at_ms              bigint,
    fee_minor          bigint,
    net_minor          bigint,
    expected_fee_minor bigint,
    order_id           text COLLATE "C",
    payment_id         text COLLATE "C",
    payout_id          text COLLATE "C",
    source             text   NOT NULL,
    place              text   NOT NULL,
    known_at_ms        bigint NOT NULL,
    booked_on          text COLLATE "C" NOT NULL,
    -- The word of a statement for the state of a line, as it is written there: a word that nobody knows has to be
    -- named.
    word               text,
    PRIMARY KEY (merchant, movement, identity, content)
) WITHOUT ROWID;
CREATE INDEX statement_lines_booked ON statement_lines (merchant, booked_on, movement, identity, content);
CREATE INDEX statement_lines_order ON statement_lines (order_id, merchant) WHERE order_id IS NOT NULL;
CREATE INDEX statement_lines_payment ON statement_lines (payment_id, merchant) WHERE payment_id IS NOT NULL;
CREATE INDEX statement_lines_payout ON statement_lines (payout_id, merchant) WHERE payout_id IS NOT NULL;

-- The days of which a person said that the files that were read have everything.
CREATE TABLE statement_days (
    merchant   text COLLATE "C" NOT NULL,
    movement   text COLLATE "C" NOT NULL,
    day        text COLLATE "C" NOT NULL,
    said_by    text   NOT NULL,
    said_at_ms bigint NOT NULL,
    rests_on   text   NOT NULL,
    PRIMARY KEY (merchant, movement, day)
) WITHOUT ROWID;

-- The orders whose payments the gateway was asked for, to compare a day.
CREATE TABLE statement_searches (
    merchant       text COLLATE "C" NOT NULL,
    order_id       text COLLATE "C" NOT NULL,
    searched_at_ms bigint NOT NULL,
    PRIMARY KEY (merchant, order_id)
) WITHOUT ROWID;

-- Differences, each once. Only a person closes one.
CREATE TABLE differences (
    merchant          text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    account           text   NOT NULL,
    movement          text   NOT NULL,
    identity          text   NOT NULL,
    day               text COLLATE "C" NOT NULL,
    booked_on         text COLLATE "C" NOT NULL,
    currency          text   NOT NULL,
    content           text   NOT NULL,
    finding           text   NOT NULL,
    concern           text,
    first_found_at_ms bigint NOT NULL,
    last_found_at_ms  bigint NOT NULL,
    is_open           bigint NOT NULL,
    closed_at_ms      bigint,
    closed_by         text,
    closed_reason     text,
    alerted_at_ms     bigint,
    PRIMARY KEY (merchant, id)
) WITHOUT ROWID;
CREATE INDEX differences_open ON differences (merchant, booked_on, id) WHERE is_open = 1;
CREATE INDEX differences_day ON differences (merchant, booked_on, id);

-- What each day came to when it was last compared, and, once it is closed, for good.
CREATE TABLE reconciled_days (
    merchant      text COLLATE "C" NOT NULL,
    day           text COLLATE "C" NOT NULL,
    account       text   NOT NULL,
    report        text   NOT NULL,
    ran_at_ms     bigint NOT NULL,
    closed_at_ms  bigint,
    closed_by     text,
    closed_reason text,
    act           bigint,
    PRIMARY KEY (merchant, day)
) WITHOUT ROWID;

-- === The people who use the console, and what they did.

-- The people who may use the console. act is the number of the line in operator_acts that last changed the row.
CREATE TABLE operators (
    id               text COLLATE "C" NOT NULL PRIMARY KEY,
    email            text COLLATE "C" NOT NULL UNIQUE,
    name             text   NOT NULL,
    role             text   NOT NULL,
    state            text   NOT NULL,
    password_hash    text,
    second_factor    text,
    totp_step        bigint NOT NULL,
    provider_subject text   UNIQUE,
    version          bigint NOT NULL,
    act              bigint NOT NULL,
    created_at_ms    bigint NOT NULL,
    changed_at_ms    bigint NOT NULL,
    sealed_totp      bytea,
    row_digest       text   NOT NULL
) WITHOUT ROWID;

-- Invitations of operators. One that ended has no digest.
CREATE TABLE operator_invitations (
    id            text COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id   text   NOT NULL,
    token_hash    text COLLATE "C" NOT NULL UNIQUE,
    made_at_ms    bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    ended_at_ms   bigint,
    row_digest    text   NOT NULL
) WITHOUT ROWID;
CREATE INDEX operator_invitations_open ON operator_invitations (operator_id) WHERE ended_at_ms IS NULL;

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
) WITHOUT ROWID;
CREATE INDEX operator_passkeys_of ON operator_passkeys (operator_id, made_at_ms);

-- Sessions in the console. One that ended has no digest.
CREATE TABLE console_sessions (
    id          text COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id text   NOT NULL,
    token_hash  text COLLATE "C" NOT NULL UNIQUE,
    stage       text   NOT NULL,
    began_at_ms bigint NOT NULL,
    seen_at_ms  bigint NOT NULL,
    ends_at_ms  bigint NOT NULL,
    client      text   NOT NULL,
    browser     text   NOT NULL,
    act         bigint NOT NULL,
    ended_at_ms bigint,
    row_digest  text   NOT NULL
) WITHOUT ROWID;
CREATE INDEX console_sessions_live ON console_sessions (operator_id, began_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX console_sessions_end ON console_sessions (ends_at_ms);

-- What a browser has to bring back once, while somebody signs in. Nothing here is a secret: both names are hashes.
CREATE TABLE console_challenges (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    bearer     text   NOT NULL,
    way        text   NOT NULL,
    ends_at_ms bigint NOT NULL
) WITHOUT ROWID;
CREATE INDEX console_challenges_end ON console_challenges (ends_at_ms);

-- How often somebody tried to sign in, whichever process was asked.
CREATE TABLE sign_in_tries (
    subject     text COLLATE "C" NOT NULL PRIMARY KEY,
    tries       bigint NOT NULL,
    last_at_ms  bigint NOT NULL,
    -- When the count began: it is over a while after that.
    began_at_ms bigint NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX sign_in_tries_last ON sign_in_tries (last_at_ms);

-- What operators did. The hash of a line covers the line and the hash of the one before it.
CREATE TABLE operator_acts (
    number      bigint NOT NULL PRIMARY KEY,
    at_ms       bigint NOT NULL,
    operator_id text   NOT NULL,
    name        text   NOT NULL,
    act         text   NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    reason      text   NOT NULL,
    details     text   NOT NULL,
    hash        text   NOT NULL
);

-- Finds the lines of operator_acts about one thing, where that is neither an operator nor a session.
CREATE TABLE operator_act_subjects (
    subject text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    PRIMARY KEY (subject, number)
) WITHOUT ROWID;

-- What operators are asked to confirm in the console, and what came of it. act is the number of the line in
-- operator_acts that last changed the row.
CREATE TABLE console_confirmations (
    id            text COLLATE "C" NOT NULL PRIMARY KEY,
    act_name      text   NOT NULL,
    subject       text   NOT NULL,
    account       text   NOT NULL,
    principal     text   NOT NULL,
    order_id      text,
    amount_minor  bigint,
    currency      text,
    fields        text   NOT NULL,
    seen          text   NOT NULL,
    state         text   NOT NULL,
    made_by       text   NOT NULL,
    proposed_by   text,
    confirmed_by  text,
    reason        text   NOT NULL,
    operation_id  text,
    said          text   NOT NULL,
    version       bigint NOT NULL,
    act           bigint NOT NULL,
    made_at_ms    bigint NOT NULL,
    changed_at_ms bigint NOT NULL,
    row_digest    text   NOT NULL
) WITHOUT ROWID;
CREATE INDEX console_confirmations_shown ON console_confirmations (made_at_ms) WHERE state = 'shown';
CREATE INDEX console_confirmations_proposed ON console_confirmations (made_at_ms) WHERE state = 'proposed';
CREATE INDEX console_confirmations_act ON console_confirmations (act);
