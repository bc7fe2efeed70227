-- A keyed digest over the row, as other tables have since 0016; empty where the row has none.
ALTER TABLE outbox ADD COLUMN row_digest TEXT NOT NULL DEFAULT '';
