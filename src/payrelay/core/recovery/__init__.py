"""The identity of a database, and what a recovery from lost commits has to respect."""
