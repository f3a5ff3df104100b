-- The payload of an event, generated from its canonical text: `SELECT e.event_payload FROM outbox_events e`.
CREATE OR REPLACE FUNCTION event_payload(event outbox_events) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT event.event_envelope::jsonb -> 'payload' $$;
