-- What the gateway's and the bank's statements say, what our books of a day came to beside them, and who closed what.

-- The files that were read. What a person said of one's completeness is in statement_days.
CREATE TABLE statement_files (
    merchant       text COLLATE "C"  NOT NULL,
    digest         text COLLATE "C"  NOT NULL,
    name           text   NOT NULL,
    profile        text   NOT NULL,
    is_guess       bigint NOT NULL,
    summary        text   NOT NULL,
    imported_by    text   NOT NULL,
    imported_at_ms bigint NOT NULL,
    is_whole       bigint NOT NULL,
    PRIMARY KEY (merchant, digest)
);

-- Each line once, whatever files have it: content is a digest of what it says. What files say differently of one identity
-- stands here side by side. source is a file, or a search at the gateway.
CREATE TABLE statement_lines (
    merchant           text COLLATE "C"  NOT NULL,
    movement           text COLLATE "C"  NOT NULL,
    identity           text COLLATE "C"  NOT NULL,
    content            text COLLATE "C"  NOT NULL,
    currency           text   NOT NULL,
    amount_minor       bigint NOT NULL,
    day                text COLLATE "C"  NOT NULL,
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
    booked_on          text COLLATE "C"  NOT NULL,
    PRIMARY KEY (merchant, movement, identity, content)
);
CREATE INDEX statement_lines_booked ON statement_lines (merchant, booked_on, movement, identity, content);
CREATE INDEX statement_lines_order ON statement_lines (order_id, merchant) WHERE order_id IS NOT NULL;
CREATE INDEX statement_lines_payment ON statement_lines (payment_id, merchant) WHERE payment_id IS NOT NULL;
CREATE INDEX statement_lines_payout ON statement_lines (payout_id, merchant) WHERE payout_id IS NOT NULL;

-- The days of which a person said that the files that were read have everything.
CREATE TABLE statement_days (
    merchant   text COLLATE "C"  NOT NULL,
    movement   text COLLATE "C"  NOT NULL,
    day        text COLLATE "C"  NOT NULL,
    said_by    text   NOT NULL,
    said_at_ms bigint NOT NULL,
    rests_on   text   NOT NULL,
    PRIMARY KEY (merchant, movement, day)
);

-- The orders whose payments the gateway was asked for, to compare a day.
CREATE TABLE statement_searches (
    merchant       text COLLATE "C"  NOT NULL,
    order_id       text COLLATE "C"  NOT NULL,
    searched_at_ms bigint NOT NULL,
    PRIMARY KEY (merchant, order_id)
);

-- Differences, each once. Only a person closes one; closed_content is what it said then. now_ columns are what the last
-- run that met it found.
CREATE TABLE differences (
    merchant          text COLLATE "C"  NOT NULL,
    id                text COLLATE "C"  NOT NULL,
    account           text   NOT NULL,
    movement          text   NOT NULL,
    identity          text   NOT NULL,
    day               text COLLATE "C"  NOT NULL,
    booked_on         text COLLATE "C"  NOT NULL,
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
);
CREATE INDEX differences_open ON differences (merchant, booked_on, id) WHERE is_open = 1;
CREATE INDEX differences_day ON differences (merchant, booked_on, id);

-- What each day came to when it was last compared, and, once it is closed, for good.
CREATE TABLE reconciled_days (
    merchant      text COLLATE "C"  NOT NULL,
    day           text COLLATE "C"  NOT NULL,
    account       text   NOT NULL,
    report        text   NOT NULL,
    ran_at_ms     bigint NOT NULL,
    closed_at_ms  bigint,
    closed_by     text,
    closed_reason text,
    act           bigint,
    PRIMARY KEY (merchant, day)
);
