// onnx/functions.c — see functions.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/functions.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    CALL_DEPTH_MAX = 32,          // functions that call functions
    INLINED_COUNT_MAX = 1 << 20,  // nodes that come out of functions, in all
};

static char *make_key(const char *domain, const char *name, const char *overload) {
    return rondo__strformat("%s:%s:%s", rondo__onnx_domain(domain), name,
                            overload != NULL ? overload : "");
}

// What an attribute is where a call leaves it out stands for itself.
static rondo_status check_defaults(const Onnx__FunctionProto *function) {
    for (size_t i = 0; i < function->n_attribute_proto; ++i) {
        const Onnx__AttributeProto *value = function->attribute_proto[i];
        if (value->name == NULL || value->name[0] == '\0') {
            return RONDO_FAIL(BAD_DATA, "function \"%.80s\": an attribute's default has no name",
                              function->name);
        }
        if (value->ref_attr_name != NULL && value->ref_attr_name[0] != '\0') {
            return RONDO_FAIL(BAD_DATA,
                              "function \"%.80s\": the default of attribute \"%.64s\" refers to "
                              "another attribute",
                              function->name, value->name);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__importer_index_functions(rondo__importer *importer) {
    const Onnx__ModelProto *model = importer->model;
    if (model->n_functions == 0) {
        return RONDO_STATUS_OK;
    }
    importer->function_keys = rondo__calloc(model->n_functions, sizeof(*importer->function_keys));
    importer->function_bytes = rondo__calloc(model->n_functions, sizeof(*importer->function_bytes));
    if (importer->function_keys == NULL || importer->function_bytes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < model->n_functions; ++i) {
        const Onnx__FunctionProto *function = model->functions[i];
        if (function->name == NULL) {
            return RONDO_FAIL(BAD_DATA, "function %zu has no name", i);
        }
        RETURN_IF_ERROR(check_defaults(function));
        importer->function_keys[i] = make_key(function->domain, function->name, function->overload);
        if (importer->function_keys[i] == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        bool is_new = false;
        RETURN_IF_ERROR(rondo__namemap_add(&importer->functions, importer->function_keys[i],
                                           (int32_t)i, &is_new));
        if (!is_new) {
            return RONDO_FAIL(BAD_DATA, "function \"%.80s\" stands there twice", function->name);
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__importer_free_functions(rondo__importer *importer) {
    for (size_t i = 0; importer->function_keys != NULL && i < importer->model->n_functions; ++i) {
        rondo__free(importer->function_keys[i]);
    }
    rondo__free(importer->function_keys);
    rondo__free(importer->function_bytes);
    importer->function_keys = NULL;
    importer->function_bytes = NULL;
    rondo__namemap_deinit(&importer->functions);
}

rondo_status rondo__importer_find_function(const rondo__importer *importer,
                                           const Onnx__NodeProto *call, int32_t *out_function) {
    *out_function = -1;
    if (importer->model->n_functions == 0) {
        return RONDO_STATUS_OK;
    }
    char *key = make_key(call->domain, call->op_type, call->overload);
    if (key == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_function = rondo__namemap_find(&importer->functions, key, -1);
    rondo__free(key);
    return RONDO_STATUS_OK;
}

// Maps the function's inputs to the caller's values.
static rondo_status bind_inputs(rondo__scope *inner, rondo__scope *caller) {
    const Onnx__FunctionProto *function = inner->function;
    const Onnx__NodeProto *call = inner->call;
    if (call->n_input > function->n_input) {
        return RONDO_FAIL(BAD_DATA, "passes %zu inputs to a function that takes %zu", call->n_input,
                          function->n_input);
    }
    for (size_t i = 0; i < function->n_input; ++i) {
        int32_t value = RONDO__VALUE_NONE;
        bool is_new = false;
        if (i < call->n_input && call->input[i] != NULL && call->input[i][0] != '\0') {
            RETURN_IF_ERROR(rondo__scope_resolve(caller, call->input[i], &value));
        }
        RETURN_IF_ERROR(rondo__namemap_add(&inner->names, function->input[i], value, &is_new));
        if (!is_new) {
            return RONDO_FAIL(BAD_DATA, "its function names the input \"%.64s\" twice",
                              function->input[i]);
        }
    }
    return RONDO_STATUS_OK;
}

// An output that is an input of the function as well: a node has to carry it over.
static rondo_status pass_through(rondo__scope *inner, int32_t from, int32_t to) {
    if (from == RONDO__VALUE_NONE) {
        return RONDO_FAIL(BAD_DATA, "its function gives out an input that is absent");
    }
    return rondo__program_add_simple(inner->program, "", "Identity", NULL, &from, 1, &to, 1);
}

static rondo_status bind_outputs(rondo__scope *inner, rondo__scope *caller) {
    const Onnx__FunctionProto *function = inner->function;
    const Onnx__NodeProto *call = inner->call;
    if (call->n_output > function->n_output) {
        return RONDO_FAIL(BAD_DATA, "takes %zu outputs of a function that makes %zu",
                          call->n_output, function->n_output);
    }
    for (size_t i = 0; i < call->n_output; ++i) {
        int32_t value = RONDO__VALUE_NONE;
        bool is_new = false;
        if (call->output[i] == NULL || call->output[i][0] == '\0') {
            continue;  // declared like an inner value, and not used outside
        }
        RETURN_IF_ERROR(rondo__scope_resolve(caller, call->output[i], &value));
        RETURN_IF_ERROR(rondo__namemap_add(&inner->names, function->output[i], value, &is_new));
        if (!is_new) {
            int32_t from =
                rondo__namemap_find(&inner->names, function->output[i], RONDO__VALUE_NONE);
            RETURN_IF_ERROR(pass_through(inner, from, value));
        }
    }
    return RONDO_STATUS_OK;
}

// What a function's nodes and attributes take in the program, once for each call. Their tensors are
// counted when they are read.
static rondo_status count_inlined(rondo__importer *importer, int32_t index) {
    enum { UNPACKED_FACTOR = 8 };  // one byte of a packed list of integers is eight in the program
    size_t *bytes = &importer->function_bytes[index];
    if (*bytes == 0) {
        *bytes = UNPACKED_FACTOR *
                 protobuf_c_message_get_packed_size(&importer->model->functions[index]->base);
    }
    return rondo__budget_take(importer->budget, RONDO__OWNER_TENSOR, *bytes)
               ? RONDO_STATUS_OK
               : RONDO_STATUS_NO_MEMORY;
}

rondo_status rondo__function_enter(rondo__importer *importer, rondo__scope *scope,
                                   const Onnx__NodeProto *call, int32_t index,
                                   rondo__scope *out_inner) {
    const Onnx__FunctionProto *function = importer->model->functions[index];
    *out_inner = (rondo__scope){
        .parent = scope,
        .program = scope->program,
        .oddities = scope->oddities,
        .depth = scope->depth,
        .call_depth = scope->call_depth + 1,
        .opset_count = function->n_opset_import,
        .opsets = function->opset_import,
        .function = function,
        .call = call,
    };
    if (scope->call_depth >= CALL_DEPTH_MAX) {
        return RONDO_FAIL(BAD_DATA, "functions call each other more than %d deep", CALL_DEPTH_MAX);
    }
    // Functions that call functions can make exponentially many nodes of a small file.
    if (function->n_node >= INLINED_COUNT_MAX - importer->inlined_count) {
        return RONDO_FAIL(BAD_DATA, "functions come to more than %d nodes", INLINED_COUNT_MAX);
    }
    importer->inlined_count += function->n_node + 1;
    RETURN_IF_ERROR(count_inlined(importer, index));
    RETURN_IF_ERROR(bind_inputs(out_inner, scope));
    return bind_outputs(out_inner, scope);
}
