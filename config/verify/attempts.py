"""The history of attempts, in every producer's database (O3, O19)."""

from config.verify.check import Check, by_statement
from config.verify.places import PRODUCERS

ALL_STARTS = "SELECT count(*) FROM outbox_delivery_attempt_starts"
ALL_DELIVERIES = "SELECT count(*) FROM outbox_deliveries"

FINISHES = """
SELECT f.attempt_id::text, 'it has ' || count(*) || ' finishes'
  FROM outbox_delivery_attempt_finishes f GROUP BY f.attempt_id HAVING count(*) > 1
UNION ALL
SELECT f.attempt_id::text, 'it has a finish and no start'
  FROM outbox_delivery_attempt_finishes f LEFT JOIN outbox_delivery_attempt_starts s USING (attempt_id)
 WHERE s.attempt_id IS NULL
"""

NUMBERS = """
SELECT d.event_id || ' to ' || d.destination,
       format('it counts %s attempts, and has %s starts numbered %s to %s', d.attempt_count, coalesce(s.number, 0),
              s.first, s.last)
  FROM outbox_deliveries d
  LEFT JOIN (SELECT event_id, destination, count(*) AS number, count(DISTINCT attempt_no) AS different,
                    min(attempt_no) AS first, max(attempt_no) AS last
               FROM outbox_delivery_attempt_starts GROUP BY event_id, destination) s USING (event_id, destination)
 WHERE (d.attempt_count = coalesce(s.number, 0)
        AND (s.number IS NULL OR s.different = s.number AND s.first = 1 AND s.last = s.number)) IS NOT TRUE
UNION ALL
SELECT d.event_id || ' to ' || d.destination, 'its current attempt is not its last start'
  FROM outbox_deliveries d LEFT JOIN outbox_delivery_attempt_starts s ON s.attempt_id = d.current_attempt_id
 WHERE d.attempt_count > 0
   AND (s.event_id = d.event_id AND s.destination = d.destination AND s.attempt_no = d.attempt_count
        AND s.lease_token = d.lease_token) IS NOT TRUE
UNION ALL
SELECT s.attempt_id::text, 'it belongs to no delivery'
  FROM outbox_delivery_attempt_starts s LEFT JOIN outbox_deliveries d USING (event_id, destination)
 WHERE d.event_id IS NULL
"""

OPEN = """
SELECT s.attempt_id::text, 'it has no finish, and its delivery is ' || coalesce(d.status, 'missing')
       || CASE WHEN d.status = 'leased' THEN ' in another attempt' ELSE '' END
  FROM outbox_delivery_attempt_starts s
  LEFT JOIN outbox_delivery_attempt_finishes f USING (attempt_id)
  LEFT JOIN outbox_deliveries d ON d.event_id = s.event_id AND d.destination = s.destination
 WHERE f.attempt_id IS NULL AND (d.status = 'leased' AND d.current_attempt_id = s.attempt_id) IS NOT TRUE
UNION ALL
SELECT f.attempt_id::text, 'it is finished, and its delivery is still leased in it'
  FROM outbox_deliveries d JOIN outbox_delivery_attempt_finishes f ON f.attempt_id = d.current_attempt_id
 WHERE d.status = 'leased'
"""

OUTCOMES = """
SELECT coalesce(d.event_id, s.event_id) || ' to ' || coalesce(d.destination, s.destination),
       format('it is %s, and has %s success finishes', coalesce(d.status, 'missing'), coalesce(s.number, 0))
  FROM (SELECT event_id, destination, status, current_attempt_id FROM outbox_deliveries) d
  FULL JOIN (SELECT s.event_id, s.destination, count(*) AS number, min(f.attempt_id::text) AS attempt_id
               FROM outbox_delivery_attempt_finishes f JOIN outbox_delivery_attempt_starts s USING (attempt_id)
              WHERE f.outcome = 'acknowledged' GROUP BY s.event_id, s.destination) s
    ON s.event_id = d.event_id AND s.destination = d.destination
 WHERE (CASE d.status WHEN 'acknowledged' THEN s.number = 1 AND s.attempt_id = d.current_attempt_id::text
                      ELSE s.number IS NULL END) IS NOT TRUE
UNION ALL
SELECT d.event_id || ' to ' || d.destination, 'it is ' || d.status || ', and its last attempt ended with ' || f.outcome
       || ' and ' || f.retry_disposition
  FROM outbox_deliveries d JOIN outbox_delivery_attempt_finishes f ON f.attempt_id = d.current_attempt_id
 WHERE d.status IN ('pending', 'quarantined')
   AND f.retry_disposition IS DISTINCT FROM CASE d.status WHEN 'pending' THEN 'retry' ELSE 'quarantine' END
"""

CHECKS = (
    Check(
        "attempt_finishes",
        "No start has two finishes, and no finish stands without its start.",
        by_statement(
            owners=PRODUCERS,
            examined="SELECT count(*) FROM outbox_delivery_attempt_finishes",
            violations=FINISHES,
        ),
    ),
    Check(
        "attempt_numbers",
        "The attempts of a delivery are numbered from 1 without a hole, and the last is the current one.",
        by_statement(owners=PRODUCERS, examined=ALL_STARTS, violations=NUMBERS),
    ),
    Check(
        "attempt_open",
        "The only attempt without a finish is the current one of a leased delivery.",
        by_statement(owners=PRODUCERS, examined=ALL_STARTS, violations=OPEN),
    ),
    Check(
        "attempt_outcomes",
        "An acknowledged delivery has exactly one success finish, every other has none; states and last ends agree.",
        by_statement(owners=PRODUCERS, examined=ALL_DELIVERIES, violations=OUTCOMES),
    ),
)
