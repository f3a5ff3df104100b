"""Open what is stored, through Django's storage API: the part of this room that it can carry (README)."""

from typing import BinaryIO, cast

from django.core.files.storage import FileSystemStorage

from attachments.files.path import StoredPath
from attachments.files.place import place_of_files


def open_stored(path: StoredPath) -> BinaryIO:
    """The stored file, to be read in chunks and closed. Raises `FileNotFoundError` if nothing stands there."""
    return cast(BinaryIO, FileSystemStorage(location=place_of_files().root).open(path.text, "rb").file)
