# SPDX-License-Identifier: Apache-2.0

"""When two arrays count as equal."""
import ml_dtypes
import numpy as np

# dtype: (relative to the element, relative to the largest element)
TOLERANCES = {np.dtype(np.float32): (2e-5, 2e-6), np.dtype(np.float64): (1e-9, 1e-11),
              np.dtype(np.float16): (4e-3, 1e-3), np.dtype(ml_dtypes.bfloat16): (2e-2, 8e-3)}
HALF_MODE = (4e-2, 2e-2)  # a model computed in half precision throughout
FLOATS = tuple(TOLERANCES)
LARGEST = {np.dtype(np.float32): 3.4e38, np.dtype(np.float64): 1.79e308, np.dtype(np.float16): 65504.0,
           np.dtype(ml_dtypes.bfloat16): 3.38e38}


def get_class(dtype):
    """floats, strings or whole numbers: what no evaluator may mix up."""
    return "float" if dtype in FLOATS else "string" if dtype == np.dtype(object) else "whole"


def find_bad(got, want, factor=1.0, floor=0.0, is_half_mode=False):
    """A mask of the elements that differ; shapes and dtypes are equal. Compared as
    not (difference <= tolerance), so that NaN is equal to nothing but NaN."""
    if got.dtype not in FLOATS:
        return np.asarray(got != want, bool)
    relative, absolute = HALF_MODE if is_half_mode else TOLERANCES[got.dtype]
    largest = 65504.0 if is_half_mode else LARGEST[got.dtype]
    smallest = 1e-4 if is_half_mode else 0.0 if got.dtype == np.float64 else 1e-43
    if got.dtype == np.float16:
        smallest = 2e-7
    elif got.dtype == np.dtype(ml_dtypes.bfloat16):
        smallest = 2e-40
    smallest = max(smallest, floor)
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(w[np.isfinite(w)])
    scale = float(finite.max()) if finite.size else 0.0
    with np.errstate(all="ignore"):
        close = np.abs(g - w) <= factor * (relative * np.abs(w) + absolute * scale) + smallest
    same = (np.isnan(g) & np.isnan(w)) | (g == w)
    # At the edge of the range one side may round to infinity.
    edge = (np.isinf(g) & (np.abs(w) > 0.98 * largest)) | (np.isinf(w) & (np.abs(g) > 0.98 * largest))
    edge &= np.signbit(g) == np.signbit(w)
    if is_half_mode:
        edge |= np.isinf(g) & (np.abs(w) > 3e4)
    return ~(close | same | edge)


def is_same(a, b):
    """Bit for bit, but for the payload of NaN."""
    if a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype in FLOATS:
        return bool(np.all((a == b) | ((a != a) & (b != b))))
    return bool(np.all(a == b))
