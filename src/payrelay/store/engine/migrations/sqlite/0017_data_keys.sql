-- The keys under which lies sealed what can be erased on request: one for each customer, checkout, notification and
-- cached answer. Whoever destroys a key destroys what it seals, wherever copies of that still are.
-- Rows are added at the end of the table, overwritten in place by zeros, and never removed: SQLite then moves none to
-- another page, and so leaves no copy of one behind.
CREATE TABLE data_keys (
    owner      TEXT NOT NULL PRIMARY KEY,
    sealed_key BLOB NOT NULL
) STRICT;

-- Where a destroyed key may still lie in the database's files, until they are cleared of it.
CREATE TABLE key_residues (
    place TEXT    NOT NULL PRIMARY KEY,
    times INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
