"""The shared database: PostgreSQL, for any number of processes and machines."""
