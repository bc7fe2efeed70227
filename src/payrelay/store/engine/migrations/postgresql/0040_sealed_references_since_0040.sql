-- A checkout's customer_reference and idempotency_key lay in clear. Pages and indexes keep copies of what was deleted, so
-- an erasure left some readable. From now on these columns are empty: the reference is sealed with a data key of its own,
-- and both are found by keyed hashes. A program that knows no version 40 would read neither, so it can't work with this.
ALTER TABLE checkouts ADD COLUMN key_hash text;
ALTER TABLE checkouts ADD COLUMN reference_hash text;
ALTER TABLE checkouts ADD COLUMN sealed_reference bytea;
