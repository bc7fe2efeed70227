"""Puts a backup back, and copies a database into another one."""
