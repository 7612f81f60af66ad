"""One of two processes that hold two meshes together, one after the other: `mesh_pair.py FOLDER PLACES`, JSON by name.

The first mesh trains the case `weighted` and saves its state half-way; the second, of another shape, goes on from there
to the end. Prints JSON: of each mesh what exactness.py says of a strategy, the bytes on its devices, and the lines that
tell of these; whether the processes agree when one of them does not; a sum over both.
"""

import json
import sys
from pathlib import Path

from tensorflow.experimental import dtensor

from tests.workers.training.exactness import compared, engine
from workers.contract.assignment import Place
from workers.training import devices
from workers.training.distribution import connect
from workers.training.mesh.meshed import Meshed


def told_of(place, mesh):
    """What there is to tell of a mesh, once it has trained."""
    Path(place.run).mkdir(parents=True, exist_ok=True)
    trained = engine(place, mesh)
    mesh.meet()
    told = [(info.replica, info.process, info.device) for info in mesh.replica_info(place)]
    return compared(trained, place.spec, Path(sys.argv[1]) / "weighted.npz") | {
        "bytes": mesh.weight_bytes(),
        "told": told,
    }


first, second = (Place.model_validate(each) for each in json.loads(sys.argv[2]).values())
devices.configure(first)
mesh = connect(first)
answer = {"first": told_of(first, mesh)}
shape = second.spec.options_of("strategy").mesh
# A process joins DTensor's cluster once; meshes it may make as many as it likes.
dimensions = [("batch", shape.batch), ("model", shape.model)]
other = Meshed(dtensor.create_distributed_mesh(dimensions, device_type="CPU"), second)
answer["second"] = told_of(second, other)
answer["agreed"] = [other.agree(True), other.agree(second.chief)]
answer["sum"] = other.summed([second.process.index + 1.0]).tolist()
print(json.dumps({first.process.name: answer}), flush=True)
