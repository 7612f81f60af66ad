"""Runs a script of this folder: `python -m tests.workers.training.script NAME.py ARGUMENTS`.

TensorFlow is imported beforehand as the engine does it, in half of the time.
"""

import runpy
import sys
from pathlib import Path

from workers.training.process import import_tensorflow

import_tensorflow()
del sys.argv[0]
runpy.run_path(str(Path(__file__).with_name(sys.argv[0])), run_name="__main__")
