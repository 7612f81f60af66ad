"""Django's settings: the environment (webapp/env.py) on one side, this file on the other, nothing else."""

from csp.constants import NONCE, NONE, SELF

from webapp.env import ROOT, Env, database, digest_of

ENV = Env()
BASE_DIR = ROOT
DEBUG = ENV.debug
SECRET_KEY = ENV.key()
ALLOWED_HOSTS = ENV.names(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = ENV.names(ENV.csrf_trusted_origins)
REDIS_URL = ENV.redis_url
LOCKSTEP_HOME = ENV.lockstep_home
LOCKSTEP_STORE = ENV.lockstep_store

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "webapp.teams",
    "webapp.jobs",
    "webapp.cluster",
    "webapp.metrics",
    "webapp.ingest",
    "webapp.live",
    "webapp.library",
    "webapp.configure",
    "webapp.compare",
    "webapp.embedded",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ]
        },
    }
]
DATABASES = {"default": database(ENV.database_url, ENV.lockstep_home)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "teams.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# The address and the folder carry a digest of the files: a page always gets the modules that it was written with,
# browsers keep them for ever, and ES modules need no rewriting. Uncollected files are served as they lie in the tree.
STATICFILES_DIRS = [ROOT / "static"]
STATIC_DIGEST = digest_of(ROOT / "static")
STATIC_URL = f"static/{STATIC_DIGEST}/"
STATIC_ROOT = ENV.static_root / STATIC_DIGEST
STATIC_COLLECTED = STATIC_ROOT.is_dir()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not STATIC_COLLECTED
WHITENOISE_IMMUTABLE_FILE_TEST = (lambda path, url: True) if STATIC_COLLECTED else (lambda path, url: False)

# Nothing is loaded from another host; Plotly's own style tag carries the nonce (templates/includes/_plotly.html).
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
if ENV.https:
    SECURE_SSL_REDIRECT = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": ENV.log_level},
}
