"""Tokens of clusters and their audit, in metering's database (T2)."""

from config.verify.check import Check, by_statement
from config.verify.places import METERING

AUDIT = """
SELECT t.token_id, 'its audit does not say that it is ' || s.state
  FROM otlp_tokens t CROSS JOIN LATERAL (
       SELECT 'minted' AS state UNION SELECT t.state
        UNION SELECT 'primary' WHERE t.handed_over_at IS NOT NULL
        UNION SELECT 'superseded' WHERE t.superseded_at IS NOT NULL) s
 WHERE NOT EXISTS (SELECT FROM admin_audit_entries a
                    WHERE a.token_id = t.token_id AND a.cluster_id = t.cluster_id AND a.action = 'token_' || s.state)
 UNION ALL
SELECT t.token_id, 'its audit says that it is revoked'
  FROM otlp_tokens t JOIN admin_audit_entries a USING (token_id)
 WHERE a.action = 'token_revoked' AND t.state <> 'revoked'
 UNION ALL
SELECT t.token_id, 'its audit does not say that it was minted, or says that it was revoked and it is not'
  FROM administrator_tokens t
 WHERE NOT EXISTS (SELECT FROM admin_audit_entries a
                    WHERE a.token_id = t.token_id AND a.action = 'administrator_token_minted')
    OR (t.revoked_at IS NOT NULL) <>
       EXISTS (SELECT FROM admin_audit_entries a
                WHERE a.token_id = t.token_id AND a.action = 'administrator_token_revoked')
"""
COUNT = "SELECT (SELECT count(*) FROM otlp_tokens) + (SELECT count(*) FROM administrator_tokens)"

CHECKS = (
    Check(
        "token_audit",
        "Every step of every token stands in the audit, and no token that was revoked is accepted.",
        by_statement(owners=(METERING,), examined=COUNT, violations=AUDIT),
    ),
)
