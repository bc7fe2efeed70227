-- What is left of a cleared history, in its operation's own row: where it was cleared up to, signed, and its newest entry.
-- It takes the place of a row in history and of one in history_checkpoints, which has those of earlier versions.
ALTER TABLE operations ADD COLUMN closed_history TEXT;

DROP TRIGGER history_is_not_removed;
CREATE TRIGGER history_is_not_removed BEFORE DELETE ON history
WHEN NOT EXISTS (
    SELECT 1 FROM history_checkpoints WHERE operation_id = OLD.operation_id AND version > OLD.version
) AND NOT EXISTS (
    SELECT 1 FROM operations WHERE id = OLD.operation_id AND closed_history IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'history is append-only');
END;
