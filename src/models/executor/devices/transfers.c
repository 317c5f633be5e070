// executor/devices/transfers.c — see transfers.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/transfers.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/other_gpus.h"
#include "executor/state/counted.h"
#include "executor/state/op_span.h"
#include "op/support.h"
#include "program/edit.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "rondo/copy.h"
#include "tensor/elements.h"

// ---- in host memory ---------------------------------------------------------------------------

typedef struct host_copy {
    void *to;
    const void *from;
    size_t bytes;
} host_copy;

static void run_host_copy(void *arguments) {
    const host_copy *copy = arguments;
    memcpy(copy->to, copy->from, copy->bytes);
}

rondo_status rondo__transfers_put_bytes(rondo_stream *stream, void *to, const void *from,
                                        size_t bytes) {
    const host_copy copy = {to, from, bytes};
    return rondo_stream_call_host(stream, "fetch", run_host_copy, &copy, sizeof copy);
}

// ---- the copy ---------------------------------------------------------------------------------

typedef struct transfer {
    rondo__kernel head;
    rondo__transfer_way way;
    rondo_device *from;  // BETWEEN
    rondo_device *to;
    size_t bytes;
    rondo_shape shape;
    rondo__copy_note note;  // for the first op that reads it; names are the program's
} transfer;

rondo_status rondo__transfers_copy(rondo_stream *stream, rondo__transfer_way way,
                                   const rondo__copy_note *note, void *to, const void *from,
                                   size_t bytes) {
    const rondo_status status = rondo__stream_copy_noted(
        stream, to, from, bytes,
        way == RONDO__TO_DEVICE ? RONDO_COPY_HOST_TO_DEVICE : RONDO_COPY_DEVICE_TO_HOST, note);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("copying \"%.60s\" %s", note->variable,
                            way == RONDO__TO_DEVICE ? "to the device" : "to the processor");
    }
    return status;
}

void rondo__transfers_note(rondo_executor *executor, rondo__transfer_way way, size_t bytes,
                           bool stops) {
    rondo__transfers_log *log = &executor->resources.crossings;
    rondo__transfer_counts counts = {0};
    counts.count[way] = 1;
    counts.bytes[way] = bytes;
    rondo__transfers_add(&log->all, &counts);
    rondo__transfers_add(stops ? &log->stopped : &log->pending, &counts);
}

static rondo_status launch_transfer(rondo__kernel *head, rondo_stream *stream,
                                    const void *const *inputs, void *const *outputs,
                                    void *workspace) {
    const transfer *t = (const transfer *)head;
    (void)workspace;
    if (t->way == RONDO__BETWEEN) {
        const rondo_status status = rondo__stream_copy_between_noted(
            stream, t->to, outputs[0], t->from, inputs[0], t->bytes, &t->note);
        if (status != RONDO_STATUS_OK) {
            rondo__error_prefix("copying \"%.60s\" to %s", t->note.variable,
                                rondo_device_get_name(t->to));
        }
        return status;
    }
    return rondo__transfers_copy(stream, t->way, &t->note, outputs[0], inputs[0], t->bytes);
}

static void destroy_transfer(rondo__kernel *head) {
    rondo__free(head);
}

static const rondo__kernel transfer_head = {.launch = launch_transfer,
                                            .destroy = destroy_transfer,
                                            .keeps_addresses = true,
                                            .implementation = "copy"};

bool rondo__kernel_is_transfer(const rondo__kernel *kernel) {
    return kernel->launch == launch_transfer;
}

void rondo__transfer_log_replayed(const rondo__kernel *kernel, const rondo_device *device) {
    const transfer *t = (const transfer *)kernel;
    const bool is_between = t->way == RONDO__BETWEEN;
    const char *name = rondo_device_get_name(device);
    const rondo__copy_tale tale = {.from = is_between ? rondo_device_get_name(t->from)
                                           : t->way == RONDO__TO_HOST ? name
                                                                      : "the host",
                                   .to = is_between                   ? rondo_device_get_name(t->to)
                                         : t->way == RONDO__TO_DEVICE ? name
                                                                      : "the host",
                                   .bytes = t->bytes};
    rondo__copy_log_replayed(&tale, &t->note);
}

const rondo__transfer_counts *rondo__transfers_count_step(const rondo__plan *plan,
                                                          rondo__step *step) {
    rondo__transfer_counts *counts = &step->run.crossings;
    if (step->run.has_crossings) {
        return counts;
    }
    *counts = (rondo__transfer_counts){0};
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        if (rondo__kernel_is_transfer(plan->items[i].kernel)) {
            const transfer *t = (const transfer *)plan->items[i].kernel;
            counts->count[t->way] += 1;
            counts->bytes[t->way] += t->bytes;
        }
    }
    step->run.has_crossings = true;
    return counts;
}

// ---- room -------------------------------------------------------------------------------------

rondo_status rondo__transfers_reserve(const rondo__plan *plan) {
    rondo_program *program = plan->program;
    const size_t values = program->value_count * rondo__plan_count_sides(plan);
    RETURN_IF_ERROR(RONDO__ARRAY_ROOM(program->values, program->value_capacity, values));
    return RONDO__ARRAY_ROOM(program->nodes, program->node_capacity, program->node_count + values);
}

// ---- the insertion ----------------------------------------------------------------------------

enum { READ_ON_DEVICE = 1 << RONDO__SIDE_DEVICE, READ_ON_HOST = 1 << RONDO__SIDE_HOST };

typedef struct insertion {
    const rondo__unit *unit;
    rondo__plan *plan;
    rondo_program *program;
    rondo__node_class *class_of;
    rondo__kernel **kernels;
    size_t node_count;  // before
    size_t capacity;    // of values
    uint32_t *read;     // by value: sides that read it, one bit each
    int32_t *forms;     // by side and value: its form there, where it does not lie; -1: none yet
    size_t order_count;
    size_t reader;  // the node at hand
} insertion;

static bool is_view(const insertion *in, size_t n) {
    return in->class_of[n] == RONDO__CLASS_IDLE &&
           (in->program->nodes[n].op.def->flags & RONDO__OP_VIEW) != 0;
}

// The side of a node that does something.
static uint8_t get_side(const insertion *in, size_t n) {
    const rondo__node_class c = in->class_of[n];
    const bool is_device = c == RONDO__CLASS_KERNEL
                               ? !rondo__kernel_is_hosted(in->kernels[n])
                               : c == RONDO__CLASS_IDLE || c == RONDO__CLASS_EAGER;
    return !is_device               ? RONDO__SIDE_HOST
           : c != RONDO__CLASS_IDLE ? rondo__other_gpus_get_side(in->plan, n)
                                    : RONDO__SIDE_DEVICE;
}

// A rondo.Rest, which leaves what it makes on the device.
static bool is_rest(const insertion *in, size_t n) {
    return rondo__node_is(&in->program->nodes[n], RONDO__FUSED_Rest);
}

static int32_t *get_form(const insertion *in, int32_t value, uint8_t side) {
    return &in->forms[side * in->capacity + (size_t)value];
}

static const char *get_side_name(const insertion *in, uint8_t side) {
    const rondo__plan_peer *peer = rondo__plan_get_peer(in->plan, side);
    return side == RONDO__SIDE_HOST ? "cpu"
           : peer == NULL           ? "gpu"
                          : rondo__place_get_name((uint8_t)(RONDO__PLACE_GPU_0 + peer->ordinal));
}

static rondo_device *get_device(const insertion *in, uint8_t side) {
    const rondo__plan_peer *peer = rondo__plan_get_peer(in->plan, side);
    return peer != NULL ? peer->peer->device : in->unit->executor->device;
}

// Whether the value has bytes that lie on one side only.
static bool has_side(const insertion *in, int32_t value) {
    const rondo__value *v = value >= 0 ? &in->program->values[value] : NULL;
    rondo_shape shape;
    return v != NULL && !rondo__value_is_constant(v) && rondo__dtype_is_plain(v->dtype) &&
           rondo__value_get_shape(v, &shape) && rondo_shape_get_count(&shape) > 0;
}

// The processor reads values that may decide the shapes of a body.
static bool may_decide_shapes(const insertion *in, int32_t value) {
    rondo__tensor_info info;
    rondo__program_get_info(in->program, value, &info);
    return info.is_shape_known && !rondo__dtype_is_float(info.dtype) &&
           rondo_shape_get_count(&info.shape) <= RONDO__VALUE_KEY_COUNT_MAX;
}

// The side on which node `n` reads its input `i`. A rondo.Rest reads on the device, but values that
// may decide shapes are copied right after the op that makes them, in stream order, so that the run
// does not stop for them later. rondo.Counted reads rooms, and a count.
static uint8_t get_read_side(const insertion *in, size_t n, size_t i) {
    const rondo__node *node = &in->program->nodes[n];
    if (rondo__counted_is(node)) {
        return i == rondo__counted_get_input(node) ? RONDO__SIDE_HOST : RONDO__SIDE_DEVICE;
    }
    return !is_rest(in, n)                          ? get_side(in, n)
           : may_decide_shapes(in, node->inputs[i]) ? RONDO__SIDE_HOST
                                                    : RONDO__SIDE_DEVICE;
}

// Backwards, so that a view passes its readers on to its source.
static void find_readers(insertion *in) {
    for (size_t n = in->node_count; n-- > 0;) {
        const rondo__node *node = &in->program->nodes[n];
        if (is_view(in, n)) {
            in->read[node->inputs[0]] |= in->read[node->outputs[0]];
            continue;
        }
        const bool reads =
            in->class_of[n] != RONDO__CLASS_IDLE && !rondo__op_asks_shapes(&node->op);
        for (size_t i = 0; reads && i < node->input_count; ++i) {
            if (node->inputs[i] >= 0) {
                in->read[node->inputs[i]] |= UINT32_C(1) << get_read_side(in, n, i);
            }
        }
    }
}

// An input whose shape the processor reads, and whose value no op reads, need not go to the device.
static void note_shapes(insertion *in) {
    for (size_t n = 0; n < in->node_count; ++n) {
        const rondo__node *node = &in->program->nodes[n];
        const bool asks = in->class_of[n] != RONDO__CLASS_IDLE &&
                          rondo__op_asks_shapes(&node->op) && get_side(in, n) == RONDO__SIDE_HOST;
        if (asks && node->inputs[0] >= 0 && in->read[node->inputs[0]] == 0) {
            in->read[node->inputs[0]] = READ_ON_HOST;
        }
    }
}

static void set_sides(insertion *in) {
    uint8_t *sides = in->plan->sides;
    for (size_t i = 0; i < in->program->input_count; ++i) {
        const int32_t value = in->program->inputs[i];
        const bool is_here = in->read[value] == 0 || (in->read[value] & READ_ON_DEVICE) != 0;
        sides[value] = is_here ? RONDO__SIDE_DEVICE : RONDO__SIDE_HOST;
    }
    for (size_t n = 0; n < in->node_count; ++n) {
        const rondo__node *node = &in->program->nodes[n];
        for (size_t i = 0; i < node->output_count; ++i) {
            if (node->outputs[i] >= 0) {
                sides[node->outputs[i]] = is_view(in, n) ? sides[node->inputs[0]]
                                          : is_rest(in, n) || rondo__counted_is(node)
                                              ? RONDO__SIDE_DEVICE
                                              : get_side(in, n);
            }
        }
    }
}

static rondo_status add_form(insertion *in, int32_t value, uint8_t side, int32_t *out_form) {
    rondo__tensor_info info;
    char name[160];
    rondo__program_get_info(in->program, value, &info);
    (void)snprintf(name, sizeof name, "%.140s.%s", in->program->values[value].name,
                   get_side_name(in, side));
    RETURN_IF_ERROR(
        rondo__program_add_shaped(in->program, name, info.dtype, &info.shape, out_form));
    in->plan->sides[*out_form] = side;
    *get_form(in, value, side) = *out_form;
    return RONDO_STATUS_OK;
}

// Puts the latest node behind those in order.
static void note_node(insertion *in, rondo__node_class class_of, rondo__kernel *kernel) {
    const size_t n = in->program->node_count - 1;
    in->class_of[n] = class_of;
    in->kernels[n] = kernel;
    in->plan->order[in->order_count++] = n;
}

// The view `value` on the other side: the same view of what `input` has there.
static rondo_status add_view(insertion *in, int32_t value, int32_t input, uint8_t side,
                             int32_t *out_form) {
    const rondo__node *maker = &in->program->nodes[in->program->values[value].producer];
    rondo__op op = {0};
    RETURN_IF_ERROR(add_form(in, value, side, out_form));
    RETURN_IF_ERROR(rondo__op_copy(&maker->op, &op));
    int32_t *inputs = rondo__calloc(maker->input_count + 1, sizeof *inputs);
    rondo_status status = inputs == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        memcpy(inputs, maker->inputs, maker->input_count * sizeof *inputs);
        inputs[0] = input;
        status = rondo__program_add_node(in->program, &op, inputs, maker->input_count,
                                         maker->explicit_count, out_form, 1);
    }
    rondo__free(inputs);
    rondo__op_deinit(&op);
    if (status == RONDO_STATUS_OK) {
        note_node(in, RONDO__CLASS_IDLE, NULL);
    }
    return status;
}

static rondo_status find_form(insertion *in, int32_t value, uint8_t side, int32_t *out_form);

// Where a copy from one side to another is put: on the GPU that takes part, and of two on the one
// that reads.
static uint8_t get_copier(uint8_t from, uint8_t to) {
    return to == RONDO__SIDE_HOST ? from : to;
}

static transfer *make_transfer(const insertion *in, int32_t value, uint8_t from, uint8_t to) {
    rondo__tensor_info info;
    rondo__program_get_info(in->program, value, &info);
    const rondo_tensor shell = {.dtype = info.dtype, .shape = info.shape};
    const rondo__op *reader = &in->program->nodes[in->reader].op;
    transfer *t = rondo__calloc(1, sizeof *t);
    if (t != NULL) {
        *t = (transfer){.head = transfer_head,
                        .way = to == RONDO__SIDE_HOST     ? RONDO__TO_HOST
                               : from == RONDO__SIDE_HOST ? RONDO__TO_DEVICE
                                                          : RONDO__BETWEEN,
                        .from = get_device(in, from),
                        .to = get_device(in, to),
                        .bytes = rondo_tensor_get_bytes(&shell),
                        .shape = info.shape};
        t->note = (rondo__copy_note){reader->def->name, reader->name,
                                     in->program->values[value].name, info.dtype, &t->shape};
    }
    return t;
}

// Copies `value` from its form `source`, which lies on another side.
static rondo_status copy_form(insertion *in, int32_t value, int32_t source, uint8_t side,
                              int32_t *out_form) {
    const uint8_t from = in->plan->sides[source];
    transfer *t = make_transfer(in, value, from, side);
    rondo_status status = t == NULL ? RONDO_STATUS_NO_MEMORY : add_form(in, value, side, out_form);
    if (status == RONDO_STATUS_OK) {
        status =
            rondo__program_add_simple(in->program, "rondo", "Transfer",
                                      in->program->values[value].name, &source, 1, out_form, 1);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(t);
        return status;
    }
    const rondo__plan_peer *copier = rondo__plan_get_peer(in->plan, get_copier(from, side));
    if (copier != NULL) {
        in->plan->homes[in->program->node_count - 1].place =
            (uint8_t)(RONDO__PLACE_GPU_0 + copier->ordinal);
    }
    in->plan->transfer_count += 1;
    note_node(in, RONDO__CLASS_KERNEL, &t->head);
    return RONDO_STATUS_OK;
}

// From one GPU to another without a way between them: through pinned memory.
static rondo_status add_transfer(insertion *in, int32_t value, uint8_t side, int32_t *out_form) {
    const uint8_t from = in->plan->sides[value];
    bool is_direct = from == RONDO__SIDE_HOST || side == RONDO__SIDE_HOST;
    int32_t source = value;
    if (!is_direct) {
        RETURN_IF_ERROR(
            rondo_device_copies_directly(get_device(in, side), get_device(in, from), &is_direct));
    }
    if (!is_direct) {
        RETURN_IF_ERROR(find_form(in, value, RONDO__SIDE_HOST, &source));
    }
    return copy_form(in, value, source, side, out_form);
}

// The form of `value` that lies on `side`, made where there is none. A view is made of its input's
// form: a chain of views is followed down to what it looks at, and built up again.
static rondo_status find_form(insertion *in, int32_t value, uint8_t side, int32_t *out_form) {
    const uint8_t *sides = in->plan->sides;
    int32_t base = value;
    *out_form = value;
    if (value < 0 || sides[value] == side || !has_side(in, value)) {
        return RONDO_STATUS_OK;
    }
    while (*get_form(in, base, side) < 0 && in->program->values[base].producer >= 0 &&
           is_view(in, (size_t)in->program->values[base].producer)) {
        base = in->program->nodes[in->program->values[base].producer].inputs[0];
    }
    if (*get_form(in, base, side) < 0) {
        int32_t form;
        RETURN_IF_ERROR(add_transfer(in, base, side, &form));
    }
    while (base != value) {  // up again, by one view at a time
        int32_t above = value;
        int32_t form;
        while (in->program->nodes[in->program->values[above].producer].inputs[0] != base) {
            above = in->program->nodes[in->program->values[above].producer].inputs[0];
        }
        RETURN_IF_ERROR(add_view(in, above, *get_form(in, base, side), side, &form));
        base = above;
    }
    *out_form = *get_form(in, value, side);
    return RONDO_STATUS_OK;
}

// Inputs that both the executor's device and the processor read have a second place, which is fed,
// too.
static rondo_status add_mirrors(insertion *in) {
    const uint32_t both = READ_ON_HOST | READ_ON_DEVICE;
    for (size_t i = 0; i < in->program->input_count; ++i) {
        const int32_t value = in->program->inputs[i];
        in->plan->mirrors[i] = -1;
        if ((in->read[value] & both) == both && has_side(in, value)) {
            RETURN_IF_ERROR(add_form(in, value, RONDO__SIDE_HOST, &in->plan->mirrors[i]));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status visit_node(insertion *in, size_t n) {
    const size_t input_count = in->program->nodes[n].input_count;
    const bool reads =
        in->class_of[n] != RONDO__CLASS_IDLE && !rondo__op_asks_shapes(&in->program->nodes[n].op);
    in->reader = n;
    for (size_t i = 0; reads && i < input_count; ++i) {
        const int32_t value = in->program->nodes[n].inputs[i];
        int32_t form = value;
        if (value >= 0) {
            RETURN_IF_ERROR(find_form(in, value, get_read_side(in, n, i), &form));
        }
        in->program->nodes[n].inputs[i] = form;
    }
    in->plan->order[in->order_count++] = n;
    return RONDO_STATUS_OK;
}

// Outputs are fetched from the executor's device or from the processor.
static rondo_status bring_outputs(insertion *in) {
    for (size_t i = 0; i < in->program->output_count; ++i) {
        const int32_t value = in->program->outputs[i];
        int32_t form = value;
        if (in->plan->sides[value] >= RONDO__SIDE_PEER) {
            in->reader = (size_t)in->program->values[value].producer;
            RETURN_IF_ERROR(find_form(in, value, RONDO__SIDE_HOST, &form));
        }
        in->program->outputs[i] = form;
    }
    return RONDO_STATUS_OK;
}

static rondo_status insert_all(insertion *in) {
    find_readers(in);
    note_shapes(in);
    set_sides(in);
    RETURN_IF_ERROR(add_mirrors(in));
    for (size_t n = 0; n < in->node_count; ++n) {
        RETURN_IF_ERROR(visit_node(in, n));
    }
    return bring_outputs(in);
}

rondo_status rondo__transfers_insert(const rondo__unit *unit, rondo__plan *plan,
                                     rondo__node_class *class_of, rondo__kernel **kernels) {
    rondo_program *program = plan->program;
    insertion in = {.unit = unit,
                    .plan = plan,
                    .program = program,
                    .class_of = class_of,
                    .kernels = kernels,
                    .node_count = program->node_count,
                    .capacity = program->value_count * rondo__plan_count_sides(plan) + 1};
    if (!rondo__unit_has_two_sides(unit)) {
        return RONDO_STATUS_OK;
    }
    const size_t form_count = in.capacity * rondo__plan_count_sides(plan);
    in.read = rondo__calloc(in.capacity, sizeof *in.read);
    in.forms = rondo__calloc(form_count, sizeof *in.forms);
    plan->sides = rondo__calloc(in.capacity, sizeof *plan->sides);
    plan->order = rondo__calloc(program->node_count + in.capacity, sizeof *plan->order);
    plan->mirrors = rondo__calloc(program->input_count + 1, sizeof *plan->mirrors);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (in.read != NULL && in.forms != NULL && plan->sides != NULL && plan->order != NULL &&
        plan->mirrors != NULL) {
        memset(in.forms, 0xff, form_count * sizeof *in.forms);  // -1
        status = insert_all(&in);
    }
    rondo__free(in.read);
    rondo__free(in.forms);
    return status;
}
