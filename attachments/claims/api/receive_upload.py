"""Read one file out of a multipart body, straight into a file beside the stored tree.

Django's own parser reads the body, so no upload is ever in memory as a whole; its part `file` goes to an `Incoming`.
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

from attachments.claims.errors import InvalidUpload
from attachments.claims.models.attachment import LONGEST_MEDIA_TYPE, LONGEST_NAME
from attachments.files.receive import Incoming
from attachments.http.problems import Kind, Refused

PART = "file"
CHUNK_BYTES = 256 * 1024
MEDIA_TYPE = re.compile(r"[!-~]+")
UNKNOWN_MEDIA_TYPE = "application/octet-stream"
FORM = "multipart/form-data"


class ReceivedFile:
    """The one file of a body, with what its sender called it."""

    def __init__(self, *, name: str, media_type: str, incoming: Incoming) -> None:
        self.name = name
        self.media_type = media_type
        self.incoming = incoming


class _IntoIncoming(FileUploadHandler):
    """Writes the part `file` while the body is read; a second one, or one under another name, ends the upload."""

    chunk_size = CHUNK_BYTES

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.incoming: Incoming | None = None
        self.named: tuple[str, str] = ("", "")
        self.is_whole = False

    def new_file(self, field_name: str, file_name: str, content_type: str, *args: Any, **kwargs: Any) -> None:
        super().new_file(field_name, file_name, content_type, *args, **kwargs)
        if field_name != PART or self.incoming is not None:
            raise InvalidUpload(InvalidUpload.__doc__)
        self.named = file_name, content_type
        self.incoming = Incoming()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self.incoming is not None:
            self.incoming.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        """Called only when the boundary that ends the file was read."""
        self.is_whole = True


@contextmanager
def received_file(request: HttpRequest) -> Iterator[ReceivedFile]:
    """The file of this request; what is not placed when the block ends is removed.

    Raises `InvalidUpload`, `Refused` (415), and what `Incoming` raises.
    """
    if request.content_type != FORM or request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused(Kind.WRONG_MEDIA_TYPE, f"An upload is {FORM}, not encoded, with the file in the part `{PART}`.")
    handler = _IntoIncoming(request)
    with ExitStack() as stack:
        try:
            _parse(request, handler)
        finally:
            if handler.incoming is not None:
                stack.enter_context(handler.incoming)
        name, media_type = handler.named
        if handler.incoming is None or not handler.is_whole or not handler.incoming.size or _is_long(name):
            raise InvalidUpload(InvalidUpload.__doc__)
        handler.incoming.finish()
        yield ReceivedFile(name=name, media_type=_fit(media_type), incoming=handler.incoming)


def _parse(request: HttpRequest, handler: FileUploadHandler) -> None:
    """A body without Content-Length is read as well: the parser would take the missing header for an empty body."""
    request.upload_handlers = [handler]
    kind, divider, parameters = request.META.get("CONTENT_TYPE", "").partition(";")
    meta = {
        **request.META,
        "CONTENT_LENGTH": request.META.get("CONTENT_LENGTH") or "1",
        "CONTENT_TYPE": f"{kind.lower()}{divider}{parameters}",
    }
    try:
        request.parse_file_upload(meta, request)  # type: ignore[arg-type]  # it reads, as the parser asks
    except (MultiPartParserError, SuspiciousOperation, UnreadablePostError, LookupError, ValueError) as error:
        raise InvalidUpload(InvalidUpload.__doc__) from error


def _is_long(name: str) -> bool:
    return len(unicodedata.normalize("NFC", name)) > LONGEST_NAME


def _fit(media_type: str | None) -> str:
    fits = media_type and len(media_type) <= LONGEST_MEDIA_TYPE and MEDIA_TYPE.fullmatch(media_type)
    return media_type if media_type and fits else UNKNOWN_MEDIA_TYPE
