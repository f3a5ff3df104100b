"""Many events with their tallies, drops, identities and conflicts, for pages to be fast on; written by plain inserts.

Every cluster sends the same; times go back from now over `days`.
"""

from datetime import UTC, datetime, timedelta

from django.db import connections

from config.owners import owner_named

TELEMETRY = owner_named("telemetry")
TABLES = (
    "llm_billing_events",
    "resource_utilization_events",
    "telemetry_tallies",
    "telemetry_drops",
    "telemetry_conflicts",
    "telemetry_event_identities",
)
AT = "now() - (i - 1) * (%(days)s * interval '1 day') / %(rows)s"
CLUSTER = "(1 + i %% %(clusters)s)::text"
LLM = f"""
INSERT INTO llm_billing_events (event_id, occurred_at, cluster_id, source_mode, tenant_name, namespace, manager_key_id,
                                organization_id, model_name, provider, prompt_tokens, completion_tokens, received_at)
SELECT 'event-' || i, {AT}, {CLUSTER}, CASE i %% 2 WHEN 0 THEN 'gateway' ELSE 'per_cluster' END, 'tenant-' || i %% 9,
       'tenant-' || i %% 9, (1 + i %% 50)::text, 'org-' || i %% 20, 'model-' || i %% 5, 'provider', i, 7, {AT}
  FROM generate_series(%(first)s, %(last)s) i
"""
RESOURCE = f"""
INSERT INTO resource_utilization_events (event_id, occurred_at, cluster_id, source_mode, tenant_name, namespace,
                                         resource_type, utilization, above_threshold, pod_name, received_at)
SELECT 'sample-' || i, {AT}, {CLUSTER}, 'per_cluster', 'tenant', 'tenant', 'cpu', 0.5, i %% 3 = 0, 'pod-' || i %% 7,
       {AT}
  FROM generate_series(%(first)s, %(last)s) i WHERE i %% 10 = 0
"""
IDENTITIES = """
INSERT INTO telemetry_event_identities (event_id, kind, occurred_at)
SELECT event_id, 'llm_billing', occurred_at FROM llm_billing_events
"""
TALLIES = """
INSERT INTO telemetry_tallies (cluster_id, kind, bucket, accepted, stored, duplicates, conflicts)
SELECT c::text, kind, date_bin('600 s', now(), 'epoch') - b * interval '10 minutes', 1000 + b %% 7 * 90,
       990 + b %% 7 * 90, 9, 1
  FROM generate_series(1, %(clusters)s) c, generate_series(0, %(days)s * 144 - 1) b,
       unnest(ARRAY['llm_billing', 'resource_utilization']) kind
"""
DROPS = """
INSERT INTO telemetry_drops (cluster_id, kind, reason, bucket, dropped, last_event_id)
SELECT c::text, 'llm_billing', reason, date_bin('600 s', now(), 'epoch') - b * interval '10 minutes', 1 + b %% 5, 'bad'
  FROM generate_series(1, %(clusters)s, 3) c, generate_series(0, %(days)s * 144 - 1, 2) b,
       unnest(ARRAY['namespace', 'occurred_at', 'manager_key_id']) reason
"""
CONFLICTS = f"""
INSERT INTO telemetry_conflicts (kind, reason, event_id, occurred_at, cluster_id, standing_cluster_id,
                                 standing_occurred_at, fields, arrived, arrived_sha256)
SELECT 'llm_billing', CASE i %% 2 WHEN 0 THEN 'content' ELSE 'cluster' END, 'event-' || i, {AT}, {CLUSTER}, {CLUSTER},
       {AT}, 'prompt_tokens', '{{"prompt_tokens": 1}}', repeat('0', 64)
  FROM generate_series(1, %(rows)s) i WHERE i %% 50 = 0
"""
CHUNK = 100_000


def fill(*, rows: int, clusters: int, days: int) -> None:
    """`rows` LLM calls and a tenth as many samples, one row in fifty contradicted; then vacuum and analyze."""
    today = datetime.now(UTC).date()
    dates = [today - timedelta(days=number) for number in range(days + 1)]
    values = {"rows": rows, "clusters": clusters, "days": days}
    with connections[TELEMETRY.schema_alias].cursor() as cursor:
        for kind in ("llm_billing", "resource_utilization"):
            cursor.execute("SELECT telemetry_ensure_days(%s, %s::date[])", [kind, dates])
        for first in range(1, rows + 1, CHUNK):
            part = {**values, "first": first, "last": min(rows, first + CHUNK - 1)}
            cursor.execute(LLM, part)
            cursor.execute(RESOURCE, part)
        for statement in (IDENTITIES, TALLIES, DROPS, CONFLICTS):
            cursor.execute(statement, values)
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE {table}")
