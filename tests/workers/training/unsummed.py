"""The trials with a strategy that is wrong: replicas that never hear of one another's gradients."""

import os
import sys

from workers.training import trials
from workers.training.distribution import Distribution

Distribution.sum_gradients = lambda self, gradients: gradients
code = trials.main(sys.argv[1:])
sys.stdout.flush()
os._exit(code)
