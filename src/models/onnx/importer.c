// onnx/importer.c — see importer.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/importer.h"

#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/float_scope.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "onnx/file_kinds.h"
#include "onnx/functions.h"
#include "onnx/graphs.h"
#include "onnx/saved_variables.h"
#include "onnx/scope.h"
#include "onnx/wire.h"
#include "op/op.h"
#include "program/drawing.h"
#include "rondo/onnx.h"

// The versions of the file format that are understood, whatever the ops' versions.
enum { IR_VERSION_MIN = 1, IR_VERSION_MAX = 14 };

// What a load may take by default: this much, and so many times the file.
enum { LOAD_BYTES = 1 << 30, LOAD_FACTOR = 16 };

static int64_t get_opset(const Onnx__ModelProto *model) {
    for (size_t i = 0; i < model->n_opset_import; ++i) {
        if (rondo__onnx_domain(model->opset_import[i]->domain)[0] == '\0') {
            return model->opset_import[i]->version;
        }
    }
    return 1;
}

// A file of a later version may hold parts that we would leave out without a word.
static rondo_status check_version(const rondo__importer *importer) {
    const Onnx__ModelProto *model = importer->model;
    if (!model->has_ir_version || model->ir_version < IR_VERSION_MIN) {
        return RONDO_FAIL(BAD_DATA, "the model names no ir_version; ONNX has had %d to %d",
                          IR_VERSION_MIN, IR_VERSION_MAX);
    }
    const int64_t opset = get_opset(model);
    if (model->ir_version > IR_VERSION_MAX && !importer->allow_newer_opset) {
        return RONDO_FAIL(UNSUPPORTED,
                          "unsupported: ir_version %lld, with opset %lld; %d to %d are known, and "
                          "opsets to %d: " RONDO__NEWER_CURE,
                          (long long)model->ir_version, (long long)opset, IR_VERSION_MIN,
                          IR_VERSION_MAX, RONDO_OP_OPSET_MAX);
    }
    if (model->ir_version > IR_VERSION_MAX) {
        RONDO_LOG_WARN_F("the model is of ir_version %lld; parts that came after %d are left out",
                         (long long)model->ir_version, IR_VERSION_MAX);
    }
    return RONDO_STATUS_OK;
}

// A model's training information is not needed to run it.
static void tell_training(const Onnx__ModelProto *model) {
    if (model->n_training_info > 0) {
        RONDO_LOG_WARN_F("the model's training info is ignored (%zu parts); its graph is what runs",
                         model->n_training_info);
    }
}

// Keys and values, one behind the other, in one block.
static rondo_status read_metadata(const Onnx__ModelProto *model, rondo_program *program) {
    size_t bytes = 0;
    for (size_t i = 0; i < model->n_metadata_props; ++i) {
        const Onnx__StringStringEntryProto *entry = model->metadata_props[i];
        if (entry->key != NULL && entry->value != NULL) {
            bytes += strlen(entry->key) + strlen(entry->value) + 2;
        }
    }
    char *at = rondo__malloc(bytes + 1);
    if (at == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    program->metadata = at;
    program->metadata_bytes = bytes;
    for (size_t i = 0; i < model->n_metadata_props; ++i) {
        const Onnx__StringStringEntryProto *entry = model->metadata_props[i];
        if (entry->key != NULL && entry->value != NULL) {
            at = stpcpy(at, entry->key) + 1;
            at = stpcpy(at, entry->value) + 1;
        }
    }
    return RONDO_STATUS_OK;
}

// A model that cannot be read may be a file of another kind, which says more than where protobuf
// ends.
static rondo_status explain_kind(const uint8_t *bytes, size_t byte_count, rondo_status status) {
    const char *explanation =
        status == RONDO_STATUS_BAD_DATA ? rondo__file_kind_explain(bytes, byte_count) : NULL;
    return explanation != NULL ? RONDO_FAIL(BAD_DATA, "not an ONNX model: it is %s", explanation)
                               : status;
}

static rondo_status import_model(rondo__importer *importer, rondo_program **out_program) {
    const Onnx__ModelProto *model = importer->model;
    if (model->graph == NULL) {
        return RONDO_FAIL(BAD_DATA, "not an ONNX model: it has no graph");
    }
    RETURN_IF_ERROR(check_version(importer));
    tell_training(model);
    rondo__oddities oddities = {0};
    rondo_program *program = NULL;
    rondo_status status = rondo__program_create(model->graph->name, &program);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__scope scope = {
        .program = program,
        .oddities = &oddities,
        .opset_count = model->n_opset_import,
        .opsets = model->opset_import,
    };
    importer->main = program;
    status = rondo__importer_index_functions(importer);
    if (status != RONDO_STATUS_OK) {
        goto free_functions;
    }
    status = rondo__import_graph(importer, &scope, model->graph);
    if (status == RONDO_STATUS_OK && !importer->is_listing && importer->missing->count == 0) {
        status = rondo__program_verify(program);
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_name_draws(program, true);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo__variables_read(model, program);
        }
        if (status == RONDO_STATUS_OK) {
            status = read_metadata(model, program);
        }
    }
    if (status == RONDO_STATUS_OK) {
        *out_program = program;
        program = NULL;
    }

free_functions:
    rondo__importer_free_functions(importer);
    rondo__free(oddities.reasons);
    rondo_program_destroy(program);
    return status;
}

// Imports a serialized model.
//
// source    the same bytes when tensors may point into them; NULL: they are copied.
// path      of the file; NULL for a model in memory.
// missing   receives what is unsupported; NULL: that is an error, which names all of it.
static rondo_status import_bytes(const uint8_t *bytes, size_t byte_count, rondo__source *source,
                                 const char *path, const rondo_load_options *options,
                                 rondo__missing *missing, Onnx__ModelProto **out_model,
                                 rondo_program **out_program) {
    ProtobufCMessage *message = NULL;
    *out_model = NULL;
    *out_program = NULL;
    if (byte_count == 0) {
        return RONDO_FAIL(BAD_DATA, "not an ONNX model: it is empty");
    }
    rondo_status status =
        rondo__wire_unpack(&onnx__model_proto__descriptor, bytes, byte_count, &message);
    if (status != RONDO_STATUS_OK) {
        return explain_kind(bytes, byte_count, status);
    }
    *out_model = (Onnx__ModelProto *)message;
    rondo__missing own = {0};
    rondo__importer importer = {
        .model = *out_model,
        .reader = {.bytes = bytes, .source = source, .path = path},
        .missing = missing != NULL ? missing : &own,
        .is_listing = missing != NULL,
        .allow_newer_opset = options->allow_newer_opset,
    };
    // A file of functions that call functions can ask for any amount of memory.
    const uint64_t limit =
        options->memory_limit_bytes > 0
            ? options->memory_limit_bytes
            : rondo__budget_choose_limit((uint64_t)LOAD_BYTES, byte_count, LOAD_FACTOR);
    status = rondo__budget_create(limit, "memory_limit_bytes (--memory-limit)", &importer.budget);
    if (status == RONDO_STATUS_OK) {
        rondo__budget *before = rondo__budget_enter(importer.budget);
        const rondo__float_scope scope = rondo__float_enter();
        rondo__crew_enter();
        status = import_model(&importer, out_program);
        rondo__crew_leave();
        rondo__float_leave(&scope);
        (void)rondo__budget_enter(before);
    }
    rondo__budget_release(importer.budget);
    if (status == RONDO_STATUS_OK) {
        (*out_program)->file_bytes = byte_count + importer.reader.external_bytes;
    }
    rondo__tensor_reader_deinit(&importer.reader);
    if ((*out_model)->graph == NULL) {
        status = explain_kind(bytes, byte_count, status);
    }
    // Further errors behind an unknown op may follow from that op.
    if (own.count > 0 && status != RONDO_STATUS_NO_MEMORY) {
        status = rondo__missing_fail(&own);
        rondo_program_destroy(*out_program);
        *out_program = NULL;
    }
    rondo__missing_deinit(&own);
    return status;
}

static rondo_status import_file(const char *path, const rondo_load_options *options,
                                rondo__missing *missing, Onnx__ModelProto **out_model,
                                rondo_program **out_program) {
    rondo__source *source = NULL;
    const uint64_t start_ns = rondo__clock_now_ns();
    *out_model = NULL;
    *out_program = NULL;
    rondo_status status = rondo__source_map(path, &source);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = import_bytes(rondo__source_get_bytes(source), rondo__source_get_byte_count(source),
                          source, path, options, missing, out_model, out_program);
    if (status != RONDO_STATUS_OK && status != RONDO_STATUS_UNSUPPORTED) {
        rondo__source_prefix_path(path);
    }
    if (status == RONDO_STATUS_OK) {
        RONDO_LOG_DEBUG_F("loaded %s, %zu bytes, in %.0f ms", path,
                          rondo__source_get_byte_count(source),
                          (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    }
    rondo__source_release(source);
    return status;
}

static const rondo_load_options default_options = {.struct_size = sizeof default_options};

static rondo_status load(const char *path, const rondo_load_options *given, const char *call,
                         rondo_program **out_program) {
    rondo_load_options options = default_options;
    if (out_program == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "out_program is NULL");
    }
    *out_program = NULL;
    RETURN_IF_ERROR(
        rondo__read_options(given, &options, sizeof options, call, "rondo_load_options"));
    if (path == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "path is NULL");
    }
    Onnx__ModelProto *model = NULL;
    rondo_status status = import_file(path, &options, NULL, &model, out_program);
    rondo__wire_free((ProtobufCMessage *)model);
    return status;
}

rondo_status rondo_program_load_onnx(const char *path, rondo_program **out_program) {
    return load(path, NULL, "rondo_program_load_onnx", out_program);
}

rondo_status rondo_program_load_onnx_with(const char *path, const rondo_load_options *options,
                                          rondo_program **out_program) {
    return load(path, options, "rondo_program_load_onnx_with", out_program);
}

static rondo_status parse(const void *bytes, size_t byte_count, const rondo_load_options *given,
                          const char *call, rondo_program **out_program) {
    rondo_load_options options = default_options;
    if (out_program == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "out_program is NULL");
    }
    *out_program = NULL;
    RETURN_IF_ERROR(
        rondo__read_options(given, &options, sizeof options, call, "rondo_load_options"));
    if (bytes == NULL && byte_count > 0) {
        return RONDO_FAIL_AS(call, INVALID, "bytes is NULL");
    }
    Onnx__ModelProto *model = NULL;
    rondo_status status =
        import_bytes(bytes, byte_count, NULL, NULL, &options, NULL, &model, out_program);
    rondo__wire_free((ProtobufCMessage *)model);
    return status;
}

rondo_status rondo_program_parse_onnx(const void *bytes, size_t byte_count,
                                      rondo_program **out_program) {
    return parse(bytes, byte_count, NULL, "rondo_program_parse_onnx", out_program);
}

rondo_status rondo_program_parse_onnx_with(const void *bytes, size_t byte_count,
                                           const rondo_load_options *options,
                                           rondo_program **out_program) {
    return parse(bytes, byte_count, options, "rondo_program_parse_onnx_with", out_program);
}

rondo_status rondo_onnx_list_unsupported(const char *path,
                                         void (*visit)(void *user_data, const char *domain,
                                                       const char *op, int64_t version,
                                                       const char *detail, size_t count),
                                         void *user_data) {
    if (path == NULL || visit == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", path == NULL ? "path" : "visit");
    }
    rondo__missing missing = {0};
    Onnx__ModelProto *model = NULL;
    rondo_program *program = NULL;
    rondo_status status = import_file(path, &default_options, &missing, &model, &program);
    if (status == RONDO_STATUS_OK) {
        for (size_t i = 0; i < missing.count; ++i) {
            const rondo__missing_entry *entry = &missing.entries[i];
            visit(user_data, entry->domain, entry->op, entry->version, entry->detail, entry->count);
        }
    }
    rondo__missing_deinit(&missing);
    rondo_program_destroy(program);
    rondo__wire_free((ProtobufCMessage *)model);
    return status;
}
