-- The keys under which lies sealed what can be erased on request: one for each customer, checkout, notification and
-- cached answer. Whoever destroys a key destroys what it seals, wherever copies of that still are.
-- In parts, so that the part of a destroyed key is rewritten in a moment.
CREATE TABLE data_keys (
    owner      text  NOT NULL PRIMARY KEY,
    sealed_key bytea NOT NULL
) PARTITION BY HASH (owner);
CREATE TABLE data_keys_00 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 0);
CREATE TABLE data_keys_01 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 1);
CREATE TABLE data_keys_02 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 2);
CREATE TABLE data_keys_03 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 3);
CREATE TABLE data_keys_04 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 4);
CREATE TABLE data_keys_05 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 5);
CREATE TABLE data_keys_06 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 6);
CREATE TABLE data_keys_07 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 7);
CREATE TABLE data_keys_08 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 8);
CREATE TABLE data_keys_09 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 9);
CREATE TABLE data_keys_10 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 10);
CREATE TABLE data_keys_11 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 11);
CREATE TABLE data_keys_12 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 12);
CREATE TABLE data_keys_13 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 13);
CREATE TABLE data_keys_14 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 14);
CREATE TABLE data_keys_15 PARTITION OF data_keys FOR VALUES WITH (MODULUS 16, REMAINDER 15);

-- Where a destroyed key may still lie in the database's files, until they are cleared of it.
CREATE TABLE key_residues (
    place text   NOT NULL PRIMARY KEY,
    times bigint NOT NULL
);
