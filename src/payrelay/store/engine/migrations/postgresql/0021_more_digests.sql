-- A keyed digest over the row, as other tables have since 0016; empty where the row has none.
ALTER TABLE operations ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE accepted_tokens ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE payments_seen ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE subscriptions ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE installments ADD COLUMN row_digest text NOT NULL DEFAULT '';
ALTER TABLE signed_texts ADD COLUMN row_digest text NOT NULL DEFAULT '';

-- How many texts the row's subject has in all: one that is removed is missed in the others.
ALTER TABLE signed_texts ADD COLUMN texts bigint NOT NULL DEFAULT 0;

-- The calls of which nobody can tell what was signed: where one is, nothing proves what somebody else may have signed.
CREATE INDEX operations_without_text ON operations (merchant)
    WHERE kind = 'authorization' AND (order_id IS NULL OR amount_minor IS NULL OR currency IS NULL);
