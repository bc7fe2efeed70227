-- online
-- The newest entries of cleared histories by time, for the anchors that cover them. No charge writes to it.
DROP INDEX CONCURRENTLY IF EXISTS operations_closed;
CREATE INDEX CONCURRENTLY operations_closed ON operations (updated_at_ms) WHERE closed_history IS NOT NULL;
