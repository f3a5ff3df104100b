"""Django's DATABASES, from the owner table and the environment: one alias per owner and role, one login each.

Where a database is comes from `DATABASE_URL_<OWNER>` (telemetry: the `OTLP_TS_*` names), else from the embedded
server. The user in the URL is the administrator that provisioning uses; the running processes log in as the owner's
roles, whose passwords derive from `DATABASE_ROLE_SECRET`. `DATABASE_URL_<OWNER>_<ROLE>` replaces one login where an
operator made it.
"""

import hashlib
import hmac
import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import environment
from config.embedded import Services, running_services, state_dir
from config.environment import DatabaseAddress
from config.owners import Owner, Role, owner_roles

NO_SERVER_PORT = 1
"""Nothing listens here: settings load without a server, and the first connection fails with advice."""


def services() -> Services | None:
    """The embedded services of this state directory, if they run."""
    return running_services(state_dir())


def address_of(owner: Owner) -> DatabaseAddress:
    """Where the owner's database is, and its administrator's login."""
    address = _telemetry_address() if owner.name == "telemetry" else None
    address = address or environment.database_url(f"DATABASE_URL_{owner.name.upper()}")
    if address:
        return address
    running = services()
    name = f"{os.environ.get('DATABASE_NAME_PREFIX', '')}{owner.name}"
    if running is None:
        return DatabaseAddress("127.0.0.1", NO_SERVER_PORT, name, "", "", {})
    return DatabaseAddress(
        running.postgres_host, running.postgres_port, name, running.postgres_user, running.postgres_password, {}
    )


def _telemetry_address() -> DatabaseAddress | None:
    names = ("HOST", "PORT", "USER", "PASSWORD", "DBNAME", "SSLMODE")
    given = {name: os.environ.get(f"OTLP_TS_{name}", "").strip() for name in names}
    if not any(given.values()):
        return None
    missing = [f"OTLP_TS_{name}" for name, value in given.items() if not value]
    if missing:
        raise ImproperlyConfigured(f"{', '.join(missing)} not set. Set all OTLP_TS_* names, or none of them.")
    return DatabaseAddress(
        host=given["HOST"],
        port=environment.integer("OTLP_TS_PORT", 5432, low=1, high=65535),
        name=given["DBNAME"],
        user=given["USER"],
        password=given["PASSWORD"],
        options={"sslmode": given["SSLMODE"]},
    )


def role_password(owner: Owner, role: Role) -> str:
    """The password of one LOGIN role. Raises `ImproperlyConfigured` if there is no secret to derive it from."""
    secret = os.environ.get("DATABASE_ROLE_SECRET", "").strip()
    if not secret:
        running = services()
        port = address_of(owner).port
        if running is None and port == NO_SERVER_PORT:
            return ""
        if running is None or port != running.postgres_port:
            raise ImproperlyConfigured(
                "DATABASE_ROLE_SECRET is not set. Set it to a long random text; the passwords of the database roles "
                "derive from it, so every process of a deployment needs the same one."
            )
        secret = running.postgres_password
    return hmac.new(secret.encode(), owner.role_name(role).encode(), hashlib.sha256).hexdigest()


def databases() -> dict[str, dict[str, Any]]:
    """One entry per owner and role."""
    pooled = environment.flag("DATABASE_TRANSACTION_POOLER", False)
    return {owner.alias_of(role): _connection(owner, role, pooled=pooled) for owner, role in owner_roles()}


def _connection(owner: Owner, role: Role, *, pooled: bool) -> dict[str, Any]:
    address = address_of(owner)
    login = environment.database_url(f"DATABASE_URL_{owner.name.upper()}_{role.upper()}")
    options: dict[str, Any] = {
        **address.options,
        "application_name": f"{owner.alias_of(role)}",
        "connect_timeout": 5,
        "prepare_threshold": None if pooled else 2,
        "server_side_binding": role is Role.DISPATCH and not pooled,
    }
    shared = environment.integer("DATABASE_POOL", 0, low=0, high=100) if role in {Role.READ, Role.SESSION} else 0
    if shared:
        options["pool"] = {"min_size": 0, "max_size": shared, "timeout": 3, "max_idle": 300, "num_workers": 1}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": login.host if login else address.host,
        "PORT": login.port if login else address.port,
        "NAME": login.name if login else address.name,
        "USER": login.user if login else owner.role_name(role),
        "PASSWORD": login.password if login else role_password(owner, role),
        "CONN_MAX_AGE": 0 if shared else None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": pooled,
        "OPTIONS": options,
    }
