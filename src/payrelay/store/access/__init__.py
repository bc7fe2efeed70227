"""Where keys, tokens for phones and the keys that sign them are kept."""
