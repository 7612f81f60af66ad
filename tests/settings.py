"""The site's settings under test: a throw-away home, plain HTTP, no downloads, files as they lie in the tree.

pytest-django reads settings before any conftest, so what the environment decides is decided here.
"""

import atexit
import os
import shutil
import tempfile

if "LOCKSTEP_HOME" not in os.environ:
    os.environ["LOCKSTEP_HOME"] = tempfile.mkdtemp(prefix="lockstep-tests-")
    atexit.register(shutil.rmtree, os.environ["LOCKSTEP_HOME"], ignore_errors=True)
for variable in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DEBUG"):
    os.environ.pop(variable, None)
os.environ |= {
    "HTTPS": "0",
    "LOCKSTEP_OFFLINE": "1",
    "LOCKSTEP_SELFTEST": "off",
    "LOCKSTEP_STORE": os.path.join(os.environ["LOCKSTEP_HOME"], "store"),
    "STATIC_ROOT": os.path.join(os.environ["LOCKSTEP_HOME"], "uncollected"),
}

from webapp.settings import *  # noqa: E402, F403

# What tests start is the site itself.
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a real one costs each test a second
# A file, since in memory two threads of one process lock each other's tables out at once instead of waiting.
DATABASES["default"]["TEST"] = {"NAME": os.path.join(os.environ["LOCKSTEP_HOME"], "tests.sqlite3")}  # noqa: F405
