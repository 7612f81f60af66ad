"""Looks at a `.keras` file before anything loads it: the zip, and each class that its configuration names.

A `.keras` file is a zip of a JSON configuration and HDF5 weights. Loading it builds whatever the configuration names:
earlier versions of Keras were made to import modules, to run code and to read files by it (CVE-2025-1550,
CVE-2025-8747, CVE-2025-12058), so only listed classes of Keras pass. Nothing here imports Keras; what is inside of the
weights is looked at in the throw-away process (workers/sandbox/weights.py).
"""

from __future__ import annotations

import dataclasses
import json
import math
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from workers.contract.problems import Problem, SpecInvalid

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
LIMITS = {CONFIG: 8 * 2**20, METADATA: 64 * 2**10, WEIGHTS: 2 * 2**30}
"""Bytes of each part, unpacked."""
MAX_RATIO = 100
"""How much smaller than itself a part may be packed; weights hardly pack at all, a bomb a thousandfold."""
MAX_DEPTH, MAX_LAYERS = 64, 5000
SIGNATURE = b"\x89HDF\r\n\x1a\n"
AGAIN = "Save the model again with model.save('name.keras')"

_LAYERS = """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention
    AutoContrast Average AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Bidirectional
    CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D
    Discretization Dot Dropout ELU EinsumDense Embedding Equalization Flatten GRU GRUCell GaussianDropout
    GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D
    GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity
    InputLayer LSTM LSTMCell LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum
    MelSpectrogram Minimum MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN
    RandomBrightness RandomColorJitter RandomContrast RandomCrop RandomErasing RandomFlip RandomGaussianBlur
    RandomGrayscale RandomHue RandomInvert RandomPerspective RandomRotation RandomSaturation RandomSharpness
    RandomShear RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding
    STFTSpectrogram SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell Softmax SpatialDropout1D
    SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells Subtract TimeDistributed
    UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
"""
LAYERS = frozenset(_LAYERS.split())
REFUSED = {
    "Lambda": "holds a Lambda layer, which is code",
    "TFSMLayer": "holds a TFSMLayer, which loads a program from a path",
    "TorchModuleWrapper": "holds a TorchModuleWrapper, which unpickles code",
    "JaxLayer": "holds a JaxLayer, which is code",
    "FlaxLayer": "holds a FlaxLayer, which is code",
    "StringLookup": "holds a StringLookup, which can read files by its vocabulary",
    "IntegerLookup": "holds an IntegerLookup, which can read files by its vocabulary",
    "TextVectorization": "holds a TextVectorization, which can read files by its vocabulary",
    "function": "names a function of its own, which is code",
    "__lambda__": "holds a lambda, which is code",
}
WITHOUT = {
    "Lambda": "Use built-in layers or operations of keras.ops in its place",
    "StringLookup": "Do the lookup in the data, and let the model begin with numbers",
    "IntegerLookup": "Do the lookup in the data, and let the model begin with numbers",
    "TextVectorization": "Do the lookup in the data, and let the model begin with numbers",
}
"""What would help, where it is more than to build the model of listed layers."""
PARTS_OF_LAYERS = {
    "keras": "DTypePolicy Functional Model Sequential",
    "keras.models": "Functional Model Sequential",
    "keras.src.models.functional": "Functional",
    "keras.src.models.sequential": "Sequential",
    "keras.dtype_policies": "DTypePolicy",
    "keras.initializers": """
        Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer LecunNormal
        LecunUniform Ones Orthogonal OrthogonalInitializer RandomNormal RandomUniform STFTInitializer
        TruncatedNormal VarianceScaling Zeros
    """,
    "keras.regularizers": "L1 L1L2 L2 OrthogonalRegularizer",
    "keras.constraints": "MaxNorm MinMaxNorm NonNeg UnitNorm",
    "keras.optimizers": """Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer Muon Nadam
        RMSprop SGD""",
    "keras.optimizers.schedules": """CosineDecay CosineDecayRestarts ExponentialDecay InverseTimeDecay
        PiecewiseConstantDecay PolynomialDecay""",
    "keras.losses": """BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy CategoricalFocalCrossentropy
        CategoricalHinge CosineSimilarity Dice Hinge Huber KLDivergence LogCosh MeanAbsoluteError
        MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy
        SquaredHinge Tversky""",
    "keras.metrics": """AUC Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy CategoricalCrossentropy
        F1Score Mean MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError Precision R2Score Recall
        RootMeanSquaredError SparseCategoricalAccuracy SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy
        TopKCategoricalAccuracy""",
    "keras.src.ops.numpy": """
        Abs Absolute Add Average BroadcastTo Clip Concatenate Cos Divide Einsum Exp ExpandDims Flip Log
        Log1p Matmul Max Maximum Mean Min Minimum Moveaxis Multiply Negative Pad Power Prod Repeat Reshape
        Roll Sign Sin Split Sqrt Square Squeeze Stack Std Subtract Sum SwapAxes Take Tanh Tile Transpose
        TrueDivide Var Where GetItem
    """,
    "keras.src.ops.nn": """AveragePool BatchNorm Conv ConvTranspose DepthwiseConv Elu Gelu HardSigmoid HardSilu
        LayerNorm LeakyRelu LogSigmoid LogSoftmax MaxPool Moments Normalize OneHot Relu Relu6 Selu SeparableConv Sigmoid
        Silu Softmax Softplus Softsign""",
    "keras.src.ops.core": "Cast StopGradient",
}
ALLOWED: Mapping[str, frozenset[str]] = {
    "keras.layers": LAYERS,
    **{module: frozenset(names.split()) for module, names in PARTS_OF_LAYERS.items()},
}
"""By module: the classes that a configuration may name."""
VALUES = frozenset({"__keras_tensor__", "__tensor__", "__numpy__", "__tuple__", "__slice__", "__ellipsis__"})
"""Plain values that Keras writes as if they were classes."""


@dataclasses.dataclass(frozen=True)
class KerasFile:
    """What can be said without building the model. `inputs` is one example's shape, None where there are several."""

    keras_version: str
    layers: int
    inputs: tuple[int | None, ...] | None
    parameters: int
    """A lower bound: the weights of the commonest layers."""
    weight_bytes: int


def check(source: Path | IO[bytes]) -> KerasFile:
    """What is known of the file. Raises SpecInvalid with what is wrong with it, and OSError when it cannot be read."""
    try:
        with zipfile.ZipFile(source) as archive:
            _check_members(archive)
            config = _json(archive, CONFIG)
            metadata = _json(archive, METADATA)
            _check_weights(archive)
            weight_bytes = archive.getinfo(WEIGHTS).file_size
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        if isinstance(error, SpecInvalid):
            raise
        raise _refused("", "is torn or not a .keras file", None, AGAIN) from None
    layers = list(_classes(config, CONFIG))
    if len(layers) > MAX_LAYERS * 10:
        raise _refused(CONFIG, f"names more than {MAX_LAYERS * 10:,} objects", len(layers), "Make the model smaller")
    for path, found in layers:
        _check_class(path, found)
    parameters = sum(_parameters(found) for _, found in layers)
    if parameters > weight_bytes:
        message = f"asks for {parameters:,} weights, and the file holds {weight_bytes:,} bytes of them"
        raise _refused(CONFIG, message, None, AGAIN)
    return KerasFile(
        keras_version=str(metadata.get("keras_version", ""))[:40],
        layers=sum(found.get("module") == "keras.layers" for _, found in layers),
        inputs=_inputs(layers),
        parameters=parameters,
        weight_bytes=weight_bytes,
    )


def _check_members(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > 100:
        raise _refused("", "holds more files than a .keras file does", len(members), AGAIN)
    for member in members:
        _check_member(member)
    names = [member.filename for member in members]
    for name in LIMITS:
        if names.count(name) != 1:
            what = "holds no" if name not in names else "holds more than one"
            raise _refused("", f"is not a .keras file: it {what} {name}", None, AGAIN)


def _check_member(member: zipfile.ZipInfo) -> None:
    name = member.filename
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or ":" in name:
        raise _refused("", "holds a file that would leave its folder", name, AGAIN)
    if stat.S_ISLNK(member.external_attr >> 16):
        raise _refused("", "holds a link", name, AGAIN)
    if name not in LIMITS:
        remedy = "Save the model without layers that need files of their own" if name.startswith("assets") else AGAIN
        raise _refused("", "holds a file that no model of built-in layers needs", name, remedy)
    if member.flag_bits & 0x1:
        raise _refused("", "is encrypted", name, AGAIN)
    if member.file_size > LIMITS[name]:
        raise _refused(name, f"unpacks to more than {LIMITS[name] // 1024:,} KiB", member.file_size, AGAIN)
    if member.file_size > 2**16 and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        raise _refused(name, f"unpacks to more than {MAX_RATIO} times its size", member.file_size, AGAIN)


def _json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    with archive.open(name) as file:
        text = file.read(LIMITS[name] + 1)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _refused(name, "is not readable JSON", None, AGAIN) from None
    if not isinstance(data, dict):
        raise _refused(name, "is not a mapping", data, AGAIN)
    return data


def _check_weights(archive: zipfile.ZipFile) -> None:
    """Reads all of it, so that a torn file is refused here."""
    with archive.open(WEIGHTS) as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            raise _refused(WEIGHTS, "is not an HDF5 file", None, AGAIN)
        while file.read(2**20):
            pass


def _classes(value: object, path: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every mapping that names a class, with where it stands."""
    if depth > MAX_DEPTH:
        raise _refused(CONFIG, f"is nested more than {MAX_DEPTH} deep", None, AGAIN)
    if isinstance(value, dict):
        if "class_name" in value:
            yield path, value
        for key, one in value.items():
            yield from _classes(one, f"{path}.{key}", depth + 1)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _classes(one, f"{path}.{index}", depth + 1)


def _check_class(path: str, found: Mapping[str, Any]) -> None:
    name, module, registered = found["class_name"], found.get("module"), found.get("registered_name")
    if isinstance(name, str) and name in REFUSED:
        raise _refused(path, REFUSED[name], name, WITHOUT.get(name, "Build the model of built-in layers alone"))
    if module is None and registered is None and name in VALUES:
        return
    listed = isinstance(name, str) and isinstance(module, str) and name in ALLOWED.get(module, ())
    if not listed or registered not in (None, name):
        remedy = "Build the model of built-in layers, or upload a Python module"
        shown = registered if isinstance(registered, str) and ">" in registered else f"{module}.{name}"
        raise _refused(path, "names a class that is not one of the listed layers of Keras", shown, remedy)


def _inputs(layers: list[tuple[str, Mapping[str, Any]]]) -> tuple[int | None, ...] | None:
    found = [_config(one).get("batch_shape") for _, one in layers if one["class_name"] == "InputLayer"]
    shapes = [shape for shape in found if isinstance(shape, list) and all(_is_size(size) for size in shape[1:])]
    return tuple(shapes[0][1:]) if len(found) == len(shapes) == 1 else None


def _is_size(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _parameters(layer: Mapping[str, Any]) -> int:
    """A lower bound of what a layer allocates when it is built; 0 for what is not known."""
    config = _config(layer)
    shape = _mapping(layer.get("build_config")).get("input_shape")
    width = _whole(shape[-1]) if isinstance(shape, list) and shape else 1
    kernel = math.prod(_whole(size) for size in _list(config.get("kernel_size"))) or 1
    match layer["class_name"]:
        case "Dense":
            return width * _whole(config.get("units"))
        case "Embedding" | "ReversibleEmbedding":
            return _whole(config.get("input_dim")) * _whole(config.get("output_dim"))
        case "Conv1D" | "Conv2D" | "Conv3D" | "Conv2DTranspose" | "Conv1DTranspose" | "Conv3DTranspose":
            groups = max(1, _whole(config.get("groups")))
            return kernel * width // groups * _whole(config.get("filters"))
        case "LSTM" | "GRU" | "SimpleRNN" | "LSTMCell" | "GRUCell" | "SimpleRNNCell":
            return _whole(config.get("units")) * (_whole(config.get("units")) + width)
        case "BatchNormalization" | "LayerNormalization" | "GroupNormalization":
            return width
    return 0


def _config(layer: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(layer.get("config"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _refused(path: str, message: str, value: object, remedy: str) -> SpecInvalid:
    return SpecInvalid([Problem(path, message, value, remedy)])
