"""The statements of the inbox transaction, in the order in which they run. Each takes a whole batch.

Every statement that locks takes its rows in one sorted order, and the tables are always reached in the same order, so
parallel batches wait for each other but never in a circle (D17).
"""

_KEY = "producer = %(producer)s AND projection_name = %(name)s AND projection_version = %(version)s"

OPEN = """
SELECT now(), set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
"""
"""The time of this application, and plans that stay right while the tables grow from empty to millions of rows."""

STORED_RECEIPTS = """
SELECT event_id::text, event_envelope_sha256, producer, delivery_set_version, delivery_set_definition_schema_version,
       delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, receipt_digest, applied_at
  FROM operations_projection_applied_receipts
 WHERE event_id = ANY(%(event_ids)s::uuid[]) AND consumer_name = %(consumer)s
   AND projection_name = %(name)s AND projection_version = %(version)s
"""

CREATE_AGGREGATES = """
INSERT INTO projection_aggregates
       (aggregate_id, producer, projection_name, projection_version, applied_revision, has_open_gap)
SELECT aggregate_id, %(producer)s, %(name)s, %(version)s, revision, gap
  FROM unnest(%(aggregate_ids)s::text[], %(revisions)s::bigint[], %(gaps)s::bool[]) x (aggregate_id, revision, gap)
 ORDER BY aggregate_id COLLATE "C"
    ON CONFLICT DO NOTHING
RETURNING aggregate_id
"""
"""New aggregates are written as they will be when this batch is applied; the others are left and locked next."""

LOCK_AGGREGATES = f"""
SELECT aggregate_id, applied_revision, has_open_gap
  FROM projection_aggregates
 WHERE aggregate_id = ANY(%(aggregate_ids)s::text[]) AND {_KEY}
 ORDER BY aggregate_id
   FOR NO KEY UPDATE
"""

STORE_SOURCES = """
INSERT INTO operations_source_events
       (event_id, producer, event_type, schema_version, aggregate_id, aggregate_revision, event_envelope,
        event_envelope_digest_algorithm_version, event_envelope_sha256, delivery_set_version,
        delivery_set_definition_schema_version, delivery_set_definition_digest_algorithm_version,
        delivery_set_definition_digest)
SELECT event_id, %(producer)s, event_type, schema_version, aggregate_id, revision, envelope, %(algorithm)s, sha256,
       %(set_version)s, %(set_schema_version)s, %(set_algorithm)s, %(set_digest)s
  FROM unnest(%(event_ids)s::uuid[], %(event_types)s::text[], %(schema_versions)s::text[], %(aggregate_ids)s::text[],
              %(revisions)s::bigint[], %(envelopes)s::text[], %(digests)s::text[])
       x (event_id, event_type, schema_version, aggregate_id, revision, envelope, sha256)
 ORDER BY event_id
    ON CONFLICT DO NOTHING
"""

COUNT_SOURCES = """
SELECT count(*)
  FROM unnest(%(event_ids)s::uuid[], %(digests)s::text[]) x (event_id, sha256)
  JOIN operations_source_events s ON s.event_id = x.event_id AND s.event_envelope_sha256 = x.sha256
"""
"""How many of these events are stored with these very bytes, now or from another projection version before."""

STORE_RECEIPTS = """
INSERT INTO operations_projection_applied_receipts
       (event_id, consumer_name, projection_name, projection_version, event_type, event_schema_version,
        event_envelope_digest_algorithm_version, event_envelope_sha256, applied_at, receipt_digest, producer,
        delivery_set_version, delivery_set_definition_schema_version,
        delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest)
SELECT event_id, %(consumer)s, %(name)s, %(version)s, event_type, schema_version, %(algorithm)s, sha256,
       now(), digest, %(producer)s, %(set_version)s, %(set_schema_version)s, %(set_algorithm)s, %(set_digest)s
  FROM unnest(%(event_ids)s::uuid[], %(event_types)s::text[], %(schema_versions)s::text[], %(digests)s::text[],
              %(receipt_digests)s::text[]) x (event_id, event_type, schema_version, sha256, digest)
 ORDER BY event_id
    ON CONFLICT DO NOTHING
"""

RECORD_GAPS = """
INSERT INTO revision_gaps AS gap
       (projection_name, projection_version, producer, aggregate_id, event_id, event_type, waiting_revision,
        missing_from, state)
SELECT %(name)s, %(version)s, %(producer)s, aggregate_id, event_id, event_type, waiting, missing, 'open'
  FROM unnest(%(aggregate_ids)s::text[], %(event_ids)s::uuid[], %(event_types)s::text[], %(waiting)s::bigint[],
              %(missing)s::bigint[]) x (aggregate_id, event_id, event_type, waiting, missing)
 ORDER BY event_id
    ON CONFLICT (event_id, projection_name, projection_version) DO NOTHING
"""

NARROW_GAPS = """
UPDATE revision_gaps gap
   SET state = CASE WHEN gap.waiting_revision <= x.revision + 1 THEN 'resolved' ELSE 'open' END,
       resolved_at = CASE WHEN gap.waiting_revision <= x.revision + 1 THEN now() END,
       missing_from = CASE WHEN gap.waiting_revision <= x.revision + 1 THEN gap.missing_from ELSE x.revision + 1 END
  FROM unnest(%(aggregate_ids)s::text[], %(revisions)s::bigint[]) x (aggregate_id, revision)
 WHERE gap.aggregate_id = x.aggregate_id AND gap.aggregate_id = ANY(%(aggregate_ids)s::text[])
   AND gap.producer = %(producer)s AND gap.projection_name = %(name)s
   AND gap.projection_version = %(version)s AND gap.state = 'open' AND gap.missing_from <= x.revision
"""

ADVANCE_AGGREGATES = """
UPDATE projection_aggregates a
   SET applied_revision = x.revision,
       has_open_gap = EXISTS (
           SELECT FROM revision_gaps gap
            WHERE gap.aggregate_id = a.aggregate_id AND gap.producer = a.producer
              AND gap.projection_name = a.projection_name AND gap.projection_version = a.projection_version
              AND gap.state = 'open')
  FROM unnest(%(aggregate_ids)s::text[], %(revisions)s::bigint[]) x (aggregate_id, revision)
 WHERE a.aggregate_id = x.aggregate_id AND a.aggregate_id = ANY(%(aggregate_ids)s::text[])
   AND a.producer = %(producer)s AND a.projection_name = %(name)s
   AND a.projection_version = %(version)s
"""
"""The keys stand in the condition by themselves too: a plan made while the table was empty may start from the table,
and then reads these rows instead of all of them."""

SUMMARISE_BUILD = """
INSERT INTO projection_build_runs AS build
       (projection_name, projection_version, writer, runs, applied_events, last_event_id, last_applied_at)
VALUES (%(name)s, %(version)s, pg_backend_pid() %% 16, 1, %(applied)s, %(last_event_id)s, now())
    ON CONFLICT (projection_name, projection_version, writer) DO UPDATE
   SET runs = build.runs + 1, applied_events = build.applied_events + excluded.applied_events,
       last_event_id = excluded.last_event_id, last_applied_at = excluded.last_applied_at
"""
