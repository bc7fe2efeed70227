-- What the clearing of old data leaves and remembers.

-- Stands for the cleared beginning of a history: the first version that is kept, and the hash and the state before it.
CREATE TABLE history_checkpoints (
    operation_id text COLLATE "C" NOT NULL PRIMARY KEY,
    version      bigint NOT NULL,
    previous     text   NOT NULL,
    state        text   NOT NULL,
    signature    text   NOT NULL
);

-- What is left of the journal entries of an anchor's span: their number and the sum over them.
CREATE TABLE anchor_checkpoints (
    number    bigint NOT NULL PRIMARY KEY,
    anchor    text   NOT NULL,
    entries   bigint NOT NULL,
    total     text   NOT NULL,
    cleared   bigint NOT NULL,
    signature text   NOT NULL
);

-- How far the clearing of each kind of data has come: reached is the id of the last row that it looked at.
CREATE TABLE clearing (
    kind      text   NOT NULL PRIMARY KEY,
    reached   text COLLATE "C" NOT NULL,
    cleared   bigint NOT NULL,
    ran_at_ms bigint NOT NULL
);

-- What the clearing could not clear when it came by, to be tried again: an operation that was open then, or not anchored.
CREATE TABLE clearing_skipped (
    kind        text   NOT NULL,
    id          text COLLATE "C" NOT NULL,
    tried_at_ms bigint NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX clearing_skipped_tried ON clearing_skipped (kind, tried_at_ms);

-- A journal entry is removed only where a checkpoint stands for it.
CREATE OR REPLACE FUNCTION history_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (
            SELECT 1 FROM history_checkpoints
            WHERE operation_id = OLD.operation_id AND history_checkpoints.version > OLD.version
        ) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'history is append-only';
END;
$$;
