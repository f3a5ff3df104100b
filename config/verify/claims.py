"""Claims: what was uploaded is what is counted, and every attachment's file is the one that its row names (C5, C6).

An upload commits before its quota is counted, and its quota is held before it commits. So uploads are looked for after
billing was read, and reservations after uploads were read. A tree has no snapshot: an attachment whose file looks wrong
is looked at again, and only counts if its row says the same and no change of its claim is open.
"""

import hashlib

from django.conf import settings

from attachments.claims.models import Claim
from attachments.claims.upload import DIMENSION, OWNER, TOOL, content_path
from attachments.files.path import StoredPath
from config.verify.check import Check, Row, Tally, snapshots
from config.verify.places import ATTACHMENTS, BILLING

COUNTED = """
SELECT r.operation_sha256, r.quantity
  FROM commercial_runtime_reservations r JOIN commercial_meters m USING (meter_id)
 WHERE r.business = %s AND r.state = 'settled' AND m.tool = %s AND m.dimension = %s
"""
UPLOADS_OF = "SELECT upload_sha256, size_bytes FROM attachment_uploads WHERE is_metered AND upload_sha256 = ANY (%s)"
UPLOADS = "SELECT upload_sha256, size_bytes FROM attachment_uploads WHERE is_metered"
HOLDING = """
SELECT operation_sha256, quantity FROM commercial_runtime_reservations
 WHERE state <> 'released' AND operation_sha256 = ANY (%s)
"""
ATTACHMENTS_OF_CLAIMS = """
SELECT a.attachment_id, c.tenant_kind, c.tenant_id, c.claim_id, i.item_id, a.content_id, a.size_bytes, a.content_sha256
  FROM claim_attachments a JOIN claim_items i USING (item_id) JOIN claims c USING (claim_id)
"""
SAME = f"{ATTACHMENTS_OF_CLAIMS} WHERE a.attachment_id = %s"
OPEN = "SELECT EXISTS (SELECT FROM staged_file_intents WHERE state = 'open' AND folder = %s)"


def counted_uploads_committed() -> Tally:
    """Look up the upload of everything that is counted; billing is read first."""
    tally = Tally()
    with snapshots(BILLING[1], ATTACHMENTS[1]) as (billing, attachments):
        for batch in billing.stream(COUNTED, [OWNER, TOOL, DIMENSION]):
            tally.examined += len(batch)
            found: dict[str, int] = dict(attachments.rows(UPLOADS_OF, [[operation for operation, _ in batch]]))
            for operation, quantity in batch:
                if found.get(operation) != quantity:
                    problem = f"{quantity} bytes are counted, and no upload of that length committed"
                    tally.found(BILLING[0], operation, problem)
    return tally


def committed_uploads_hold_their_quota() -> Tally:
    """Look up the reservation of every upload that is to be counted; the uploads are read first."""
    tally = Tally()
    with snapshots(ATTACHMENTS[1], BILLING[1]) as (attachments, billing):
        for batch in attachments.stream(UPLOADS):
            tally.examined += len(batch)
            found: dict[str, int] = dict(billing.rows(HOLDING, [[upload for upload, _ in batch]]))
            for upload, size in batch:
                if found.get(upload) != size:
                    tally.found(
                        ATTACHMENTS[0], upload, f"it stored {size} bytes, and no quota is held or used for them"
                    )
    return tally


def attachments_have_their_files() -> Tally:
    """Read the file of every attachment."""
    tally = Tally()
    suspects: list[Row] = []
    with snapshots(ATTACHMENTS[1]) as (attachments,):
        for batch in attachments.stream(ATTACHMENTS_OF_CLAIMS):
            tally.examined += len(batch)
            suspects += [row for row in batch if _problem(row)]
    for row in suspects:
        with snapshots(ATTACHMENTS[1]) as (attachments,):
            stands = attachments.rows(SAME, [row[0]]) == [row]
            (moves,) = attachments.one(OPEN, [_path(row).folder])
        problem = _problem(row) if stands and not moves else None
        if problem:
            tally.found(ATTACHMENTS[0], row[0], problem)
    return tally


def _problem(row: Row) -> str | None:
    size, digest = row[6:]
    try:
        with _path(row).below(settings.ATTACHMENTS_ROOT).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if file.tell() != size:
                return f"its file has {file.tell()} bytes instead of {size}"
    except (FileNotFoundError, NotADirectoryError):
        return "its file is not there"
    return None if found == digest else "its file has another content"


def _path(row: Row) -> StoredPath:
    kind, tenant, claim, item, content = row[1:6]
    return content_path(Claim(tenant_kind=kind, tenant_id=tenant, claim_id=claim), item, content)


CHECKS = (
    Check(
        "upload_counted",
        "Every upload that is counted committed, with exactly the length that is counted.",
        counted_uploads_committed,
    ),
    Check(
        "upload_quota",
        "Every upload that committed under a meter has its quota, held or used, and none was given back.",
        committed_uploads_hold_their_quota,
    ),
    Check(
        "attachment_file",
        "Every attachment's file stands under the id that its row names, with its length and digest.",
        attachments_have_their_files,
    ),
)
