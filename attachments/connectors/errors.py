"""What this room refuses. Database errors are translated by constraint name, once, here."""

from typing import NoReturn

from django.db import DatabaseError, DataError


class ConnectorsError(Exception):
    """Refused. Permanent unless a subclass says otherwise; nothing was changed unless a subclass says so."""


class UnknownConnector(ConnectorsError):
    """There is no such connector. Permanent: `manage.py connectors list` names them."""


class UnknownSecret(ConnectorsError):
    """The connector has no such secret. Permanent: `manage.py connectors list` names them."""


class ConnectorConflict(ConnectorsError):
    """A connector of this name exists. Permanent: choose another name; a connector never changes."""


class InvalidConnector(ConnectorsError):
    """A value is refused. Permanent: names have 1 to 200 characters, tenants are `organization:id` or `personal:id`,
    providers are short lower-case words.
    """


class InvalidSecret(ConnectorsError):
    """It is no signing secret. Permanent: `whsec_` and base64 of 24 to 64 bytes, as the provider shows it."""


class SecretUsedBefore(ConnectorsError):
    """This secret was given to a connector before. Permanent: have the provider issue another one."""


class TooManySecrets(ConnectorsError):
    """Too many secrets are accepted at once. Transient: wait until older ones expire, or revoke them."""


class SealBroken(ConnectorsError):
    """A secret cannot be opened. Permanent: set the CONNECTOR_SEALING_KEYS that sealed it again, or rotate."""


class PayloadConflict(ConnectorsError):
    """This webhook-id already stands for another payload. Permanent: the attempt was recorded, nothing else changed."""


_BY_CONSTRAINT: dict[str, type[ConnectorsError]] = {
    "financial_connectors_name_key": ConnectorConflict,
    "connector_name": InvalidConnector,
    "connector_tenant": InvalidConnector,
    "connector_provider": InvalidConnector,
    "financial_connector_secrets_secret_sha256_key": SecretUsedBefore,
}


def translate(error: DatabaseError, *, unfit: type[ConnectorsError] | None = None) -> NoReturn:
    """Raise what the violated constraint means, or `unfit` for a value that no column can hold (U+0000).

    An error that names none of ours is raised again as it is.
    """
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    meaning = _BY_CONSTRAINT.get(name or "", unfit if isinstance(error, DataError) else None)
    if meaning is None:
        raise error
    raise meaning(f"{meaning.__doc__}" + (f" ({name})" if name else "")) from error
