-- Nothing changes: only SQLite makes a table for an IN in the condition of a partial index, whenever a row is written.
SELECT 1;
