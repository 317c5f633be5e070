// rondo_index.cuh - indices that come from data. Negative ones count from the end; one still out of range
// is clamped, so that hostile data never reads or writes outside of a tensor, and told of.
// SPDX-License-Identifier: Apache-2.0

__device__ __forceinline__ i64 wrap_index(i64 index, i64 extent, const faults &told) {
    if (index < 0) {
        index += extent;
    }
    if (index >= 0 && index < extent) {
        return index;
    }
    told.tell();
    return index < 0 ? 0 : extent - 1;
}
