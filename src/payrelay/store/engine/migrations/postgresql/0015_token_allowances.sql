-- What a client token may pay: kind, amount, currency, number of payments. Null for a token that may pay nothing, and for
-- one of an earlier version, of which amount_max_minor and currency say it. Later tokens leave those two null.
ALTER TABLE client_tokens ADD COLUMN allowance text;
