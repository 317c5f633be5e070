// executor/plan_file/load_plan.c — plan files to programs and executors; see rondo/tuning.h.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "executor/state/prepared.h"
#include "rondo/tuning.h"

// Whether the file was made of this very program: their records and the data behind are the same.
static rondo_status check_made_of(const rondo_program *program, const rondo_program *expected) {
    rondo__data_blocks data[2] = {0};
    rondo__text texts[2] = {0};
    rondo_status status = rondo__program_write(program, &data[0], &texts[0]);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_write(expected, &data[1], &texts[1]);
    }
    bool is_same = status == RONDO_STATUS_OK && texts[0].length == texts[1].length &&
                   memcmp(texts[0].bytes, texts[1].bytes, texts[0].length) == 0 &&
                   data[0].count == data[1].count;
    for (size_t i = 0; is_same && i < data[0].count; ++i) {
        const rondo__section_piece *a = &data[0].pieces[i];
        const rondo__section_piece *b = &data[1].pieces[i];
        is_same = a->byte_count == b->byte_count && memcmp(a->bytes, b->bytes, a->byte_count) == 0;
    }
    for (int i = 0; i < 2; ++i) {
        rondo__data_blocks_deinit(&data[i]);
        rondo__text_deinit(&texts[i]);
    }
    return status != RONDO_STATUS_OK || is_same
               ? status
               : RONDO_FAIL_AS("rondo_program_load_plan", INVALID,
                               "the plan file was made of another model, or of this one before it "
                               "changed: make it anew");
}

static bool holds(const rondo__record *text, const char *word) {
    const size_t length = strlen(word);
    for (const uint8_t *at = text->at; (size_t)(text->past - at) >= length; ++at) {
        if (memcmp(at, word, length) == 0) {
            return true;
        }
    }
    return false;
}

// If the plan chooses a library's kernel, a thread loads the library while the device opens.
static void want_libraries(const rondo__saved *saved) {
    static const char *const names[][2] = {{"\tcublaslt ", "cublasLt"}, {"\tcudnn", "cudnn"}};
    rondo__record tuning;
    if (strcmp(saved->about.device, "cuda") != 0 || rondo__backend_cuda.want_library == NULL ||
        !rondo__saved_find(saved, "tuning", RONDO__SAVED_TUNING_VERSION, &tuning)) {
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        if (holds(&tuning, names[i][0])) {
            rondo__backend_cuda.want_library(names[i][1]);
        }
    }
}

static rondo_status load(const char *path, const rondo_plan_options *options, const char *call,
                         rondo_program **out_program) {
    rondo_plan_options merged = {.struct_size = sizeof merged};
    rondo__saved *saved = NULL;
    if (path == NULL || out_program == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "%s is NULL", path == NULL ? "path" : "out_program");
    }
    *out_program = NULL;
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, call, "rondo_plan_options"));
    const uint64_t start_ns = rondo__clock_now_ns();
    RETURN_IF_ERROR(rondo__saved_open(path, &saved));
    saved->allow_remake = merged.allow_remake;
    want_libraries(saved);
    const size_t byte_count = saved->file.byte_count;
    RETURN_IF_ERROR(rondo__saved_read_program(saved, out_program));
    if (merged.made_of != NULL) {
        const rondo_status status = check_made_of(*out_program, merged.made_of);
        if (status != RONDO_STATUS_OK) {
            rondo_program_destroy(*out_program);
            *out_program = NULL;
            return status;
        }
    }
    RONDO_LOG_DEBUG_F("loaded %s, %zu bytes, in %.0f ms", path, byte_count,
                      (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    return RONDO_STATUS_OK;
}

rondo_status rondo_program_load_plan(const char *path, const rondo_plan_options *options,
                                     rondo_program **out_program) {
    return load(path, options, __func__, out_program);
}

static void fill_options(const rondo__saved_about *about, rondo_executor_options *out_options) {
    const char *const *next = about->patterns;
    out_options->dtype = about->dtype;
    out_options->op_by_op = about->op_by_op;
    out_options->no_folding = about->no_folding;
    out_options->training = about->is_training;
    out_options->tuning = (rondo_tuning)about->tuning;
    out_options->keep_f32 = next;
    out_options->keep_f32_count = about->pattern_counts[0];
    next += about->pattern_counts[0];
    out_options->use_f16 = next;
    out_options->use_f16_count = about->pattern_counts[1];
    next += about->pattern_counts[1];
    out_options->place = next;
    out_options->place_count = about->pattern_counts[2];
}

rondo_status rondo_program_get_plan_options(const rondo_program *program,
                                            rondo_executor_options *out_options) {
    rondo_executor_options options = {.struct_size = sizeof options};
    RETURN_IF_ERROR(
        rondo__clear_struct(out_options, sizeof options, __func__, "rondo_executor_options"));
    if (program == NULL) {
        return RONDO_FAIL(INVALID, "program is NULL");
    }
    if (program->saved == NULL) {
        return RONDO_FAIL(STATE, "the program does not come from a plan file");
    }
    fill_options(&rondo__program_get_saved(program)->about, &options);
    rondo__write_struct(out_options, &options);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_load(const char *path, rondo_device *device,
                                 const rondo_executor_options *executor_options,
                                 const rondo_plan_options *plan_options,
                                 rondo_program **out_program, rondo_executor **out_executor) {
    rondo_executor_options own = {.struct_size = sizeof own};
    rondo_program *program = NULL;
    if (out_program != NULL) {
        *out_program = NULL;
    }
    if (out_executor == NULL) {
        return RONDO_FAIL(INVALID, "out_executor is NULL");
    }
    *out_executor = NULL;
    if (device == NULL) {
        return RONDO_FAIL(INVALID, "device is NULL");
    }
    if (executor_options != NULL) {
        RETURN_IF_ERROR(rondo__check_struct_size(executor_options->struct_size, sizeof own,
                                                 __func__, "rondo_executor_options"));
    }
    RETURN_IF_ERROR(load(path, plan_options, __func__, &program));
    fill_options(&rondo__program_get_saved(program)->about, &own);
    const rondo_status status = rondo_executor_create(
        program, device, executor_options != NULL ? executor_options : &own, out_executor);
    if (status != RONDO_STATUS_OK || out_program == NULL) {
        rondo_program_destroy(program);  // the executor has retained it
        return status;
    }
    *out_program = program;
    return RONDO_STATUS_OK;
}
