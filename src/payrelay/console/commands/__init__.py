"""The commands about the console."""
