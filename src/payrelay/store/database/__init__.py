"""What tells a database from another, and from an earlier state of itself."""
