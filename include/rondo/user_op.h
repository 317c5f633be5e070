// rondo/user_op.h — ops of the program's own, in ONNX models and in programs built in code.
//
//   static rondo_status infer(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
//                             rondo_tensor *outputs, size_t output_count) {
//       outputs[0] = inputs[0];                      // the same type and shape
//       return RONDO_STATUS_OK;
//   }
//   static rondo_status launch(rondo_op_node *node, const rondo_op_launch *l) {
//       ... rondo_stream_launch(l->stream, ...), or the program's own calls on
//           rondo_stream_get_native(l->stream), from l->inputs[i].data to l->outputs[i].data ...
//   }
//   rondo_op_definition definition = {.struct_size = sizeof definition,
//       .domain = "com.example", .name = "Blur", .input_min = 1, .input_max = 1, .output_min = 1,
//       .output_max = 1, .infer = infer, .compute = blur_in_c, .cuda = {.launch = launch}};
//   rondo_op_register(&definition);
//   rondo_program_load_onnx("model_with_blur.onnx", &program);
//
// An op is known from then on, in the whole process and until it ends: by its domain and name in
// models, and to rondo_builder_add_node. Its functions, strings and data stay in place as long.
// They may be called from any thread, for several executors at once.
//
// Whoever writes an op need not know of graphs. Unless it says whether it can be captured, that is
// tried: a launch that waits, allocates or fails in a capture is made between two graphs from then
// on, for the process, and the log says so. It must do the same work each time, on the addresses
// that it is given; one that does not says RONDO_OP_CAPTURE_NO.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_USER_OP_H
#define RONDO_USER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/builder.h"
#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// A node of the op, as its functions see it; valid during their call.
typedef struct rondo_op_node rondo_op_node;

// Says of each output what it will be: dtype and shape, of numbers. They come all zeroes.
//
// inputs     dtype NONE where one is left out. `data` is the value where it is known ahead, in host
//            memory; otherwise NULL. Inputs may be empty, and shapes may be guesses: the function
//            is asked what follows from others than those of a run.
// outputs    an extent of -1, or a rank of -1, is not known: it depends on data, or on a value that
//            rondo_op_need_value asked for. Only `compute` can make such outputs.
//
// Returns:   BAD_DATA or UNSUPPORTED, by rondo_op_fail, for inputs that do not fit.
typedef rondo_status (*rondo_op_infer_function)(rondo_op_node *node, const rondo_tensor *inputs,
                                                size_t input_count, rondo_tensor *outputs,
                                                size_t output_count);

// Computes the outputs in plain C, in host memory. It calls nothing of Rondo but what this header
// and rondo/tensor.h have.
//
// outputs    with the type and shape that `infer` said, and memory; dtype NONE: it is not used. One
//            whose shape depends on data has no data: the function makes it, with
//            rondo_tensor_init.
typedef rondo_status (*rondo_op_compute_function)(rondo_op_node *node, const rondo_tensor *inputs,
                                                  size_t input_count, rondo_tensor *outputs,
                                                  size_t output_count);

typedef int32_t rondo_op_capture;
enum {
    RONDO_OP_CAPTURE_UNKNOWN = 0,  // it is tried
    RONDO_OP_CAPTURE_YES = 1,      // a capture that fails at it is an error in RONDO_GRAPHS_ON
    RONDO_OP_CAPTURE_NO = 2,       // launched between two graphs, always
};

// A node that is about to be launched again and again with the same shapes.
typedef struct rondo_op_preparation {
    size_t struct_size;    // of the library's struct
    rondo_device *device;  // borrowed
    size_t input_count;
    const rondo_tensor *inputs;  // as for `infer`
    size_t output_count;
    const rondo_tensor *outputs;  // dtype NONE: not used; without data
    // What the function may set:
    void *state;               // the program's own, for launch and release
    size_t workspace_bytes;    // device memory needed during a launch
    rondo_op_capture capture;  // of this node; to begin with what the definition says
    const char *reason;        // why it is not captured; as long as the state
} rondo_op_preparation;

// One launch. All lies on the device, at addresses that stay the same where it is captured.
typedef struct rondo_op_launch {
    size_t struct_size;  // of the library's struct
    rondo_stream *stream;
    size_t input_count;
    const rondo_tensor *inputs;  // dtype NONE, data NULL: left out
    size_t output_count;
    const rondo_tensor *outputs;  // dtype NONE, data NULL: not used
    void *workspace;              // aligned to 256 bytes; shared with other ops; NULL for 0 bytes
    size_t workspace_bytes;
    void *state;  // of the preparation
} rondo_op_launch;

// How an op runs on a kind of device.
typedef struct rondo_op_kernel {  // ABI: fixed
    // Puts the work on the stream, and waits for nothing; NULL: there is no kernel.
    rondo_status (*launch)(rondo_op_node *node, const rondo_op_launch *launch);
    // (optional) Called once for each node and set of shapes, before the first launch. UNSUPPORTED:
    // the kernel is not for this node; `compute` is used.
    rondo_status (*prepare)(rondo_op_node *node, rondo_op_preparation *preparation);
    // (optional) Frees the state, when no launch runs any more. Also when it is NULL.
    void (*release)(void *data, void *state);
} rondo_op_kernel;

enum {
    // It gives another result each time, or does something beside: it is computed in every run,
    // also where its inputs are known ahead. (An op whose results are not used is left out.)
    RONDO_OP_IMPURE = 1u << 0,
};

typedef struct rondo_op_definition {
    size_t struct_size;  // sizeof(rondo_op_definition)
    const char *domain;  // the program's own, "com.example", or ONNX's for an op that is not there
    const char *name;
    int32_t version_min;  // of the domain; 0: from the first on
    int32_t version_max;  // 0: all later ones
    uint32_t input_min;   // how many inputs it takes, up to 254; more than `min` may be left out
    uint32_t input_max;
    uint32_t output_min;  // at least 1
    uint32_t output_max;
    const char *const *attributes;      // names that it understands, ended by NULL; NULL: any
    rondo_op_infer_function infer;      // required
    rondo_op_compute_function compute;  // NULL: there is no plain C; then a kernel is required
    rondo_op_kernel host;               // without a launch, `compute` is the kernel
    rondo_op_kernel cuda;               // without a launch, `compute` runs on the processor
    rondo_op_capture capture;           // of the two kernels; `compute` can always be captured
    uint32_t flags;                     // RONDO_OP_*
    void *data;                         // for rondo_op_get_data
} rondo_op_definition;

// Makes the op known. What it points to is not copied, but for the struct itself.
//
// Errors:    INVALID (a field is missing or out of range; the domain "rondo"; an op of ONNX's
//            domains that is there in some version; an op of this domain and name, with some
//            version in common, is there already).
// Threads:   any, also while programs are loaded and run. A model loaded earlier does not know it.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_register(const rondo_op_definition *definition);

// ---- for the functions of an op -----------------------------------------------------------------

// `data` of the definition.
RONDO_API void *rondo_op_get_data(const rondo_op_node *node);

// An attribute of the node; *out_attribute is all zeroes where it is not there. What it points to
// is borrowed from the node.
//
// Returns:   whether it is there.
RONDO_API bool rondo_op_get_attribute(const rondo_op_node *node, const char *name,
                                      rondo_attribute *out_attribute);

// Fails with a message, in front of which come the op's and the node's name.
//
// Returns:   `status`; for OK, which is no failure, INTERNAL.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_fail(const rondo_op_node *node, rondo_status status,
                                                    const char *message);

#if defined(RONDO_EXPERIMENTAL)

// The node's name in the model; never NULL.
RONDO_API const char *rondo_op_get_name(const rondo_op_node *node);

// Version of the op's domain in the model.
RONDO_API int32_t rondo_op_get_version(const rondo_op_node *node);

// Whether the executor was made for training (rondo/executor.h).
RONDO_API bool rondo_op_is_training(const rondo_op_node *node);

// For `infer`: an output's shape depends on the value of input `index`, whose data was NULL. A plan
// is then made for each value, where the input is small.
RONDO_API void rondo_op_need_value(rondo_op_node *node, size_t index);

#endif  // RONDO_EXPERIMENTAL

RONDO_EXTERN_C_END

#endif  // RONDO_USER_OP_H
