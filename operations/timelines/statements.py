"""The statements that change the read model, in the order in which they run. Each takes a whole batch.

Whoever runs them holds the locks of the aggregates concerned; see the inbox of the projector.
"""

from operations.timelines.link import SUMMARISED

SUMMARIES_OF_RUNS = f"""
SELECT {", ".join(SUMMARISED).replace("run_event_id", "run_event_id::text")}
  FROM operation_summaries
 WHERE run_id = ANY(%(run_ids)s::text[]) AND projection_version = %(version)s
"""

PENDING_OF_RUNS = """
SELECT run_id, event_envelope, event_envelope_sha256
  FROM pending_unlinked_reservations
 WHERE run_id = ANY(%(run_ids)s::text[]) AND projection_version = %(version)s AND state = 'pending'
 ORDER BY run_id, event_id
"""

STORE_SUMMARIES = """
INSERT INTO operation_summaries
       (operation_id, projection_version, run_id, run_event_id, tenant_kind, tenant_id, workspace_id, project_id,
        correlation_id, billing_account_id, expected_reservation_id, run_admission_manifest_ref,
        run_admission_manifest_schema_version, run_admission_manifest_digest_algorithm_version,
        run_admission_manifest_digest, run_created_at, reservation_state, reservation_event_id, currency,
        hold_amount_picos, reserved_at)
SELECT operation_id, %(version)s, run_id, run_event_id, tenant_kind, tenant_id, workspace_id, project_id,
       correlation_id, account_id, reservation_id, manifest_ref, manifest_schema_version, %(algorithm)s,
       manifest_digest, run_created_at, reservation_state, reservation_event_id, currency, hold, reserved_at
  FROM unnest(%(operation_ids)s::text[], %(run_ids)s::text[], %(run_event_ids)s::uuid[], %(tenant_kinds)s::text[],
              %(tenant_ids)s::text[], %(workspace_ids)s::text[], %(project_ids)s::text[], %(correlation_ids)s::text[],
              %(account_ids)s::text[], %(reservation_ids)s::text[], %(manifest_refs)s::text[],
              %(manifest_schema_versions)s::text[], %(manifest_digests)s::text[], %(runs_created_at)s::timestamptz[],
              %(states)s::text[], %(reservation_event_ids)s::uuid[], %(currencies)s::text[], %(holds)s::numeric[],
              %(reserved_at)s::timestamptz[])
       x (operation_id, run_id, run_event_id, tenant_kind, tenant_id, workspace_id, project_id, correlation_id,
          account_id, reservation_id, manifest_ref, manifest_schema_version, manifest_digest, run_created_at,
          reservation_state, reservation_event_id, currency, hold, reserved_at)
 ORDER BY operation_id COLLATE "C"
    ON CONFLICT DO NOTHING
"""

JOIN_RESERVATIONS = """
UPDATE operation_summaries s
   SET reservation_state = x.state, reservation_event_id = x.event_id, currency = x.currency,
       hold_amount_picos = x.hold, reserved_at = x.reserved_at
  FROM unnest(%(run_ids)s::text[], %(states)s::text[], %(reservation_event_ids)s::uuid[], %(currencies)s::text[],
              %(holds)s::numeric[], %(reserved_at)s::timestamptz[])
       x (run_id, state, event_id, currency, hold, reserved_at)
 WHERE s.run_id = ANY(%(run_ids)s::text[]) AND s.run_id = x.run_id AND s.projection_version = %(version)s
"""
"""Naming the rows once more lets the plan start from the key, not from the version, where statistics are missing."""

STORE_UNLINKED = """
INSERT INTO pending_unlinked_reservations
       (event_id, projection_version, run_id, billing_reservation_id, operation_id, event_envelope,
        event_envelope_sha256, occurred_at, state, run_event_id, disagreements, decided_at)
SELECT event_id, %(version)s, run_id, reservation_id, operation_id, envelope, sha256, occurred_at, state, run_event_id,
       disagreements, CASE WHEN state <> 'pending' THEN now() END
  FROM unnest(%(event_ids)s::uuid[], %(run_ids)s::text[], %(reservation_ids)s::text[], %(operation_ids)s::text[],
              %(envelopes)s::text[], %(digests)s::text[], %(occurred_at)s::timestamptz[], %(states)s::text[],
              %(run_event_ids)s::uuid[], %(disagreements)s::text[])
       x (event_id, run_id, reservation_id, operation_id, envelope, sha256, occurred_at, state, run_event_id,
          disagreements)
 ORDER BY event_id
"""

DECIDE_UNLINKED = """
UPDATE pending_unlinked_reservations p
   SET state = x.state, run_event_id = x.run_event_id, disagreements = x.disagreements, decided_at = now()
  FROM unnest(%(event_ids)s::uuid[], %(states)s::text[], %(run_event_ids)s::uuid[], %(disagreements)s::text[])
       x (event_id, state, run_event_id, disagreements)
 WHERE p.event_id = ANY(%(event_ids)s::uuid[]) AND p.event_id = x.event_id AND p.projection_version = %(version)s
"""

STORE_ENTRIES = """
INSERT INTO timeline_entries
       (operation_id, projection_version, occurred_at, event_id, event_type, event_schema_version, producer,
        aggregate_id, aggregate_revision, correlation_id, causation_id)
SELECT operation_id, %(version)s, occurred_at, event_id, event_type, schema_version, producer, aggregate_id, revision,
       correlation_id, causation_id
  FROM unnest(%(operation_ids)s::text[], %(occurred_at)s::timestamptz[], %(event_ids)s::uuid[],
              %(event_types)s::text[], %(schema_versions)s::text[], %(producers)s::text[], %(aggregate_ids)s::text[],
              %(revisions)s::bigint[], %(correlation_ids)s::text[], %(causation_ids)s::text[])
       x (operation_id, occurred_at, event_id, event_type, schema_version, producer, aggregate_id, revision,
          correlation_id, causation_id)
"""

STORE_IDENTIFIERS = """
INSERT INTO exact_identifiers (value, kind, event_id, operation_id, projection_version)
SELECT value, kind, event_id, operation_id, %(version)s
  FROM unnest(%(values)s::text[], %(kinds)s::text[], %(event_ids)s::uuid[], %(operation_ids)s::text[])
       x (value, kind, event_id, operation_id)
"""
