"""The decisions of operators about held operations."""
