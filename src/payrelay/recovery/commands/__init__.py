"""The commands for a database that lost commits."""
