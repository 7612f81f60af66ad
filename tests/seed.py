"""The documented example, which most tests begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

SEED_SPEC: dict[str, Any] = yaml.safe_load((Path(__file__).parent.parent / "docs" / "example.yaml").read_text())
