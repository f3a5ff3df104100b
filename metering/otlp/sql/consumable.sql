-- What consumption may count: every stored event, but for those whose event id stands under another time.
CREATE VIEW consumable_llm_billing_events AS
SELECT e.* FROM llm_billing_events e
 WHERE NOT EXISTS (SELECT 1 FROM telemetry_conflicts c
                    WHERE c.reason = 'two_times' AND c.kind = 'llm_billing'
                      AND c.event_id = e.event_id AND c.occurred_at = e.occurred_at);

CREATE VIEW consumable_resource_utilization_events AS
SELECT e.* FROM resource_utilization_events e
 WHERE NOT EXISTS (SELECT 1 FROM telemetry_conflicts c
                    WHERE c.reason = 'two_times' AND c.kind = 'resource_utilization'
                      AND c.event_id = e.event_id AND c.occurred_at = e.occurred_at);
