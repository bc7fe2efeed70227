"""The API's description, its schemas, examples and docs page."""
