"""What a training process finds in its environment: what TensorFlow needs, and none of the host's secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from workers.contract.layout import ProcessAssignment
from workers.gang.leftovers import MARK

ROOT = Path(__file__).resolve().parent.parent.parent

ALLOWED = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SHELL",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "PYTHONHASHSEED",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "LOCKSTEP_OFFLINE", "KERAS_HOME", "SCIKIT_LEARN_DATA",
}  # fmt: skip
ALLOWED_PREFIXES = (
    "LC_", "TF_", "XLA_", "CUDA_", "NVIDIA_", "NCCL_", "OMP_", "MKL_", "KMP_", "OPENBLAS_", "GRPC_", "TPU_", "LIBTPU_",
    "MALLOC_",
)  # fmt: skip


def environment(
    process: ProcessAssignment, processes: tuple[ProcessAssignment, ...], run: Path, given: Mapping[str, str]
) -> dict[str, str]:
    """The environment of `process`, made from the allowed part of `given`."""
    env = {name: value for name, value in given.items() if name in ALLOWED or name.startswith(ALLOWED_PREFIXES)}
    env.pop("TF_CONFIG", None)
    env.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    env["PYTHONPATH"] = ":".join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
    # The working folder is the run folder: nothing there may shadow a module.
    env["PYTHONSAFEPATH"] = "1"
    env["PYTHONUNBUFFERED"] = "1"
    env["GRPC_FAIL_FAST"] = "use_caller"
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # NVML's order, by which the inventory numbers them
    env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, process.devices)) if process.kind == "gpu" else "-1"
    env[MARK] = str(run)
    if len(processes) > 1:
        env["TF_CONFIG"] = tf_config(process, processes)
    return env


def tf_config(process: ProcessAssignment, processes: tuple[ProcessAssignment, ...]) -> str:
    """TensorFlow's description of the cluster as `process` sees it; each role's tasks in the order of their index."""
    cluster: dict[str, list[str]] = {}
    for other in sorted(processes, key=lambda p: p.index):
        cluster.setdefault(other.role, []).append(f"{other.address}:{other.port}")
    return json.dumps({"cluster": cluster, "task": {"type": process.role, "index": process.index}})
