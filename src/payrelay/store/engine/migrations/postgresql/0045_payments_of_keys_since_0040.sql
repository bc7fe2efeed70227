-- How many payments an order may have for the key, whoever makes them; null for no limit.
ALTER TABLE credentials ADD COLUMN payments_max bigint;
