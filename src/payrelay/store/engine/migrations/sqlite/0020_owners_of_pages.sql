-- A page that was given up can be paid for good, so whoever gave out its form owns its order (docs/owners.md). Who acted on
-- such orders before owners were asked for goes on as the pairs of migration 14 do. Those who were kept apart since then
-- stay so: their rows have digests.
INSERT INTO grandfathered (id, principal, owner, reason, actions, last_at_ms)
SELECT principal || char(10) || owner, principal, owner, 'acted', count(*), max(at_ms)
FROM (
    SELECT acting.principal AS principal, page.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN checkouts AS page ON page.merchant = acting.merchant AND page.order_id = acting.order_id
    WHERE acting.principal <> page.principal AND page.guard IS NULL AND page.payment_id IS NULL
      AND acting.kind IN ('charge', 'authorization') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
    UNION ALL
    SELECT acting.principal AS principal, page.principal AS owner, acting.updated_at_ms AS at_ms
    FROM checkouts AS acting
    JOIN checkouts AS page ON page.merchant = acting.merchant AND page.order_id = acting.order_id
    WHERE acting.principal <> page.principal AND page.guard IS NULL AND page.payment_id IS NULL
      AND (acting.guard IS NOT NULL OR acting.payment_id IS NOT NULL)
    UNION ALL
    SELECT acting.principal AS principal, page.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN payments_seen AS seen ON seen.merchant = acting.merchant AND seen.payment_id = acting.payment_id
    JOIN checkouts AS page ON page.merchant = seen.merchant AND page.order_id = seen.order_id
    WHERE acting.principal <> page.principal AND page.guard IS NULL AND page.payment_id IS NULL
      AND acting.kind = 'refund' AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND NOT EXISTS (
          SELECT 1 FROM operations AS made
          WHERE made.payment_id = acting.payment_id AND made.merchant = acting.merchant
            AND made.kind IN ('charge', 'authorization', 'capture', 'retry')
            AND made.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      )
      AND NOT EXISTS (
          SELECT 1 FROM checkouts AS made
          WHERE made.payment_id = acting.payment_id AND made.merchant = acting.merchant
      )
      AND NOT EXISTS (
          SELECT 1 FROM installments AS made
          WHERE made.payment = acting.payment_id AND made.merchant = acting.merchant AND made.is_paid = 1
      )
    UNION ALL
    SELECT acting.principal AS principal, page.principal AS owner, acting.updated_at_ms AS at_ms
    FROM operations AS acting
    JOIN subscriptions AS plan ON plan.merchant = acting.merchant AND plan.subscription_id = acting.subscription_id
    JOIN checkouts AS page ON page.merchant = plan.merchant AND page.order_id = plan.order_id
    WHERE acting.principal <> page.principal AND page.guard IS NULL AND page.payment_id IS NULL
      AND acting.kind IN ('retry', 'cancel') AND acting.state NOT IN ('declined', 'refused', 'not_sent', 'failed')
      AND plan.principal IS NULL
      AND NOT EXISTS (
          SELECT 1 FROM checkouts AS began
          WHERE began.subscription_id = plan.subscription_id AND began.merchant = plan.merchant
      )
) AS acts
WHERE NOT EXISTS (SELECT 1 FROM credentials WHERE row_digest <> '')
  AND NOT EXISTS (SELECT 1 FROM checkouts WHERE row_digest <> '')
GROUP BY principal, owner
ON CONFLICT (id) DO UPDATE
SET actions = grandfathered.actions + excluded.actions,
    last_at_ms = CASE
        WHEN grandfathered.last_at_ms > excluded.last_at_ms THEN grandfathered.last_at_ms
        ELSE excluded.last_at_ms
    END;

-- The list of subscriptions is filtered by the owners of each, and no longer by this.
DROP INDEX checkouts_without_plan;
