"""What staged files refuse, and whether repeating can help. No message holds a name that a user chose."""


class FilesError(Exception):
    """A stored file could not be changed. The old one is as it was unless a subclass says otherwise."""


class NotAnId(FilesError):
    """A stored path is made of two to four UUIDs and nothing else. Permanent: correct the code."""


class TooLarge(FilesError):
    """More was sent than one file may hold. Permanent: send less, or raise ATTACHMENTS_LARGEST_BYTES."""


class StorageFull(FilesError):
    """The filesystem has no room for the file. Transient: repeat when there is room again."""


class StorageFailed(FilesError):
    """The filesystem refused: a permission, a missing directory, a fault. Transient: repeat when it is corrected."""


class DifferentFilesystems(FilesError):
    """ATTACHMENTS_INCOMING and ATTACHMENTS_ROOT must be on one filesystem, for renames. Permanent: set them so."""


class PathInFlight(FilesError):
    """Another transaction is changing the same stored path. Transient: repeat it."""


class AlreadyPlaced(FilesError):
    """A received file is placed once. Permanent for this one: receive the file again."""


class NotRestored(FilesError):
    """The change could not be ended now; backup and intent are kept. Transient: the sweep tries again."""


class Overtaken(NotRestored):
    """A later change of the same path stands, so what was before it cannot come back. An operator has to look."""


class TreeContradicts(NotRestored):
    """Neither the file nor its backup is where the journal says that one must be. An operator has to look."""
