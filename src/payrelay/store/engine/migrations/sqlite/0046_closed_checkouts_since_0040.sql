-- When the page of a checkout was closed by a client or an operator; null where something else ended the checkout.
ALTER TABLE checkouts ADD COLUMN closed_at_ms INTEGER;
