-- What operators are asked to confirm in the console, and what came of it. act is the number of the line in
-- operator_acts that last changed the row.
CREATE TABLE console_confirmations (
    id            text COLLATE "C" NOT NULL PRIMARY KEY,
    act_name      text    NOT NULL,
    subject       text    NOT NULL,
    account       text    NOT NULL,
    principal     text    NOT NULL,
    order_id      text,
    amount_minor  bigint,
    currency      text,
    fields        text    NOT NULL,
    seen          text    NOT NULL,
    state         text    NOT NULL,
    made_by       text    NOT NULL,
    proposed_by   text,
    confirmed_by  text,
    reason        text    NOT NULL,
    operation_id  text,
    said          text    NOT NULL,
    version       bigint NOT NULL,
    act           bigint NOT NULL,
    made_at_ms    bigint NOT NULL,
    changed_at_ms bigint NOT NULL,
    row_digest    text    NOT NULL
);
CREATE INDEX console_confirmations_shown ON console_confirmations (made_at_ms) WHERE state = 'shown';
CREATE INDEX console_confirmations_proposed ON console_confirmations (made_at_ms) WHERE state = 'proposed';
CREATE INDEX console_confirmations_act ON console_confirmations (act);

-- Finds the lines of operator_acts about one thing. Lines from before are about operators and sessions, and need none.
CREATE TABLE operator_act_subjects (
    subject text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    PRIMARY KEY (subject, number)
);
