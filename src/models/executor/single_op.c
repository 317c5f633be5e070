// executor/single_op.c — ops one by one: the kernel of a program of one node, without a plan.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/float_scope.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/use_count.h"
#include "capture/capture.h"
#include "device/device.h"
#include "executor/state/arena_plan.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/op_span.h"
#include "kernel/kernel.h"
#include "op/draws.h"
#include "program/shapes/specialise.h"
#include "rondo/op.h"
#include "tensor/elements.h"

static const char prepare_call[] = "rondo_op_prepare";
static const char launch_call[] = "rondo_op_put";

struct rondo_op {
    atomic_int reference_count;  // the caller's, and recorded launches
    rondo_device *device;        // retained
    rondo_program *program;      // one node, and its constants
    rondo__weight_store *store;
    rondo__weight_account account;
    rondo__weight_list weights;
    rondo_generator *generator;  // NULL: it draws nothing
    rondo__kernel *kernel;
    rondo_stream *stream;  // for what is prepared
    void *workspace;       // of eager launches
    rondo_event *launched;
    bool was_launched;
    rondo__tensor_info *infos;    // of inputs, then of outputs
    const void **inputs;          // addresses: those of constants stay
    void **outputs;               // of one launch
    rondo__participant *adopted;  // of captures that are not Rondo's
    size_t input_count, output_count;
};

// ---- life -------------------------------------------------------------------------------------

static void release_op(rondo_op *op) {
    if (op == NULL || !rondo__reference_drop(&op->reference_count)) {
        return;
    }
    rondo__participants_destroy(op->adopted);
    rondo__kernel_destroy(op->kernel);
    if (op->weights.account != NULL) {
        rondo__weight_list_cut(&op->weights, 0);
    }
    rondo__weight_store_destroy(op->store);
    rondo_generator_release(op->generator);
    rondo_memory_free(op->device, op->workspace);
    rondo_event_destroy(op->launched);
    rondo_stream_destroy(op->stream);
    rondo_program_destroy(op->program);
    rondo__free(op->infos);
    rondo__free(op->inputs);
    rondo__free(op->outputs);
    rondo_device_release(op->device);
    rondo__free(op);
}

void rondo_op_destroy(rondo_op *op) {
    if (op != NULL && op->was_launched) {
        rondo_error saved;
        rondo__error_save(&saved);
        (void)!rondo_event_synchronize(op->launched);
        rondo__error_restore(&saved);
    }
    release_op(op);
}

// ---- the program of one node ------------------------------------------------------------------

enum { NAME_BYTES = 32, OPERANDS_MAX = 1 << 16 };

// "input 3"
static const char *write_name(const char *kind, size_t index, char *name) {
    (void)snprintf(name, NAME_BYTES, "%s %zu", kind, index);
    return name;
}

static rondo_status add_input(rondo_builder *builder, const rondo_tensor *input, const char *name) {
    if (input->data != NULL) {
        return rondo_builder_add_parameter(builder, name, input, RONDO_PARAMETER_COPIED);
    }
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = input->dtype};
    port.rank = input->shape.rank;
    if (rondo_shape_get_count(&input->shape) < 0) {
        return RONDO_FAIL_AS(prepare_call, INVALID, "%s: its shape is not valid", name);
    }
    memcpy(port.extent, input->shape.extent, sizeof port.extent);
    return rondo_builder_add_input(builder, &port);
}

typedef struct names {
    char (*texts)[NAME_BYTES];
    const char **list;  // of inputs, then of outputs
} names;

static rondo_status fill_builder(rondo_builder *builder, const char *name,
                                 const rondo_op_options *options, const rondo_tensor *inputs,
                                 size_t input_count, size_t output_count, const names *n) {
    for (size_t i = 0; i < input_count; ++i) {
        if (inputs[i].dtype != RONDO_DTYPE_NONE) {
            n->list[i] = write_name("input", i, n->texts[i]);
            RETURN_IF_ERROR(add_input(builder, &inputs[i], n->list[i]));
        }
    }
    for (size_t i = 0; i < output_count; ++i) {
        n->list[input_count + i] = write_name("output", i, n->texts[input_count + i]);
    }
    const rondo_builder_node_options node = {.struct_size = sizeof node,
                                             .domain = options->domain,
                                             .version = options->version,
                                             .name = name,
                                             .attributes = options->attributes,
                                             .attribute_count = options->attribute_count};
    RETURN_IF_ERROR(rondo_builder_add_node(builder, name, n->list, input_count,
                                           n->list + input_count, output_count, &node));
    for (size_t i = 0; i < output_count; ++i) {
        RETURN_IF_ERROR(rondo_builder_add_output(builder, n->list[input_count + i], NULL));
    }
    return RONDO_STATUS_OK;
}

static rondo_status build(rondo_op *op, const char *name, const rondo_op_options *options,
                          const rondo_tensor *inputs) {
    const size_t count = op->input_count + op->output_count;
    const bool is_onnx = options->domain == NULL || options->domain[0] == '\0';
    rondo_builder_options whole = {.struct_size = sizeof whole, .name = name};
    whole.opset = is_onnx ? options->version : 0;
    rondo_builder *builder = NULL;
    names n = {rondo__calloc(count + 1, sizeof *n.texts), rondo__calloc(count + 1, sizeof *n.list)};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (n.texts != NULL && n.list != NULL) {
        status = rondo_builder_create(&whole, &builder);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            fill_builder(builder, name, options, inputs, op->input_count, op->output_count, &n);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, &op->program);
    }
    rondo_builder_destroy(builder);
    rondo__free(n.texts);
    rondo__free(n.list);
    return status;
}

// ---- preparing --------------------------------------------------------------------------------

// Constants that the kernel reads where launches say.
static rondo_status place_constants(rondo_op *op) {
    for (size_t i = 0; i < op->input_count; ++i) {
        const rondo_tensor *constant = op->infos[i].constant;
        const bool is_owned = i < 64 && (op->kernel->owned_inputs >> i & 1u) != 0;
        if (constant == NULL || is_owned) {
            continue;
        }
        if (rondo_device_is_host(op->device)) {
            op->inputs[i] = constant->data;
            continue;
        }
        const rondo__weight_want want = {.constant = constant,
                                         .bytes = rondo_tensor_get_bytes(constant)};
        void *address = NULL;
        RETURN_IF_ERROR(rondo__weight_list_add(&op->weights, &want, &address));
        op->inputs[i] = address;
    }
    return RONDO_STATUS_OK;
}

// The kernel, and its generator.
static rondo_status prepare_kernel(rondo_op *op, uint64_t seed) {
    const rondo__node *node = &op->program->nodes[0];
    rondo__tensor_info *outputs = op->infos + op->input_count;
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(op->program, node->inputs[i], &op->infos[i]);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        rondo__program_get_info(op->program, node->outputs[i], &outputs[i]);
    }
    for (size_t i = 0; i < op->input_count + op->output_count; ++i) {
        if (op->infos[i].dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(op->infos[i].dtype)) {
            return RONDO_FAIL_AS(prepare_call, UNSUPPORTED,
                                 "%s: a %s comes in or goes out; such ops run in programs only",
                                 node->op.def->name, rondo_dtype_get_name(op->infos[i].dtype));
        }
    }
    if (rondo__op_draws(&node->op, op->infos, op->input_count)) {
        RETURN_IF_ERROR(rondo_generator_create(op->device, seed, &op->generator));
    }
    rondo__kernel_request request = {.device = op->device,
                                     .op = &node->op,
                                     .input_count = op->input_count,
                                     .inputs = op->infos,
                                     .output_count = op->output_count,
                                     .outputs = outputs,
                                     .generator = op->generator,
                                     .weights = &op->weights};
    RETURN_IF_ERROR(rondo__kernel_prepare(&request, &op->kernel));
    if (op->kernel->keeps_addresses) {
        return RONDO_FAIL_AS(prepare_call, UNSUPPORTED,
                             "%s has more operands than a launch can carry", node->op.def->name);
    }
    return place_constants(op);
}

static size_t get_bytes(const rondo__tensor_info *info) {
    const rondo_tensor shell = {.dtype = info->dtype, .shape = info->shape};
    return rondo__align_up(rondo_tensor_get_bytes(&shell), RONDO__ARENA_ALIGNMENT);
}

// The first launch of a kernel of a GPU may allocate, which no capture allows: so it is made here,
// on zeros.
static rondo_status warm_up(rondo_op *op) {
    const size_t count = op->input_count + op->output_count;
    size_t total = RONDO__ARENA_ALIGNMENT;
    for (size_t i = 0; i < count; ++i) {
        total += get_bytes(&op->infos[i]);
    }
    char *memory = NULL;
    RETURN_IF_ERROR(
        rondo_memory_allocate(op->device, RONDO_MEMORY_DEVICE, total, (void **)&memory));
    size_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
        const bool is_there = op->infos[i].dtype != RONDO_DTYPE_NONE;
        void *address = is_there ? memory + offset : NULL;
        if (i >= op->input_count) {
            op->outputs[i - op->input_count] = address;
        } else if (op->infos[i].constant == NULL) {
            op->inputs[i] = address;
        }
        offset += get_bytes(&op->infos[i]);
    }
    rondo_status status = rondo_stream_fill(op->stream, memory, 0, 1, total);
    if (status == RONDO_STATUS_OK) {
        status = op->kernel->launch(op->kernel, op->stream, op->inputs, op->outputs, op->workspace);
    }
    const rondo_status waited = rondo_stream_synchronize(op->stream);
    status = status != RONDO_STATUS_OK ? status : waited;
    rondo_memory_free(op->device, memory);
    if (status == RONDO_STATUS_OK && op->generator != NULL) {
        rondo_generator_state state;
        status = rondo_generator_get_state(op->generator, &state);
        state.offset = 0;
        status =
            status == RONDO_STATUS_OK ? rondo_generator_set_state(op->generator, &state) : status;
    }
    return status;
}

static rondo_status prepare(rondo_op *op, const char *name, const rondo_op_options *options,
                            const rondo_tensor *inputs) {
    const size_t count = op->input_count + op->output_count + 1;
    op->infos = rondo__calloc(count, sizeof *op->infos);
    op->inputs = rondo__calloc(op->input_count + 1, sizeof *op->inputs);
    op->outputs = rondo__calloc(op->output_count + 1, sizeof *op->outputs);
    if (op->infos == NULL || op->inputs == NULL || op->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(build(op, name, options, inputs));
    RETURN_IF_ERROR(rondo_stream_create(op->device, NULL, &op->stream));
    RETURN_IF_ERROR(rondo_event_create(op->device, 0, &op->launched));
    RETURN_IF_ERROR(rondo__weight_store_create(op->device, RONDO_MEMORY_DEVICE, &op->store));
    op->account = (rondo__weight_account){.store = op->store, .stream = op->stream};
    rondo__weight_list_init(&op->account, &op->weights);
    RETURN_IF_ERROR(prepare_kernel(op, options->seed));
    RETURN_IF_ERROR(rondo__weight_list_settle(&op->weights));
    RETURN_IF_ERROR(rondo_memory_allocate(op->device, RONDO_MEMORY_DEVICE,
                                          op->kernel->workspace_bytes, &op->workspace));
    return rondo_device_is_host(op->device) ? RONDO_STATUS_OK : warm_up(op);
}

rondo_status rondo_op_prepare(rondo_device *device, const char *name,
                              const rondo_op_options *options, const rondo_tensor *inputs,
                              size_t input_count, size_t output_count, rondo_op **out_op) {
    RETURN_IF_ERROR(rondo__check_pointer(out_op, __func__, "out_op"));
    *out_op = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    RETURN_IF_ERROR(rondo__check_pointer(name, __func__, "name"));
    if (input_count > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(inputs, __func__, "inputs"));
    }
    if (input_count > OPERANDS_MAX || output_count > OPERANDS_MAX) {
        return RONDO_FAIL(INVALID, "%zu inputs and %zu outputs: no op has more than %d",
                          input_count, output_count, (int)OPERANDS_MAX);
    }
    rondo_op_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_op_options"));
    rondo_op *op = rondo__calloc(1, sizeof *op);
    if (op == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&op->reference_count, 1);
    rondo_device_retain(device);
    op->device = device;
    op->input_count = input_count;
    op->output_count = output_count;
    const rondo__float_scope scope = rondo__float_enter();
    const rondo_status status = prepare(op, name, &wanted, inputs);
    rondo__float_leave(&scope);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        release_op(op);
        rondo__error_restore(&saved);
        return status;
    }
    *out_op = op;
    return RONDO_STATUS_OK;
}

rondo_status rondo_op_get_output(const rondo_op *op, size_t index, rondo_tensor *out_description) {
    RETURN_IF_ERROR(rondo__check_pointer(out_description, __func__, "out_description"));
    *out_description = (rondo_tensor){0};
    RETURN_IF_ERROR(rondo__check_pointer(op, __func__, "op"));
    if (index >= op->output_count) {
        return RONDO_FAIL(INVALID, "there is no output %zu; %s has %zu", index,
                          op->program->nodes[0].op.def->name, op->output_count);
    }
    const rondo__tensor_info *info = &op->infos[op->input_count + index];
    *out_description = (rondo_tensor){.dtype = info->dtype, .shape = info->shape};
    return RONDO_STATUS_OK;
}

// ---- launching --------------------------------------------------------------------------------

// The memory that the launches in a capture, or in one conditional body of it, share: each launch
// comes behind the one before it, by an edge if their streams differ. A body has memory of its own,
// because no edge leads into it.
typedef struct op_section {
    struct op_section *next;
    uint64_t id;  // 0: of a capture that is not Rondo's, where each launch has its own
    void *workspace;
    uint32_t stream_number;     // of the latest launch
    rondo__node_handle *nodes;  // at which its stream stood then
    size_t node_count, node_capacity;
} op_section;

// Memory that recorded launches need.
typedef struct op_use {
    rondo__participant base;
    rondo_op *op;  // counted, unless the op has adopted it
    bool is_counted;
    op_section *sections;  // none where the op keeps nothing
} op_use;

static void destroy_use(rondo__participant *participant) {
    op_use *use = (op_use *)participant;
    while (use->sections != NULL) {
        op_section *section = use->sections;
        use->sections = section->next;
        rondo_memory_free(use->op->device, section->workspace);
        rondo__free(section->nodes);
        rondo__free(section);
    }
    if (use->is_counted) {
        release_op(use->op);
    }
    rondo__free(use);
}

static const rondo__participant_type op_use_type = {.name = "op", .destroy = destroy_use};

static rondo_status add_section(op_use *use, uint64_t id, op_section **out_section) {
    op_section *section = rondo__calloc(1, sizeof *section);
    if (section == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        rondo__memory_take(use->op->device, RONDO_MEMORY_DEVICE, use->op->kernel->workspace_bytes,
                           &section->workspace);
    if (status != RONDO_STATUS_OK) {
        rondo__free(section);
        return status;
    }
    section->id = id;
    section->next = use->sections;
    *out_section = use->sections = section;
    return RONDO_STATUS_OK;
}

static rondo_status add_use(rondo_op *op, rondo__capture *capture, op_use **out_use) {
    op_use *use = rondo__calloc(1, sizeof *use);
    if (use == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    use->base.type = &op_use_type;
    use->base.key = op;
    use->op = op;
    if (capture != NULL) {
        use->is_counted = true;
        rondo__reference_take(&op->reference_count);
        rondo__capture_add_participant(capture, &use->base);
    } else {
        use->base.next = op->adopted;
        op->adopted = &use->base;
    }
    *out_use = use;
    return RONDO_STATUS_OK;
}

// The launches in this part of the capture; NULL: they share nothing. If Rondo does not see the end
// of the capture (NULL), each launch has memory of its own.
static rondo_status join_capture(rondo_op *op, rondo__capture *capture, uint64_t id,
                                 op_section **out_section) {
    *out_section = NULL;
    op_use *use = capture != NULL
                      ? (op_use *)rondo__capture_find_participant(capture, &op_use_type, op)
                      : NULL;
    if (use == NULL) {
        RETURN_IF_ERROR(add_use(op, capture, &use));
    }
    op_section *section = use->sections;
    while (section != NULL && section->id != id) {
        section = section->next;
    }
    *out_section = section;
    if (section != NULL || op->kernel->workspace_bytes == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(add_section(use, id, out_section));
    if (capture != NULL) {
        // Each recording has other memory there, so the learner, which compares two recordings,
        // must know it.
        rondo__capture_note_block(capture, (*out_section)->workspace, op->kernel->workspace_bytes);
    }
    return RONDO_STATUS_OK;
}

// Nothing of a launch runs before the one before it is done.
static rondo_status put_behind_latest(const op_section *section, rondo_stream *stream) {
    const bool is_ordered = section->node_count == 0 || section->stream_number == stream->number;
    return is_ordered ? RONDO_STATUS_OK
                      : stream->device->backend->add_dependencies(stream, section->nodes,
                                                                  section->node_count);
}

static rondo_status note_latest(op_section *section, rondo_stream *stream) {
    const rondo__backend *backend = stream->device->backend;
    section->stream_number = stream->number;
    section->node_count = 0;
    size_t count = 1;
    do {
        rondo_status status = RONDO__ARRAY_RESERVE(section->nodes, section->node_capacity, count);
        RETURN_IF_ERROR(status);
        RETURN_IF_ERROR(
            backend->get_frontier(stream, section->nodes, section->node_capacity, &count));
    } while (count > section->node_capacity);
    section->node_count = count;
    return RONDO_STATUS_OK;
}

static rondo_status check_tensor(const rondo_op *op, const rondo__tensor_info *info,
                                 const rondo_tensor *tensor, const char *kind, size_t index) {
    char have[96];
    char want[96];
    const char *name = op->program->nodes[0].op.def->name;
    const bool is_near = rondo_device_is_host(op->device) ? rondo_tensor_is_on_host(tensor)
                                                          : tensor->device == op->device;
    if (tensor->dtype != info->dtype || !rondo_shape_is_equal(&tensor->shape, &info->shape)) {
        return RONDO_FAIL_AS(
            launch_call, INVALID, "%s %zu of %s is %s %s, it was prepared as %s %s", kind, index,
            name, rondo_dtype_get_name(tensor->dtype),
            rondo_shape_format(&tensor->shape, have, sizeof have),
            rondo_dtype_get_name(info->dtype), rondo_shape_format(&info->shape, want, sizeof want));
    }
    if (!is_near) {
        return RONDO_FAIL_AS(
            launch_call, INVALID, "%s %zu of %s lies %s%s, the op was prepared for %s", kind, index,
            name, tensor->device != NULL ? "on " : "in host memory",
            rondo_device_get_name(tensor->device), rondo_device_get_name(op->device));
    }
    const size_t alignment = rondo_device_is_host(op->device) ? rondo_dtype_get_bytes(info->dtype)
                                                              : RONDO__ARENA_ALIGNMENT;
    if (rondo_tensor_get_bytes(tensor) > 0 &&
        (tensor->data == NULL || (uintptr_t)tensor->data % alignment != 0)) {
        return RONDO_FAIL_AS(launch_call, INVALID, "%s %zu of %s: its data is %s", kind, index,
                             name,
                             tensor->data == NULL ? "NULL"
                                                  : "not at a multiple of 256 bytes, on which "
                                                    "kernels rely");
    }
    return RONDO_STATUS_OK;
}

static bool do_overlap(const rondo_tensor *a, const rondo_tensor *b) {
    const uintptr_t x = (uintptr_t)a->data;
    const uintptr_t y = (uintptr_t)b->data;
    const size_t x_bytes = rondo_tensor_get_bytes(a);
    const size_t y_bytes = rondo_tensor_get_bytes(b);
    return x_bytes > 0 && y_bytes > 0 && (x < y ? y - x < x_bytes : x - y < y_bytes);
}

// No kernel says that it may write over what it reads.
static rondo_status refuse_overlap(const rondo_op *op, const rondo_tensor *inputs,
                                   const rondo_tensor *outputs, size_t output) {
    const char *name = op->program->nodes[0].op.def->name;
    for (size_t i = 0; i < op->input_count; ++i) {
        const rondo__tensor_info *info = &op->infos[i];
        if (info->dtype != RONDO_DTYPE_NONE && info->constant == NULL &&
            do_overlap(&inputs[i], &outputs[output])) {
            return RONDO_FAIL_AS(launch_call, INVALID,
                                 "output %zu of %s overlaps input %zu; give it memory of its own",
                                 output, name, i);
        }
    }
    for (size_t i = 0; i < output; ++i) {
        if (do_overlap(&outputs[i], &outputs[output])) {
            return RONDO_FAIL_AS(launch_call, INVALID,
                                 "outputs %zu and %zu of %s overlap; give each memory of its own",
                                 i, output, name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_tensors(rondo_op *op, const rondo_tensor *inputs, size_t input_count,
                                 const rondo_tensor *outputs, size_t output_count) {
    if (input_count != op->input_count || output_count != op->output_count) {
        return RONDO_FAIL_AS(launch_call, INVALID,
                             "%zu inputs and %zu outputs, but %s was prepared for %zu and %zu",
                             input_count, output_count, op->program->nodes[0].op.def->name,
                             op->input_count, op->output_count);
    }
    for (size_t i = 0; i < input_count; ++i) {
        if (op->infos[i].dtype != RONDO_DTYPE_NONE && op->infos[i].constant == NULL) {
            RETURN_IF_ERROR(check_tensor(op, &op->infos[i], &inputs[i], "input", i));
            op->inputs[i] = inputs[i].data;
        }
    }
    for (size_t i = 0; i < output_count; ++i) {
        RETURN_IF_ERROR(check_tensor(op, &op->infos[input_count + i], &outputs[i], "output", i));
        RETURN_IF_ERROR(refuse_overlap(op, inputs, outputs, i));
        op->outputs[i] = outputs[i].data;
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_recordable(const rondo_op *op) {
    const rondo__op *of = &op->program->nodes[0].op;
    if (rondo__verdict_get_rule(of, op->kernel) == RONDO__CAPTURE_YES) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(launch_call, UNSUPPORTED, "%s cannot be recorded: %s", of->def->name,
                         op->kernel->reason != NULL ? op->kernel->reason
                                                    : "it does not say that it can be captured");
}

static rondo_status launch_in_section(rondo_op *op, rondo_stream *stream, op_section *section) {
    if (section == NULL) {
        return op->kernel->launch(op->kernel, stream, op->inputs, op->outputs, NULL);
    }
    RETURN_IF_ERROR(put_behind_latest(section, stream));
    RETURN_IF_ERROR(
        op->kernel->launch(op->kernel, stream, op->inputs, op->outputs, section->workspace));
    return section->id != 0 ? note_latest(section, stream) : RONDO_STATUS_OK;
}

static rondo_status launch_recorded(rondo_op *op, rondo_stream *stream) {
    rondo__capture *capture = NULL;
    op_section *section = NULL;
    uint64_t id = 0;
    rondo_status status = check_recordable(op);
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_find(stream, &capture, &id);
    }
    if (status == RONDO_STATUS_OK) {
        status = join_capture(op, capture, id, &section);
    }
    if (status == RONDO_STATUS_OK) {
        status = launch_in_section(op, stream, section);
    }
    return rondo__mark_work(stream, op->program->nodes[0].op.def->name, status);
}

rondo_status rondo_op_put(rondo_op *op, rondo_stream *stream, const rondo_tensor *inputs,
                          size_t input_count, const rondo_tensor *outputs, size_t output_count) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo_status status = rondo__check_pointer(op, __func__, "op");
    if (status == RONDO_STATUS_OK &&
        ((input_count > 0 && inputs == NULL) || (output_count > 0 && outputs == NULL))) {
        status = rondo__check_fail_null(__func__, inputs == NULL ? "inputs" : "outputs");
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__check_same_device(op->device, stream, __func__, "the op", NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = take_tensors(op, inputs, input_count, outputs, output_count);
    }
    rondo__place place = {.state = RONDO__CAPTURE_NONE};
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_locate(stream, &place);
    }
    if (status != RONDO_STATUS_OK) {
        return rondo__mark_work(stream, "op", status);
    }
    if (place.state != RONDO__CAPTURE_NONE) {
        return launch_recorded(op, stream);
    }
    if (op->was_launched && op->workspace != NULL) {
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, op->launched));
    }
    const rondo__hook_scope scope = rondo__op_span_enter(&op->program->nodes[0].op, stream, false);
    status = op->kernel->launch(op->kernel, stream, op->inputs, op->outputs, op->workspace);
    rondo__hook_leave(&scope);
    RETURN_IF_ERROR(status);
    op->was_launched = true;
    return rondo_event_record(op->launched, stream);
}
