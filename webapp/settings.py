"""Settings of the web project: the only module of `webapp` that reads the environment.

========================  ==============================  ===========================================================
variable                  default                         what
========================  ==============================  ===========================================================
``LOOKOUT_HOME``          ``./var``                       state folder: database, secret key
``LOOKOUT_REDIS_URL``     what ``manage.py live`` runs    logs, Celery broker, channel layer (alias ``REDIS_URL``)
``LOOKOUT_LOG_URL``       none                            Kafka, if the logs are there: ``kafka://host:port``
``LOOKOUT_PARTITIONS``    ``2``                           partitions of the ingest log
``LOOKOUT_REGIONS``       ``2``                           regions that a space is cut into at first
``LOOKOUT_HOST``          ``127.0.0.1``                   host name under which browsers reach the site
``LOOKOUT_PORT``          ``8000``                        its port
``LOOKOUT_SECRET_KEY``    made once, kept in the folder   signs sessions
``LOOKOUT_DEBUG``         ``false``                       Django's debug pages
``LOOKOUT_ALLOWED_HOSTS`` none                            more host names of the site, separated by commas
``LOOKOUT_TRUSTED_PROXIES`` none                          addresses of reverse proxies, separated by commas
``LOOKOUT_AUDIT_DAYS``    ``730``                         days for which rows of the audit log are kept; 0: forever
``LOOKOUT_AUDIT_EDITS_AN_HOUR`` ``200``                   edits of a user that have rows of their own; 0: all
``LOOKOUT_USER_CONNECTIONS`` ``32``                      connections that one user may have at once; 0: any number
``LOOKOUT_ADDRESS_CONNECTIONS`` ``128``                  connections that one address may have at once; 0: any number
``LOOKOUT_SHARE_CONNECTIONS`` ``50``                     connections that one share link may have at once
``LOOKOUT_MAX_QUERIES``   ``1000``                        saved queries that one user may have
``LOOKOUT_WORK_MEMORY_BYTES`` 2 GiB                      memory of each process for reports, replays and the like
``LOOKOUT_WORK_PER_USER`` ``1``                         of them, how many of a kind one user has at once
``LOOKOUT_WORK_WAITING``  ``8``                         for how many more a user may wait
``LOOKOUT_LAYERS_DIR``    ``layers`` in the folder        the stored layers
``LOOKOUT_HISTORY_DIR``   ``history`` in the folder       the stored elements of streams
``LOOKOUT_STATIC_DIR``    what ``manage.py live`` makes   collected files of the page; none: the sources themselves
``LOOKOUT_REDIS_BYTES``   2 GiB                           memory of the embedded Redis
``LOOKOUT_MIN_DISK_BYTES`` 512 MiB                       less free disk space than this is reported as a fault
``LOOKOUT_DISK_RESERVE``  1 GiB                         free disk space that uploads, imports and edits leave alone
``LOOKOUT_FEED_DIRS``     ``feeds`` in the folder         where streams may read files (docs/transports.md)
``LOOKOUT_FEED_HOSTS``    none                            non-public hosts that streams may read from
``LOOKOUT_DELIVERY_HOSTS`` none                           non-public hosts that alarms may be sent to (docs/delivery.md)
``LOOKOUT_MAIL_URL``      none                            mail server, ``smtp+tls://user:password@host:587``
``LOOKOUT_MAIL_FROM``     ``lookout@localhost``           sender of e-mails
``LOOKOUT_PUBLIC_URL``    ``http://host:port``            where people open the page; links in alarms begin with it
``LOOKOUT_LOG_FORMAT``    ``text``                        how logs are written: ``text`` or ``json``
``LOOKOUT_TRACE_RATIO``   ``0``                           which part of all elements is traced, 0 to 1
``LOOKOUT_DEMO``          ``true``                        whether a start creates missing streams of the demonstration
``LOOKOUT_STANDBY``       ``true``                        whether each space has a second engine on standby
``DATABASE_URL``          SQLite in the state folder      any database that Django knows
========================  ==============================  ===========================================================
"""

import sys
from datetime import timedelta
from pathlib import Path

import environ

from streaming.gateway.access import FeedAccess
from streaming.settings import history_dir, hosts, layers_dir, log_format, log_url, redis_url, trace_ratio
from webapp.delivery.pace import DeliveryPace
from webapp.machine.logs import logging_of, program_of
from webapp.machine.secret import kept_secret

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent
# The page's files lie beside the packages in a checkout, and in this package where a wheel was installed (setup.py).
_PACKED = Path(__file__).resolve().with_name("page")
PAGE_DIR = _PACKED if _PACKED.is_dir() else BASE_DIR
HOME = Path(env.str("LOOKOUT_HOME", "") or "var").expanduser().absolute()
PARTITIONS = env.int("LOOKOUT_PARTITIONS", 2)
REGIONS = env.int("LOOKOUT_REGIONS", 2)
HOST = env.str("LOOKOUT_HOST", "127.0.0.1")
PORT = env.int("LOOKOUT_PORT", 8000)
DEMO = env.bool("LOOKOUT_DEMO", True)
STANDBY = env.bool("LOOKOUT_STANDBY", True)
TRUSTED_PROXIES = tuple(env.list("LOOKOUT_TRUSTED_PROXIES", default=[]))
REDIS_BYTES = env.int("LOOKOUT_REDIS_BYTES", 2 << 30)
DISK_RESERVE = env.int("LOOKOUT_DISK_RESERVE", 1 << 30)
MIN_DISK_BYTES = env.int("LOOKOUT_MIN_DISK_BYTES", 512 << 20)
REDIS_URL = redis_url(env.ENVIRON, HOME)
LOG_URL = log_url(env.ENVIRON)
TRACE_RATIO = trace_ratio(env.ENVIRON)
LAYERS_DIR = layers_dir(env.ENVIRON, HOME)
HISTORY_DIR = history_dir(env.ENVIRON, HOME)
MAPS_DIR = HOME / "maps"
FEED_ACCESS = FeedAccess.from_environ(env.ENVIRON)
DELIVERY_HOSTS = "LOOKOUT_DELIVERY_HOSTS"
DELIVERY_ACCESS = FeedAccess(HOME, hosts=hosts(DELIVERY_HOSTS, env.ENVIRON), setting=DELIVERY_HOSTS)
DELIVERY_PACE = DeliveryPace()
MAIL_URL = env.str("LOOKOUT_MAIL_URL", "")
MAIL_FROM = env.str("LOOKOUT_MAIL_FROM", "lookout@localhost")
PUBLIC_URL = env.str("LOOKOUT_PUBLIC_URL", "").rstrip("/") or f"http://{HOST}:{PORT}"

DEBUG = env.bool("LOOKOUT_DEBUG", False)
SECRET_KEY = env.str("LOOKOUT_SECRET_KEY", "") or kept_secret(HOME / "secret_key")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"] + ([] if HOST in ("0.0.0.0", "::") else [HOST])
ALLOWED_HOSTS += env.list("LOOKOUT_ALLOWED_HOSTS", default=[])

INSTALLED_APPS = [
    "webapp",
    # Not the admin configuration with autodiscovery: it would load the forms of django-leaflet, which need GDAL.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "leaflet",
    "axes",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.pages.middleware.SecureCookies",
    "webapp.pages.middleware.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.audit.origin.AuditOrigin",
    "webapp.pages.middleware.DeclaredAccess",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "webapp.pages.middleware.BusyPage",
    "axes.middleware.AxesMiddleware",  # last: it replaces the response to a log-in that is locked
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PAGE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.pages.languages.texts",
            ],
        },
    }
]

DATABASES = {"default": env.db_url_config(env.str("DATABASE_URL", "") or f"sqlite:///{HOME / 'db.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # WAL: readers do not wait for the writer. IMMEDIATE: a writer waits at its first statement and does not fail later.
    # FULL: what is committed survives a power cut.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# It must be longer than any blocking read of a web process.
REDIS_TIMEOUT_S = 5

CHANNEL_LAYERS = {"default": {"BACKEND": "webapp.bus.groups.RedisGroups"}}

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker to which a full Redis refuses something connects again, instead of ending.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
# After this time a task whose worker died goes to another worker, so every task must take less.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 90,
    "queue_order_strategy": "round_robin",
    "socket_timeout": REDIS_TIMEOUT_S,
    "socket_connect_timeout": REDIS_TIMEOUT_S,
}
# Worker and beat wait about half a minute for a Redis that restarts; other processes do not (`webapp.bus.telling`).
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 60, "interval_start": 0.1, "interval_step": 0.1, "interval_max": 0.5}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Tasks mostly wait for Redis and the engine: threads do that as well as processes, with a fraction of the memory.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 6
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(HOME / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "reconcile": {"task": "webapp.tasks.reconcile", "schedule": 30.0, "options": {"expires": 30}},
    "record-events": {"task": "webapp.tasks.record_events", "schedule": 2.0, "options": {"expires": 2}},
    "pause-dear": {"task": "webapp.tasks.pause_dear", "schedule": 1.0, "options": {"expires": 1}},
    "retire-imports": {"task": "webapp.tasks.retire_imports", "schedule": 30.0, "options": {"expires": 30}},
    "keep-history": {"task": "webapp.tasks.keep_history", "schedule": 60.0, "options": {"expires": 60}},
    "take-snapshots": {"task": "webapp.tasks.take_snapshots", "schedule": 60.0, "options": {"expires": 60}},
    "note-figures": {"task": "webapp.tasks.note_figures", "schedule": 5.0, "options": {"expires": 5}},
    "forget-incidents": {"task": "webapp.tasks.forget_incidents", "schedule": 600.0, "options": {"expires": 600}},
    "tell-joined-changes": {
        "task": "webapp.tasks.tell_joined_changes",
        "schedule": 300.0,
        "options": {"expires": 300},
    },
    "forget-changes": {"task": "webapp.tasks.forget_changes", "schedule": 3600.0, "options": {"expires": 3600}},
    "deliver": {"task": "webapp.delivery.tasks.deliver", "schedule": 2.0, "options": {"expires": 2}},
    "trim-deliveries": {"task": "webapp.delivery.tasks.trim_deliveries", "schedule": 60.0, "options": {"expires": 60}},
    "retire-views": {"task": "webapp.tasks.retire_views", "schedule": 10.0, "options": {"expires": 10}},
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
PASSWORD_HASHERS = ["webapp.machine.passwords.PatientHasher"]
# After this many wrong passwords for one user from one address, that user and address must wait, also in the admin.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=5)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_VERBOSE = False
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "map"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = 30 * 24 * 3600
# Several Lookouts on different ports of one machine must not overwrite each other's sessions.
SESSION_COOKIE_NAME = f"lookout_session_{PORT}"
CSRF_COOKIE_NAME = f"lookout_csrf_{PORT}"
X_FRAME_OPTIONS = "DENY"
# It is sent over TLS only; browsers ignore it elsewhere.
SECURE_HSTS_SECONDS = 365 * 24 * 3600
# OpenStreetMap's tile servers refuse requests that do not say from which site they come.
SECURE_REFERRER_POLICY = "strict-origin-when-cross-origin"

LANGUAGE_CODE = "en"
# A further language is a folder of translations and an entry here (docs/translating.md).
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "webapp" / "locale"]
LANGUAGE_COOKIE_NAME = "lookout_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [PAGE_DIR / "static"]
STATIC_ROOT = env.str("LOOKOUT_STATIC_DIR", "") or None
# The static files are not secret, but everything in the state folder is private.
FILE_UPLOAD_PERMISSIONS = 0o600
if STATIC_ROOT:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "webapp.pages.static.HashedFiles"},
    }
# Without collected files, serve the sources under their own names, and look at each file again for every request: a
# file that was looked at only once, at the start, has the wrong length after an edit.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not STATIC_ROOT
WHITENOISE_MAX_AGE = 60

LEAFLET_CONFIG = {
    # Here the demonstration has its objects; on a phone they are visible as well.
    "DEFAULT_CENTER": (50.0, 14.0),
    "DEFAULT_ZOOM": 4,
    "MIN_ZOOM": 2,
    "MAX_ZOOM": 18,
    "TILES": [],
    "ATTRIBUTION_PREFIX": "Lookout",
    "RESET_VIEW": False,
    "NO_GLOBALS": False,
}

LOG_FORMAT = log_format(env.ENVIRON)
LOGGING = logging_of(LOG_FORMAT, program_of(sys.argv))

# Limits of one websocket connection, and of the saved queries of one user.
MAX_MESSAGE_BYTES = 64 * 1024
MESSAGES_PER_SECOND = 50
MESSAGES_BURST = 100
MAX_QUEUED_BYTES = 8 * 1024 * 1024
MAX_QUERIES_PER_USER = env.int("LOOKOUT_MAX_QUERIES", 1000)
# How many connections one user, and one address, may have at once in all web processes; 0: any number.
USER_CONNECTIONS = env.int("LOOKOUT_USER_CONNECTIONS", 32)
ADDRESS_CONNECTIONS = env.int("LOOKOUT_ADDRESS_CONNECTIONS", 128)
# How many connections one share link may have at once.
SHARE_CONNECTIONS = env.int("LOOKOUT_SHARE_CONNECTIONS", 50)
# Rows of the audit log are kept for so long; 0: forever.
AUDIT_DAYS = env.int("LOOKOUT_AUDIT_DAYS", 730)
# So many edits of a user have rows of their own in an hour; further ones: one row an object; 0: no bound.
AUDIT_EDITS_AN_HOUR = env.int("LOOKOUT_AUDIT_EDITS_AN_HOUR", 200)
# Closed incidents are kept for so long after the last thing that happened to them.
INCIDENT_DAYS = env.int("LOOKOUT_INCIDENT_DAYS", 365)
# Largest request without a layer file; an edit of features is the largest of these.
MAX_REQUEST_BYTES = 64 << 20
# A query is paused if its evaluation takes more than QUERY_SHARE of a batch, and at least QUERY_COST_MS, in
# QUERY_DEAR_BATCHES consecutive batches with elements. While others have queries, the same holds for all queries of a
# user or a team together, of which the costliest ones are paused, with QUERIES_COST_MS and QUERIES_DEAR_BATCHES. Each
# element that comes with a batch may cost ELEMENT_COST_MS more: half of what a step has room for, see `PairAllowance`.
# Each row of a snapshot may cost ROW_COST_MS more, and what has begun with the batch BEGUN_COST_MS: what a batch
# admits, shared by two tasks, see `engine.admission`.
QUERY_SHARE = env.float("LOOKOUT_QUERY_SHARE", 0.5)
QUERY_COST_MS = env.int("LOOKOUT_QUERY_COST_MS", 1_000)
QUERIES_COST_MS = env.int("LOOKOUT_QUERIES_COST_MS", 50)
ELEMENT_COST_MS, ROW_COST_MS, BEGUN_COST_MS = 0.1, 0.02, 50
QUERY_DEAR_BATCHES = 5
QUERIES_DEAR_BATCHES = 2
# Limits of layers; see `streaming.layers.ImportLimits`.
LAYER_UPLOAD_BYTES = env.int("LOOKOUT_LAYER_UPLOAD_BYTES", 1 << 30)
LAYER_UNPACKED_BYTES = env.int("LOOKOUT_LAYER_UNPACKED_BYTES", 4 << 30)
LAYER_MAX_FEATURES = env.int("LOOKOUT_LAYER_MAX_FEATURES", 5_000_000)
LAYER_IMPORT_MEMORY_BYTES = env.int("LOOKOUT_LAYER_MEMORY_BYTES", 4 << 30)
LAYER_IMPORT_S = env.float("LOOKOUT_LAYER_IMPORT_S", 900.0)
# What a user's files may have that are imported or wait for it, and those of all users; what one import may write.
LAYER_WAITING_BYTES = env.int("LOOKOUT_LAYER_WAITING_BYTES", 2 << 30)
LAYERS_WAITING_BYTES = env.int("LOOKOUT_LAYERS_WAITING_BYTES", 8 << 30)
LAYER_WORK_BYTES = env.int("LOOKOUT_LAYER_WORK_BYTES", 16 << 30)
LAYER_SHARED_S = env.float("LOOKOUT_LAYER_SHARED_S", 300.0)
MAX_LAYERS_PER_USER = 100
LAYER_IMPORTS_AT_ONCE = 2
LAYER_EDIT_FEATURES = 1_000
# Versions are removed once they are older than LAYER_VERSION_LIFE_S, except the newest LAYER_VERSIONS_KEPT: the engine
# may be some batches behind.
LAYER_VERSIONS_KEPT = 3
LAYER_VERSION_LIFE_S = 600.0
# Memory of a web process for the features that it draws.
LAYER_CACHE_BYTES = 512 << 20
# Limits of what takes long: questions to tables, reports, replays and back-tests (`webapp.rights.fair`). The memory of
# each of its processes, how many of a kind one user has at once, and for how many more a user may wait.
WORK_MEMORY_BYTES = env.int("LOOKOUT_WORK_MEMORY_BYTES", 2 << 30)
WORK_PER_USER = env.int("LOOKOUT_WORK_PER_USER", 1)
WORK_WAITING = env.int("LOOKOUT_WORK_WAITING", 8)
# Limits of a question to a table: its time, the bytes of its answer, the rows of each table that a join compares, and
# their bytes, and how many one connection may ask at once. Then, how many a web process answers at once, and how long
# another one waits for its turn. Last, the time that one upkeep of the history may take.
TABLE_ANSWER_S = 10.0
TABLE_ANSWER_BYTES = 4 << 20
TABLE_JOIN_ROWS = 200_000
TABLE_JOIN_BYTES = 128 << 20
TABLE_QUESTIONS_AT_ONCE = 8
TABLE_ANSWERS_AT_ONCE = 2
TABLE_WAIT_S = 30.0
HISTORY_UPKEEP_S = 40.0
# Limits of a report: its days, the elements in the files that it reads and in memory, the rows of its answer and of a
# CSV file, and its time. Last, how many a web process makes at once, and how long another one waits for its turn.
REPORT_DAYS = 400
REPORT_SCANNED = 100_000_000
REPORT_ELEMENTS = 5_000_000
REPORT_ROWS = 10_000
REPORT_CSV_ROWS = 1_000_000
REPORT_S = 120.0
REPORTS_AT_ONCE = 2
REPORT_WAIT_S = 60.0
# Limits of a back-test (docs/backtest.md): its span, the elements that it plays, its time, the spans of objects that
# are told one by one, how many a web process makes at once, and how long another one waits for its turn.
BACKTEST_DAYS = 31
BACKTEST_ELEMENTS = 5_000_000
BACKTEST_S = 300.0
BACKTEST_SPANS = 1_000
BACKTESTS_AT_ONCE = 2
BACKTEST_WAIT_S = 900.0
# Limits of a replay: how long an object is shown that was not heard again, and the events on its slider. Then, of its
# answers: the queries, the rows and seconds after which a page ends, the longest wait for a page, the processes that a
# web process has for them, and how long one waits for a question. Last, how many pages of elements a web process makes
# at once, and how long another one waits for its turn.
REPLAY_LIFE_S = 3_600.0
REPLAY_EVENTS = 2_000
REPLAY_QUERIES = 50
REPLAY_ANSWER_ROWS = 20_000
REPLAY_ANSWER_S = 1.0
REPLAY_PATIENCE_S = 60.0
REPLAY_SESSIONS = 6
REPLAY_IDLE_S = 120.0
REPLAYS_AT_ONCE = 2
REPLAY_WAIT_S = 15.0
# After this time without an acknowledgement of the engine, a query fails; it runs once the engine answers. An engine
# whose standby engine is gone, too, starts in less. Then: how long a web process may show no sign of life.
ACK_TIMEOUT_S = 45.0
WEB_PROCESS_TTL_S = 15
