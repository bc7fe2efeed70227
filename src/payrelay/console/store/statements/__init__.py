"""The SQL of what the console keeps."""
