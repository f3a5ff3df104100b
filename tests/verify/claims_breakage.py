"""The ways to break what is proven of claims, in the form of `tests.verify.breakage`."""

BROKEN: list[tuple[str, str, str, str]] = [
    (
        "upload_counted",
        "a counted upload that is said not to be",
        "attachments",
        "UPDATE attachment_uploads SET is_metered = false",
    ),
    (
        "upload_quota",
        "an upload that nobody counted",
        "attachments",
        "INSERT INTO attachment_uploads (upload_sha256, tenant_kind, tenant_id, claim_id, item_id, size_bytes,"
        " content_sha256, is_metered) SELECT repeat('0', 64), tenant_kind, tenant_id, claim_id, item_id, size_bytes,"
        " content_sha256, true FROM attachment_uploads LIMIT 1",
    ),
    (
        "attachment_file",
        "a row of another content than its file's",
        "attachments",
        "UPDATE claim_attachments SET content_sha256 = repeat('0', 64)",
    ),
    (
        "attachment_file",
        "a row of another length than its file's",
        "attachments",
        "UPDATE claim_attachments SET size_bytes = size_bytes + 1",
    ),
    (
        "attachment_file",
        "a row whose file is nowhere",
        "attachments",
        "UPDATE claim_attachments SET content_id = '00000000-0000-7000-8000-000000000001'"
        " WHERE attachment_id = (SELECT attachment_id FROM claim_attachments LIMIT 1)",
    ),
]
