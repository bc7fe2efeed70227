"""Orders: shows an order to a client, with its balance, payments, operations and pages."""
