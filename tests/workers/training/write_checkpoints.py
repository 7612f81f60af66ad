"""`write_checkpoints.py FOLDER MEGABYTES` writes three checkpoints by turns until it is killed. No TensorFlow."""

import itertools
import sys
from pathlib import Path

import numpy as np

from tests.workers.training.snapshots import manifest
from workers.training.checkpointing import checkpoints

array = np.random.default_rng(1).random(int(float(sys.argv[2]) * 2**20 / 8))
for step in itertools.cycle((1, 2, 3)):
    checkpoints.write(Path(sys.argv[1]), manifest(step), {"model/dense/kernel": array})
