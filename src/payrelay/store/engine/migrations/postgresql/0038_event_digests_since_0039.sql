-- A keyed digest over the row, as other tables have since 0016; empty where the row has none.
ALTER TABLE events ADD COLUMN row_digest text NOT NULL DEFAULT '';
