"""The statements of operators and of their history."""
