// kernel/cuda/cuda_saved.c — kernels in a plan file: the list of steps, to be taken by a process
// whose device has been offered the machine code.
//
//   kernel   hash of the request, its tuning; what the head says; forms of constants; steps
//   step     launch: function by module and name, shape, words; copy and fill: bytes;
//            then its addresses and maps
//
// An address is an input, an output, a place in the workspace or in a form, and an offset. Bounds
// are checked; what a kernel does with its other words is not.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "device/device.h"
#include "kernel/cuda/cuda_steps.h"

// ---- requests ---------------------------------------------------------------------------------

static uint64_t hash_numbers(const int64_t *numbers, size_t count) {
    return rondo__hash128_bytes(numbers, count * sizeof numbers[0]).low;
}

static uint64_t hash_tensor(uint64_t before, const rondo__tensor_info *info) {
    int64_t numbers[4 + RONDO_RANK_MAX] = {(int64_t)before, info->dtype, info->constant != NULL,
                                           info->shape.rank};
    const bool has_shape = info->dtype != RONDO_DTYPE_NONE && info->is_shape_known;
    for (int32_t d = 0; d < info->shape.rank && has_shape; d++) {
        numbers[4 + d] = info->shape.extent[d];
    }
    return hash_numbers(numbers, sizeof numbers / sizeof numbers[0]);
}

void rondo__cuda_name_request(rondo__cuda_kernel *kernel) {
    const rondo__kernel_request *request = kernel->request;
    rondo_device_info info = {.struct_size = sizeof info};
    if (request->brought_inputs != 0 ||
        rondo__device_get_facts(request->device, &info) != RONDO_STATUS_OK) {
        return;
    }
    // A grid may be as large as the chip.
    const int64_t head[] = {request->op->def->id,
                            (int64_t)request->input_count,
                            (int64_t)request->output_count,
                            request->is_in_body,
                            request->watch != NULL,
                            info.compute_units,
                            info.arch_major,
                            info.arch_minor};
    uint64_t hash = hash_numbers(head, sizeof head / sizeof head[0]);
    for (size_t i = 0; i < request->input_count; i++) {
        hash = hash_tensor(hash, &request->inputs[i]);
    }
    for (size_t i = 0; i < request->output_count; i++) {
        hash = hash_tensor(hash, &request->outputs[i]);
    }
    kernel->request_hash = hash | 1;
    kernel->tuning = (uint32_t)request->tuning;
}

// ---- writing ----------------------------------------------------------------------------------

static void put_words(rondo__text *out, const uint64_t *words, size_t count) {
    rondo__record_put(out, count);
    for (size_t i = 0; i < count; i++) {
        rondo__record_put(out, words[i]);
    }
}

static bool write_address(const rondo__cuda_kernel *kernel, size_t word,
                          const rondo__address *address, rondo__text *out) {
    size_t index = address->index;
    if (address->space == RONDO__ADDRESS_FIXED) {
        for (index = 0; index < kernel->form_count && kernel->forms[index] != address->fixed;) {
            ++index;
        }
    }
    rondo__record_put(out, word);
    rondo__record_put(out, (uint64_t)address->space);
    rondo__record_put(out, index);
    rondo__record_put(out, address->offset_bytes);
    return address->space != RONDO__ADDRESS_STAND_IN &&
           (address->space != RONDO__ADDRESS_FIXED || index < kernel->form_count);
}

static bool write_launch(const rondo__cuda_kernel *kernel, const rondo__step *step,
                         rondo__text *out) {
    const rondo__backend *backend = kernel->device->backend;
    const rondo_launch *launch = &step->launch;
    rondo__hash128 key;
    const char *name;
    uint64_t words[RONDO__STEP_WORDS_MAX];
    if (backend->name_function == NULL || step->fault_count > RONDO__STEP_FAULTS_MAX ||
        launch->priority != 0 ||
        !backend->name_function(kernel->device, launch->function, &key, &name)) {
        return false;
    }
    memcpy(words, step->words, step->word_count * sizeof words[0]);
    for (size_t i = 0; i < step->address_count; i++) {
        words[step->addresses[i].word] = 0;
    }
    for (size_t i = 0; i < step->map_count; i++) {
        memset(&words[step->maps[i].word], 0, RONDO__TENSOR_MAP_WORDS * sizeof words[0]);
    }
    for (size_t i = 0; i < step->fault_count; i++) {
        words[step->faults[i]] ^= (uint64_t)(uintptr_t)kernel;
    }
    rondo__record_put(out, key.low);
    rondo__record_put(out, key.high);
    rondo__record_put_text(out, name);
    for (int i = 0; i < 3; i++) {
        rondo__record_put(out, launch->grid[i]);
        rondo__record_put(out, launch->block[i]);
        rondo__record_put(out, launch->cluster[i]);
    }
    rondo__record_put(out, launch->shared_bytes);
    rondo__record_put(out, launch->flags);
    put_words(out, words, step->word_count);
    rondo__record_put(out, step->fault_count);
    for (size_t i = 0; i < step->fault_count; i++) {
        rondo__record_put(out, step->faults[i]);
    }
    return true;
}

static bool write_step(const rondo__cuda_kernel *kernel, const rondo__step *step,
                       rondo__text *out) {
    bool is_written = step->kind != RONDO__STEP_CALL;
    rondo__record_put(out, (uint64_t)step->kind);
    rondo__record_put(out, step->bytes);
    if (step->kind == RONDO__STEP_LAUNCH) {
        is_written = write_launch(kernel, step, out);
    }
    rondo__record_put(out, step->address_count);
    for (size_t i = 0; i < step->address_count && is_written; i++) {
        is_written =
            write_address(kernel, step->addresses[i].word, &step->addresses[i].address, out);
    }
    rondo__record_put(out, step->map_count);
    for (size_t i = 0; i < step->map_count && is_written; i++) {
        is_written = write_address(kernel, step->maps[i].word, &step->maps[i].address, out);
        rondo__record_put_bytes(out, &step->maps[i].form, sizeof step->maps[i].form);
    }
    return is_written;
}

static bool write_forms(const rondo__cuda_kernel *kernel, const rondo__weight_list *weights,
                        rondo__text *out) {
    rondo__record_put(out, kernel->form_count);
    for (size_t i = 0; i < kernel->form_count; i++) {
        size_t form_bytes = 0;
        const void *form = rondo__weight_list_find(weights, kernel->forms[i], &form_bytes);
        rondo__record_put(out, kernel->form_inputs[i]);
        rondo__record_put(out, kernel->form_bytes[i]);
        rondo__record_put_bytes(out, form != NULL ? form : "", form_bytes);
        if (form == NULL) {
            return false;
        }
    }
    return true;
}

bool rondo__cuda_write_kernel(const rondo__kernel *head, const rondo__weight_list *weights,
                              rondo__text *out) {
    const rondo__cuda_kernel *kernel = rondo__cuda_kernel_of(head);
    if (kernel == NULL || kernel->request_hash == 0 || head->visit_nodes == NULL ||
        head->reason != NULL || head->moves != NULL) {
        return false;
    }
    rondo__record_put(out, kernel->request_hash);
    rondo__record_put(out, kernel->tuning);
    rondo__record_put(out, head->workspace_bytes);
    rondo__record_put(out, head->owned_inputs);
    rondo__record_put(out, head->in_place_inputs);
    rondo__record_put(out, head->join_output != NULL ? 1 : 0);
    rondo__record_put(out, (uint64_t)head->capture);
    rondo__record_put(out, (head->keeps_addresses ? 1u : 0u) | (head->may_run_here ? 2u : 0u) |
                               (head->is_unbounded ? 4u : 0u));
    rondo__record_put(out, head->kept_count);
    for (size_t i = 0; i < head->kept_count; i++) {
        rondo__record_put_signed(out, head->kept[i].input);
        rondo__record_put_signed(out, head->kept[i].output);
    }
    bool is_written = write_forms(kernel, weights, out);
    rondo__record_put(out, kernel->step_count);
    for (size_t i = 0; i < kernel->step_count && is_written; i++) {
        is_written = write_step(kernel, kernel->steps[i], out);
    }
    return is_written && rondo__text_get_status(out) == RONDO_STATUS_OK;
}

// ---- reading ----------------------------------------------------------------------------------

// How many bytes there are from the address on; 0: there is no such address.
static size_t get_room(const rondo__cuda_kernel *kernel, const rondo__address *address) {
    const rondo__kernel_request *request = kernel->request;
    const rondo__tensor_info *info = NULL;
    size_t bytes = 0;
    if (address->space == RONDO__ADDRESS_INPUT && address->index < request->input_count) {
        info = &request->inputs[address->index];
    } else if (address->space == RONDO__ADDRESS_OUTPUT && address->index < request->output_count) {
        info = &request->outputs[address->index];
    } else if (address->space == RONDO__ADDRESS_WORKSPACE) {
        bytes = kernel->head.workspace_bytes;
    } else if (address->space == RONDO__ADDRESS_FIXED && address->index < kernel->form_count) {
        bytes = kernel->form_bytes[address->index];
    }
    if (info != NULL && info->dtype != RONDO_DTYPE_NONE) {
        const rondo_tensor shell = {.dtype = info->dtype, .shape = info->shape};
        bytes = rondo_tensor_get_bytes(&shell);
    }
    return address->offset_bytes <= bytes ? bytes - address->offset_bytes : 0;
}

// The word that the address is for; it and `needed` - 1 behind it are the step's.
static size_t read_address(const rondo__cuda_kernel *kernel, rondo__record *record,
                           const rondo__step *step, size_t needed, rondo__address *out_address) {
    const size_t word = (size_t)rondo__record_get_most(record, RONDO__STEP_WORDS_MAX);
    *out_address = (rondo__address){
        .space = (rondo__address_space)rondo__record_get_most(record, RONDO__ADDRESS_FAULTY),
        .index = (size_t)rondo__record_get_most(record, SIZE_MAX),
        .offset_bytes = (size_t)rondo__record_get_most(record, SIZE_MAX)};
    const bool is_of_step = word + needed <= step->word_count;
    if (out_address->space == RONDO__ADDRESS_FAULTY) {
        out_address->fixed = (void *)(uintptr_t)kernel->request->watch;
        record->is_bad = record->is_bad || !is_of_step || out_address->fixed == NULL ||
                         out_address->index != 0 || out_address->offset_bytes != 0;
        return word;
    }
    if (!is_of_step || (get_room(kernel, out_address) == 0 && out_address->offset_bytes > 0) ||
        out_address->space == RONDO__ADDRESS_STAND_IN) {
        record->is_bad = true;
    }
    if (!record->is_bad && out_address->space == RONDO__ADDRESS_FIXED) {
        record->is_bad = out_address->index >= kernel->form_count;
        out_address->fixed = record->is_bad ? NULL : kernel->forms[out_address->index];
        out_address->index = 0;
    } else if (!record->is_bad) {
        record->is_bad = (out_address->space == RONDO__ADDRESS_INPUT &&
                          out_address->index >= kernel->request->input_count) ||
                         (out_address->space == RONDO__ADDRESS_OUTPUT &&
                          out_address->index >= kernel->request->output_count);
    }
    return word;
}

static rondo_status read_launch(rondo__cuda_kernel *kernel, rondo__record *record,
                                rondo__step *step) {
    rondo_launch *launch = &step->launch;
    rondo__hash128 key = {.low = rondo__record_get(record)};
    key.high = rondo__record_get(record);
    const char *name = rondo__record_get_text(record);
    for (int i = 0; i < 3; i++) {
        launch->grid[i] = (uint32_t)rondo__record_get_most(record, UINT32_MAX);
        launch->block[i] = (uint32_t)rondo__record_get_most(record, UINT32_MAX);
        launch->cluster[i] = (uint32_t)rondo__record_get_most(record, UINT32_MAX);
    }
    launch->shared_bytes = (uint32_t)rondo__record_get_most(record, UINT32_MAX);
    launch->flags = (uint32_t)rondo__record_get_most(record, UINT32_MAX);
    step->word_count = (size_t)rondo__record_get_most(record, RONDO__STEP_WORDS_MAX);
    for (size_t i = 0; i < step->word_count; i++) {
        step->words[i] = rondo__record_get(record);
    }
    launch->argument_bytes = step->word_count * sizeof step->words[0];
    step->fault_count = (size_t)rondo__record_get_most(record, RONDO__STEP_FAULTS_MAX);
    for (size_t i = 0; i < step->fault_count; i++) {
        const size_t word = (size_t)rondo__record_get_most(record, RONDO__STEP_WORDS_MAX);
        record->is_bad = record->is_bad || word >= step->word_count;
        step->faults[i] = (uint16_t)word;
        if (!record->is_bad) {
            step->words[word] ^= (uint64_t)(uintptr_t)kernel;
        }
    }
    if (record->is_bad) {
        return RONDO_STATUS_BAD_DATA;
    }
    RETURN_IF_ERROR(kernel->device->backend->find_function(kernel->device, key, name,
                                                           &launch->function, &launch->name));
    return rondo__cuda_prefer_shared_of(kernel->device, launch->function, launch->name);
}

static rondo_status read_step(rondo__cuda_kernel *kernel, rondo__record *record) {
    const rondo__step_kind kind =
        (rondo__step_kind)rondo__record_get_most(record, RONDO__STEP_FILL);
    rondo__step *step = rondo__cuda_add_step(kernel, kind);
    if (step == NULL) {
        return kernel->status;
    }
    step->bytes = (size_t)rondo__record_get_most(record, SIZE_MAX);
    if (kind == RONDO__STEP_LAUNCH) {
        RETURN_IF_ERROR(read_launch(kernel, record, step));
    }
    step->word_count = kind == RONDO__STEP_LAUNCH ? step->word_count
                       : kind == RONDO__STEP_COPY ? 2
                                                  : 1;
    step->address_count = (size_t)rondo__record_get_most(record, RONDO__STEP_ADDRESSES_MAX);
    record->is_bad =
        record->is_bad || (kind != RONDO__STEP_LAUNCH && step->address_count != step->word_count);
    for (size_t i = 0; i < step->address_count && !record->is_bad; i++) {
        rondo__address *address = &step->addresses[i].address;
        step->addresses[i].word = (uint16_t)read_address(kernel, record, step, 1, address);
        rondo__address whole = *address;
        for (size_t f = 0; f < kernel->form_count; f++) {
            whole.index = whole.space == RONDO__ADDRESS_FIXED && whole.fixed == kernel->forms[f]
                              ? f
                              : whole.index;
        }
        record->is_bad = record->is_bad || (kind != RONDO__STEP_LAUNCH &&
                                            (step->addresses[i].word != i || step->bytes == 0 ||
                                             get_room(kernel, &whole) < step->bytes));
    }
    step->map_count = (size_t)rondo__record_get_most(record, RONDO__STEP_MAPS_MAX);
    for (size_t i = 0; i < step->map_count && !record->is_bad; i++) {
        size_t byte_count = 0;
        step->maps[i].word = (uint16_t)read_address(kernel, record, step, RONDO__TENSOR_MAP_WORDS,
                                                    &step->maps[i].address);
        const void *form = rondo__record_get_bytes(record, &byte_count);
        record->is_bad = record->is_bad || byte_count != sizeof step->maps[i].form;
        step->maps[i].mapped = NULL;
        if (!record->is_bad) {
            memcpy(&step->maps[i].form, form, byte_count);
        }
    }
    return record->is_bad ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_OK;
}

static rondo_status refuse_form(const rondo__weight_want *want, void *bytes) {
    (void)want;
    (void)bytes;
    return RONDO_STATUS_UNSUPPORTED;  // it is not in the file
}

static rondo_status read_forms(rondo__cuda_kernel *kernel, rondo__record *record) {
    const size_t count = (size_t)rondo__record_get_most(record, RONDO__CUDA_FORMS_MAX);
    for (size_t i = 0; i < count && !record->is_bad; i++) {
        rondo__address address;
        rondo__weight_want want = {0};
        const size_t input = (size_t)rondo__record_get_most(record, 63);
        want.bytes = (size_t)rondo__record_get_most(record, SIZE_MAX);
        want.form = rondo__record_get_bytes(record, &want.form_bytes);
        if (record->is_bad || input >= kernel->request->input_count || want.bytes == 0 ||
            kernel->request->inputs[input].constant == NULL ||
            (want.form_bytes == 0 &&
             want.bytes != rondo_tensor_get_bytes(kernel->request->inputs[input].constant))) {
            return RONDO_STATUS_BAD_DATA;
        }
        want.fill = want.form_bytes > 0 ? refuse_form : NULL;
        if (!rondo__cuda_own_input(kernel, input, &want, &address)) {
            return kernel->status;
        }
    }
    return record->is_bad ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_OK;
}

static void read_head(rondo__cuda_kernel *kernel, rondo__record *record) {
    rondo__kernel *head = &kernel->head;
    const rondo__kernel_request *request = kernel->request;
    head->workspace_bytes = (size_t)rondo__record_get_most(record, SIZE_MAX);
    const uint64_t owned = rondo__record_get(record);
    head->in_place_inputs = rondo__record_get(record);
    rondo__cuda_may_skip_first(kernel, rondo__record_get_most(record, 1) != 0);
    head->capture = (rondo__capture_rule)rondo__record_get_most(record, RONDO__CAPTURE_NEVER);
    const uint64_t bits = rondo__record_get_most(record, 7);
    head->keeps_addresses = (bits & 1) != 0;
    head->may_run_here = (bits & 2) != 0;
    head->is_unbounded = (bits & 4) != 0;
    head->kept_count = (size_t)rondo__record_get_most(record, RONDO__KERNEL_KEPT_MAX);
    for (size_t i = 0; i < head->kept_count; i++) {
        const int64_t input = rondo__record_get_signed(record);
        const int64_t output = rondo__record_get_signed(record);
        record->is_bad = record->is_bad || input < 0 || (size_t)input >= request->input_count ||
                         output < 0 || (size_t)output >= request->output_count;
        head->kept[i] = (rondo__kernel_kept){(int32_t)input, (int32_t)output};
    }
    head->owned_inputs = owned;
    record->is_bad = record->is_bad || (request->input_count < 64 &&
                                        (owned | head->in_place_inputs) >> request->input_count);
}

// The kernel's steps from the record; all that does not fit is UNSUPPORTED or BAD_DATA.
static rondo_status read_kernel(rondo__cuda_kernel *kernel, rondo__record *record) {
    const rondo__kernel_request *request = kernel->request;
    if (kernel->device->backend->find_function == NULL || request->is_survey ||
        rondo__record_get(record) != kernel->request_hash ||
        rondo__record_get(record) < (uint64_t)request->tuning) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    read_head(kernel, record);
    RETURN_IF_ERROR(read_forms(kernel, record));
    const size_t count = rondo__record_get_count(record);
    for (size_t i = 0; i < count && !record->is_bad; i++) {
        RETURN_IF_ERROR(read_step(kernel, record));
    }
    return record->is_bad || record->at != record->past ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_OK;
}

bool rondo__cuda_restore_kernel(rondo__cuda_kernel *kernel) {
    rondo__cuda_mark mark;
    if (kernel->request->ready == NULL || kernel->request_hash == 0) {
        return false;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__record record = *kernel->request->ready;
    rondo__cuda_set_mark(kernel, &mark);
    if (read_kernel(kernel, &record) == RONDO_STATUS_OK && kernel->status == RONDO_STATUS_OK) {
        kernel->head.is_restored = true;
        return true;
    }
    rondo__cuda_go_back(kernel, &mark);
    rondo__error_restore(&saved);
    return false;
}
