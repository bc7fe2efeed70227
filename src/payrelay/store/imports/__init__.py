"""What was imported from before Payrelay, and how the tables of a shop are read."""
