-- The word of a statement for the state of a line, as it is written there: a word that nobody knows has to be named.
ALTER TABLE statement_lines ADD COLUMN word TEXT;
