"""Asynchronous training: workers step each on their own, servers keep the weights, a chief deals out the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.contract.problems import Problem
from workers.contract.spec import Training

if TYPE_CHECKING:
    from workers.training.servers.coordinated import Coordinated

title = "Parameter server"
summary = (
    "Asynchronous: workers step each on their own with their share of the global batch, parameter servers keep the "
    "weights. Steps count over all workers. A lost worker does not end the job. Data that stays on disk is read by the "
    "chief, which sends each step its examples."
)

SHARD_BYTES = 256 * 1024


class Options(_Options):
    """How many processes of each role, and where weights and steps go."""

    workers: int = Field(
        2, ge=1, le=64, title="Workers", description="Processes that compute, each on one device and each on its own."
    )
    parameter_servers: int = Field(
        1, ge=1, le=64, title="Parameter servers", description="Processes that keep the weights; they need no device."
    )
    partitioner: Literal["none", "min_size", "fixed_shards"] = Field(
        "none",
        title="Partitioner",
        description="Splits each large weight (min_size: 256 KiB a part at least) or every one (fixed_shards) over the "
        "parameter servers; none deals out whole ones in turn.",
    )
    in_flight: int = Field(
        2,
        ge=1,
        le=16,
        title="Closures in flight",
        description="Dealt out ahead for each worker, each of several steps where they are quick: more hide the way to "
        "it, fewer are under way when the job pauses or a worker is lost.",
        json_schema_extra={"advanced": True},
    )
    device_type: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device type", description="Of the workers. Auto takes GPUs where there are enough, else CPUs."
    )


def layout(options: Options) -> Layout:
    """Chief and parameter servers without a device, workers with one each; the job outlives each but the last."""
    alone = options.workers == 1
    workers = (
        ProcessShape(index=index, kind=options.device_type, devices=1, essential=alone)
        for index in range(options.workers)
    )
    servers = (
        ProcessShape(role="ps", index=index, devices=0, computes=False) for index in range(options.parameter_servers)
    )
    chief = ProcessShape(role="chief", devices=0, computes=False)
    return Layout(processes=(chief, *workers, *servers), asynchronous=True)


def check_training(options: Options, training: Training) -> list[Problem]:
    """XLA cannot reach weights in other processes, and workers cannot agree on a loss scale."""
    problems = []
    if training.jit:
        message = "cannot compile a step whose weights live on parameter servers"
        problems.append(Problem("jit", message, True, "Switch it off, or use another strategy"))
    if training.mixed_precision == "float16":
        message = "needs a loss scale that all workers agree on, and these step each on their own"
        problems.append(Problem("mixed_precision", message, "float16", "Use bfloat16 or none"))
    if training.learning_rate_scaling == "linear" and options.workers > 1:
        message = "is for steps that grow with the workers, and here each worker steps on its own share"
        problems.append(Problem("learning_rate_scaling", message, "linear", "Use none"))
    if training.aggregation.method == "local":
        message = "adds up micro-batches before replicas talk, and these workers never wait for one another"
        problems.append(Problem("aggregation.method", message, "local", "Use mean or sum, and a larger global batch"))
    if training.clip is not None and training.clip.norm is not None and options.partitioner != "none":
        message = "is the norm of a whole variable, and the partitioner splits variables"
        problems.append(Problem("clip.norm", message, training.clip.norm, "Use global_norm, or partitioner none"))
    return problems


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.ParameterServerStrategy, in the chief; waits until all others listen. Raises PeerLost."""
    import tensorflow as tf

    from workers.training.servers.roll_call import RollCall

    # TensorFlow itself gives up on a server that comes late.
    RollCall(place).wait_for_all()
    partitioners = tf.distribute.experimental.partitioners
    servers = options.parameter_servers
    chosen = {
        "none": None,
        "min_size": partitioners.MinSizePartitioner(min_shard_bytes=SHARD_BYTES, max_shards=servers),
        "fixed_shards": partitioners.FixedShardsPartitioner(num_shards=servers),
    }[options.partitioner]
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=chosen)


def Adapter(strategy: Any, place: Place) -> Coordinated:
    """The chief's way to work with it. Not the class itself, whose module needs what only training hosts have."""
    from workers.training.servers.coordinated import Coordinated

    return Coordinated(strategy, place)
