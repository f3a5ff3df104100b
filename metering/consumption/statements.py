"""The SQL of consumption. Every value is a parameter; a window is named by `kind`, `cluster` and `start`."""

from metering.consumption.models.line import TOLD_APART_BY

_WINDOW = "kind = %(kind)s AND cluster_id = %(cluster)s AND window_start = %(start)s"
_MEASURES = (
    "events",
    "prompt_tokens",
    "completion_tokens",
    "cached_input_tokens",
    "samples_above_threshold",
    "utilization_micros",
    "utilization_max",
)
_OWED = ("input_tokens", "cached_input_tokens", "output_tokens", "samples", "samples_above_threshold")


def _of(row: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{row}.{name}" for name in names)


DUE = """
SELECT d.marked_at, d.kind, d.cluster_id, d.window_start
  FROM consumption_windows_dirty d
 WHERE d.marked_generation > d.cleared_generation AND d.window_start <= %(begun_by)s
   AND (d.marked_at, d.kind, d.cluster_id, d.window_start) > (%(marked_at)s, %(kind)s, %(cluster)s, %(start)s)
 ORDER BY d.marked_at, d.kind, d.cluster_id, d.window_start LIMIT %(page)s
"""
OPEN = """
INSERT INTO consumption_windows (kind, cluster_id, window_start, window_end)
SELECT w.*, w.start + make_interval(secs => l.seconds)
  FROM unnest(%(kinds)s::text[], %(clusters)s::text[], %(starts)s::timestamptz[]) AS w (kind, cluster, start)
 CROSS JOIN consumption_window_length l
 ORDER BY 1, 2, 3
ON CONFLICT (kind, cluster_id, window_start) DO NOTHING
"""

SETTINGS = """
SELECT set_config('statement_timeout', %(milliseconds)s || 'ms', true), set_config('enable_seqscan', 'on', true),
       set_config('work_mem', '64MB', true)
"""
"""A window may hold most of what a day's partition holds; then reading the whole partition is the cheaper way."""
HOLD = f"SELECT window_end FROM consumption_windows WHERE {_WINDOW} FOR NO KEY UPDATE SKIP LOCKED"
MARK = f"""
SELECT d.marked_generation, EXISTS (SELECT 1 FROM telemetry_retention r
                                     WHERE r.kind = d.kind AND d.window_start < r.retained_from)
  FROM consumption_windows_dirty d WHERE {_WINDOW} AND d.marked_generation > d.cleared_generation
"""

_TELL_APART = f"""
CREATE TEMPORARY TABLE window_usage ON COMMIT DROP AS
SELECT consumption_line_sha256(%(kind)s, %(cluster)s, %(start)s::timestamptz, {_of("u", TOLD_APART_BY[3:])})
       AS line_sha256, u.* FROM ({{}}) u
"""
_LLM_USAGE = """
SELECT source_mode, CASE WHEN gateway THEN manager_key_id END AS manager_key_id,
       CASE WHEN NOT gateway THEN organization_id END AS stated_organization_id,
       CASE WHEN NOT gateway THEN namespace END AS namespace, CASE WHEN NOT gateway THEN robot_id END AS robot_id,
       CASE WHEN NOT gateway THEN cr_name END AS cr_name, model_name AS applies_to, provider, count(*) AS events,
       sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
       coalesce(sum(cached_input_tokens), 0) AS cached_input_tokens, NULL::bigint AS samples_above_threshold,
       NULL::numeric AS utilization_micros, NULL::float8 AS utilization_max
  FROM (SELECT *, source_mode = 'gateway' AS gateway FROM consumable_llm_billing_events
         WHERE cluster_id = %(cluster)s AND occurred_at >= %(start)s AND occurred_at < %(end)s) e
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
_RESOURCE_USAGE = """
SELECT source_mode, NULL::text AS manager_key_id, organization_id AS stated_organization_id, namespace, robot_id,
       cr_name, resource_type AS applies_to, NULL::text AS provider, count(*) AS events, NULL::numeric AS prompt_tokens,
       NULL::numeric AS completion_tokens, NULL::numeric AS cached_input_tokens,
       count(*) FILTER (WHERE above_threshold) AS samples_above_threshold,
       sum(round(utilization::numeric * 1000000)) AS utilization_micros, max(utilization) AS utilization_max
  FROM consumable_resource_utilization_events
 WHERE cluster_id = %(cluster)s AND occurred_at >= %(start)s AND occurred_at < %(end)s
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
SUM_UP = {
    "llm_billing": _TELL_APART.format(_LLM_USAGE),
    "resource_utilization": _TELL_APART.format(_RESOURCE_USAGE),
}
"""By kind: what the events of the window come to, one row per line. Sums are exact in any order of the events."""
KEYS = "SELECT DISTINCT manager_key_id FROM window_usage WHERE manager_key_id IS NOT NULL"

MERGE_LINES = f"""
INSERT INTO consumption_lines AS l (line_sha256, {", ".join(TOLD_APART_BY)}, organization_id, orphan_reason,
       {", ".join(_MEASURES)})
SELECT u.line_sha256, %(kind)s, %(cluster)s, %(start)s, {_of("u", TOLD_APART_BY[3:])}, payer,
       CASE WHEN payer IS NULL THEN CASE WHEN u.source_mode <> 'gateway' THEN 'no_organization'
                                         WHEN u.manager_key_id IS NULL THEN 'untrusted' ELSE 'unknown_key' END END,
       {_of("u", _MEASURES)}
  FROM window_usage u
  LEFT JOIN unnest(%(keys)s::text[], %(organizations)s::text[]) AS k (key, organization) ON k.key = u.manager_key_id
 CROSS JOIN LATERAL (SELECT CASE WHEN u.source_mode = 'gateway' THEN k.organization
                                 ELSE u.stated_organization_id END AS payer) p
 ORDER BY u.line_sha256
ON CONFLICT (line_sha256) DO UPDATE
   SET ({", ".join(_MEASURES)}) = ROW ({_of("excluded", _MEASURES)}), changed_at = now(),
       organization_id = coalesce(l.organization_id, excluded.organization_id),
       orphan_reason = CASE WHEN l.organization_id IS NULL THEN excluded.orphan_reason END,
       released_at = CASE WHEN l.organization_id IS NULL AND excluded.organization_id IS NOT NULL THEN now()
                          ELSE l.released_at END
 WHERE ({_of("l", _MEASURES)}) IS DISTINCT FROM ({_of("excluded", _MEASURES)})
    OR (l.organization_id IS NULL AND excluded.organization_id IS NOT NULL)
"""
EMPTY_LINES = f"""
UPDATE consumption_lines l
   SET {", ".join(f"{name} = {name} * 0" for name in _MEASURES)}, changed_at = now()
 WHERE {_WINDOW} AND events > 0 AND NOT EXISTS (SELECT 1 FROM window_usage u WHERE u.line_sha256 = l.line_sha256)
"""
"""Lines of which every event was excluded since the last time."""

CHARGE = f"""
INSERT INTO consumption_charges AS c (kind, cluster_id, window_start, window_end, organization_id, applies_to,
       {", ".join(_OWED)})
SELECT %(kind)s, %(cluster)s, %(start)s, %(end)s, u.organization_id, u.applies_to, {_of("o", _OWED)}
  FROM (SELECT organization_id, applies_to, coalesce(sum(prompt_tokens), 0) AS prompt,
               coalesce(least(sum(cached_input_tokens), sum(prompt_tokens)), 0) AS cached,
               coalesce(sum(completion_tokens), 0) AS completion, sum(events) AS events,
               sum(samples_above_threshold) AS above
          FROM consumption_lines WHERE {_WINDOW} AND organization_id IS NOT NULL GROUP BY 1, 2) u
 CROSS JOIN LATERAL (SELECT u.prompt - u.cached, u.cached, u.completion,
                            CASE WHEN u.above IS NULL THEN 0 ELSE u.events END, coalesce(u.above, 0)
                    ) AS o ({", ".join(_OWED)})
 WHERE o.input_tokens + o.cached_input_tokens + o.output_tokens + o.samples > 0
    OR EXISTS (SELECT 1 FROM consumption_charges x
                WHERE (x.kind, x.cluster_id, x.window_start) = (%(kind)s, %(cluster)s, %(start)s)
                  AND x.organization_id = u.organization_id AND x.applies_to = u.applies_to)
 ORDER BY u.organization_id, u.applies_to
ON CONFLICT (kind, cluster_id, window_start, organization_id, applies_to) DO UPDATE
   SET ({", ".join(_OWED)}) = ROW ({_of("excluded", _OWED)}), generation = c.generation + 1, changed_at = now(),
       state = CASE c.state WHEN 'conflicting' THEN c.state ELSE 'due' END,
       ask_after = CASE c.state WHEN 'conflicting' THEN NULL ELSE now() END, refusal = NULL, refusal_detail = NULL
 WHERE ({_of("c", _OWED)}) IS DISTINCT FROM ({_of("excluded", _OWED)})
"""
"""Cached input tokens are a part of the prompt: what is not cached is charged as input."""
FINISH = f"""
UPDATE consumption_windows
   SET revision = revision + 1, aggregated_generation = %(generation)s, aggregated_at = now(),
       events = (SELECT coalesce(sum(u.events), 0) FROM window_usage u)
 WHERE {_WINDOW}
"""
CLEAR = f"""
UPDATE consumption_windows_dirty d SET cleared_generation = %(generation)s
 WHERE (d.kind, d.cluster_id, d.window_start) IN (
       SELECT kind, cluster_id, window_start FROM consumption_windows_dirty
        WHERE {_WINDOW} AND marked_generation = %(generation)s FOR NO KEY UPDATE SKIP LOCKED)
"""
"""A mark that a receiver holds is about to grow, so the window stays dirty; the receiver never waits for us long."""

UNKNOWN_KEYS = """
SELECT DISTINCT manager_key_id FROM consumption_lines
 WHERE orphan_reason = 'unknown_key' AND manager_key_id > %(after)s ORDER BY 1 LIMIT %(page)s
"""
WINDOWS_OF_ORPHANS = """
SELECT DISTINCT kind, cluster_id, window_start FROM consumption_lines
 WHERE orphan_reason = 'unknown_key' AND manager_key_id = ANY (%(keys)s::text[]) ORDER BY 3, 1, 2
"""
RELEASE = f"""
UPDATE consumption_lines l
   SET organization_id = k.organization, orphan_reason = NULL, released_at = now(), changed_at = now()
  FROM unnest(%(keys)s::text[], %(organizations)s::text[]) AS k (key, organization)
 WHERE {_WINDOW} AND l.orphan_reason = 'unknown_key' AND l.manager_key_id = k.key
"""

TAKE = f"""
UPDATE consumption_charges c SET ask_after = now() + make_interval(secs => %(again)s)
 WHERE c.consumption_charge_id IN (
       SELECT consumption_charge_id FROM consumption_charges WHERE ask_after <= now()
        ORDER BY ask_after, consumption_charge_id LIMIT %(page)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING consumption_charge_id, kind, cluster_id, window_start, window_end, organization_id, applies_to, generation,
          {", ".join(_OWED)}
"""
"""When to ask again stands there before billing is asked, so whoever dies in between has lost nothing."""
SETTLE = """
WITH held AS (
    SELECT consumption_charge_id FROM consumption_charges WHERE consumption_charge_id = ANY (%(ids)s)
     ORDER BY kind, cluster_id, window_start, organization_id, applies_to FOR NO KEY UPDATE
)
UPDATE consumption_charges c
   SET state = a.state, ask_after = CASE a.state WHEN 'refused' THEN now() + make_interval(secs => %(again)s) END,
       answered_at = now(), charge_id = a.charge, refusal = a.refusal, refusal_detail = a.detail,
       standing_generation = a.standing, posted_generation = coalesce(a.posted, c.posted_generation),
       posted_sha256 = coalesce(a.sha256, c.posted_sha256),
       billing_account_id = coalesce(a.account, c.billing_account_id),
       price_book_ref = coalesce(a.book, c.price_book_ref), currency = coalesce(a.currency, c.currency),
       amount_picos = coalesce(a.picos, c.amount_picos)
  FROM json_to_recordset(%(answers)s::json) AS a (
       id bigint, generation bigint, state text, charge text, refusal text, detail text, standing bigint, posted bigint,
       sha256 text, account text, book text, currency text, picos numeric)
 WHERE c.consumption_charge_id = a.id AND c.consumption_charge_id IN (SELECT consumption_charge_id FROM held)
   AND c.generation = a.generation AND c.state IN ('due', 'refused')
"""
"""An answer about quantities that changed meanwhile changes nothing: the charge is due again. Charges are locked in the
order in which `CHARGE` writes them."""
REISSUE = """
UPDATE consumption_charges
   SET generation = greatest(generation, standing_generation) + 1, state = 'due', ask_after = now(),
       standing_generation = NULL
 WHERE charge_id = %(charge)s AND state = 'conflicting'
"""
_EVENTS_OF = """
SELECT '{kind}', cluster_id, date_bin(%(length)s, occurred_at, timestamptz 'epoch') FROM {table}
 WHERE cluster_id = %(cluster)s AND occurred_at >= %(from)s AND occurred_at < %(to)s GROUP BY 1, 2, 3
"""
REMARK = f"""
INSERT INTO consumption_windows_dirty AS d (kind, cluster_id, window_start)
{_EVENTS_OF.format(kind="llm_billing", table="llm_billing_events")} UNION ALL
{_EVENTS_OF.format(kind="resource_utilization", table="resource_utilization_events")} ORDER BY 1, 2, 3
ON CONFLICT (kind, cluster_id, window_start)
DO UPDATE SET marked_generation = d.marked_generation + 1, marked_at = now()
"""
