// executor/plan_file/save_plan.c — writes what an executor has made of a program; see
// rondo/tuning.h. program/saved/saved.h lists the sections.
//
// Plans are written as programs behind their passes. They are made once more for that from the
// base and the plan's key, since a plan's own program has been prepared for one device's memory.
// All that the data section points to stays until the file is written.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "executor/compile/base_form.h"
#include "executor/compile/plan_cache.h"
#include "executor/run/settle.h"
#include "executor/state/limits.h"
#include "executor/state/prepared.h"
#include "rondo/tuning.h"
#include "tensor/elements.h"

enum { ABOUT, PROGRAM, BASES, PLANS, TUNING, KERNELS, FORMS, TEXT_COUNT };

// A form, with the hash of the constant that it was made of.
typedef struct form_item {
    rondo__ready_form form;
    rondo__hash128 constant;
} form_item;

typedef struct saver {
    rondo_executor *executor;
    char *base_key;
    rondo__text texts[TEXT_COUNT];
    rondo__data_blocks data;
    // What is borrowed until the end: programs of plans, forms that were copied from a GPU.
    rondo_program **programs;
    size_t program_count, program_capacity;
    void **copies;
    size_t copy_count, copy_capacity;
    // Sorted before they are written: the order of the visits depends on addresses and threads.
    rondo__kernel_code *kernels;
    size_t kernel_count, kernel_capacity;
    form_item *forms;
    size_t form_count, form_capacity;
} saver;

// An entry: its bytes behind their length. Takes `entry`.
static rondo_status put_entry(saver *s, int section, rondo__text *entry) {
    rondo_status status = rondo__text_get_status(entry);
    if (status == RONDO_STATUS_OK) {
        rondo__record_put_bytes(&s->texts[section], entry->bytes, entry->length);
        status = rondo__text_get_status(&s->texts[section]);
    }
    rondo__text_deinit(entry);
    return status;
}

static rondo_status write_about(saver *s) {
    rondo_executor *executor = s->executor;
    const rondo_executor_options *options = &executor->options;
    rondo_device_info info = {.struct_size = sizeof info};
    char level[64];
    RETURN_IF_ERROR(rondo_device_get_info(executor->device, &info));
    rondo__kernel_get_level(executor->device, level, sizeof level);
    const rondo__saved_about about = {
        .library = rondo__saved_library,
        .device = rondo_device_is_host(executor->device) ? "host" : "cuda",
        .level = level,
        .description = info.description,
        .dtype = options->dtype,
        .op_by_op = options->op_by_op,
        .no_folding = options->no_folding,
        .is_training = executor->main.is_training,
        .tuning = (uint32_t)options->tuning,
        .pattern_counts = {options->keep_f32_count, options->use_f16_count, options->place_count},
        .patterns = (const char *const *)executor->caller.patterns,
    };
    rondo__saved_about_write(&about, &s->texts[ABOUT]);
    return rondo__text_get_status(&s->texts[ABOUT]);
}

static rondo_status write_base(saver *s) {
    rondo__text entry = {0};
    rondo__prepared_write_base_head(&s->executor->main, s->base_key, &entry);
    const rondo_status status = rondo__program_write(s->executor->main.base, &s->data, &entry);
    if (status != RONDO_STATUS_OK) {
        rondo__text_deinit(&entry);
        return status;
    }
    return put_entry(s, BASES, &entry);
}

// ---- plans ------------------------------------------------------------------------------------

// The program of a plan behind its passes, which the saver keeps.
static rondo_status make_program(saver *s, rondo__key_input *inputs, rondo_program **out_program,
                                 rondo__half_report *out_halves) {
    rondo__unit *unit = &s->executor->main;
    const size_t count = unit->base->input_count;
    rondo_tensor *feeds = rondo__calloc(count + 1, sizeof *feeds);
    rondo_status status = feeds != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        const rondo_tensor *input = &inputs[i].tensor;
        feeds[i] = (rondo_tensor){.dtype = input->dtype, .shape = input->shape};
        if (input->data != NULL) {
            status = rondo_tensor_init(input->dtype, &input->shape, &feeds[i]);
        }
        if (status == RONDO_STATUS_OK && input->data != NULL) {
            memcpy(feeds[i].data, input->data, rondo_tensor_get_bytes(input));
        }
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        unit->keys.most[i] = inputs[i].is_within ? rondo__unit_find_most(unit, feeds, i) : 0;
    }
    rondo_program *program = NULL;
    if (status == RONDO_STATUS_OK) {
        status = RONDO__ARRAY_RESERVE(s->programs, s->program_capacity, s->program_count + 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__plan_specialise(unit, feeds, &program, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        s->programs[s->program_count++] = program;
        status = rondo__plan_rewrite(unit, program, out_halves);
    }
    rondo__tensors_free(feeds, feeds != NULL ? count : 0);
    *out_program = program;
    return status;
}

static rondo_status write_plan(saver *s, const rondo__plan *plan) {
    size_t key_bytes = 0;
    const void *key = rondo__lru_entry_get_key(plan->entry, &key_bytes);
    const size_t count = s->executor->main.base->input_count;
    rondo__key_input *inputs = rondo__calloc(count + 1, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_program *program = NULL;
    rondo__half_report halves = {0};
    rondo__text entry = {0};
    rondo_status status = RONDO_STATUS_OK;
    const bool is_told = rondo__plan_key_read(key, key_bytes, inputs, count);
    if (is_told) {
        status = make_program(s, inputs, &program, &halves);
    }
    if (is_told && status == RONDO_STATUS_OK) {
        rondo__prepared_write_plan_head(s->base_key, key, key_bytes, &halves, &entry);
        status = rondo__program_write(program, &s->data, &entry);
    }
    if (is_told && status == RONDO_STATUS_OK) {
        status = rondo__prepared_write_kernels(s->executor->device, plan, &entry);
    }
    if (is_told && status == RONDO_STATUS_OK) {
        status = put_entry(s, PLANS, &entry);
    }
    rondo__text_deinit(&entry);
    rondo__half_report_deinit(&halves);
    rondo__free(inputs);
    return status;
}

static rondo_status write_plans(saver *s) {
    rondo__unit *unit = &s->executor->main;
    rondo_status status = RONDO_STATUS_OK;
    for (const rondo__plan *plan = rondo__unit_next_plan(unit, NULL);
         plan != NULL && status == RONDO_STATUS_OK; plan = rondo__unit_next_plan(unit, plan)) {
        if (!rondo__plan_leaves_branches(plan)) {  // it would need to be asked which one is taken
            status = write_plan(s, plan);
        }
    }
    return status;
}

// ---- kernels and forms ------------------------------------------------------------------------

// A copy of what is there for the visit only, as long as the saver.
static rondo_status keep_copy(saver *s, const void *bytes, size_t byte_count, const void **out) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(s->copies, s->copy_capacity, s->copy_count + 1));
    void *copy = rondo__block_allocate(byte_count, RONDO__DATA_ALIGNMENT);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(copy, bytes, byte_count);
    s->copies[s->copy_count++] = copy;
    *out = copy;
    return RONDO_STATUS_OK;
}

static int compare_hashes(rondo__hash128 a, rondo__hash128 b) {
    return a.high != b.high ? (a.high < b.high ? -1 : 1) : a.low < b.low ? -1 : a.low > b.low;
}

static rondo_status take_kernel(void *user_data, const rondo__kernel_code *code) {
    saver *s = user_data;
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(s->kernels, s->kernel_capacity, s->kernel_count + 1));
    s->kernels[s->kernel_count] = *code;
    return keep_copy(s, code->bytes, code->byte_count, &s->kernels[s->kernel_count++].bytes);
}

static int compare_kernels(const void *a, const void *b) {
    return compare_hashes(((const rondo__kernel_code *)a)->key,
                          ((const rondo__kernel_code *)b)->key);
}

static rondo_status write_kernels(saver *s) {
    RETURN_IF_ERROR(rondo__device_visit_kernels(s->executor->device, take_kernel, s));
    if (s->kernel_count > 0) {
        qsort(s->kernels, s->kernel_count, sizeof *s->kernels, compare_kernels);
    }
    for (size_t i = 0; i < s->kernel_count; ++i) {
        RETURN_IF_ERROR(rondo__prepared_write_kernel(&s->kernels[i], &s->data, &s->texts[KERNELS]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_form(void *user_data, const rondo__ready_form *form) {
    saver *s = user_data;
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(s->forms, s->form_capacity, s->form_count + 1));
    form_item *item = &s->forms[s->form_count++];
    *item = (form_item){*form, rondo__hash128_bytes(form->constant, form->constant_bytes)};
    return rondo_device_is_host(s->executor->device)
               ? RONDO_STATUS_OK
               : keep_copy(s, form->bytes, form->byte_count, &item->form.bytes);
}

static int compare_forms(const void *a, const void *b) {
    const form_item *left = a;
    const form_item *right = b;
    const int order = compare_hashes(left->constant, right->constant);
    if (order != 0 || left->form.dtype != right->form.dtype) {
        return order != 0 ? order : (int)left->form.dtype - (int)right->form.dtype;
    }
    if (left->form.form_bytes != right->form.form_bytes) {
        return left->form.form_bytes < right->form.form_bytes ? -1 : 1;
    }
    return memcmp(left->form.form, right->form.form, left->form.form_bytes);
}

static rondo_status write_forms(saver *s) {
    RETURN_IF_ERROR(rondo__weight_account_visit(&s->executor->resources.weights, take_form, s));
    if (s->form_count > 0) {
        qsort(s->forms, s->form_count, sizeof *s->forms, compare_forms);
    }
    for (size_t i = 0; i < s->form_count; ++i) {
        RETURN_IF_ERROR(rondo__prepared_write_form(&s->forms[i].form, &s->data, &s->texts[FORMS]));
    }
    return RONDO_STATUS_OK;
}

// ---- the file ---------------------------------------------------------------------------------

static rondo_status gather(saver *s) {
    rondo_executor *executor = s->executor;
    const rondo__unit *unit = &executor->main;
    RETURN_IF_ERROR(write_about(s));
    RETURN_IF_ERROR(rondo__program_write(unit->source, &s->data, &s->texts[PROGRAM]));
    rondo__tuning_choices_print(executor->resources.choices, &s->texts[TUNING]);
    RETURN_IF_ERROR(rondo__text_get_status(&s->texts[TUNING]));
    RETURN_IF_ERROR(write_kernels(s));
    if (unit->is_lean || executor->options.reference || rondo__program_has_user_ops(unit->source)) {
        return RONDO_STATUS_OK;  // what was made of it may be another thing in another process
    }
    RETURN_IF_ERROR(write_base(s));
    RETURN_IF_ERROR(write_plans(s));
    return write_forms(s);
}

static rondo_status write_file(const saver *s, const char *path) {
    static const struct {
        const char *name;
        uint32_t version;
    } rows[TEXT_COUNT] = {
        [ABOUT] = {"about", RONDO__SAVED_ABOUT_VERSION},
        [PROGRAM] = {"program", RONDO__SAVED_PROGRAM_VERSION},
        [BASES] = {"bases", RONDO__SAVED_BASES_VERSION},
        [PLANS] = {"plans", RONDO__SAVED_PLANS_VERSION},
        [TUNING] = {"tuning", RONDO__SAVED_TUNING_VERSION},
        [KERNELS] = {"kernels", RONDO__SAVED_KERNELS_VERSION},
        [FORMS] = {"forms", RONDO__SAVED_FORMS_VERSION},
    };
    rondo__section_piece pieces[TEXT_COUNT];
    rondo__section_source sections[TEXT_COUNT + 1];
    for (int i = 0; i < TEXT_COUNT; ++i) {
        pieces[i] = (rondo__section_piece){s->texts[i].bytes, s->texts[i].length, 0};
        sections[i] = (rondo__section_source){rows[i].name, rows[i].version, &pieces[i], 1};
    }
    sections[TEXT_COUNT] =
        (rondo__section_source){"data", RONDO__SAVED_DATA_VERSION, s->data.pieces, s->data.count};
    return rondo__section_file_write(&rondo__plan_file_kind, path, sections, TEXT_COUNT + 1);
}

static void free_saver(saver *s) {
    for (int i = 0; i < TEXT_COUNT; ++i) {
        rondo__text_deinit(&s->texts[i]);
    }
    for (size_t i = 0; i < s->program_count; ++i) {
        rondo_program_destroy(s->programs[i]);
    }
    for (size_t i = 0; i < s->copy_count; ++i) {
        rondo__block_free(s->copies[i]);
    }
    rondo__free(s->programs);
    rondo__free(s->copies);
    rondo__free(s->kernels);
    rondo__free(s->forms);
    rondo__data_blocks_deinit(&s->data);
    rondo__free(s->base_key);
}

rondo_status rondo_executor_save(rondo_executor *executor, const char *path) {
    if (executor == NULL || path == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "path");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    saver s = {.executor = executor, .base_key = rondo__unit_write_base_key(&executor->main)};
    if (s.base_key == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__budget *before = rondo__executor_begin_call(executor, NULL, 0);
    rondo__crew_enter();
    rondo_status status = gather(&s);
    if (status == RONDO_STATUS_OK) {
        status = write_file(&s, path);
    }
    rondo__crew_leave();
    free_saver(&s);
    rondo__executor_end_call(executor, before, status);
    return status;
}
