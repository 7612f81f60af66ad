"""Trains on a table with little memory: `small_memory.py FILE BYTES`.

Prints JSON: how training went, and what happens when all rows are asked for at once.

Once everything is imported and a first small job has warmed TensorFlow up, the process may take BYTES more (RLIMIT_DATA
counts private writable memory, the threads' stacks among it), and no more.
"""

import json
import resource
import sys
from pathlib import Path

import numpy as np

from tests.workers.training.conftest import seed_with
from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training import data, devices, files_here
from workers.training.distribution import connect
from workers.training.here import place_here
from workers.training.loop import Loop
from workers.training.reporter import Reporter

FILE, LIMIT = Path(sys.argv[1]), int(sys.argv[2])


def job(file):
    options = {"file": str(file), "target": "label", "task": "classification", "in_memory": "never"}
    options["shuffle_buffer"] = 20_000
    training = {
        "epochs": None,
        "steps": 200,
        "global_batch": 500,
        "optimizer": {"name": "adam", "learning_rate": 0.01},
    }
    return parse(
        files_here.resolve(
            seed_with(
                dataset={"name": "csv", "options": options},
                model={"name": "linear"},
                strategy={"name": "one_device"},
                training={**training, "validation_split": 0.05},
            )
        )
    )


def train(spec, distribution):
    run = FILE.parent / spec.name
    [process] = place_here(spec)
    place = Place(spec=spec, process=process, processes=(process,), run=str(run))
    reporter = Reporter(run / "events.jsonl", process.name)
    loop = Loop(place, distribution, data.load(spec), reporter)
    loop.build()
    loop.run()
    reporter.close()
    return loop._metrics["val_accuracy"]


def used():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))


small = FILE.with_name("small.csv")
with FILE.open("rb") as stream:
    small.write_bytes(b"".join(stream.readline() for _ in range(2_001)))
warm, large = job(small), job(FILE)
[process] = place_here(warm)
place = Place(spec=warm, process=process, processes=(process,), run=str(FILE.parent))
devices.configure(place)
distribution = connect(place)
train(warm, distribution)
resource.setrlimit(resource.RLIMIT_DATA, (used() + LIMIT, resource.RLIM_INFINITY))
answer = {"streamed": {"accuracy": train(large, distribution), "samples": large.dataset_info.samples}}
try:
    answer["whole"] = str(np.ones((large.dataset_info.samples, 21), np.float32).nbytes)
except MemoryError as error:
    answer["whole"] = f"MemoryError: {error}"
print(json.dumps(answer), flush=True)
