-- Principals of one merchant that act together, and those that may still act on each other's things because they did so
-- before owners were asked for. Each row lets somebody act on what isn't theirs: it counts only with its keyed digest.

-- The id is another name of a principal. Rows keep the name under which they were stored.
CREATE TABLE principal_names (
    id         text   NOT NULL PRIMARY KEY,
    principal  text   NOT NULL,
    since_ms   bigint NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);

-- The id is a principal, which is in one group at most.
CREATE TABLE principal_groups (
    id         text   NOT NULL PRIMARY KEY,
    name       text   NOT NULL,
    since_ms   bigint NOT NULL,
    row_digest text   NOT NULL DEFAULT ''
);
CREATE INDEX principal_groups_name ON principal_groups (name);

-- principal may act on what is owner's until an operator decides: it did so before (acted), or it had a key that could
-- and has left no trace of what it was used for (unseen). The id is both names, in two lines. The upgrade step that gives
-- rows their digests covers what is found below.
CREATE TABLE grandfathered (
    id         text   NOT NULL PRIMARY KEY,
    principal  text   NOT NULL,
    owner      text   NOT NULL,
    reason     text   NOT NULL CHECK (reason IN ('acted', 'unseen')),
    actions    bigint NOT NULL,
    last_at_ms bigint,
    row_digest text   NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX grandfathered_of ON grandfathered (principal, owner);

-- By what the owner of a thing is found, where no index led to it yet.
CREATE INDEX installments_payment ON installments (payment);
CREATE INDEX checkouts_subscription ON checkouts (subscription_id) WHERE subscription_id IS NOT NULL;
CREATE INDEX checkouts_without_plan ON checkouts (merchant, order_id)
    WHERE kind = 'recurring' AND subscription_id IS NULL;
CREATE INDEX accepted_tokens_hash ON accepted_tokens (token_hash);

-- Who acted on whose payments, authorizations, plans and orders until now. What had no effect doesn't count.
INSERT INTO grandfathered (id, principal, owner, reason, actions, last_at_ms)
SELECT principal || chr(10) || owner, principal, owner, 'acted', count(*), max(at_ms)
FROM (
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN operations AS made ON made.payment_id = acting.payment_id AND made.merchant = acting.merchant
    WHERE acting.principal <> made.principal
      AND acting.kind = 'refund' AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND made.kind IN ('charge', 'authorization', 'capture', 'retry')
      AND made.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN checkouts AS made ON made.payment_id = acting.payment_id AND made.merchant = acting.merchant
    WHERE acting.principal <> made.principal
      AND acting.kind = 'refund' AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN installments ON installments.payment = acting.payment_id AND installments.merchant = acting.merchant
    JOIN subscriptions AS made ON made.merchant = installments.merchant
      AND made.subscription_id = installments.subscription_id
    WHERE acting.principal <> made.principal
      AND acting.kind = 'refund' AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND installments.is_paid = 1
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN operations AS made ON made.result_ref = substr(acting.subject, 15) AND made.merchant = acting.merchant
    WHERE acting.principal <> made.principal
      AND acting.kind IN ('capture', 'release') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN accepted_tokens ON accepted_tokens.token_hash = substr(acting.subject, 15)
      AND accepted_tokens.merchant = acting.merchant
    JOIN checkouts AS made ON made.merchant = accepted_tokens.merchant AND made.order_id = accepted_tokens.order_id
    WHERE acting.principal <> made.principal
      AND acting.kind IN ('capture', 'release') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND made.kind = 'authorization' AND accepted_tokens.kind = 'authorization'
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN subscriptions AS made ON made.merchant = acting.merchant AND made.subscription_id = acting.subscription_id
    WHERE acting.principal <> made.principal
      AND acting.kind IN ('retry', 'cancel') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN checkouts AS made ON made.subscription_id = acting.subscription_id AND made.merchant = acting.merchant
    WHERE acting.principal <> made.principal
      AND acting.kind IN ('retry', 'cancel') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, made.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN operations AS made ON made.order_id = acting.order_id AND made.merchant = acting.merchant
    WHERE acting.principal <> made.principal
      AND acting.kind IN ('charge', 'authorization') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND made.kind IN ('charge', 'authorization') AND made.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, held.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN checkouts AS held ON held.merchant = acting.merchant AND held.order_id = acting.order_id
    WHERE acting.principal <> held.principal
      AND acting.kind IN ('charge', 'authorization') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND (held.guard IS NOT NULL OR held.payment_id IS NOT NULL)
    UNION ALL
    SELECT held.principal AS principal, made.principal AS owner, held.updated_at_ms AS at_ms
    FROM operations AS made
    JOIN checkouts AS held ON held.merchant = made.merchant AND held.order_id = made.order_id
    WHERE held.principal <> made.principal
      AND made.kind IN ('charge', 'authorization') AND made.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND (held.guard IS NOT NULL OR held.payment_id IS NOT NULL)
    UNION ALL
    SELECT held.principal AS principal, other.principal AS owner, held.updated_at_ms AS at_ms
    FROM checkouts AS held
    JOIN checkouts AS other ON other.merchant = held.merchant AND other.order_id = held.order_id
    WHERE held.principal <> other.principal
      AND (held.guard IS NOT NULL OR held.payment_id IS NOT NULL)
      AND (other.guard IS NOT NULL OR other.payment_id IS NOT NULL)
) AS acts
WHERE owner IS NOT NULL
GROUP BY principal, owner;

-- Reads leave no trace. So whoever has made nothing at all, and has a key that could read or change what others made,
-- is listed too.
INSERT INTO grandfathered (id, principal, owner, reason, actions, last_at_ms)
SELECT DISTINCT keys.principal || chr(10) || owners.principal, keys.principal, owners.principal, 'unseen', 0,
       NULL::bigint
FROM credentials AS keys
CROSS JOIN (SELECT DISTINCT principal FROM operations UNION SELECT DISTINCT principal FROM checkouts) AS owners
WHERE keys.revoked_at_ms IS NULL
  AND (keys.scopes LIKE '%"payments:read"%' OR keys.scopes LIKE '%"payments:capture"%'
       OR keys.scopes LIKE '%"payments:refund"%' OR keys.scopes LIKE '%"subscriptions:%')
  AND keys.principal <> owners.principal
  AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.principal = keys.principal)
  AND NOT EXISTS (SELECT 1 FROM checkouts WHERE checkouts.principal = keys.principal)
  AND NOT EXISTS (SELECT 1 FROM customers WHERE customers.principal = keys.principal);
