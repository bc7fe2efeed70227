"""The books in the console."""
