"""Infisical, through its own Python SDK: `/otlp/<cluster id>/PRIMARY_TOKEN` in one project and environment.

The SDK repeats a call after network errors and has no timeout, so its session gets one, and an end for all calls.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import environment
from metering.clusters.secret_store.store import SecretStoreFailed, Slot

CALL_SECONDS = 5.0
ALL_SECONDS = 20.0
"""After this no call begins; the SDK's longest pause between repetitions comes on top."""
NOT_FOUND = 404
ROOT = "otlp"


class InfisicalStore:
    """Logs in as a machine identity (universal auth) when it is first asked."""

    def __init__(self) -> None:
        try:
            import infisical_sdk
        except ImportError as error:
            raise ImproperlyConfigured(
                "The Infisical SDK is not installed. Install requirements-infisical.txt, or choose another "
                "OTLP_SECRET_STORE."
            ) from error
        self._sdk = infisical_sdk
        self._host = environment.text("INFISICAL_HOST", "https://app.infisical.com")
        self._identity = (environment.text("INFISICAL_CLIENT_ID"), environment.text("INFISICAL_CLIENT_SECRET"))
        self._project = environment.text("INFISICAL_PROJECT_ID")
        self._environment = environment.text("INFISICAL_ENVIRONMENT")
        self._client: Any = None

    def read(self, *, cluster_id: int, slot: Slot) -> str | None:
        with self._asking(f"read {slot} of cluster {cluster_id}") as client:
            try:
                found = client.secrets.get_secret_by_name(
                    secret_name=slot.value,
                    secret_path=f"/{ROOT}/{cluster_id}",
                    project_id=self._project,
                    environment_slug=self._environment,
                    expand_secret_references=False,
                    include_imports=False,
                )
            except self._sdk.InfisicalError as error:
                if _is_missing(error):
                    return None
                raise
            return str(found.secretValue) or None

    def write(self, *, cluster_id: int, slot: Slot, secret: str) -> None:
        with self._asking(f"write {slot} of cluster {cluster_id}") as client:
            named = {
                "secret_path": f"/{ROOT}/{cluster_id}",
                "project_id": self._project,
                "environment_slug": self._environment,
                "secret_value": secret,
            }
            try:
                client.secrets.update_secret_by_name(current_secret_name=slot.value, **named)
            except self._sdk.InfisicalError as error:
                if not _is_missing(error):
                    raise
                self._ensure_folder(client, "/", ROOT)
                self._ensure_folder(client, f"/{ROOT}", str(cluster_id))
                client.secrets.create_secret_by_name(secret_name=slot.value, **named)

    def _ensure_folder(self, client: Any, parent: str, name: str) -> None:
        place = {"project_id": self._project, "environment_slug": self._environment, "path": parent}
        if name not in {folder.name for folder in client.folders.list_folders(**place).folders}:
            client.folders.create_folder(name=name, **place)

    @contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        from requests import RequestException

        try:
            if self._client is None:
                self._client = self._login()
            yield self._client
        except (self._sdk.InfisicalError, RequestException, OSError, KeyError, TypeError) as error:
            status = getattr(error, "status_code", None)
            reason = f"status {status}" if status else type(error).__name__
            # The error itself may quote what was sent, so it is neither chained nor repeated.
            raise SecretStoreFailed(f"Infisical did not {what}: {reason}.") from None

    def _login(self) -> Any:
        client = self._sdk.InfisicalSDKClient(host=self._host, cache_ttl=0)
        patient = _bounded_adapter(until=time.monotonic() + ALL_SECONDS)
        for scheme in ("https://", "http://"):
            client.api.session.mount(scheme, patient)
        client.auth.universal_auth.login(client_id=self._identity[0], client_secret=self._identity[1])
        return client


def _is_missing(error: Exception) -> bool:
    return getattr(error, "status_code", None) == NOT_FOUND


def _bounded_adapter(*, until: float) -> Any:
    from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        """Gives every call a timeout, and begins none after `until`."""

        def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            if time.monotonic() > until:
                raise SecretStoreFailed(f"Infisical did not answer within {ALL_SECONDS:.0f} s.")
            kwargs["timeout"] = CALL_SECONDS
            return super().send(request, *args, **kwargs)

    return Bounded()
