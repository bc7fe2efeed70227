-- online
-- Chargebacks that were notified, and that no record proves yet: a few at a time.
DROP INDEX CONCURRENTLY IF EXISTS notifications_chargebacks;
CREATE INDEX CONCURRENTLY notifications_chargebacks ON notifications (merchant, order_id)
    WHERE kind = 'chargeback' AND state IN ('received', 'waiting');
