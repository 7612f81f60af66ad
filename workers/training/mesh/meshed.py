"""A DTensor mesh of batch x model devices: each weight and its optimizer slots exist once a row of it.

The model that Keras built stays whole in the host's memory: it gives the computation its structure and is what is
saved, brought up to date by `settle`. What is trained and evaluated are DVariables, split as layouts.py says, each part
on the devices of one column of the mesh; examples are split over its rows. The steps are written for whole tensors,
and DTensor puts in what the devices have to tell one another: the same maths as on one device.

The devices are of one process or of several. Each of these calls the same steps, gives and gets the parts of its own
devices, and keeps a whole model of its own in the host's memory.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract.assignment import Place
from workers.contract.events import ReplicaInfo
from workers.contract.spec import JobSpec
from workers.training.distribution import Distribution
from workers.training.evaluation import Evaluator
from workers.training.mesh.boundaries import ends_of, laid_out
from workers.training.mesh.layouts import WHOLE, Split, check_layers, splits_of
from workers.training.mesh.steps import MeshedEvaluator, MeshedPredictor, MeshedSteps
from workers.training.mesh.streamed import StreamedMeshEvaluator, StreamedMeshSteps
from workers.training.objective import Objective
from workers.training.streams.streaming import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH, MODEL = "batch", "model"


class Meshed(Distribution):
    """A tf.experimental.dtensor.Mesh. A replica is a row of it: devices that hold one copy of the model together."""

    def __init__(self, mesh: Any, place: Place) -> None:
        self.mesh = mesh
        self.replicas, self.local, self.processes = place.replicas, place.process.replicas, len(place.processes)
        self._numbers: list[int] = mesh.local_device_ids()
        self.weights: list[Any] = []
        self.statistics: list[Any] = []
        self.splits: list[Split] = []
        self._slots: list[Any] = []
        self._sum: Callable[[Any], Any] | None = None

    def scope(self) -> Any:
        """The host's memory."""
        import tensorflow as tf

        return tf.device("CPU:0")

    def optimizer(self, model: Any, make: Callable[[], Any]) -> Any:
        """Puts the model's variables on the mesh; the optimizer's own are split like the weights they belong to."""
        check_layers(model, training=False)
        self.splits = splits_of(model, self.mesh.dim_size(MODEL))
        with self._on_mesh() as layout_next:
            self.weights = [
                self._keep(*pair, layout_next) for pair in zip(model.trainable_variables, self.splits, strict=True)
            ]
            self.statistics = [self._keep(variable, WHOLE, layout_next) for variable in model.non_trainable_variables]
            optimizer = make()
            _let_slots_follow(optimizer, dict(zip(map(id, self.weights), self.splits, strict=True)), layout_next)
            optimizer.build(self.weights)
        self._slots = list(optimizer.variables)
        return optimizer

    def steps(self, model: Any, optimizer: Any, objective: Objective, spec: JobSpec) -> MeshedSteps:
        check_layers(model, training=True)
        kind = MeshedSteps if spec.dataset_info.files is None else StreamedMeshSteps
        return kind(self, model, optimizer, objective, spec)

    def evaluator(self, model: Any, objective: Objective, **arguments: Any) -> Evaluator:
        kind = StreamedMeshEvaluator if isinstance(arguments["split"], Stream) else MeshedEvaluator
        return kind(self, model, objective, **arguments)

    def predictor(self, model: Any, objective: Objective, *, scale: float) -> MeshedPredictor:
        return MeshedPredictor(self, model, objective, scale=scale)

    def settle(self, model: Any) -> None:
        """Copy every variable from the mesh."""
        with self.scope():
            for own, variable in zip(_all(model), (*self.weights, *self.statistics), strict=True):
                own.assign(self.read_whole(variable))

    def vary_dropout(self, model: Any) -> None:
        """Nothing to do: DTensor draws random numbers for whole tensors, so that no two rows share them."""

    def replica_info(self, place: Place) -> tuple[ReplicaInfo, ...]:
        """A line for each device of the mesh, with the bytes that it keeps."""
        devices = [(process, device) for process in place.processes for device in process.devices]
        # Splits are even, so that the devices of other processes keep what those of this one do.
        sizes = self.weight_bytes() * self.processes
        return tuple(
            ReplicaInfo(
                replica=number // self.mesh.dim_size(MODEL),
                process=process.name,
                device=f"{process.kind}:{device}",
                gauge="device" if process.kind == "gpu" else "process",
                weight_bytes=size,
            )
            for number, ((process, device), size) in enumerate(zip(devices, sizes, strict=True))
        )

    def weight_bytes(self) -> list[int]:
        """Bytes of weights, statistics and optimizer slots on each of this process's devices."""
        from tensorflow.experimental import dtensor

        totals = [0] * len(self._numbers)
        for variable in (*self.weights, *self.statistics, *self._slots):
            for number, part in enumerate(dtensor.unpack(_value(variable))):
                totals[number] += part.shape.num_elements() * part.dtype.size
        return totals

    def stand_ins(self, model: Any) -> dict[int, list[Any]]:
        """The variables of the mesh."""
        pairs = zip(_all(model), (*self.weights, *self.statistics), strict=True)
        return {id(own): [variable] for own, variable in pairs}

    def read_whole(self, variable: Any) -> NDArray[Any]:
        """A variable of the mesh (the model's own or one of the optimizer's) as one array; called by every process."""
        from tensorflow.experimental import dtensor

        value = _value(variable)
        if self.processes > 1:
            # Gathered on the devices, one variable at a time: no process could put the others' parts together.
            value = dtensor.relayout(value, dtensor.Layout.replicated(self.mesh, len(value.shape)))
            return np.asarray(dtensor.unpack(value)[0].numpy())
        whole: NDArray[Any] = np.empty(value.shape, value.dtype.as_numpy_dtype)
        layout = dtensor.fetch_layout(value)
        for number, part in enumerate(dtensor.unpack(value)):
            whole[self._place_of(number, whole.shape, layout.sharding_specs)] = part.numpy()
        return whole

    def assign_whole(self, variable: Any, value: NDArray[Any]) -> None:
        """Give a variable of the mesh its value; every device keeps its part of it."""
        from tensorflow.experimental import dtensor

        variable.assign(self.put(value, dtensor.fetch_layout(_value(variable)).sharding_specs))

    def put(self, value: Any, specs: Sequence[str] | None = None) -> Any:
        """A DTensor of an array, each axis split over the mesh's dimension in `specs`; whole everywhere without."""
        from tensorflow.experimental import dtensor

        array = np.asarray(value)
        layout = dtensor.Layout(list(specs or [dtensor.UNSHARDED] * array.ndim), self.mesh)
        places = (self._place_of(number, array.shape, layout.sharding_specs) for number in self._numbers)
        return dtensor.pack([np.ascontiguousarray(array[place]) if array.ndim else array for place in places], layout)

    def zeros_like(self, variable: Any) -> Any:
        """A DTensor of zeros that lies on the mesh as the value of a variable does."""
        from tensorflow.experimental import dtensor

        value = _value(variable)
        return self.put(np.zeros(value.shape, value.dtype.as_numpy_dtype), dtensor.fetch_layout(value).sharding_specs)

    def split_batch(self, value: Any) -> Any:
        """A DTensor of an array whose first axis is split over the rows of the mesh."""
        from tensorflow.experimental import dtensor

        return self.put(value, [BATCH, *[dtensor.UNSHARDED] * (np.ndim(value) - 1)])

    def summed(self, numbers: Sequence[float]) -> NDArray[np.float32]:
        """The sums of all processes' `numbers`; called by every process, outside of a tf.function."""
        import tensorflow as tf
        from tensorflow.experimental import dtensor

        own = np.asarray(numbers, np.float32)
        if self.processes == 1:
            return own
        if self._sum is None:
            self._sum = tf.function(lambda rows: tf.reduce_sum(rows, [0, 1]), autograph=False)
        # One of a process's devices speaks for it.
        parts = [own if number == self._numbers[0] else np.zeros_like(own) for number in self._numbers]
        layout = dtensor.Layout([BATCH, MODEL, dtensor.UNSHARDED], self.mesh)
        total = self._sum(dtensor.pack([part[None, None] for part in parts], layout))
        return np.asarray(dtensor.unpack(total)[0].numpy())

    def agree(self, fine: bool) -> bool:
        """Whether every process says so; returns when each of them has."""
        return bool(self.summed([float(fine)])[0] > self.processes - 0.5)

    def values(self) -> list[Any]:
        """The weights as they lie on the mesh. To be called inside a tf.function, as is `for_use`."""
        return [_value(variable) for variable in self.weights]

    def for_use(self, weights: Sequence[Any]) -> list[Any]:
        """`weights` for their layers: in parts where these compute in parts, else gathered."""
        from tensorflow.experimental import dtensor

        return [
            weight
            if split.in_parts or split.axis is None
            else dtensor.relayout(weight, dtensor.Layout.replicated(self.mesh, len(weight.shape)))
            for weight, split in zip(weights, self.splits, strict=True)
        ]

    def laid_out(self, model: Any) -> contextlib.AbstractContextManager[None]:
        """The model's layers take and give what boundaries.py says. To be entered inside a tf.function."""
        if self.mesh.dim_size(MODEL) == 1:
            return contextlib.nullcontext()
        splits = dict(zip(map(id, model.trainable_variables), self.splits, strict=True))
        return laid_out(ends_of(model, splits), self._laid)

    def whole_examples(self, value: Any) -> Any:
        """A batch shared by the rows, each example whole. To be called inside a tf.function."""
        return self._laid(value, None)

    def _laid(self, value: Any, axis: int | None) -> Any:
        """A tensor, its examples shared by the rows and another axis split over the columns; as it is if uneven."""
        import tensorflow as tf
        from tensorflow.experimental import dtensor

        if not tf.is_tensor(value) or not value.shape.rank:
            return value
        rank: int = value.shape.rank
        specs = [BATCH, *[dtensor.UNSHARDED] * (rank - 1)]
        if axis is not None:
            specs[axis] = MODEL
        layout = dtensor.Layout(specs, self.mesh)
        parts = [layout.num_shards(axis) for axis in range(rank)]
        even = all(not (size or 0) % part for size, part in zip(value.shape, parts, strict=True))
        return dtensor.relayout(value, layout) if even else value

    def _place_of(self, number: int, shape: Sequence[int], specs: Sequence[str]) -> tuple[slice, ...]:
        """The part of a whole array that a device, by its number in the mesh, holds."""
        row, column = divmod(number, self.mesh.dim_size(MODEL))
        at = {BATCH: row, MODEL: column}
        place = []
        for size, spec in zip(shape, specs, strict=True):
            width = size // self.mesh.dim_size(spec) if spec in at else size
            place.append(slice(at.get(spec, 0) * width, (at.get(spec, 0) + 1) * width))
        return tuple(place)

    def _keep(self, variable: Any, split: Split, layout_next: Callable[[Split], None]) -> Any:
        """A Keras variable on the mesh with the value of one of the model."""
        import keras

        layout_next(split)
        # Keras names slots after this name, and paths hold slashes.
        name = variable.path.replace("/", "_")
        return keras.Variable(variable.numpy(), dtype=variable.dtype, trainable=variable.trainable, name=name)

    @contextlib.contextmanager
    def _on_mesh(self) -> Iterator[Callable[[Split], None]]:
        """TensorFlow variables made inside are DVariables. Yields what says how the next one is split, if it is."""
        import tensorflow as tf
        from tensorflow.experimental import dtensor

        following: list[Split] = []

        def creator(create: Any, **arguments: Any) -> Any:
            given = arguments["initial_value"]
            split = following.pop() if following else WHOLE
            with tf.device("CPU:0"):
                array = tf.convert_to_tensor(
                    given() if callable(given) else given, dtype=arguments.get("dtype")
                ).numpy()
            names = {name: arguments[name] for name in ("trainable", "name") if name in arguments}
            return dtensor.DVariable(self.put(array, _specs(array.ndim, split)), **names)

        with tf.variable_creator_scope(creator):
            yield following.append


def _let_slots_follow(optimizer: Any, splits: dict[int, Split], layout_next: Callable[[Split], None]) -> None:
    """What the optimizer keeps of a weight is split as the weight is."""
    add = optimizer.add_variable_from_reference

    def following(reference_variable: Any, *arguments: Any, **named: Any) -> Any:
        layout_next(splits[id(reference_variable)])
        return add(reference_variable, *arguments, **named)

    optimizer.add_variable_from_reference = following


def _specs(rank: int, split: Split) -> list[str]:
    """DTensor's words for a split."""
    from tensorflow.experimental import dtensor

    return [MODEL if axis == split.axis else dtensor.UNSHARDED for axis in range(rank)]


def _value(variable: Any) -> Any:
    """The DTensor in a Keras variable."""
    return variable.value.read_value()


def _all(model: Any) -> Iterator[Any]:
    return itertools.chain(model.trainable_variables, model.non_trainable_variables)
