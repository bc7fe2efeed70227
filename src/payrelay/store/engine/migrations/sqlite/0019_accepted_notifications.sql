-- An operator may accept a notification that the service doubted: who, why and when. The row's digest covers it.
ALTER TABLE notifications ADD COLUMN accepted_by TEXT;
ALTER TABLE notifications ADD COLUMN accepted_because TEXT;
ALTER TABLE notifications ADD COLUMN accepted_at_ms INTEGER;
