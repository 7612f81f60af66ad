"""Builds residual networks and prints, as JSON, what each weighs: `residual.py CASES`, a list of [inputs, options]."""

import json
import sys

from workers.contract import catalog
from workers.contract.data import DatasetInfo

entry = catalog.find("model", "resnet")
built = []
for inputs, given in json.loads(sys.argv[1]):
    info = DatasetInfo(shape=inputs, classes=10, samples=1)
    model = entry.module.build_model(info, entry.parse(given))
    built.append({"parameters": model.count_params(), "outputs": list(model.output_shape), "dtype": model.output.dtype})
print(json.dumps({"built": built}))
