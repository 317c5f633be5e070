// rondo/onnx.h — ONNX files to programs and tensors, and programs to files. Hostile input is
// expected.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_ONNX_H
#define RONDO_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/program.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// Reads an ONNX model (opsets 9 to 28). Weights are mapped from the file where it allows that.
//
// External data must lie in the model's folder or below it; where the model is a symbolic link, the
// folder of the file itself counts as well.
//
// Where a model ends in ZipMap (as classifiers of scikit-learn do), ONNX gives out a list of
// dictionaries. Rondo gives the plain scores instead, a tensor [rows, classes] under the same name;
// rondo_port.labels of that output names the columns.
//
// Errors:    BAD_DATA (file, node and reason in the message), UNSUPPORTED ("unsupported: op NAME
//            version V (attribute A)"), UNAVAILABLE (file cannot be opened).
// Ownership: caller destroys *out_program. The file and its external data must not be changed while
//            the program lives: reading a mapped file that was cut raises SIGBUS.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_load_onnx(const char *path,
                                                              rondo_program **out_program);

typedef struct rondo_load_options {
    size_t struct_size;  // sizeof(rondo_load_options)
    // Of what the load itself takes: tensors that cannot be mapped, and what functions of the model
    // are written out into. 0: 1 GiB and 16 times the file, but no more than three quarters of this
    // machine's memory. Loading also takes up to 33 times the model's file without its tensors, and
    // 64 MiB, whatever the limit is.
    uint64_t memory_limit_bytes;
    // A model of an opset or IR version that came later is not refused: each op is read by its
    // newest known definition, with a warning. Where the later one differs, results do, too.
    bool allow_newer_opset;
} rondo_load_options;

// The same with options.
//
// Errors:    as rondo_program_load_onnx, NO_MEMORY (the limit is reached).
// Ownership: as rondo_program_load_onnx.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_load_onnx_with(
    const char *path, const rondo_load_options *options, rondo_program **out_program);

// The same from memory, copied or parsed before the call returns. External data is refused.
//
// Errors:    BAD_DATA, UNSUPPORTED.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_parse_onnx(const void *bytes, size_t byte_count,
                                                               rondo_program **out_program);

// The same with options.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY (the limit is reached).
RONDO_API RONDO_MUST_USE rondo_status
rondo_program_parse_onnx_with(const void *bytes, size_t byte_count,
                              const rondo_load_options *options, rondo_program **out_program);

// One op type that Rondo cannot run: `count` nodes have it. `op` is "" for the ops, taken together,
// that Rondo has, but not for the version of the opset that the model imports.
typedef void (*rondo_unsupported_function)(void *user_data, const char *domain, const char *op,
                                           int64_t version, const char *detail, size_t count);

// Calls `visit` once for each op type that Rondo cannot run, with the number of its nodes.
//
// Errors:    as rondo_program_load_onnx, less UNSUPPORTED.
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_list_unsupported(const char *path,
                                                                  rondo_unsupported_function visit,
                                                                  void *user_data);

// Writes a program as an ONNX file of IR version 8: one made in code, or one from a file, where
// functions of the file stand written out and Constant nodes have become initializers. The file is
// replaced as a whole, so a program may be saved over the file that it came from.
//
// Errors:    UNSUPPORTED (more than 2 GiB in all, since weights stand in the file itself; two
//            versions of one domain, which a model with functions may have; an empty Optional,
//            whose type was not kept; an op of Rondo's own, as ranks average with), UNAVAILABLE
//            (the file cannot be written).
// Threads:   safe while no call changes the program.
// Cost:      the file once more in memory.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_save_onnx(const rondo_program *program,
                                                              const char *path);

// Reads a serialized TensorProto (the input_N.pb and output_N.pb of ONNX test directories).
//
// Errors:    BAD_DATA, UNSUPPORTED (element type), UNAVAILABLE.
// Ownership: caller frees *out_tensor with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_load_onnx(const char *path,
                                                             rondo_tensor *out_tensor);

// Reads the value of an input or output of a program: a TensorProto, or a SequenceProto or
// OptionalProto where the port is one. Where the port has labels, which ONNX gives out as a
// sequence of maps, that becomes the tensor of scores [maps, labels].
//
// Errors:    BAD_DATA, UNSUPPORTED (element type; sequences of other things than tensors),
//            UNAVAILABLE.
// Ownership: caller frees *out_tensor with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_port_load_onnx(const rondo_port *port, const char *path,
                                                           rondo_tensor *out_tensor);

RONDO_EXTERN_C_END

#endif  // RONDO_ONNX_H
