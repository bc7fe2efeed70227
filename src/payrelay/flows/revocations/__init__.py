"""Does again what was taken back, where the database has lost it."""
