"""Upgrades of stored data that need the store's keys, after the schema was migrated."""
