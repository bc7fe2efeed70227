-- Nothing changes or removes what the audit rests on. A line of history goes only once its operation keeps what it told.

CREATE FUNCTION history_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT 1 FROM operations WHERE id = OLD.operation_id AND closed_history IS NOT NULL) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'history is append-only';
END;
$$;

CREATE TRIGGER history_is_not_changed BEFORE UPDATE OR DELETE ON history
    FOR EACH ROW EXECUTE FUNCTION history_is_final();
CREATE TRIGGER history_is_not_removed BEFORE TRUNCATE ON history
    FOR EACH STATEMENT EXECUTE FUNCTION history_is_final();

CREATE FUNCTION anchors_are_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'anchors are append-only';
END;
$$;

CREATE TRIGGER anchors_are_not_changed BEFORE UPDATE OR DELETE ON anchors
    FOR EACH ROW EXECUTE FUNCTION anchors_are_final();
CREATE TRIGGER anchors_are_not_removed BEFORE TRUNCATE ON anchors
    FOR EACH STATEMENT EXECUTE FUNCTION anchors_are_final();

CREATE TRIGGER operator_acts_are_not_changed BEFORE UPDATE OR DELETE ON operator_acts
    FOR EACH ROW EXECUTE FUNCTION history_is_final();
CREATE TRIGGER operator_acts_are_not_removed BEFORE TRUNCATE ON operator_acts
    FOR EACH STATEMENT EXECUTE FUNCTION history_is_final();

-- Rows of places change all the time, and keep their place in the indexes where their page has room.
ALTER TABLE places SET (fillfactor = 50);

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE data_keys_%s PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            to_char(part, 'FM00'), part
        );
    END LOOP;
END;
$$;
