"""The commands of the reconciliation."""
