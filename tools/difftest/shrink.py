# SPDX-License-Identifier: Apache-2.0

"""Makes a failing case smaller for as long as it fails in the same way."""
import numpy as np

from case import Case


def name_of(findings):
    """What must stay the same while shrinking."""
    return {(f.kind, f.oracle) for f in findings if not f.known}


def drop_outputs(case):
    for name in case.outputs:
        if len(case.outputs) > 1:
            smaller = case.copy()
            smaller.outputs.remove(name)
            yield smaller


def cut_graph(case):
    """Each value inside as the only output: the nodes behind it go."""
    for i, node in enumerate(case.nodes[:-1]):
        for name in node.outputs:
            if name:
                smaller = case.copy()
                smaller.outputs = [name]
                smaller.nodes = smaller.nodes[:i + 1]
                yield prune(smaller)


def skip_nodes(case):
    """A node whose output could as well be its first input."""
    if len(case.nodes) < 2:
        return
    for i, node in enumerate(case.nodes):
        if node.inputs and node.outputs and node.outputs[0] not in case.outputs:
            smaller = case.copy()
            del smaller.nodes[i]
            for other in smaller.nodes:
                other.inputs = [node.inputs[0] if name == node.outputs[0] else name
                                for name in other.inputs]
            yield prune(smaller)


def prune(case):
    wanted = set(case.outputs)
    nodes = []
    for node in reversed(case.nodes):
        if wanted & set(node.outputs):
            nodes.insert(0, node)
            wanted |= set(node.inputs)
    case.nodes = nodes
    case.feeds = {name: a for name, a in case.feeds.items() if name in wanted}
    case.constants = {name: a for name, a in case.constants.items() if name in wanted}
    return case


def drop_attributes(case):
    for i, node in enumerate(case.nodes):
        for name in node.attrs:
            smaller = case.copy()
            del smaller.nodes[i].attrs[name]
            yield smaller


def drop_inputs(case):
    for i, node in enumerate(case.nodes):
        for j in range(len(node.inputs) - 1, 0, -1):
            if node.inputs[j]:
                smaller = case.copy()
                smaller.nodes[i].inputs[j] = ""
                while smaller.nodes[i].inputs and smaller.nodes[i].inputs[-1] == "":
                    smaller.nodes[i].inputs.pop()
                yield prune(smaller)


def plain_form(case):
    if case.has_loose_shapes:
        smaller = case.copy()
        smaller.has_loose_shapes = False
        yield smaller
    for name in list(case.constants):
        smaller = case.copy()
        smaller.feeds[name] = smaller.constants.pop(name)
        yield smaller


def list_plain(case):
    """The arrays among what is given; sequences stay as they are."""
    given = {**case.feeds, **case.constants}
    return {name: value for name, value in given.items() if isinstance(value, np.ndarray)}


def cut_extents(case):
    """Every extent of one length becomes 1, or half, in all inputs at once; then in one."""
    arrays = list_plain(case)
    lengths = sorted({e for a in arrays.values() for e in a.shape if e > 1}, reverse=True)
    for length in lengths:
        for target in (1, length // 2, length - 1):
            if 0 < target < length:
                yield cut(case, list(arrays), length, target)
    for name, array in arrays.items():
        for axis, extent in enumerate(array.shape):
            for target in (1, extent - 1):
                if 0 < target < extent:
                    smaller = case.copy()
                    put(smaller, name, np.take(array, range(target), axis))
                    yield smaller


def cut(case, names, length, target):
    smaller = case.copy()
    for name in names:
        array = smaller.get_array(name)
        for axis, extent in enumerate(array.shape):
            if extent == length:
                array = np.take(array, range(target), axis)
        put(smaller, name, array)
    return smaller


def put(case, name, array):
    (case.feeds if name in case.feeds else case.constants)[name] = array


def simplify_values(case):
    for name, array in list_plain(case).items():
        if array.size == 0 or array.dtype == np.bool_ or array.dtype.kind in "iuO":
            continue
        for value in (0, 1):
            smaller = case.copy()
            put(smaller, name, np.full_like(array, value))
            if not np.array_equal(smaller.get_array(name), array):
                yield smaller
        wide = array.astype(np.float64)
        rounded = np.where(np.isfinite(wide), np.round(wide), wide).astype(array.dtype)
        if not np.array_equal(rounded, array, equal_nan=True):
            smaller = case.copy()
            put(smaller, name, rounded)
            yield smaller


STEPS = (cut_graph, skip_nodes, drop_outputs, drop_inputs, drop_attributes, plain_form, cut_extents,
         simplify_values)


def shrink(case, still_fails, tries=400):
    """The smallest case found. `still_fails(case)` runs it."""
    progress = True
    while progress and tries > 0:
        progress = False
        for step in STEPS:
            for smaller in step(case):
                tries -= 1
                if tries <= 0:
                    return case
                try:
                    fails = bool(smaller.nodes) and still_fails(smaller)
                except Exception:  # a case that cannot even be written down
                    fails = False
                if fails:
                    case, progress = smaller, True
                    break
    return case
