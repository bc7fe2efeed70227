-- How much of a payment was charged back, where the notification said less than the payment in a field that isn't signed.
ALTER TABLE chargebacks ADD COLUMN part_minor INTEGER;
