"""Orders: all that is stored of an order's money."""
