"""One fixed example of each contract of the token API."""

from metering.clusters.contracts import (
    ApiRefusal,
    ListedToken,
    RevokedToken,
    RotatedToken,
    RotateRequest,
    SupersededToken,
    TokenList,
)
from outbox.contracts.contract import Contract

NEW, OLD = "019ca2f6-0800-7000-8000-000000000002", "019c9dd0-7000-7000-8000-000000000001"
ISSUED, EXPIRES = "2026-03-02T12:00:00.000000Z", "2026-03-05T12:00:00.000000Z"

EXAMPLES: dict[str, Contract] = {
    "RotateRequest": RotateRequest(mode="gateway"),
    "RotatedToken": RotatedToken(
        cluster_id="7",
        token_id=NEW,
        token="otlp_" + "x" * 43,
        mode="gateway",
        issued_at=ISSUED,
        grace_seconds=259_200,
        superseded=(SupersededToken(token_id=OLD, expires_at=EXPIRES),),
    ),
    "TokenList": TokenList(
        cluster_id="7",
        tokens=(
            ListedToken(
                token_id=NEW, mode="gateway", state="primary", accepted=True, issued_at=ISSUED, handed_over_at=ISSUED
            ),
            ListedToken(
                token_id=OLD,
                mode="gateway",
                state="superseded",
                accepted=True,
                issued_at="2026-03-01T12:00:00.000000Z",
                handed_over_at="2026-03-01T12:00:00.100000Z",
                superseded_at=ISSUED,
                expires_at=EXPIRES,
            ),
        ),
        truncated=False,
    ),
    "RevokedToken": RevokedToken(cluster_id="7", token_id=OLD, revoked_before=False),
    "ApiRefusal": ApiRefusal(code=40400, message="There is no such cluster."),
}
