"""What is stored for a reconciliation, and how our books of a day are read."""
