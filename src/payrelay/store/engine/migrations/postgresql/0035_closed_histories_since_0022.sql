-- What is left of a cleared history, in its operation's own row: where it was cleared up to, signed, and its newest entry.
-- It takes the place of a row in history and of one in history_checkpoints, which has those of earlier versions.
ALTER TABLE operations ADD COLUMN closed_history text;

CREATE OR REPLACE FUNCTION history_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (
            SELECT 1 FROM history_checkpoints
            WHERE operation_id = OLD.operation_id AND history_checkpoints.version > OLD.version
        ) OR EXISTS (
            SELECT 1 FROM operations WHERE id = OLD.operation_id AND closed_history IS NOT NULL
        ) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'history is append-only';
END;
$$;
