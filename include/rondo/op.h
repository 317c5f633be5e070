// rondo/op.h — ops one by one: prepared once for fixed shapes, launched on any stream.
//
//   const rondo_tensor shapes[] = {{.dtype = RONDO_DTYPE_F32, .shape = {2, {8, 16}}},
//                                  {.dtype = RONDO_DTYPE_F32, .shape = {2, {16, 4}}}};
//   rondo_op_prepare(device, "MatMul", NULL, shapes, 2, 1, &op);
//   rondo_op_put(op, stream, inputs, 2, &output, 1);      // eager, or a node of a capture
//
// The same kernels that executors use, without a program around them: for code that decides in C
// what comes next.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_H
#define RONDO_OP_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/builder.h"
#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_op rondo_op;

typedef struct rondo_op_options {
    size_t struct_size;  // sizeof(rondo_op_options)
    const char *domain;  // NULL or "" for ai.onnx
    int32_t version;     // of the domain; 0: 21 for ai.onnx, 3 for ai.onnx.ml, 1 for others
    const rondo_attribute *attributes;  // no bodies
    size_t attribute_count;
    uint64_t seed;  // for an op that draws random numbers
} rondo_op_options;

// Prepares an op of docs/operators.md for a device and shapes: looks at types and shapes, compiles,
// packs what is constant.
//
// name       "MatMul".
// inputs     dtype and shape of each; dtype NONE: left out. One with data is a constant, in host
//            memory, which is copied; inputs whose values decide shapes must be (the shape of a
//            Reshape, say).
// output_count  how many are wanted.
//
// Errors:    INVALID (more than 65536 inputs or outputs), UNSUPPORTED (op, version, attribute or
//            dtype; no kernel on this device; control flow, strings and sequences; an output whose
//            shape depends on data), BAD_DATA (inputs that do not fit), NO_DEVICE_MEMORY.
// Capture:   unsafe.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_prepare(rondo_device *device, const char *name,
                                                       const rondo_op_options *options,
                                                       const rondo_tensor *inputs,
                                                       size_t input_count, size_t output_count,
                                                       rondo_op **out_op);

// Waits for its eager launches and frees the op. Graphs that recorded it keep what they need.
RONDO_API void rondo_op_destroy(rondo_op *op);

// Dtype and shape of an output; no data.
//
// Errors:    INVALID (index).
RONDO_API RONDO_MUST_USE rondo_status rondo_op_get_output(const rondo_op *op, size_t index,
                                                          rondo_tensor *out_description);

// Puts the op on the stream, or records it.
//
// inputs     as many as were prepared; constants and those left out are not looked at. The others
//            have the dtype and shape that were prepared, and lie on the op's device, at multiples
//            of 256 bytes; on the host device anywhere in host memory.
// outputs    likewise, with data; they overlap neither an input nor each other.
//
// On a GPU no error reports data that the op does not allow: an index outside of its axis becomes
// the nearest inside, and a quotient by the integer 0 becomes 0.
//
// Errors:    INVALID (a tensor that does not fit, or overlaps: the message names it), UNSUPPORTED
//            (in a capture: an op that cannot be part of one).
// Ownership: tensors stay until the work is done; for a graph, as long as it is replayed. In a
//            capture that is not Rondo's, the op must outlive the graph.
// Capture:   recorded. If the op needs a workspace, the launches in one capture share it and run
//            one after another, also on several streams: the next has an edge from the last.
//            Launches in a body share a workspace of the body. A failure breaks it.
// Cost:      eagerly, what the kernel's launches cost; no wait, no heap use on the host.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_put(rondo_op *op, rondo_stream *stream,
                                                   const rondo_tensor *inputs, size_t input_count,
                                                   const rondo_tensor *outputs,
                                                   size_t output_count);

RONDO_EXTERN_C_END

#endif  // RONDO_OP_H
