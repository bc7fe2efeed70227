"""Orders: what an order's money is, whatever ways it took."""
