// onnx/functions.h — functions that a model brings along. They are written out in place of each
// call: their nodes go into the caller's program, under names of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "onnx/importer.h"
#include "onnx/scope.h"

RONDO_MUST_USE rondo_status rondo__importer_index_functions(rondo__importer *importer);
void rondo__importer_free_functions(rondo__importer *importer);
// *out_function is the index in model->functions of the function that the node calls, by domain,
// name and overload; -1 when the model has no such function.
RONDO_MUST_USE rondo_status rondo__importer_find_function(const rondo__importer *importer,
                                                          const Onnx__NodeProto *call,
                                                          int32_t *out_function);
// Makes the scope in which function `index` is written out for `call`, which stands in `scope`: its
// inputs and outputs are the caller's values.
//
// Errors:    BAD_DATA, NO_MEMORY.
// Ownership: out_inner->names is the caller's, to be freed with rondo__namemap_deinit, also after a
//            failure.
// Threads:   one thread per importer.
RONDO_MUST_USE rondo_status rondo__function_enter(rondo__importer *importer, rondo__scope *scope,
                                                  const Onnx__NodeProto *call, int32_t index,
                                                  rondo__scope *out_inner);
