-- When the count began: it is over a while after that, and no longer after its last try.
ALTER TABLE sign_in_tries ADD COLUMN began_at_ms bigint NOT NULL DEFAULT 0;
