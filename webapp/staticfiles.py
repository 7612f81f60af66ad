"""How collected files are named: by their content, modules' imports of one another included."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStorage(CompressedManifestStaticFilesStorage):
    """Rewrites `import ... from "./x.js"` too, so that ES modules need no build."""

    support_js_module_import_aggregation = True
