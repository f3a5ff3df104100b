"""Telemetry: what was accepted, what stored events come to per window, and who owes it (T13).

A window whose mark is still to be worked off is work in flight, and one whose events are no longer kept can only be
believed; both are left out where events are compared. The sums are computed here from the stored events alone, not by
the code that wrote them.
"""

from config.verify.check import Check, Tally, by_statement, snapshots
from config.verify.places import METERING, TELEMETRY

ACCEPTED = """
WITH there (kind, cluster_id, events) AS (
    SELECT 'llm_billing', cluster_id, count(*) FROM llm_billing_events GROUP BY 2
    UNION ALL SELECT 'resource_utilization', cluster_id, count(*) FROM resource_utilization_events GROUP BY 2
), gone AS (
    SELECT kind, cluster_id, sum(events) AS events FROM telemetry_expired_days GROUP BY 1, 2
), contradicted AS (
    SELECT kind, cluster_id, sum(arrivals) AS arrivals FROM telemetry_conflicts
     WHERE reason IN ('content', 'cluster') GROUP BY 1, 2
), told AS (
    SELECT kind, cluster_id, sum(accepted) AS accepted, sum(stored) AS stored, sum(duplicates) AS duplicates,
           sum(conflicts) AS conflicts FROM telemetry_tallies GROUP BY 1, 2
)
SELECT format('cluster %s, %s', cluster_id, kind),
       format('of %s accepted events %s were stored, %s duplicates, %s conflicts; %s are there, %s are gone, '
              '%s arrivals are kept as conflicts', accepted, stored, duplicates, conflicts, coalesce(there.events, 0),
              coalesce(gone.events, 0), coalesce(arrivals, 0))
  FROM told FULL JOIN there USING (kind, cluster_id) FULL JOIN gone USING (kind, cluster_id)
  FULL JOIN contradicted USING (kind, cluster_id)
 WHERE (accepted = stored + duplicates + conflicts AND conflicts = coalesce(arrivals, 0)
        AND stored = coalesce(there.events, 0) + coalesce(gone.events, 0)) IS NOT TRUE
"""
LINES = """
WITH span AS (SELECT make_interval(secs => seconds) AS span FROM consumption_window_length),
events AS (
    SELECT 'llm_billing' AS kind, cluster_id, date_bin(span, occurred_at, timestamptz 'epoch') AS window_start,
           CASE source_mode WHEN 'gateway' THEN jsonb_build_array(source_mode, manager_key_id, model_name, provider)
                ELSE jsonb_build_array(source_mode, organization_id, namespace, robot_id, cr_name, model_name, provider)
           END AS who,
           prompt_tokens AS a, completion_tokens AS b, coalesce(cached_input_tokens, 0) AS c, 0::numeric AS d
      FROM consumable_llm_billing_events CROSS JOIN span
    UNION ALL
    SELECT 'resource_utilization', cluster_id, date_bin(span, occurred_at, timestamptz 'epoch'),
           jsonb_build_array(source_mode, organization_id, namespace, robot_id, cr_name, resource_type, NULL),
           0, 0, above_threshold::int, round(utilization::numeric * 1000000)
      FROM consumable_resource_utilization_events CROSS JOIN span
), due AS (
    SELECT kind, cluster_id, window_start, who, count(*) AS events, sum(a) AS a, sum(b) AS b, sum(c) AS c, sum(d) AS d
      FROM events GROUP BY 1, 2, 3, 4
), told AS (
    SELECT kind, cluster_id, window_start, line_id, events, coalesce(prompt_tokens, 0) AS a,
           coalesce(completion_tokens, 0) AS b, coalesce(cached_input_tokens, samples_above_threshold) AS c,
           coalesce(utilization_micros, 0) AS d,
           CASE WHEN manager_key_id IS NOT NULL
                THEN jsonb_build_array(source_mode, manager_key_id, applies_to, provider)
                ELSE jsonb_build_array(source_mode, stated_organization_id, namespace, robot_id, cr_name, applies_to,
                                       provider) END AS who
      FROM consumption_lines
)
SELECT format('%s of cluster %s from %s, %s', kind, cluster_id, window_start, who),
       format('its %s events are told as %s, or their sums are others', coalesce(due.events, 0), told.events)
  FROM due FULL JOIN told USING (kind, cluster_id, window_start, who)
 WHERE (coalesce(due.events, 0), coalesce(due.a, 0), coalesce(due.b, 0), coalesce(due.c, 0), coalesce(due.d, 0))
       IS DISTINCT FROM (coalesce(told.events, 0), coalesce(told.a, 0), coalesce(told.b, 0), coalesce(told.c, 0),
                         coalesce(told.d, 0))
   AND NOT EXISTS (SELECT 1 FROM consumption_windows_dirty w
                    WHERE (w.kind, w.cluster_id, w.window_start) = (due.kind, due.cluster_id, due.window_start)
                      AND w.marked_generation > w.cleared_generation)
   AND NOT EXISTS (SELECT 1 FROM consumption_windows_dirty w
                    WHERE (w.kind, w.cluster_id, w.window_start) = (told.kind, told.cluster_id, told.window_start)
                      AND w.marked_generation > w.cleared_generation)
   AND NOT EXISTS (SELECT 1 FROM telemetry_retention r WHERE r.kind = told.kind AND told.window_start < r.retained_from)
"""
OWED = """
WITH used AS (
    SELECT kind, cluster_id, window_start, organization_id, applies_to, coalesce(sum(prompt_tokens), 0) AS prompt,
           coalesce(sum(completion_tokens), 0) AS completion, coalesce(sum(cached_input_tokens), 0) AS cached,
           sum(events) AS events, sum(samples_above_threshold) AS above
      FROM consumption_lines WHERE organization_id IS NOT NULL GROUP BY 1, 2, 3, 4, 5
)
SELECT format('%s of %s for %s, cluster %s from %s', kind, organization_id, applies_to, cluster_id, window_start),
       'what is owed is not the sum of its lines'
  FROM used FULL JOIN consumption_charges c USING (kind, cluster_id, window_start, organization_id, applies_to)
 WHERE (coalesce(c.input_tokens, 0) + coalesce(c.cached_input_tokens, 0) = coalesce(prompt, 0)
        AND coalesce(c.cached_input_tokens, 0) = least(coalesce(cached, 0), coalesce(prompt, 0))
        AND coalesce(c.output_tokens, 0) = coalesce(completion, 0)
        AND coalesce(c.samples, 0) = CASE kind WHEN 'resource_utilization' THEN coalesce(events, 0) ELSE 0 END
        AND coalesce(c.samples_above_threshold, 0) = coalesce(above, 0)) IS NOT TRUE
"""
PAYERS = """
SELECT manager_key_id, organization_id, count(*) FROM consumption_lines
 WHERE manager_key_id IS NOT NULL AND organization_id IS NOT NULL GROUP BY 1, 2
"""
KEYS = "SELECT manager_key_id, organization_id FROM managed_keys WHERE manager_key_id = ANY(%s)"


def payers_are_the_keys_own() -> Tally:
    """Look up the key of every gateway line that is charged to somebody; a key is learnt before its lines are."""
    tally = Tally()
    with snapshots(TELEMETRY[1], METERING[1]) as (telemetry, metering):
        for batch in telemetry.stream(PAYERS):
            known: dict[str, str] = dict(metering.rows(KEYS, [[key for key, _, _ in batch]]))
            for key, organization, lines in batch:
                tally.examined += lines
                if known.get(key) != organization:
                    problem = (
                        f"its {lines} lines are charged to {organization}, and it is {known.get(key, 'unknown')}'s"
                    )
                    tally.found("telemetry", f"key {key}", problem, count=lines)
    return tally


def _of_telemetry(check_id: str, promise: str, *, examined: str, violations: str) -> Check:
    run = by_statement(owners=(TELEMETRY,), examined=f"SELECT count(*) FROM {examined}", violations=violations)
    return Check(check_id, promise, run)


CHECKS = (
    _of_telemetry(
        "telemetry_accepted",
        "Accepted events are those stored, duplicates and conflicts; what was stored is there or was let go.",
        examined="telemetry_tallies",
        violations=ACCEPTED,
    ),
    _of_telemetry(
        "consumption_line",
        "Lines of consumption, orphans included, are the sums of the stored events that do not conflict.",
        examined="consumption_lines",
        violations=LINES,
    ),
    _of_telemetry(
        "consumption_owed",
        "What each organisation owes for a window is the sum of its lines.",
        examined="consumption_charges",
        violations=OWED,
    ),
    Check(
        "consumption_payer",
        "Usage of a gateway's key is charged to the organisation of that key.",
        payers_are_the_keys_own,
    ),
)
