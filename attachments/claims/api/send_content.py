"""Answer with the bytes of an attachment, as a download, in chunks read beside the event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from django.http import StreamingHttpResponse

from attachments.claims.models import Attachment

CHUNK_BYTES = 256 * 1024


def content_answer(attachment: Attachment, file: BinaryIO) -> StreamingHttpResponse:
    """The answer, which closes the file at its end."""
    return StreamingHttpResponse(
        _chunks(file),
        content_type=attachment.media_type,
        headers={
            "Content-Length": str(attachment.size_bytes),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(attachment.name, safe='')}",
            "Cache-Control": "no-store",
            "ETag": f'"{attachment.content_sha256}"',
        },
    )


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
    finally:
        file.close()
