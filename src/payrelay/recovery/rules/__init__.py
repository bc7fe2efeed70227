"""What a recovery from lost commits has to respect."""
