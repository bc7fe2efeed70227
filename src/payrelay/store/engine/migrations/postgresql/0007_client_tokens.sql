-- Client tokens that were issued and have not ended: what can be listed and revoked. The text of none is here; whoever
-- reads this can't make one.
CREATE TABLE client_tokens (
    id               text COLLATE "C"  NOT NULL PRIMARY KEY,
    principal        text    NOT NULL,
    credential_id    text COLLATE "C"  NOT NULL,
    account          text    NOT NULL,
    customer_id      text,
    order_id         text,
    amount_max_minor bigint,
    currency         text,
    scopes           text    NOT NULL,
    issued_at_ms     bigint  NOT NULL,
    expires_at_ms    bigint  NOT NULL,
    revoked_at_ms    bigint
);
CREATE INDEX client_tokens_of ON client_tokens (principal, account, id);
CREATE INDEX client_tokens_customer ON client_tokens (customer_id, principal) WHERE customer_id IS NOT NULL;
CREATE INDEX client_tokens_credential ON client_tokens (credential_id);
CREATE INDEX client_tokens_end ON client_tokens (expires_at_ms);
