-- An operator may accept a notification that the service doubted: who, why and when. The row's digest covers it.
ALTER TABLE notifications ADD COLUMN accepted_by text;
ALTER TABLE notifications ADD COLUMN accepted_because text;
ALTER TABLE notifications ADD COLUMN accepted_at_ms bigint;
