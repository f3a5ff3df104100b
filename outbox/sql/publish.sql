-- outbox_publish(attempts): the only way to set outbox_events.published_at (O18).
--
-- Call it once per settle transaction with the attempts that transaction acknowledged, as its own statement after the
-- settling one, under READ COMMITTED: the event rows are locked before the siblings are looked at, so when the last two
-- mandatory deliveries of an event settle at the same moment, the second one sees the first.
--
-- Answers per event: 'not_complete' (another mandatory delivery is open; published_at stays empty) or 'complete' (all are
-- acknowledged; published_at has its first time, from this call or from an earlier one, and never changes again).
-- Raises OB001 ('invalid') and so rolls back, when any attempt is not the current, acknowledged attempt of its delivery
-- with a success finish and an ack that fits the frozen member and the event's digest.
CREATE OR REPLACE FUNCTION outbox_publish(attempts uuid[])
RETURNS TABLE (event_id uuid, verdict text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    broken uuid;
    broken_count bigint;
    ids uuid[];
    finished uuid[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'OB002', CONSTRAINT = 'outbox_publish_isolation',
            MESSAGE = 'outbox_publish needs READ COMMITTED: under a snapshot it could miss a sibling''s acknowledgement.';
    END IF;

    PERFORM 1 FROM outbox_events e
      WHERE e.event_id IN (
            SELECT s.event_id FROM unnest(attempts) a (id)
              JOIN outbox_delivery_attempt_starts s ON s.attempt_id = a.id
             WHERE EXISTS (SELECT FROM outbox_deliveries o
                            WHERE o.event_id = s.event_id AND o.destination <> s.destination AND o.mandatory))
      ORDER BY e.event_id
      FOR NO KEY UPDATE;

    SELECT count(*) FILTER (WHERE NOT z.ok), (array_agg(z.id) FILTER (WHERE NOT z.ok))[1], array_agg(DISTINCT z.event_id)
      INTO broken_count, broken, ids
      FROM (
        SELECT a.id, e.event_id, coalesce(
                   d.status = 'acknowledged' AND d.current_attempt_id = a.id AND d.lease_token = s.lease_token
               AND f.outcome = 'acknowledged'
               AND d.ack_consumer_name = m.consumer_name AND d.consumer_name = m.consumer_name
               AND d.ack_receipt_type = m.expected_receipt_type
               AND d.ack_receipt_schema_version = m.expected_receipt_schema_version
               AND d.ack_receipt_ref <> '' AND length(d.ack_receipt_digest) = 64
               AND d.ack_event_envelope_sha256 = e.event_envelope_sha256
               AND d.ack_event_envelope_digest_algorithm_version = e.event_envelope_digest_algorithm_version
               AND d.delivery_set_version = e.delivery_set_version, false) AS ok
          FROM unnest(attempts) a (id)
          LEFT JOIN outbox_delivery_attempt_starts s ON s.attempt_id = a.id
          LEFT JOIN outbox_deliveries d ON d.event_id = s.event_id AND d.destination = s.destination
          LEFT JOIN outbox_delivery_attempt_finishes f ON f.attempt_id = a.id
          LEFT JOIN outbox_events e ON e.event_id = s.event_id
          LEFT JOIN delivery_set_members m
            ON m.delivery_set_version = e.delivery_set_version AND m.event_type = e.event_type
           AND m.schema_version = e.schema_version AND m.destination = d.destination
      ) z;
    IF broken_count > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'OB001', CONSTRAINT = 'outbox_publish_invalid',
            MESSAGE = format('invalid: %s of %s attempts are not acknowledged as their member demands, first %s.',
                             broken_count, cardinality(attempts), broken);
    END IF;

    WITH done AS (
        UPDATE outbox_events e SET published_at = clock_timestamp()
         WHERE e.event_id = ANY (ids) AND e.published_at IS NULL
           AND NOT EXISTS (SELECT FROM outbox_deliveries o
                            WHERE o.event_id = e.event_id AND o.mandatory AND o.status <> 'acknowledged')
        RETURNING e.event_id
    )
    SELECT array_agg(done.event_id) INTO finished FROM done;

    RETURN QUERY
        SELECT i, CASE WHEN i = ANY (finished) OR e.published_at IS NOT NULL THEN 'complete' ELSE 'not_complete' END
          FROM unnest(ids) i JOIN outbox_events e ON e.event_id = i;
END $$;
