"""ONNX models: a tree ensemble, and the pipeline of operators in front of it.

A graph has one operator of trees (:mod:`.onnx_trees`). What comes before it is followed column by
column, like the steps of a scikit-learn pipeline (:mod:`.onnx_steps`); what follows may only name
and pack predictions. Decisions are those of ONNX Runtime:

- two classes, one sum: class 1 iff the sum is above 0, or above 1/2 if no leaf is negative (also if
  the sum goes through the logistic function);
- two classes, a sum each: class 1 iff its sum is above 0;
- more classes: the largest sum, the first one of equals.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import MissingExtraError, ModelFormatError, UnsupportedModelError, XCountError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.loaders import files, meaning, onnx_steps, onnx_trees, splits
from xcount.model.loaders.meaning import Meaning
from xcount.model.loaders.onnx_trees import TreeNodes
from xcount.model.loaders.pipelines.origins import Origin, Origins
from xcount.model.loaders.pipelines.pull_back import pulled_back
from xcount.model.loaders.pipelines.stages import Stage
from xcount.model.loaders.pipelines.trace import Column, Layer, Trace

_TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_AFTER = frozenset({"Cast", "Identity", "ZipMap", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_KEEPS = frozenset({"Identity", "Reshape", "Flatten"})
_FLOATS = (1, 11)
_MOST_CATEGORIES = 10_000
_TYPES = {1: "float32", 11: "float64", 6: "int64", 7: "int64", 8: "text"}
"""ONNX's numbers of the types of tensors that columns may have."""


def from_bytes(data: bytes, where: str) -> Ensemble:
    """Read the content of an ONNX file."""
    return replace(_read(_parsed(data, where), where), format="onnx")


def from_live(model: Any) -> Ensemble:
    """Return the ensemble of an ``onnx.ModelProto``."""
    if not hasattr(model, "SerializeToString"):
        raise UnsupportedModelError(
            f"a live {type(model).__name__}: pass the path of the ONNX file, or an onnx.ModelProto"
        )
    return _read(model, type(model).__name__)


def raw_predictions(model_or_path: Any, rows: ArrayLike, *_: Any) -> NDArray[np.float64]:
    """Return ONNX Runtime's own sums, before what makes predictions of them."""
    graph = _graph(model_or_path)
    scores = graph.run_trees(np.atleast_2d(np.asarray(rows, dtype=np.float64)))
    n_outputs = graph.ensemble.n_outputs
    return scores[:, -1:] if n_outputs == 1 else scores


def classified(
    model_or_path: Any, rows: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return the classes that ONNX Runtime predicts, and their probabilities."""
    return _graph(model_or_path).run(rows)


def _graph(model_or_path: Any) -> _Graph:
    if isinstance(model_or_path, str | os.PathLike):
        file = files.read(model_or_path)
        return _Graph(_parsed(file.data, file.path), file.path)
    return _Graph(model_or_path, type(model_or_path).__name__)


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"reading ONNX models needs {name}: pip install 'xcount[onnx]'"
        ) from None


def _parsed(data: bytes, where: str) -> Any:
    onnx = _imported("onnx")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # whatever a hostile file makes the parser raise
        raise ModelFormatError(f"{where}: a damaged ONNX file: {_first_line(error)}") from None
    return model


def _read(model: Any, where: str) -> Ensemble:
    try:
        return _Graph(model, where).ensemble
    except XCountError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFormatError(f"{where}: a damaged ONNX model: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


@dataclass(frozen=True, eq=False)
class _Typed:
    """Columns on their way to the trees, and the type of their tensor."""

    layer: Layer
    dtype: str


@dataclass(eq=False)
class _Graph:
    """A model on its way to an ensemble."""

    model: Any
    where: str

    @cached_property
    def constants(self) -> dict[str, NDArray[Any]]:
        found = {t.name: self._array(t) for t in self.model.graph.initializer}
        for node in self.model.graph.node:
            if node.op_type == "Constant":
                found[node.output[0]] = np.asarray(self.attributes(node).get("value"))
        return found

    def _array(self, tensor: Any) -> NDArray[Any]:
        """Return the numbers of a tensor; refuse one that names another file."""
        if tensor.data_location == tensor.EXTERNAL or tensor.external_data:
            raise UnsupportedModelError(
                f"{self.where}: the numbers of {tensor.name!r} are in another file; save the model "
                "as one file: onnx.save(onnx.load(path), path)"
            )
        found: NDArray[Any] = _imported("onnx.numpy_helper").to_array(tensor)
        return found

    @cached_property
    def inputs(self) -> list[Any]:
        return [i for i in self.model.graph.input if i.name not in self.constants]

    @cached_property
    def trees_node(self) -> Any:
        found = [node for node in self.model.graph.node if node.op_type in _TREES]
        if len(found) != 1:
            kinds = ", ".join(sorted({node.op_type for node in self.model.graph.node})[:8])
            raise UnsupportedModelError(
                f"{self.where}: an ONNX model with {len(found)} tree operators (it has: {kinds}); "
                "XCount reads those with one"
            )
        return found[0]

    def attributes(self, node: Any) -> dict[str, Any]:
        """Return the attributes of an operator as Python and NumPy values."""
        onnx, found = _imported("onnx"), {}
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if isinstance(value, onnx.TensorProto):
                value = self._array(value)
            elif isinstance(value, bytes):
                value = value.decode()
            elif isinstance(value, list) and value and isinstance(value[0], bytes):
                value = [text.decode() for text in value]
            found[attribute.name] = value
        return found

    @cached_property
    def widths(self) -> list[int]:
        """The number of columns of each input."""
        found = []
        for given in self.inputs:
            sizes = [d.dim_value for d in given.type.tensor_type.shape.dim]
            width = sizes[1] if len(sizes) == 2 else 0
            if width == 0 and len(self.inputs) == 1:
                width = self._widest()
            if width <= 0:
                raise UnsupportedModelError(
                    f"{self.where}: the input {given.name!r} has the shape {sizes}; expected a "
                    "table with a known number of columns"
                )
            found.append(splits.check_feature_count(self.where, width))
        return found

    def _widest(self) -> int:
        """Return how many columns trees on the input itself need."""
        features = self.attributes(self.trees_node).get("nodes_featureids", [0])
        is_direct = self.trees_node.input[0] == self.inputs[0].name
        return int(max(features)) + 1 if is_direct else 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        names: list[str] = []
        for given, width in zip(self.inputs, self.widths, strict=True):
            several = splits.default_names(width)
            if len(self.inputs) > 1:
                several = [f"{given.name}_{i}" for i in range(width)]
            names += [given.name] if width == 1 and len(self.inputs) > 1 else several
        return tuple(names)

    def dtype_of(self, given: Any) -> str:
        """Return the type of an input."""
        number = given.type.tensor_type.elem_type
        if number not in _TYPES:
            raise UnsupportedModelError(
                f"{self.where}: the input {given.name!r} is a tensor of another type than numbers "
                "and texts"
            )
        return _TYPES[number]

    @cached_property
    def trace(self) -> Trace:
        return Trace()

    def through(self, stage: Stage, layer: Layer) -> Layer:
        """Return the columns that a stage makes of columns."""
        self.trace.uses += [(column, stage, i) for i, column in enumerate(layer.columns)]
        made = [
            Column(layer.columns[source].source, layer.columns[source], stage, i)
            for i, source in enumerate(stage.sources)
        ]
        return Layer(tuple(made))

    @cached_property
    def tensors(self) -> dict[str, _Typed]:
        """The columns of each tensor, up to the one that the trees take."""
        found: dict[str, _Typed] = {}
        first = 0
        for given, width in zip(self.inputs, self.widths, strict=True):
            layer = Layer(tuple(map(Column, range(first, first + width))))
            dtype, first = self.dtype_of(given), first + width
            is_rounded = dtype in ("float32", "int64") and given.name != self.trees_node.input[0]
            if is_rounded:
                place = f"{self.where}: input {given.name!r}"
                layer = self.through(onnx_steps.cast(place, width, dtype), layer)
            found[given.name] = _Typed(layer, dtype)
        for node in self.model.graph.node:
            if node.op_type == "Constant":
                continue
            if node is self.trees_node or node.output[0] == self.trees_node.output[0]:
                break
            if all(name in found or name in self.constants for name in node.input if name):
                found[node.output[0]] = self._step(node, found)
        return found

    def _step(self, node: Any, found: dict[str, _Typed]) -> _Typed:
        """Return what an operator makes of its inputs."""
        place = f"{self.where}: operator {node.op_type}"
        given = [found[name] for name in node.input if name in found]
        constants = [self.constants[name] for name in node.input if name in self.constants]
        attributes = self.attributes(node)
        if not given:
            raise UnsupportedModelError(f"{place}: it takes no column")
        first, width = given[0], len(given[0].layer.columns)
        if node.op_type in _KEEPS:
            if constants and int(np.ravel(constants[0])[-1]) not in (width, -1):
                raise UnsupportedModelError(f"{place}: it makes rows of other lengths")
            return first
        if attributes.get("axis", 0 if node.op_type == "Gather" else 1) not in (1, -1):
            raise UnsupportedModelError(f"{place} along the rows is not read")
        if node.op_type in ("Concat", "FeatureVectorizer"):
            if constants:
                raise UnsupportedModelError(f"{place} adds constant columns")
            columns = tuple(column for typed in given for column in typed.layer.columns)
            dtype = first.dtype if node.op_type == "Concat" else "float32"
            return _Typed(Layer(columns), dtype)
        if node.op_type in ("Gather", "ArrayFeatureExtractor"):
            return self._chosen(node, found, constants, place)
        if node.op_type in ("OneHotEncoder", "LabelEncoder"):
            return self._encoded(node.op_type, attributes, first, place)
        if first.dtype == "text":
            raise UnsupportedModelError(f"{place} of texts is not read")
        if node.op_type == "Cast":
            dtype = _TYPES.get(int(attributes["to"]), "text")
            if dtype == "text":
                raise UnsupportedModelError(f"{place} to texts is not read")
            return _Typed(self.through(onnx_steps.cast(place, width, dtype), first.layer), dtype)
        stage = self._number_stage(node, attributes, constants, first, place)
        return _Typed(self.through(stage, first.layer), first.dtype)

    def _chosen(
        self, node: Any, found: dict[str, _Typed], constants: Sequence[Any], place: str
    ) -> _Typed:
        """Return some of the columns; refuse an operator that looks them up in a table."""
        if node.input[0] not in found:
            raise UnsupportedModelError(f"{place}: it looks values up in a table")
        first = found[node.input[0]]
        chosen = [int(i) for i in np.ravel(constants[0])]
        return _Typed(first.layer.chosen(chosen), first.dtype)

    def _number_stage(
        self,
        node: Any,
        attributes: dict[str, Any],
        constants: Sequence[Any],
        first: _Typed,
        place: str,
    ) -> Stage:
        """Return the stage of an operator on numbers."""
        width, kind = len(first.layer.columns), node.op_type
        if kind == "Scaler":
            offset, scale = (np.array(attributes[name]) for name in ("offset", "scale"))
            return onnx_steps.scaler(place, offset, scale, width)
        if kind == "Imputer" and "imputed_value_floats" in attributes:
            replaced = float(attributes.get("replaced_value_float", 0.0))
            fills = np.array(attributes["imputed_value_floats"])
            return onnx_steps.imputer(place, fills, replaced, width)
        if kind == "Binarizer":
            return onnx_steps.binarizer(place, float(attributes.get("threshold", 0.0)), width)
        is_first = node.input[0] not in self.constants
        is_known = kind in ("Add", "Sub", "Mul", "Div") and len(constants) == 1 and is_first
        if is_known and constants[0].shape in ((), (1,), (1, 1), (width,), (1, width)):
            return onnx_steps.arithmetic(place, kind, constants[0], width, first.dtype)
        if kind == "Clip" and len(constants) == 2 and node.input[1]:
            return onnx_steps.clip(place, float(constants[0]), float(constants[1]), width)
        raise UnsupportedModelError(
            f"{place} cannot be pulled back to the inputs; read are Scaler, Imputer, encoders, "
            "casts, choices of columns, and arithmetic with constants. Ask about the model that "
            "was converted"
        )

    def _encoded(self, kind: str, attributes: dict[str, Any], first: _Typed, place: str) -> _Typed:
        """Return what an encoder of one column, or of each one alike, makes."""
        table: NDArray[np.float64]
        default: NDArray[np.float64] | None
        if not all(column.holds_categories for column in first.layer.columns):
            raise UnsupportedModelError(
                f"{place} takes numbers that other operators compute; read are encoders of the "
                "inputs themselves. Ask about the model that was converted"
            )
        if kind == "OneHotEncoder":
            keys = attributes.get("cats_strings") or attributes.get("cats_int64s") or []
            if len(keys) > _MOST_CATEGORIES:
                raise UnsupportedModelError(
                    f"{place}: {len(keys)} categories; at most {_MOST_CATEGORIES} are read"
                )
            default = np.zeros(len(keys)) if attributes.get("zeros", 1) else None
            dtype = "float32"
            table = np.eye(len(keys))
        else:
            keys = _listed(attributes, "keys", place)
            values = np.array(_listed(attributes, "values", place))
            if values.dtype.kind in "USO":
                raise UnsupportedModelError(f"{place}: it makes texts")
            table = values.astype(np.float64)[:, np.newaxis]
            dtype = "float32" if values.dtype.kind == "f" else "int64"
            name = "default_float" if dtype == "float32" else "default_int64"
            default = np.array([float(attributes.get(name, -1 if dtype == "int64" else 0.0))])
        made: list[Column] = []
        for column in first.layer.columns:
            stage = onnx_steps.Encoder(place, list(keys), table, default)
            made += self.through(stage, Layer((column,))).columns
        return _Typed(Layer(tuple(made)), dtype)

    @cached_property
    def taken(self) -> _Typed:
        """The columns that the trees take."""
        self._check_what_follows()
        name = self.trees_node.input[0]
        if name not in self.tensors:
            raise UnsupportedModelError(
                f"{self.where}: the input of its trees depends on no column"
            )
        return self.tensors[name]

    def _check_what_follows(self) -> None:
        """Refuse operators that change what the trees predict."""
        behind, sums = set(self.trees_node.output), {self.trees_node.output[-1]}
        for node in self.model.graph.node:
            if behind.intersection(node.input) and node is not self.trees_node:
                is_sum = bool(sums.intersection(node.input))
                if is_sum:
                    sums.update(node.output)
                is_rounded = node.op_type == "Cast" and is_sum
                is_rounded &= self.attributes(node).get("to") not in _FLOATS
                if node.op_type not in _AFTER or is_rounded:
                    raise UnsupportedModelError(
                        f"{self.where}: the operator {node.op_type} behind the trees changes what "
                        "they predict; ask about the model that was converted"
                    )
                behind.update(node.output)

    @cached_property
    def inner(self) -> Ensemble:
        """The trees, over the columns that they take."""
        dtype: splits.Dtype = "float64" if self.taken.dtype in ("float64", "int64") else "float32"
        n_columns = len(self.taken.layer.columns)
        nodes = onnx_trees.read(
            self.attributes(self.trees_node), n_columns, dtype, f"{self.where}: trees"
        )
        return _ensemble_of(nodes, n_columns, dtype, self.where)

    @cached_property
    def origins(self) -> dict[int, Origin]:
        finder = Origins(self.trace, self.taken.layer, self.inner)
        return {source: finder.origin(source, name) for source, name in enumerate(self.names)}

    @cached_property
    def ensemble(self) -> Ensemble:
        """The trees, over the columns of the graph's inputs."""
        columns = self.taken.layer.columns
        is_direct = all(column.parent is None for column in columns)
        if is_direct and [column.source for column in columns] == list(range(len(self.names))):
            named = zip(self.inner.features, self.names, strict=True)
            features = tuple(replace(feature, name=name) for feature, name in named)
            return replace(self.inner, features=features)
        ensemble = pulled_back(self.inner, columns, self.origins, zero_is_missing=False)
        return replace(ensemble, encoding=None)

    def _feeds(self, rows: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return rows of the ensemble's codes as the graph's inputs."""
        is_plain = all(not feature.is_categorical for feature in self.ensemble.features)
        feeds, first = {}, 0
        for given, width in zip(self.inputs, self.widths, strict=True):
            columns: list[NDArray[Any]] = [rows[:, i] for i in range(first, first + width)]
            if not is_plain:
                numbered = range(first, first + width)
                columns = [self.origins[i].values_of(rows[:, i]) for i in numbered]
            dtype: Any = self.dtype_of(given).replace("text", "object")
            number = given.type.tensor_type.elem_type
            dtype = "int32" if number == 6 else dtype
            feeds[given.name] = np.stack(columns, axis=1).astype(dtype)
            first += width
        return feeds

    def run(self, rows: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        """Return the labels that the whole graph predicts, and probabilities if there are any."""
        outputs = _session(self.model).run(None, self._feeds(rows))
        if len(outputs) == 1:
            return np.asarray(outputs[0]), None
        scores = outputs[1]
        if isinstance(scores, list):  # of ZipMap
            scores = [list(row.values()) for row in scores]
        table = np.asarray(scores, dtype=np.float64)
        return np.asarray(outputs[0]), table[:, 1:] if table.shape[1] == 2 else table

    def run_trees(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the trees as ONNX Runtime adds them."""
        onnx = _imported("onnx")
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        nodes = list(graph.node)
        place = next(i for i, node in enumerate(nodes) if node.op_type in _TREES)
        for attribute in nodes[place].attribute:
            if attribute.name == "post_transform":
                attribute.CopyFrom(
                    onnx.helper.make_attribute(
                        "post_transform", 0 if nodes[place].op_type == "TreeEnsemble" else "NONE"
                    )
                )
        kept = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes[: place + 1]]
        del graph.node[:]
        graph.node.extend(kept)
        del graph.output[:]
        is_double = self.taken.dtype == "float64" and kept[-1].op_type == "TreeEnsemble"
        graph.output.append(
            onnx.helper.make_tensor_value_info(kept[-1].output[-1], 11 if is_double else 1, None)
        )
        found = _session(model).run(None, self._feeds(rows))[0]
        return np.asarray(found, dtype=np.float64).reshape(len(rows), -1)


def _session(model: Any) -> Any:
    runtime = _imported("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _listed(attributes: dict[str, Any], name: str, place: str) -> Any:
    for kind in ("strings", "int64s", "floats", "tensor"):
        found = attributes.get(f"{name}_{kind}")
        if found is not None and len(found):
            return found
    raise ModelFormatError(f"{place}: {name} are missing")


def _ensemble_of(nodes: TreeNodes, n_columns: int, dtype: splits.Dtype, where: str) -> Ensemble:
    """Return the trees with what ONNX Runtime makes of their sums."""
    ensemble = Ensemble(
        features=tuple(
            Feature(name, can_be_missing=True) for name in splits.default_names(n_columns)
        ),
        trees=nodes.trees,
        base=_base(nodes, where),
        divisor=nodes.n_trees,
        input_dtype=dtype,
        format="onnx",
        class_labels=nodes.labels,
    )
    if nodes.labels is None:
        return meaning.numbers(nodes.n_outputs).put_on(_untransformed(ensemble, nodes, where))
    if len(nodes.labels) == 2:
        return _of_two_classes(ensemble, nodes)
    if len(nodes.labels) < 2:
        raise UnsupportedModelError(f"{where}: a classifier of {len(nodes.labels)} classes")
    known = {"NONE": "margin", "LOGISTIC": "sigmoid", "SOFTMAX": "softmax"}
    probability: Any = known.get(nodes.transform, "none")
    return Meaning("multiclass", None, probability).put_on(ensemble)


def _untransformed(ensemble: Ensemble, nodes: TreeNodes, where: str) -> Ensemble:
    if nodes.transform != "NONE":
        raise UnsupportedModelError(
            f"{where}: a regressor whose sums go through {nodes.transform}; ask about the model "
            "that was converted"
        )
    return ensemble


def _base(nodes: TreeNodes, where: str) -> tuple[float, ...]:
    if not nodes.base:
        return (0.0,) * nodes.n_outputs
    is_single = nodes.labels is not None and len(nodes.labels) == 2
    if len(nodes.base) == nodes.n_outputs and not is_single:
        return nodes.base
    if is_single and len(nodes.base) == 1:
        # ONNX Runtime adds it to the sum of class 0, which counts if class 1 has none of its own.
        return (nodes.base[0] if nodes.used == {0} else 0.0, 0.0)
    raise UnsupportedModelError(
        f"{where}: {len(nodes.base)} base values of {nodes.n_outputs} sums, whose meaning ONNX "
        "leaves open"
    )


def _of_two_classes(ensemble: Ensemble, nodes: TreeNodes) -> Ensemble:
    """Return the ensemble on the one sum that decides: class 1's, or the only one there is."""
    kept = 0 if nodes.used == {0} else 1
    trees = tuple(replace(tree, output=0) for tree in ensemble.trees if tree.output == kept)
    cutoff = 0.5 if len(nodes.used) == 1 and nodes.all_positive else 0.0
    probability: Any = {"NONE": "margin", "LOGISTIC": "sigmoid"}.get(nodes.transform, "none")
    meant = Meaning("binary", cutoff, probability)
    return meant.put_on(replace(ensemble, trees=trees, base=(ensemble.base[kept],)))
