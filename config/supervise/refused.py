"""Why a start was refused."""


class Refused(RuntimeError):
    """The start is refused before anything was changed; the text says what to do."""
