"""What the product does: one story a file, by noun. Called by the API, the command line and the worker alike."""
