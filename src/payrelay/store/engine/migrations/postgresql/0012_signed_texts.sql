-- The texts that a gateway signs once it gets a form or a call of ours, each as a keyed digest, kept for good. A form may
-- be used as long as its secret is valid, whatever became of its checkout. No row has anything of a person.
CREATE TABLE signed_texts (
    merchant text    COLLATE "C" NOT NULL,
    digest   text    COLLATE "C" NOT NULL,
    subject  text    COLLATE "C" NOT NULL,
    kind     text    NOT NULL,
    at_ms    bigint  NOT NULL,
    PRIMARY KEY (merchant, digest, subject)
);
CREATE INDEX signed_texts_subject ON signed_texts (subject);
