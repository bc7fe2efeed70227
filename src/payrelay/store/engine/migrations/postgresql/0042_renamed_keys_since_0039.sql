-- Stands for the digest that an operation's row had before the service put another Idempotency-Key into it: the earlier one
-- named a person whose data was erased.
CREATE TABLE renamed_keys (
    operation_id text COLLATE "C" NOT NULL PRIMARY KEY,
    version      bigint NOT NULL,
    masked       text   NOT NULL,
    signature    text   NOT NULL
);
