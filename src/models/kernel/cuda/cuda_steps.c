// kernel/cuda/cuda_steps.c — see cuda_steps.h.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "kernel/cuda/cuda_steps.h"

// ---- the kernel -------------------------------------------------------------------------------

bool rondo__cuda_check(rondo__cuda_kernel *kernel, rondo_status status) {
    if (kernel->status == RONDO_STATUS_OK) {
        kernel->status = status;
    }
    return kernel->status == RONDO_STATUS_OK;
}

static void cut_steps(rondo__cuda_kernel *kernel, size_t count) {
    while (kernel->step_count > count) {
        rondo__step *step = kernel->steps[--kernel->step_count];
        if (step->destroy != NULL) {
            step->destroy(step->state);
        }
        rondo__free(step);
    }
}

void rondo__cuda_set_mark(const rondo__cuda_kernel *kernel, rondo__cuda_mark *out_mark) {
    const rondo__kernel_request *request = kernel->request;
    *out_mark = (rondo__cuda_mark){
        .kernel = *kernel,
        .weight_count = request->weights != NULL ? request->weights->count : 0,
        .bring_count = request->bring != NULL ? request->bring->count : 0,
    };
}

void rondo__cuda_go_back(rondo__cuda_kernel *kernel, const rondo__cuda_mark *mark) {
    const rondo__kernel_request *request = kernel->request;
    const size_t capacity = kernel->step_capacity;
    rondo__step **steps = kernel->steps;
    cut_steps(kernel, mark->kernel.step_count);
    *kernel = mark->kernel;
    kernel->steps = steps;
    kernel->step_capacity = capacity;
    if (request->weights != NULL) {
        rondo__weight_list_cut(request->weights, mark->weight_count);
    }
    if (request->bring != NULL) {
        request->bring->count = mark->bring_count;
    }
}

size_t rondo__cuda_reserve_workspace(rondo__cuda_kernel *kernel, size_t bytes) {
    const size_t offset = kernel->head.workspace_bytes;
    kernel->head.workspace_bytes = rondo__align_up(offset + bytes, 256);
    return offset;
}

static void note_form(rondo__cuda_kernel *kernel, size_t index, const rondo__weight_want *want,
                      void *memory) {
    if (kernel->form_count < RONDO__CUDA_FORMS_MAX) {
        kernel->form_inputs[kernel->form_count] = (uint8_t)index;
        kernel->form_bytes[kernel->form_count] = want->bytes;
        kernel->forms[kernel->form_count++] = memory;
    }
}

// Room for a form, for a candidate.
static bool keep_room(rondo__cuda_kernel *kernel, size_t index, const rondo__weight_want *want,
                      rondo__address *out_address) {
    const rondo__kernel_request *request = kernel->request;
    if (kernel->form_count == RONDO__CUDA_FORMS_MAX) {
        return rondo__cuda_check(kernel, RONDO_FAIL(INTERNAL, "%s: more forms than a kernel has",
                                                    request->op->def->name));
    }
    const bool is_brought = (request->brought_inputs >> index & 1u) != 0;
    *out_address = (rondo__address){
        .space = is_brought ? RONDO__ADDRESS_INPUT : RONDO__ADDRESS_STAND_IN,
        .index = request->input_count + kernel->form_count,
    };
    kernel->head.owned_inputs |= UINT64_C(1) << index;
    note_form(kernel, index, want, NULL);
    return true;
}

bool rondo__cuda_own_input(rondo__cuda_kernel *kernel, size_t index, rondo__weight_want *want,
                           rondo__address *out_address) {
    void *memory = NULL;
    const rondo__kernel_request *request = kernel->request;
    want->constant = rondo__cuda_input(kernel, index)->constant;
    if (kernel->is_candidate && kernel->status == RONDO_STATUS_OK) {
        return keep_room(kernel, index, want, out_address);
    }
    if (kernel->status == RONDO_STATUS_OK && (request->brought_inputs >> index & 1u) != 0) {
        if (!request->is_survey &&
            !rondo__cuda_check(kernel,
                               rondo__bring_list_add(request->bring, request->node, index, want))) {
            return false;
        }
        kernel->head.owned_inputs |= UINT64_C(1) << index;
        *out_address = rondo__address_input(index);
        return true;
    }
    if (kernel->status != RONDO_STATUS_OK ||
        (!kernel->request->is_survey &&
         !rondo__cuda_check(kernel,
                            rondo__weight_list_add(kernel->request->weights, want, &memory)))) {
        return false;
    }
    kernel->head.owned_inputs |= UINT64_C(1) << index;
    note_form(kernel, index, want, memory);
    *out_address = rondo__address_fixed(memory);
    return true;
}

bool rondo__cuda_may_have_libraries(const rondo__cuda_kernel *kernel) {
    return kernel->device->backend == &rondo__backend_cuda;
}

void rondo__cuda_refuse(rondo__cuda_kernel *kernel, const char *detail) {
    if (kernel->status == RONDO_STATUS_OK) {
        kernel->status = rondo__op_fail_unsupported(kernel->request->op, detail);
    }
}

// ---- compiler options -------------------------------------------------------------------------

// Adds an option of these parts; what is too long is cut. A plan has thousands of options, for
// which snprintf takes long.
static void add_option(rondo__defines *defines, const char *const *parts, size_t count) {
    if (defines->count == RONDO__DEFINES_MAX) {
        return;
    }
    char *at = defines->text[defines->count];
    size_t room = sizeof defines->text[0] - 1;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strnlen(parts[i], room);
        memcpy(at, parts[i], length);
        at += length;
        room -= length;
    }
    *at = '\0';
    defines->count++;
}

void rondo__define_option(rondo__defines *defines, const char *option) {
    add_option(defines, &option, 1);
}

void rondo__define_text(rondo__defines *defines, const char *name, const char *value) {
    add_option(defines, (const char *const[]){"-D", name, "=", value}, 4);
}

void rondo__define_int(rondo__defines *defines, const char *name, int64_t value) {
    char digits[32];
    char *at = digits + sizeof digits - 1;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        *--at = '-';
    }
    rondo__define_text(defines, name, at);
}

const char *rondo__cuda_type_name(rondo_dtype dtype) {
    switch (dtype) {
        case RONDO_DTYPE_F32:
            return "float";
        case RONDO_DTYPE_F64:
            return "double";
        case RONDO_DTYPE_BOOL:
            return "b8";
        default:
            return rondo_dtype_get_name(dtype);
    }
}

// Types have a prefix: a macro named T would break the compiler's own headers.
void rondo__define_word(rondo__defines *defines, const char *name, const char *type) {
    add_option(defines, (const char *const[]){"-DRONDO_", name, "=", type}, 4);
}

void rondo__define_type(rondo__defines *defines, const char *name, rondo_dtype dtype) {
    rondo__define_word(defines, name, rondo__cuda_type_name(dtype));
}

void rondo__define_bytes(rondo__defines *defines, const char *name, size_t bytes) {
    const char *text = bytes == 1   ? "u8"
                       : bytes == 2 ? "u16"
                       : bytes == 4 ? "u32"
                       : bytes == 8 ? "u64"
                                    : "uint4";
    rondo__define_word(defines, name, text);
}

// ---- steps ------------------------------------------------------------------------------------

// A step has this many bytes, the arrays behind it among them.
static size_t measure_step(size_t word_count, size_t address_count, size_t map_count) {
    return sizeof(rondo__step) + word_count * sizeof(uint64_t) +
           address_count * sizeof(rondo__step_place) + map_count * sizeof(rondo__step_tensor);
}

// Sets where the arrays lie that have room for so many.
static void lay_out(rondo__step *step, size_t word_count, size_t address_count) {
    step->words = (uint64_t *)(step + 1);
    step->addresses = (rondo__step_place *)(step->words + word_count);
    step->maps = (rondo__step_tensor *)(step->addresses + address_count);
    step->launch.arguments = step->words;
}

// Gives back the room that the step does not use: plans keep hundreds of steps.
static rondo_status trim_step(rondo__step **in_out_step) {
    rondo__step *step = *in_out_step;
    const rondo__step_place *addresses = step->addresses;
    const rondo__step_tensor *maps = step->maps;
    lay_out(step, step->word_count, step->address_count);
    memmove(step->addresses, addresses, step->address_count * sizeof *addresses);
    memmove(step->maps, maps, step->map_count * sizeof *maps);
    step =
        rondo__realloc(step, measure_step(step->word_count, step->address_count, step->map_count));
    if (step == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    lay_out(step, step->word_count, step->address_count);
    *in_out_step = step;
    return RONDO_STATUS_OK;
}

rondo__step *rondo__cuda_add_step(rondo__cuda_kernel *kernel, rondo__step_kind kind) {
    if (kernel->status != RONDO_STATUS_OK ||
        !rondo__cuda_check(kernel, RONDO__ARRAY_RESERVE(kernel->steps, kernel->step_capacity,
                                                        kernel->step_count + 1))) {
        return NULL;
    }
    rondo__step *step = rondo__malloc(
        measure_step(RONDO__STEP_WORDS_MAX, RONDO__STEP_ADDRESSES_MAX, RONDO__STEP_MAPS_MAX));
    if (step == NULL) {
        (void)rondo__cuda_check(kernel, RONDO_STATUS_NO_MEMORY);
        return NULL;
    }
    *step = (rondo__step){.kind = kind, .launch = {.struct_size = sizeof step->launch}};
    lay_out(step, RONDO__STEP_WORDS_MAX, RONDO__STEP_ADDRESSES_MAX);
    kernel->steps[kernel->step_count++] = step;
    return step;
}

rondo_status rondo__cuda_prefer_shared_of(rondo_device *device, void *function, const char *name) {
    static const struct {
        const char *name;
        int percent;
    } wishes[] = {{"append_attention", 32}, {"bits_few", 32}, {"bits_row", 32}};
    rondo_device_info info = {.struct_size = sizeof info};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        if (strcmp(name, wishes[i].name) == 0) {
            RETURN_IF_ERROR(rondo_device_get_info(device, &info));
            return info.arch_major == 9
                       ? rondo__device_prefer_shared(device, function, wishes[i].percent)
                       : RONDO_STATUS_OK;
        }
    }
    return RONDO_STATUS_OK;
}

rondo__step *rondo__cuda_add_launch(rondo__cuda_kernel *kernel, const char *text,
                                    const rondo__defines *defines, const char *name, int64_t blocks,
                                    uint32_t threads) {
    const char *options[RONDO__DEFINES_MAX];
    void *function = NULL;

    if (kernel->status != RONDO_STATUS_OK) {
        return NULL;
    }
    for (size_t i = 0; i < defines->count; i++) {
        options[i] = defines->text[i];
    }
    if (kernel->request->is_survey) {
        rondo__device_want_function(kernel->device, text, options, defines->count, name);
    } else if (!rondo__cuda_check(
                   kernel, rondo__device_get_function(kernel->device, text, options, defines->count,
                                                      name, &function)) ||
               !rondo__cuda_check(kernel,
                                  rondo__cuda_prefer_shared_of(kernel->device, function, name))) {
        return NULL;
    }
    rondo__step *step = rondo__cuda_add_step(kernel, RONDO__STEP_LAUNCH);
    if (step != NULL) {
        const int64_t most = INT64_C(1) << 30;
        step->launch.name = name;
        step->launch.function = function;
        step->launch.flags = RONDO_LAUNCH_OVERLAP;  // every kernel of ours takes its turn itself
        step->launch.grid[0] = (uint32_t)(blocks < 1 ? 1 : blocks > most ? most : blocks);
        step->launch.grid[1] = 1;
        step->launch.grid[2] = 1;
        step->launch.block[0] = threads;
        step->launch.block[1] = 1;
        step->launch.block[2] = 1;
    }
    return step;
}

rondo__step *rondo__cuda_add_copy(rondo__cuda_kernel *kernel, rondo__address from,
                                  rondo__address to, size_t bytes) {
    rondo__step *step = bytes > 0 ? rondo__cuda_add_step(kernel, RONDO__STEP_COPY) : NULL;
    if (step != NULL) {
        step->bytes = bytes;
        rondo__step_address(step, from);
        rondo__step_address(step, to);
    }
    return step;
}

static void join_output(rondo__kernel *head) {
    ((rondo__cuda_kernel *)head)->skips_copy = true;
}

void rondo__cuda_may_skip_first(rondo__cuda_kernel *kernel, bool may) {
    kernel->head.join_output = may ? join_output : NULL;
}

void rondo__cuda_add_data_copy(rondo__cuda_kernel *kernel, size_t bytes) {
    if (rondo__cuda_add_copy(kernel, rondo__address_input(0), rondo__address_output(0), bytes) !=
            NULL &&
        kernel->step_count == 1) {
        kernel->head.in_place_inputs = 1;
        kernel->head.join_output = join_output;
    }
}

rondo__step *rondo__cuda_add_zero(rondo__cuda_kernel *kernel, rondo__address to, size_t bytes) {
    rondo__step *step = bytes > 0 ? rondo__cuda_add_step(kernel, RONDO__STEP_FILL) : NULL;
    if (step != NULL) {
        step->bytes = bytes;
        rondo__step_address(step, to);
    }
    return step;
}

rondo__step *rondo__cuda_add_call(rondo__cuda_kernel *kernel, rondo__cuda_call call, void *state,
                                  void (*destroy)(void *state)) {
    rondo__step *step = rondo__cuda_add_step(kernel, RONDO__STEP_CALL);
    if (step != NULL) {
        step->call = call;
        step->state = state;
        step->destroy = destroy;
    } else if (destroy != NULL) {
        destroy(state);
    }
    return step;
}

rondo__address rondo__address_input(size_t index) {
    return (rondo__address){.space = RONDO__ADDRESS_INPUT, .index = index};
}

rondo__address rondo__address_output(size_t index) {
    return (rondo__address){.space = RONDO__ADDRESS_OUTPUT, .index = index};
}

rondo__address rondo__address_workspace(size_t offset_bytes) {
    return (rondo__address){.space = RONDO__ADDRESS_WORKSPACE, .offset_bytes = offset_bytes};
}

rondo__address rondo__address_fixed(void *memory) {
    return (rondo__address){.space = RONDO__ADDRESS_FIXED, .fixed = memory};
}

bool rondo__address_is_fixed(const rondo__address *address) {
    return address->space == RONDO__ADDRESS_FIXED || address->space == RONDO__ADDRESS_STAND_IN;
}

rondo__address rondo__address_offset(rondo__address address, size_t bytes) {
    address.offset_bytes += bytes;
    return address;
}

void *rondo__address_resolve(const rondo__address *address,
                             const rondo__cuda_arguments *arguments) {
    uintptr_t base = 0;
    switch (address->space) {
        case RONDO__ADDRESS_INPUT:
        case RONDO__ADDRESS_STAND_IN:
            base = (uintptr_t)arguments->inputs[address->index];
            break;
        case RONDO__ADDRESS_OUTPUT:
            base = (uintptr_t)arguments->outputs[address->index];
            break;
        case RONDO__ADDRESS_WORKSPACE:
            base = (uintptr_t)arguments->workspace;
            break;
        case RONDO__ADDRESS_FAULTY: {
            rondo__flow_watch *const *watch = address->fixed;
            base = *watch != NULL ? (uintptr_t) & (*watch)->faulty : 0;
            break;
        }
        case RONDO__ADDRESS_FIXED:
            base = (uintptr_t)address->fixed;
            for (size_t i = 0; i < arguments->moved_count; i++) {
                if (arguments->moved[i].from == address->fixed) {
                    base = (uintptr_t)arguments->moved[i].to;
                }
            }
            break;
    }
    return base == 0 ? NULL : (void *)(base + address->offset_bytes);
}

static void append_word(rondo__step *step, uint64_t word) {
    if (step->word_count < RONDO__STEP_WORDS_MAX) {
        step->words[step->word_count++] = word;
    } else {
        step->overflowed = true;
    }
    step->launch.argument_bytes = step->word_count * sizeof(uint64_t);
}

void rondo__step_address(rondo__step *step, rondo__address address) {
    if (step == NULL) {
        return;
    }
    if (step->address_count < RONDO__STEP_ADDRESSES_MAX) {
        step->addresses[step->address_count].word = (uint16_t)step->word_count;
        step->addresses[step->address_count].address = address;
        step->address_count++;
    } else {
        step->overflowed = true;
    }
    append_word(step, 0);
}

void rondo__step_input(rondo__step *step, size_t index) {
    rondo__step_address(step, rondo__address_input(index));
}

void rondo__step_output(rondo__step *step, size_t index) {
    rondo__step_address(step, rondo__address_output(index));
}

void rondo__step_int(rondo__step *step, int64_t value) {
    if (step != NULL) {
        append_word(step, (uint64_t)value);
    }
}

void rondo__step_ints(rondo__step *step, const int64_t *values, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        rondo__step_int(step, values[i]);
    }
}

void rondo__step_float(rondo__step *step, double value) {
    if (step != NULL) {
        uint64_t word;
        memcpy(&word, &value, sizeof(word));
        append_word(step, word);
    }
}

void rondo__step_faults(rondo__step *step, const rondo__cuda_kernel *kernel, rondo__fault fault) {
    rondo__flow_watch *const *watch = kernel->request->watch;
    if (watch != NULL) {
        rondo__step_address(step, (rondo__address){.space = RONDO__ADDRESS_FAULTY,
                                                   .fixed = (void *)(uintptr_t)watch});
    } else {
        rondo__step_int(step, 0);
    }
    if (step != NULL && step->fault_count < RONDO__STEP_FAULTS_MAX) {
        step->faults[step->fault_count] = (uint16_t)step->word_count;
    }
    if (step != NULL && step->fault_count <= RONDO__STEP_FAULTS_MAX) {
        step->fault_count++;
    }
    rondo__step_int(step, (int64_t)((uint64_t)(uintptr_t)kernel | (uint64_t)fault));
}

void rondo__step_map(rondo__step *step, rondo__address address, const rondo__tensor_form *form) {
    if (step == NULL) {
        return;
    }
    step->launch.flags |= RONDO_LAUNCH_ONE_PARAMETER;
    if (step->map_count < RONDO__STEP_MAPS_MAX) {
        step->maps[step->map_count].word = (uint16_t)step->word_count;
        step->maps[step->map_count].address = address;
        step->maps[step->map_count].form = *form;
        step->maps[step->map_count].mapped = NULL;
        step->map_count++;
    } else {
        step->overflowed = true;
    }
    for (int i = 0; i < RONDO__TENSOR_MAP_WORDS; i++) {
        append_word(step, 0);
    }
}

void rondo__step_end_maps(rondo__step *step) {
    while (step != NULL && step->word_count % RONDO__TENSOR_MAP_WORDS != 0 && !step->overflowed) {
        append_word(step, 0);
    }
}

int64_t rondo__cuda_get_shared_bytes(const rondo_device_info *info) {
    return info->arch_major >= 9                            ? 227 << 10
           : info->arch_major == 8 && info->arch_minor == 0 ? 163 << 10
                                                            : 99 << 10;
}

int64_t rondo__cuda_blocks(int64_t count) {
    return count / RONDO__CUDA_BLOCK + (count % RONDO__CUDA_BLOCK != 0);
}

// ---- request helpers --------------------------------------------------------------------------

static const rondo__tensor_info absent_tensor = {.dtype = RONDO_DTYPE_NONE};

const rondo__tensor_info *rondo__cuda_input(const rondo__cuda_kernel *kernel, size_t index) {
    return index < kernel->request->input_count ? &kernel->request->inputs[index] : &absent_tensor;
}

const rondo__tensor_info *rondo__cuda_output(const rondo__cuda_kernel *kernel, size_t index) {
    return index < kernel->request->output_count ? &kernel->request->outputs[index]
                                                 : &absent_tensor;
}

bool rondo__cuda_has_input(const rondo__cuda_kernel *kernel, size_t index) {
    return rondo__cuda_input(kernel, index)->dtype != RONDO_DTYPE_NONE;
}

bool rondo__cuda_wants_output(const rondo__cuda_kernel *kernel, size_t index) {
    return rondo__cuda_output(kernel, index)->dtype != RONDO_DTYPE_NONE;
}

int64_t rondo__cuda_read_ints(rondo__cuda_kernel *kernel, size_t index, int64_t *out_values,
                              int64_t capacity) {
    const rondo_tensor *tensor = rondo__cuda_input(kernel, index)->constant;
    if (tensor == NULL && rondo__cuda_has_input(kernel, index) &&
        rondo_shape_get_count(&rondo__cuda_input(kernel, index)->shape) == 0) {
        return 0;
    }
    if (tensor == NULL) {
        rondo__cuda_refuse(kernel, "a parameter that is computed on the device");
        return -1;
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count < 0 || count > capacity ||
        (tensor->dtype != RONDO_DTYPE_I64 && tensor->dtype != RONDO_DTYPE_I32)) {
        rondo__cuda_refuse(kernel, "a parameter of this type or length");
        return -1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (tensor->dtype == RONDO_DTYPE_I64) {
            out_values[i] = ((const int64_t *)tensor->data)[i];
        } else {
            out_values[i] = ((const int32_t *)tensor->data)[i];
        }
    }
    return count;
}

int64_t rondo__cuda_read_axes(rondo__cuda_kernel *kernel, const char *attribute, size_t index,
                              int32_t rank, int64_t *out_axes) {
    size_t attribute_count = 0;
    int64_t count = 0;
    const int64_t *ints = rondo__op_get_ints(kernel->request->op, attribute, &attribute_count);
    if (ints != NULL) {
        count = (int64_t)attribute_count;
        if (count > RONDO_RANK_MAX) {
            rondo__cuda_refuse(kernel, "more axes than a shape has");
            return -1;
        }
        for (int64_t i = 0; i < count; i++) {
            out_axes[i] = ints[i];
        }
    } else if (rondo__cuda_has_input(kernel, index)) {
        count = rondo__cuda_read_ints(kernel, index, out_axes, RONDO_RANK_MAX);
    }
    for (int64_t i = 0; i < count; i++) {
        out_axes[i] = rondo__cuda_wrap_axis(out_axes[i], rank);
    }
    return count;
}

int32_t rondo__cuda_wrap_axis(int64_t axis, int32_t rank) {
    if (axis < 0) {
        axis += rank;
    }
    return (int32_t)(axis < 0 ? 0 : axis > rank ? rank : axis);
}

int64_t rondo__cuda_product(const rondo_shape *shape, int32_t from, int32_t to) {
    int64_t product = 1;
    for (int32_t i = from; i < to; i++) {
        product *= shape->extent[i];
    }
    return product;
}

bool rondo__cuda_is_float(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16 || dtype == RONDO_DTYPE_F32;
}

void rondo__step_optional(rondo__step *step, const rondo__address *address) {
    if (address != NULL) {
        rondo__step_address(step, *address);
    } else {
        rondo__step_int(step, 0);
    }
}

void rondo__step_optional_input(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index) {
    const rondo__address address = rondo__address_input(index);
    rondo__step_optional(step, rondo__cuda_has_input(kernel, index) ? &address : NULL);
}

void rondo__step_optional_output(rondo__step *step, const rondo__cuda_kernel *kernel,
                                 size_t index) {
    const rondo__address address = rondo__address_output(index);
    rondo__step_optional(step, rondo__cuda_wants_output(kernel, index) ? &address : NULL);
}

// ---- a kernel's life --------------------------------------------------------------------------

static rondo_status write_arguments(rondo__step *step, rondo_device *device,
                                    const rondo__cuda_arguments *arguments) {
    for (size_t i = 0; i < step->address_count; i++) {
        step->words[step->addresses[i].word] =
            (uint64_t)(uintptr_t)rondo__address_resolve(&step->addresses[i].address, arguments);
    }
    for (size_t i = 0; i < step->map_count; i++) {
        void *address = rondo__address_resolve(&step->maps[i].address, arguments);
        if (step->maps[i].mapped != address) {
            step->maps[i].mapped = NULL;
            RETURN_IF_ERROR(rondo__cuda_map_tensor(device, &step->maps[i].form, address,
                                                   &step->words[step->maps[i].word]));
            step->maps[i].mapped = address;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status get_node(rondo__step *step, rondo_device *device,
                             const rondo__cuda_arguments *arguments, rondo__line_node *out_node) {
    *out_node = (rondo__line_node){.kind = RONDO__NODE_KERNEL, .launch = &step->launch};
    if (step->kind == RONDO__STEP_LAUNCH) {
        return write_arguments(step, device, arguments);
    }
    const bool is_copy = step->kind == RONDO__STEP_COPY;
    void *first = rondo__address_resolve(&step->addresses[0].address, arguments);
    *out_node = (rondo__line_node){
        .kind = is_copy ? RONDO__NODE_COPY : RONDO__NODE_FILL,
        .source = is_copy ? first : NULL,
        .destination =
            is_copy ? rondo__address_resolve(&step->addresses[1].address, arguments) : first,
        .bytes = step->bytes};
    return RONDO_STATUS_OK;
}

static rondo_status put_node(void *stream, const rondo__line_node *node) {
    return node->kind == RONDO__NODE_KERNEL ? rondo_stream_launch(stream, node->launch)
           : node->kind == RONDO__NODE_COPY
               ? rondo_stream_copy(stream, node->destination, node->source, node->bytes,
                                   RONDO_COPY_DEVICE_TO_DEVICE)
               : rondo_stream_fill(stream, node->destination, 0, 1, node->bytes);
}

// Shows the nodes of all steps; library calls, which show none, go on the stream.
static rondo_status visit_steps(rondo__cuda_kernel *kernel, rondo_stream *stream,
                                const rondo__cuda_arguments *arguments, rondo__node_visit visit,
                                void *user_data) {
    for (size_t i = kernel->skips_copy ? 1 : 0; i < kernel->step_count; i++) {
        rondo__step *step = kernel->steps[i];
        rondo__line_node node;
        if (step->kind == RONDO__STEP_CALL) {
            RETURN_IF_ERROR(step->call(step->state, stream, arguments));
        } else {
            RETURN_IF_ERROR(get_node(step, kernel->device, arguments, &node));
            RETURN_IF_ERROR(visit(user_data, &node));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_run_steps(rondo__cuda_kernel *kernel, rondo_stream *stream,
                                   const rondo__cuda_arguments *arguments) {
    return visit_steps(kernel, stream, arguments, put_node, stream);
}

static rondo_status visit_nodes(rondo__kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace, rondo__node_visit visit,
                                void *user_data) {
    const rondo__cuda_arguments arguments = {
        .inputs = inputs, .outputs = outputs, .workspace = workspace};
    return visit_steps((rondo__cuda_kernel *)head, NULL, &arguments, visit, user_data);
}

static rondo_status launch_kernel(rondo__kernel *head, rondo_stream *stream,
                                  const void *const *inputs, void *const *outputs,
                                  void *workspace) {
    const rondo__cuda_arguments arguments = {
        .inputs = inputs, .outputs = outputs, .workspace = workspace};
    return rondo__cuda_run_steps((rondo__cuda_kernel *)head, stream, &arguments);
}

static void destroy_kernel(rondo__kernel *head) {
    rondo__cuda_kernel *kernel = (rondo__cuda_kernel *)head;
    cut_steps(kernel, 0);
    rondo__free(kernel->steps);
    rondo__free(kernel);
}

const rondo__cuda_kernel *rondo__cuda_kernel_of(const rondo__kernel *head) {
    return head->destroy == destroy_kernel ? (const rondo__cuda_kernel *)head : NULL;
}

rondo_status rondo__cuda_begin_kernel(const rondo__kernel_request *request,
                                      rondo__cuda_kernel **out_kernel) {
    *out_kernel = NULL;
    rondo__cuda_kernel *kernel = rondo__calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->head = (rondo__kernel){
        .launch = launch_kernel,
        .destroy = destroy_kernel,
        .implementation = "nvrtc",
    };
    kernel->request = request;
    kernel->device = request->device;
    *out_kernel = kernel;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_begin_candidate(const rondo__kernel_request *request,
                                         rondo__cuda_kernel **out_kernel) {
    RETURN_IF_ERROR(rondo__cuda_begin_kernel(request, out_kernel));
    (*out_kernel)->is_candidate = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_finish_kernel(rondo__cuda_kernel *kernel, rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    kernel->head.visit_nodes = visit_nodes;
    for (size_t i = 0; i < kernel->step_count && kernel->status == RONDO_STATUS_OK; i++) {
        if (kernel->steps[i]->kind == RONDO__STEP_CALL) {
            kernel->head.visit_nodes = NULL;
        }
        if (kernel->steps[i]->overflowed) {
            kernel->status = RONDO_FAIL(INTERNAL, "%s: more kernel parameters than a step holds",
                                        kernel->request->op->def->name);
        }
    }
    kernel->request = NULL;
    for (size_t i = 0; i < kernel->step_count && kernel->status == RONDO_STATUS_OK; i++) {
        (void)rondo__cuda_check(kernel, trim_step(&kernel->steps[i]));
    }
    if (kernel->status != RONDO_STATUS_OK) {
        const rondo_status status = kernel->status;
        destroy_kernel(&kernel->head);
        return status;
    }
    *out_kernel = &kernel->head;
    return RONDO_STATUS_OK;
}
