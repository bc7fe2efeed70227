"""Changes of stored data that need the store's keys, after the schema was migrated; and the beginning of a store."""
