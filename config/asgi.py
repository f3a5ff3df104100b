"""The ASGI application that the web server runs.

Each request runs in a thread of its own, so the web process shares connections through one small pool per read role.
Pages need the read roles and the session role, and no other login; the token API of
platform administrators connects as the owner of `metering` for each of its calls, and the API of claims and connectors
as the owners of `attachments` and `billing`.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("DATABASE_POOL", "4")

_django = get_asgi_application()

from attachments.files.place import refuse_to_start  # noqa: E402  # apps have to be ready first
from attachments.http.bound import BoundedBodies  # noqa: E402  # likewise

refuse_to_start()

application = BoundedBodies(_django)
