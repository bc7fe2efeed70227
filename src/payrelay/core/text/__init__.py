"""Text that people type, and tables in text that programs export."""
