"""The ways to break what is proven of connectors, in the form of `tests.verify.breakage`."""

BROKEN: list[tuple[str, str, str, str]] = [
    (
        "connector_text",
        "a configuration that does not recompute",
        "attachments",
        "UPDATE financial_connectors SET candidate = candidate || ' '",
    ),
    (
        "connector_acts",
        "a secret whose end nobody told",
        "attachments",
        "DELETE FROM financial_connector_acts WHERE kind = 'secret_superseded'",
    ),
    (
        "connector_acts",
        "a revoked secret that is accepted again",
        "attachments",
        "UPDATE financial_connector_secrets SET state = 'superseded', superseded_at = now(), expires_at = now(),"
        " revoked_at = NULL WHERE state = 'revoked'",
    ),
    (
        "connector_event",
        "a payload of another length",
        "attachments",
        "UPDATE financial_connector_events SET body_bytes = body_bytes + 1",
    ),
    (
        "connector_event",
        "an event signed with another connector's secret",
        "attachments",
        "UPDATE financial_connector_events e SET secret_id = (SELECT s.secret_id FROM financial_connector_secrets s"
        " WHERE s.connector_id <> e.connector_id AND s.state = 'current')",
    ),
    (
        "connector_event",
        "a conflict with the very payload of its event",
        "attachments",
        "UPDATE financial_connector_conflicts c SET body_sha256 = (SELECT e.body_sha256"
        " FROM financial_connector_events e WHERE e.event_id = c.event_id)",
    ),
    (
        "connector_counted",
        "a counted event that is gone",
        "attachments",
        "DELETE FROM financial_connector_events e WHERE e.webhook_id = 'msg_once'",
    ),
    (
        "connector_counted",
        "a counted event under another id",
        "attachments",
        "UPDATE financial_connector_events SET webhook_id = 'msg_other' WHERE webhook_id = 'msg_once'",
    ),
    (
        "connector_quota",
        "an event whose quota was given back",
        "attachments",
        "INSERT INTO financial_connector_events (event_id, connector_id, webhook_id, body, body_bytes, body_sha256,"
        " sent_at, secret_id) SELECT '00000000-0000-7000-8000-000000000001', connector_id, 'msg_given_back', body,"
        " body_bytes, body_sha256, sent_at, secret_id FROM financial_connector_events WHERE webhook_id = 'msg_once'",
    ),
]
