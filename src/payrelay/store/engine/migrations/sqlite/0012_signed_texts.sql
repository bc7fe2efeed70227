-- The texts that a gateway signs once it gets a form or a call of ours, each as a keyed digest, kept for good. A form may
-- be used as long as its secret is valid, whatever became of its checkout. No row has anything of a person.
CREATE TABLE signed_texts (
    merchant TEXT    NOT NULL,
    digest   TEXT    NOT NULL,
    subject  TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (merchant, digest, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX signed_texts_subject ON signed_texts (subject);
