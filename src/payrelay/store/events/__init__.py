"""Where events, endpoints and deliveries are kept."""
