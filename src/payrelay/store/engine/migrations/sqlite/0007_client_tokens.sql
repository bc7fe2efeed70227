-- Client tokens that were issued and have not ended: what can be listed and revoked. The text of none is here; whoever
-- reads this can't make one.
CREATE TABLE client_tokens (
    id               TEXT    NOT NULL PRIMARY KEY,
    principal        TEXT    NOT NULL,
    credential_id    TEXT    NOT NULL,
    account          TEXT    NOT NULL,
    customer_id      TEXT,
    order_id         TEXT,
    amount_max_minor INTEGER,
    currency         TEXT,
    scopes           TEXT    NOT NULL,
    issued_at_ms     INTEGER NOT NULL,
    expires_at_ms    INTEGER NOT NULL,
    revoked_at_ms    INTEGER
) STRICT;
CREATE INDEX client_tokens_of ON client_tokens (principal, account, id);
CREATE INDEX client_tokens_customer ON client_tokens (customer_id, principal) WHERE customer_id IS NOT NULL;
CREATE INDEX client_tokens_credential ON client_tokens (credential_id);
CREATE INDEX client_tokens_end ON client_tokens (expires_at_ms);
