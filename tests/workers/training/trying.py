"""Stands in for workers.training.trials without TensorFlow: ends each trial as the environment says.

TF_TRYING is JSON: by the name of a trial `crash`, `hang`, `fail` or `fail after others`; all else passes. Each begin is
a line of the file TF_TRYING_BEGUN.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from workers.contract.assignment import Place
from workers.training.trials import OUTCOMES, TRIAL_LIST, TRIALS, Outcome

place = Place.model_validate_json(Path(sys.argv[1]).read_bytes())
behaviour = json.loads(os.environ["TF_TRYING"])
folder = Path(place.run) / OUTCOMES
folder.mkdir(exist_ok=True)
with (folder / f"{place.process.name}.jsonl").open("a", buffering=1) as file:
    for number, trial in enumerate(TRIAL_LIST.validate_json((Path(place.run) / TRIALS).read_bytes())):
        with open(os.environ["TF_TRYING_BEGUN"], "a") as begun:
            begun.write(f"{trial.name}\n")
        if trial.record:
            Path(trial.reference).touch()
        file.write(Outcome(name=trial.name, over=False).model_dump_json() + "\n")
        what = behaviour.get(trial.name, "pass")
        if what == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if what == "hang":
            time.sleep(600)
        failure = what if what == "fail" or (what == "fail after others" and number) else ""
        file.write(Outcome(name=trial.name, over=True, failure=failure).model_dump_json() + "\n")
        if failure:
            sys.exit(1)
