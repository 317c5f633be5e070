// tensor/elements.h — tensors whose elements are no numbers: strings, and tensors (sequences and
// optionals).
//
// Such elements hold addresses. So their bytes alone mean nothing: they never reach a device, and a
// copy also copies what they point to, or keeps its owner alive.
//
//   strings    one block:  elements | bytes of the 1st, 0 | bytes of the 2nd, 0 | ...
//   sequences  one block:  count | item | item | ...    each item has its own share of its bytes
//
// A tensor of these kinds is not written once it is made, so that sharing it is as good as a copy;
// only what comes from a caller or goes to one is copied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"
#include "rondo/tensor.h"

bool rondo__dtype_is_float(rondo_dtype dtype);       // f16, bf16, f32, f64
bool rondo__dtype_is_f32_or_f16(rondo_dtype dtype);  // what fused ops compute in
bool rondo__dtype_is_integer(rondo_dtype dtype);     // not bool
// Numbers, bool and narrow ones included: bytes that may lie anywhere.
bool rondo__dtype_is_plain(rondo_dtype dtype);
// Sequences and optionals.
bool rondo__dtype_is_nested(rondo_dtype dtype);

// A copy that shares nothing with `tensor`, of any element type.
//
// Errors:    INVALID, NO_MEMORY.
// Ownership: free *out_tensor with rondo_tensor_deinit.
RONDO_MUST_USE rondo_status rondo__tensor_copy(const rondo_tensor *tensor,
                                               rondo_tensor *out_tensor);

// A tensor that lives on when `tensor` goes: shares its bytes when it owns them, or copies them.
//
// Errors:    NO_MEMORY.
// Ownership: free *out_tensor with rondo_tensor_deinit.
RONDO_MUST_USE rondo_status rondo__tensor_keep(const rondo_tensor *tensor,
                                               rondo_tensor *out_tensor);

// Lets go of each tensor, then of the list. NULL is allowed.
void rondo__tensors_free(rondo_tensor *tensors, size_t count);

// Bytes of the elements and of what they point to.
uint64_t rondo__tensor_measure(const rondo_tensor *tensor);

// Replaces a string tensor, whose strings may lie anywhere, by one that owns them. On failure it is
// as before.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__tensor_own_strings(rondo_tensor *tensor);

// A sequence or optional of `count` empty items, which the caller fills (*out_items); what it
// filled when it gives up is freed with the tensor.
//
// Errors:    NO_MEMORY.
// Ownership: free *out_tensor with rondo_tensor_deinit; items belong to it.
RONDO_MUST_USE rondo_status rondo__nested_create(rondo_dtype dtype, size_t count,
                                                 rondo_tensor *out_tensor,
                                                 rondo_tensor **out_items);

// "ab" as a string; `text` is terminated and stays where it is.
rondo_string rondo__string_from_text(const char *text);
// Less than, equal to or greater than 0, byte by byte; a string comes before its continuations.
int rondo__string_compare(const rondo_string *a, const rondo_string *b);

// The name of the device that the tensor lies on, or "host memory".
const char *rondo__tensor_get_place(const rondo_tensor *tensor);
