"""Django's settings. Every value that an operator may change is read from the environment by a typed reader."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from config import environment, logging
from config.access import networks
from config.databases import databases, services
from config.embedded import state_dir
from config.owners import owner_named, producers, with_markers

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = environment.flag("DEBUG", False)
_running = services()

# Where nothing is set, a development installation runs on this machine alone, with the embedded services' own secret.
DEPLOYED = environment.flag("DEPLOYED", False)
SECRET_KEY = environment.text(
    "SECRET_KEY",
    None if DEPLOYED else f"development-{_running.postgres_password if _running else 'offline'}-" + "x" * 30,
)
ALLOWED_HOSTS = [
    host.strip() for host in environment.text("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if host.strip()
]

INSTALLED_APPS = [
    "config.admin_site.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_prometheus",
    "django_structlog",
    "axes",
    "csp",
    "pgtrigger",
    "outbox",
    "upstream.admission",
    "metering.clusters",
    "metering.otlp",
    "metering.consumption",
    "billing.ledger",
    "billing.pricing",
    "billing.finalization",
    "billing.telemetry_charges",
    "billing.commercial",
    "billing.commercial.markers",
    "attachments.files",
    "attachments.claims",
    "attachments.connectors",
    "operations.projector",
    "operations.timelines",
    "config.apps.ConfigConfig",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "axes.middleware.AxesMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "config" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = databases()
DATABASE_ROUTERS = ["config.router.OwnerRouter"]
DATABASE_STATEMENT_TIMEOUT = {
    "owner": environment.seconds("STATEMENT_TIMEOUT_OWNER", 30, low=1, high=600),
    "dispatch": environment.seconds("STATEMENT_TIMEOUT_DISPATCH", 30, low=1, high=600),
    "read": environment.seconds("STATEMENT_TIMEOUT_READ", 10, low=1, high=600),
    "session": environment.seconds("STATEMENT_TIMEOUT_SESSION", 5, low=1, high=600),
    "journal": environment.seconds("STATEMENT_TIMEOUT_JOURNAL", 30, low=1, high=600),
}
"""Seconds one statement of a role may take; set on the role itself when `migrate_owners` runs."""
DATABASE_LOCK_TIMEOUT = environment.seconds("LOCK_TIMEOUT", 10, low=0.1, high=600)
"""Seconds one statement may wait for a lock, for every role but the schema role."""
DATABASE_IDLE_IN_TRANSACTION_TIMEOUT = environment.seconds("IDLE_IN_TRANSACTION_TIMEOUT", 60, low=1, high=3600)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = environment.text("REDIS_URL", _running.redis_url if _running else "redis://127.0.0.1:1/0")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "backbone",
        "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
    }
}

# Outbox (O19, O30). Durations in seconds.
OUTBOX_TRANSPORT = environment.text("OUTBOX_TRANSPORT", "outbox.transport.InProcess")
OUTBOX_ANSWERS: dict[str, str] = {
    "holdForRuns": "billing.finalization.commands.answer_hold_for_runs",
    "confirmAdmittedHolds": "billing.finalization.commands.answer_confirm_admitted_holds",
    "releaseUnadmittedHolds": "billing.finalization.commands.answer_release_unadmitted_holds",
    "refuseUnadmittedOperations": "upstream.admission.commands.answer_refuse_unadmitted_operations",
    "postTelemetryCharges": "billing.telemetry_charges.commands.answer_post_telemetry_charges",
    "readOperationsProjectionAppliedReceipt": "operations.projector.reads.answer_read_applied_receipt",
}
"""Question name to the dotted path of what answers it."""
OUTBOX_BATCH_SIZE = environment.integer("OUTBOX_BATCH_SIZE", 500, low=1, high=2000)
OUTBOX_LEASE = environment.seconds("OUTBOX_LEASE", 30, low=1, high=3600)
OUTBOX_RENEW_EVERY = environment.seconds("OUTBOX_RENEW_EVERY", OUTBOX_LEASE / 3, low=0.1, high=1200)
OUTBOX_FULL_SCAN_EVERY = environment.seconds("OUTBOX_FULL_SCAN_EVERY", 1, low=0.05, high=60)
OUTBOX_SLICE = environment.seconds("OUTBOX_SLICE", 20, low=1, high=600)
"""How long one dispatch task works before it lets the next task of its queue run."""
OUTBOX_BEAT_EVERY = environment.seconds("OUTBOX_BEAT_EVERY", 5, low=0.5, high=600)
OUTBOX_NUDGE_LIFE = environment.seconds("OUTBOX_NUDGE_LIFE", 2, low=0.1, high=60)
"""How long one wake-up message stands for all that follow it."""
OUTBOX_RETRY: dict[str, dict[str, Any]] = {
    "transient": {"base": 1, "factor": 2, "cap": 300, "jitter": True, "quarantine_after": None},
    "capacity": {"base": 2, "factor": 2, "cap": 60, "jitter": True, "quarantine_after": None},
    "waiting_predecessor": {"base": 1, "factor": 1, "cap": 1, "jitter": False, "quarantine_after": None},
    "owner_unreadable": {"base": 2, "factor": 2, "cap": 120, "jitter": True, "quarantine_after": None},
}
"""Per retry class: first delay, growth, longest delay (seconds, full jitter), and after how many attempts an event is
quarantined (None: never; an alert on age instead)."""

# Admission. Durations in seconds.
ADMISSION_UNCONFIRMED_FOR = environment.seconds("ADMISSION_UNCONFIRMED_FOR", 120, low=1, high=86_400)
"""How long a hold may stay unconfirmed before billing's sweep asks core to refuse its operation."""
ADMISSION_SWEEP_EVERY = environment.seconds("ADMISSION_SWEEP_EVERY", 30, low=1, high=3600)

# The OTLP receiver (T1 to T12). Durations in seconds.
OTLP_HOST = environment.text("OTLP_HOST", "127.0.0.1")
OTLP_PORT = environment.integer("OTLP_PORT", 4318, low=0, high=65535)
OTLP_PROCESSES = environment.integer("OTLP_PROCESSES", 2, low=1, high=256)
OTLP_THREADS = environment.integer("OTLP_THREADS", 2, low=1, high=32)
"""Requests that one process decodes and stores at once; each has a session of its own in the database."""
OTLP_CONNECTIONS = environment.integer("OTLP_CONNECTIONS", 256, low=1, high=10_000)
"""Connections and requests of one process; more are answered 503."""
OTLP_LARGE_BODIES = environment.integer("OTLP_LARGE_BODIES", 4, low=1, high=64)
"""Bodies above 256 KiB that one process holds at once; others wait in their senders' sockets."""
OTLP_MAX_INFLATED_BYTES = environment.integer("OTLP_MAX_INFLATED_BYTES", 32 * 2**20, low=2**20, high=2**30)
OTLP_BODY_TIMEOUT = environment.seconds("OTLP_BODY_TIMEOUT", 30, low=0.1, high=600)
OTLP_HEADER_TIMEOUT = environment.seconds("OTLP_HEADER_TIMEOUT", 10, low=0.1, high=600)
OTLP_JSON = environment.flag("OTLP_JSON", False)
"""Whether OTLP/JSON is accepted beside protobuf, which is the contract."""
OTLP_RATE_PER_SECOND = environment.integer("OTLP_RATE_PER_SECOND", 100, low=1, high=1_000_000)
OTLP_RATE_BURST = environment.integer("OTLP_RATE_BURST", 200, low=1, high=1_000_000)
OTLP_SINK_TYPE = environment.word("OTLP_SINK_TYPE", "logging", words=("logging", "fanout", "timescale"))
OTLP_TS_AUTO_MIGRATE = environment.flag("OTLP_TS_AUTO_MIGRATE", True)
"""Whether the receiver brings the telemetry database up to date when it starts; else it only checks."""
OTLP_ARCHIVE_DIR = Path(environment.text("OTLP_ARCHIVE_DIR", str(state_dir() / "otlp-archive")))
OTLP_ARCHIVE_ROTATE_BYTES = environment.integer("OTLP_ARCHIVE_ROTATE_BYTES", 256 * 2**20, low=2**16, high=2**40)
OTLP_ARCHIVE_ROTATE_SECONDS = environment.seconds("OTLP_ARCHIVE_ROTATE_SECONDS", 3600, low=1, high=86_400)
OTLP_FUTURE_LIMIT = environment.seconds("OTLP_FUTURE_LIMIT", 86_400, low=60, high=30 * 86_400)
"""An event that occurred later than this from now is dropped under `occurred_at`."""
OTLP_DAYS_AHEAD = environment.integer("OTLP_DAYS_AHEAD", 7, low=1, high=40)
OTLP_DAYS_EVERY = environment.seconds("OTLP_DAYS_EVERY", 3600, low=1, high=86_400)
OTLP_RETENTION_DAYS = environment.integer("OTLP_RETENTION_DAYS", 0, low=0, high=36_500)
"""Whole days of events that are kept, 35 or more; 0 keeps all."""
OTLP_IDENTITY_SCAN_EVERY = environment.seconds("OTLP_IDENTITY_SCAN_EVERY", 30, low=1, high=3600)
"""How often new events are looked at for event ids that occurred before at another time."""
CONSUMPTION_WINDOW_SECONDS = environment.integer("CONSUMPTION_WINDOW_SECONDS", 3600, low=60, high=86_400)
"""Length of the windows that consumption aggregates; a divisor of a day, so that no window crosses midnight (UTC)."""

# Tokens of clusters (T2, T3). Durations in seconds.
OTLP_TOKEN_PROPAGATION: float = environment.seconds("OTLP_TOKEN_PROPAGATION", 480, low=1, high=2_592_000)
"""The longest time collectors need to take up a new token after a rotation."""
OTLP_TOKEN_SAFETY_FACTOR: int = environment.integer("OTLP_TOKEN_SAFETY_FACTOR", 3, low=1, high=100)
"""A superseded token is accepted this many times as long, and never less than 72 hours."""
OTLP_SECRET_STORE: str = environment.text("OTLP_SECRET_STORE", "metering.clusters.secret_store.FileStore")
OTLP_SECRET_DIR = Path(environment.text("OTLP_SECRET_DIR", str(state_dir() / "otlp-secrets")))

# Consumption of telemetry (T13). Durations in seconds.
CONSUMPTION_CLOSE_AFTER = environment.seconds("CONSUMPTION_CLOSE_AFTER", 120, low=0, high=86_400)
"""How long after its end a window is first aggregated; what arrives later opens it again."""
CONSUMPTION_SWEEP_EVERY = environment.seconds("CONSUMPTION_SWEEP_EVERY", 15, low=1, high=3600)
CONSUMPTION_SLICE = environment.seconds("CONSUMPTION_SLICE", 20, low=1, high=600)
"""How long one sweep works before the next task of its queue runs; a window in work is finished."""
CONSUMPTION_ASK_AGAIN_AFTER = environment.seconds("CONSUMPTION_ASK_AGAIN_AFTER", 300, low=1, high=86_400)
"""When billing is asked again for a charge that it refused, or about which it did not answer."""
CONSUMPTION_STATEMENT_TIMEOUT = environment.seconds("CONSUMPTION_STATEMENT_TIMEOUT", 600, low=1, high=3600)
"""The longest that summing up one window may take; the timeout of the role is made for short statements."""

# Commercial boundary (C1 to C10). Durations in seconds.
COMMERCIAL_HASH_KEY = environment.text(
    "COMMERCIAL_HASH_KEY",
    None if DEPLOYED else f"development-{_running.postgres_password if _running else 'offline'}-" + "x" * 30,
)
"""Hashes who does what in commercial facts; it never changes."""
COMMERCIAL_HELD_FOR = environment.seconds("COMMERCIAL_HELD_FOR", 120, low=1, high=86_400)
"""How long quota may be held before the sweep asks how its work ended; work that goes on is left alone."""
COMMERCIAL_SWEEP_EVERY = environment.seconds("COMMERCIAL_SWEEP_EVERY", 30, low=1, high=3600)

# The API of attachments. Durations in seconds.
API_BODY_TIMEOUT = environment.seconds("API_BODY_TIMEOUT", 30, low=0.1, high=600)
"""In which the next part of a body has to come."""
API_AT_ONCE = environment.integer("API_AT_ONCE", 8, low=1, high=100)
"""Calls of one web process that work at once; others wait for their turn."""

# Connectors (C4). Durations in seconds.
CONNECTOR_SEALING_KEYS = tuple(
    key.strip()
    for key in environment.text(
        "CONNECTOR_SEALING_KEYS",
        None if DEPLOYED else f"development-{_running.postgres_password if _running else 'offline'}-" + "x" * 30,
    ).split(",")
)
"""Encrypt signing secrets; the first one seals, all of them open."""
CONNECTOR_SECRET_GRACE = environment.seconds("CONNECTOR_SECRET_GRACE", 86_400, low=0, high=30 * 86_400)
"""How long a superseded secret is still accepted after a rotation."""
CONNECTOR_MAX_BODY_BYTES = environment.integer("CONNECTOR_MAX_BODY_BYTES", 256 * 2**10, low=2**10, high=2 * 2**20)

# Stored files of attachments (C5, C9). Durations in seconds.
ATTACHMENTS_ROOT = Path(environment.text("ATTACHMENTS_ROOT", str(state_dir() / "attachments")))
ATTACHMENTS_INCOMING = Path(environment.text("ATTACHMENTS_INCOMING", str(ATTACHMENTS_ROOT / ".incoming")))
"""Where files are received; on the filesystem of ATTACHMENTS_ROOT, because they are renamed into their places."""
ATTACHMENTS_LARGEST_BYTES = environment.integer("ATTACHMENTS_LARGEST_BYTES", 2**30, low=1, high=2**40)
ATTACHMENTS_SWEEP_EVERY = environment.seconds("ATTACHMENTS_SWEEP_EVERY", 30, low=1, high=3600)

# Celery
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "global_keyprefix": "backbone:",
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "owner.core"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    f"dispatch-{owner.name}": {
        "task": "outbox.dispatch",
        "schedule": timedelta(seconds=OUTBOX_BEAT_EVERY),
        "args": (owner.name,),
        "options": {"queue": owner.queue, "expires": OUTBOX_BEAT_EVERY * 4},
    }
    for owner in producers()
}
CELERY_BEAT_SCHEDULE["sweep-admissions"] = {
    "task": "billing.sweep_admissions",
    "schedule": timedelta(seconds=ADMISSION_SWEEP_EVERY),
    "options": {"queue": owner_named("billing").queue, "expires": ADMISSION_SWEEP_EVERY * 4},
}

CELERY_BEAT_SCHEDULE |= {
    f"sweep-commercial-{owner.name}": {
        "task": "commercial.sweep",
        "schedule": timedelta(seconds=COMMERCIAL_SWEEP_EVERY),
        "args": (owner.name,),
        "options": {"queue": owner.queue, "expires": COMMERCIAL_SWEEP_EVERY * 4},
    }
    for owner in with_markers()
}

CELERY_BEAT_SCHEDULE["sweep-files"] = {
    "task": "files.sweep",
    "schedule": timedelta(seconds=ATTACHMENTS_SWEEP_EVERY),
    "options": {"queue": owner_named("attachments").queue, "expires": ATTACHMENTS_SWEEP_EVERY * 4},
}

CELERY_BEAT_SCHEDULE["sweep-consumption"] = {
    "task": "telemetry.sweep_consumption",
    "schedule": timedelta(seconds=CONSUMPTION_SWEEP_EVERY),
    "options": {"queue": owner_named("telemetry").queue, "expires": CONSUMPTION_SWEEP_EVERY * 4},
}
CELERY_BEAT_SCHEDULE["identify-telemetry-events"] = {
    "task": "otlp.identify_events",
    "schedule": timedelta(seconds=OTLP_IDENTITY_SCAN_EVERY),
    "options": {"queue": owner_named("telemetry").queue, "expires": OTLP_IDENTITY_SCAN_EVERY * 4},
}
CELERY_BEAT_SCHEDULE["keep-telemetry-days"] = {
    "task": "otlp.keep_days",
    "schedule": timedelta(seconds=OTLP_DAYS_EVERY),
    "options": {"queue": owner_named("telemetry").queue, "expires": OTLP_DAYS_EVERY * 4},
}

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"
AXES_FAILURE_LIMIT = environment.integer("LOGIN_FAILURE_LIMIT", 5, low=1, high=100)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "operator/locked_out.html"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
PASSWORD_HASHERS = ["config.password_hasher.KeptPassword"]
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_HTTPONLY = True

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = state_dir() / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
LOGIN_URL = "admin:login"

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if DEPLOYED else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = DEPLOYED
SECURE_HSTS_PRELOAD = DEPLOYED
SECURE_SSL_REDIRECT = DEPLOYED
SECURE_REDIRECT_EXEMPT = [r"^metrics$", r"^health/"]
SESSION_COOKIE_SECURE = DEPLOYED
CSRF_COOKIE_SECURE = DEPLOYED
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if DEPLOYED else None
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
"""Pages load from their own host and nothing inline; they call nowhere, embed nothing and are embedded nowhere."""

RELEASE = environment.text("RELEASE", "development")
"""The version shown by /health/version, in logs and in the worker metric."""
REGION = environment.text("REGION", "local")

# Observability
LOGGING_CONFIG = "config.logging.configure"
LOGGING = logging.settings_for(
    level=environment.text("LOG_LEVEL", "INFO").upper(),
    console=environment.flag("LOG_CONSOLE", False),
    version=RELEASE,
    region=REGION,
)
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
DJANGO_STRUCTLOG_USER_ID_FIELD = ""
"""The admin's door names the operator; a request that needs no login asks no database for one."""
METRICS_NETWORKS = networks("METRICS_NETWORKS", "127.0.0.0/8,::1/128")
"""From where /metrics may be read; a request that came through a proxy is never one of them."""
WORKER_METRICS_PORT = environment.integer("WORKER_METRICS_PORT", 0, low=0, high=65535)
WORKER_METRICS_HOST = environment.text("WORKER_METRICS_HOST", "127.0.0.1")
"""Where a Celery worker serves the counters of its machine, if no web process there does it; port 0: nowhere."""
METRICS_PATIENCE = environment.seconds("METRICS_PATIENCE", 5, low=0.5, high=60)
"""Seconds that one scrape waits for the databases; a database that needs longer is reported as down."""
