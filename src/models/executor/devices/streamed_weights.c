// executor/devices/streamed_weights.c — see streamed_weights.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/streamed_weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/copy_note.h"
#include "executor/state/arena_plan.h"
#include "executor/state/run_memory.h"
#include "program/edit.h"

// A weight that is brought for one op, and where it comes in its buffer.
typedef struct load {
    rondo__bring bring;
    size_t offset;
} load;

// The weights that are brought for one item.
typedef struct batch {
    size_t item;
    size_t load_count;
    load *loads;
    size_t bytes;
    rondo_event *brought;
    rondo_event *used;
} batch;

struct rondo__streamed {
    size_t value_count;
    bool *is_spilled;  // by value
    rondo__bring_list bring;
    load *loads;  // in the order of the items
    size_t batch_count;
    batch *batches;
    size_t buffer_bytes;  // of one
    rondo__run_memory *buffers;
    rondo_event *begun;
};

// ---- which ------------------------------------------------------------------------------------

typedef struct sized {
    uint64_t bytes;
    int32_t value;
} sized;

typedef struct choice {
    const rondo__plan *plan;
    bool *is_read;    // by value: constants that ops of the GPU read
    bool *must_stay;  // by value
    bool *is_spilled;
    uint64_t total;  // bytes of all that are read
    size_t open_count;
    int32_t *open;  // values that may spill
    // As far as is chosen:
    uint64_t stays;     // bytes on the GPU
    uint64_t *batches;  // by node: bytes that are brought for it
    uint64_t largest_batch;
} choice;

static uint64_t get_bytes(const choice *c, int32_t value) {
    return rondo_tensor_get_bytes(&c->plan->program->values[value].constant);
}

static bool runs_here(const rondo__plan *plan, size_t n) {
    const uint8_t place = plan->homes[n].place;
    return place == RONDO__PLACE_ANY || place == RONDO__PLACE_GPU;
}

// Weights that a body reads stay on the GPU: the body's plan has addresses of its own.
static void note_readers(choice *c) {
    const rondo_program *program = c->plan->program;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const uint32_t fixed = RONDO__OP_CONTROL | RONDO__OP_VIEW | RONDO__OP_SHAPE_ONLY;
        for (size_t i = 0; runs_here(c->plan, n) && i < node->input_count; ++i) {
            const int32_t value = node->inputs[i];
            if (value < 0 || !rondo__value_is_constant(&program->values[value])) {
                continue;
            }
            c->total += c->is_read[value] ? 0 : get_bytes(c, value);
            c->is_read[value] = true;
            c->must_stay[value] = c->must_stay[value] || (node->op.def->flags & fixed) != 0;
        }
    }
}

// Lets a weight spill, and notes what the ops that read it bring then.
static void let_spill(choice *c, int32_t value) {
    const rondo_program *program = c->plan->program;
    c->is_spilled[value] = true;
    c->stays -= get_bytes(c, value);
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; runs_here(c->plan, n) && i < node->input_count; ++i) {
            c->batches[n] += node->inputs[i] == value ? get_bytes(c, value) : 0;
        }
        c->largest_batch = c->batches[n] > c->largest_batch ? c->batches[n] : c->largest_batch;
    }
}

// Whether what stays and two buffers fit when those of at most `cap` bytes may spill: the largest
// of them first.
static bool fits_with(choice *c, uint64_t cap, uint64_t wanted) {
    const rondo_program *program = c->plan->program;
    memset(c->is_spilled, 0, program->value_count * sizeof *c->is_spilled);
    memset(c->batches, 0, program->node_count * sizeof *c->batches);
    c->stays = c->total;
    c->largest_batch = 0;
    for (size_t i = 0; i < c->open_count && c->stays + 2 * c->largest_batch > wanted; ++i) {
        if (get_bytes(c, c->open[i]) <= cap) {
            let_spill(c, c->open[i]);
        }
    }
    return c->stays + 2 * c->largest_batch <= wanted;
}

static int compare_bytes(const void *a, const void *b) {
    const sized *left = a;
    const sized *right = b;
    return left->bytes != right->bytes
               ? (left->bytes > right->bytes ? -1 : 1)
               : (left->value > right->value) - (left->value < right->value);
}

// The weights that may spill, the largest first.
static rondo_status list_open(choice *c) {
    const size_t count = c->plan->program->value_count;
    sized *list = rondo__calloc(count + 1, sizeof *list);
    c->open = rondo__calloc(count + 1, sizeof *c->open);
    if (list == NULL || c->open == NULL) {
        rondo__free(list);
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < count; ++v) {
        if (c->is_read[v] && !c->must_stay[v] && get_bytes(c, (int32_t)v) > 0) {
            list[c->open_count++] = (sized){get_bytes(c, (int32_t)v), (int32_t)v};
        }
    }
    qsort(list, c->open_count, sizeof *list, compare_bytes);
    for (size_t i = 0; i < c->open_count; ++i) {
        c->open[i] = list[i].value;
    }
    rondo__free(list);
    return RONDO_STATUS_OK;
}

// The largest first, until the rest fits beside two buffers; a weight that is so large that its
// buffers do not fit stays. Kernels may want forms that are a little larger than the weights: a
// sixteenth is left for that.
static rondo_status choose(choice *c, uint64_t limit) {
    uint64_t least = c->total;
    uint64_t cap = UINT64_MAX;
    RETURN_IF_ERROR(list_open(c));
    for (size_t i = 0; i < c->open_count; ++i) {
        if (get_bytes(c, c->open[i]) == cap) {
            continue;
        }
        cap = get_bytes(c, c->open[i]);
        if (fits_with(c, cap, limit - limit / 16)) {
            return RONDO_STATUS_OK;
        }
        const uint64_t held = c->stays + 2 * c->largest_batch;
        least = held < least ? held : least;
    }
    return RONDO_FAIL(NO_MEMORY,
                      "weight_limit_bytes (--weight-limit) is %" PRIu64
                      ": what has to be on the GPU, and two buffers for the rest, take %" PRIu64
                      " bytes, and a sixteenth is left for forms of weights",
                      limit, least);
}

static rondo_status make_spill(rondo_executor *executor, rondo__plan *plan, choice *c) {
    if (executor->resources.streamed_weights.store == NULL) {
        RETURN_IF_ERROR(rondo__shared_acquire_store(executor->main.source, executor->device,
                                                    RONDO_MEMORY_PINNED,
                                                    &executor->resources.streamed_weights.store));
        executor->resources.streamed_weights.budget = executor->resources.budget;
    }
    rondo__streamed *streamed = rondo__calloc(1, sizeof *streamed);
    if (streamed == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *streamed =
        (rondo__streamed){.value_count = plan->program->value_count, .is_spilled = c->is_spilled};
    c->is_spilled = NULL;
    rondo__weight_list_init(&executor->resources.streamed_weights, &streamed->bring.weights);
    plan->streamed = streamed;
    return RONDO_STATUS_OK;
}

rondo_status rondo__streamed_decide(rondo__unit *unit, rondo__plan *plan) {
    const uint64_t limit = unit->executor->options.weight_limit_bytes;
    if (limit == 0 || rondo_device_is_host(unit->executor->device) || unit->depth > 0 ||
        unit->part != RONDO__PART_NONE) {
        return RONDO_STATUS_OK;
    }
    const size_t count = plan->program->value_count + 1;
    choice c = {.plan = plan};
    c.is_read = rondo__calloc(count, sizeof *c.is_read);
    c.must_stay = rondo__calloc(count, sizeof *c.must_stay);
    c.is_spilled = rondo__calloc(count, sizeof *c.is_spilled);
    c.batches = rondo__calloc(plan->program->node_count + 1, sizeof *c.batches);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (c.is_read != NULL && c.must_stay != NULL && c.is_spilled != NULL && c.batches != NULL) {
        note_readers(&c);
        status = c.total > limit ? choose(&c, limit) : RONDO_STATUS_OK;
        if (status == RONDO_STATUS_OK && c.total > limit) {
            status = make_spill(unit->executor, plan, &c);
        }
    }
    rondo__free(c.is_read);
    rondo__free(c.must_stay);
    rondo__free(c.open);
    rondo__free(c.batches);
    rondo__free(c.is_spilled);
    return status;
}

bool rondo__streamed_has(const rondo__plan *plan, int32_t value) {
    return plan->streamed != NULL && (size_t)value < plan->streamed->value_count &&
           plan->streamed->is_spilled[value];
}

// ---- forms ------------------------------------------------------------------------------------

void rondo__streamed_fill_request(const rondo__plan *plan, size_t n,
                                  rondo__kernel_request *request) {
    if (plan->streamed == NULL || !runs_here(plan, n)) {
        return;
    }
    const rondo__node *node = &plan->program->nodes[n];
    request->bring = &plan->streamed->bring;
    request->node = n;
    for (size_t i = 0; i < node->input_count && i < 64; ++i) {
        const bool is_brought = node->inputs[i] >= 0 && rondo__streamed_has(plan, node->inputs[i]);
        request->brought_inputs |= is_brought ? UINT64_C(1) << i : 0;
    }
}

size_t rondo__streamed_count(const rondo__plan *plan) {
    return plan->streamed != NULL ? plan->streamed->bring.count : 0;
}

void rondo__streamed_cut(const rondo__plan *plan, size_t count) {
    if (plan->streamed != NULL) {  // forms stay with the plan: another op may want them
        plan->streamed->bring.count = count;
    }
}

rondo_status rondo__streamed_add(rondo__plan *plan, size_t node, size_t input, int32_t value) {
    const rondo_tensor *constant = &plan->program->values[value].constant;
    const rondo__weight_want want = {.constant = constant,
                                     .bytes = rondo_tensor_get_bytes(constant)};
    return rondo__bring_list_add(&plan->streamed->bring, node, input, &want);
}

// ---- batches ----------------------------------------------------------------------------------

// Puts the loads in the order of the items, and makes a unit of those of one item.
static rondo_status make_batches(const rondo__plan *plan) {
    rondo__streamed *streamed = plan->streamed;
    const rondo__bring_list *bring = &streamed->bring;
    streamed->loads = rondo__calloc(bring->count + 1, sizeof *streamed->loads);
    streamed->batches = rondo__calloc(bring->count + 1, sizeof *streamed->batches);
    if (streamed->loads == NULL || streamed->batches == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t count = 0;
    for (size_t i = 0; i < plan->item_count && count < bring->count; ++i) {
        batch *u = &streamed->batches[streamed->batch_count];
        *u = (batch){.item = i, .loads = streamed->loads + count};
        for (size_t k = 0; k < bring->count; ++k) {
            if (bring->list[k].node == plan->items[i].node) {
                streamed->loads[count++] = (load){.bring = bring->list[k], .offset = u->bytes};
                u->bytes += rondo__align_up(bring->list[k].bytes, (size_t)RONDO__ARENA_ALIGNMENT);
                u->load_count += 1;
            }
        }
        streamed->batch_count += u->load_count > 0 ? 1 : 0;
        streamed->buffer_bytes =
            u->bytes > streamed->buffer_bytes ? u->bytes : streamed->buffer_bytes;
    }
    return RONDO_STATUS_OK;
}

static char *get_buffer(const rondo__streamed *streamed, const batch *u) {
    return (char *)streamed->buffers->address +
           ((size_t)(u - streamed->batches) % 2 == 0 ? 0 : streamed->buffer_bytes);
}

static rondo_status check_limit(const rondo_executor *executor, const rondo__plan *plan) {
    const uint64_t limit = executor->options.weight_limit_bytes;
    const uint64_t held = plan->weights.bytes + 2 * plan->streamed->buffer_bytes;
    return held <= limit
               ? RONDO_STATUS_OK
               : RONDO_FAIL(NO_MEMORY,
                            "weight_limit_bytes (--weight-limit) is %" PRIu64
                            ": the forms of weights that stay on the GPU, and two buffers for the "
                            "others, take %" PRIu64 " bytes",
                            limit, held);
}

rondo_status rondo__streamed_plan(rondo__unit *unit, rondo__plan *plan) {
    rondo__streamed *streamed = plan->streamed;
    rondo_executor *executor = unit->executor;
    if (streamed == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(make_batches(plan));
    RETURN_IF_ERROR(check_limit(unit->executor, plan));
    if (executor->resources.streaming == NULL) {
        RETURN_IF_ERROR(
            rondo_stream_create(executor->device, NULL, &executor->resources.streaming));
    }
    RETURN_IF_ERROR(rondo__run_memory_acquire_buffers(unit, 2 * streamed->buffer_bytes + 1,
                                                      &streamed->buffers));
    RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &streamed->begun));
    for (size_t i = 0; i < streamed->batch_count; ++i) {
        batch *u = &streamed->batches[i];
        RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &u->brought));
        RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &u->used));
        for (size_t k = 0; k < u->load_count; ++k) {
            plan->items[u->item].inputs[u->loads[k].bring.input] =
                get_buffer(streamed, u) + u->loads[k].offset;
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__streamed_drop(rondo__unit *unit, rondo__plan *plan) {
    rondo__streamed *streamed = plan->streamed;
    if (streamed == NULL) {
        return;
    }
    for (size_t i = 0; i < streamed->batch_count; ++i) {
        rondo_event_destroy(streamed->batches[i].brought);
        rondo_event_destroy(streamed->batches[i].used);
    }
    rondo_event_destroy(streamed->begun);
    rondo__run_memory_release(unit, streamed->buffers);
    rondo__bring_list_deinit(&streamed->bring);
    rondo__free(streamed->batches);
    rondo__free(streamed->loads);
    rondo__free(streamed->is_spilled);
    rondo__free(streamed);
    plan->streamed = NULL;
}

void rondo__streamed_free(rondo_executor *executor) {
    rondo_stream_destroy(executor->resources.streaming);
    rondo__shared_release_store(executor->main.source, executor->resources.streamed_weights.store);
    executor->resources.streaming = NULL;
    executor->resources.streamed_weights.store = NULL;
}

// ---- a run ------------------------------------------------------------------------------------

// The first unit of an item from `item` on.
static size_t find_unit(const rondo__streamed *streamed, size_t item) {
    size_t u = 0;
    while (u < streamed->batch_count && streamed->batches[u].item < item) {
        u += 1;
    }
    return u;
}

static bool is_of_step(const rondo__streamed *streamed, size_t u, const rondo__step *step) {
    return u < streamed->batch_count &&
           streamed->batches[u].item < step->first_item + step->item_count;
}

static rondo_status bring_batch(const rondo_executor *executor, const rondo__plan *plan,
                                const batch *u) {
    rondo_stream *stream = executor->resources.streaming;
    const rondo__node *node = rondo__plan_get_node(plan, u->item);
    for (size_t k = 0; k < u->load_count; ++k) {
        const load *l = &u->loads[k];
        const rondo__value *value = &plan->program->values[node->inputs[l->bring.input]];
        const rondo__copy_note note = {node->op.def->name, node->op.name, value->name,
                                       value->constant.dtype, &value->constant.shape};
        RETURN_IF_ERROR(rondo__stream_copy_noted(stream, get_buffer(plan->streamed, u) + l->offset,
                                                 l->bring.from, l->bring.bytes,
                                                 RONDO_COPY_HOST_TO_DEVICE, &note));
    }
    return rondo_event_record(u->brought, stream);
}

// The buffers are free: the ops that read them come earlier on the run's stream.
rondo_status rondo__streamed_begin(const rondo__unit *unit, const rondo__plan *plan,
                                   const rondo__step *step) {
    const rondo__streamed *streamed = plan->streamed;
    const size_t first = streamed != NULL ? find_unit(streamed, step->first_item) : 0;
    if (streamed == NULL || !is_of_step(streamed, first, step)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_record(streamed->begun, unit->stream));
    RETURN_IF_ERROR(rondo_stream_wait_event(unit->executor->resources.streaming, streamed->begun));
    for (size_t u = first; u < first + 2 && is_of_step(streamed, u, step); ++u) {
        RETURN_IF_ERROR(bring_batch(unit->executor, plan, &streamed->batches[u]));
    }
    return RONDO_STATUS_OK;
}

static const batch *get_batch(const rondo__plan *plan, size_t item) {
    const rondo__streamed *streamed = plan->streamed;
    const size_t u = streamed != NULL ? find_unit(streamed, item) : 0;
    return streamed != NULL && u < streamed->batch_count && streamed->batches[u].item == item
               ? &streamed->batches[u]
               : NULL;
}

rondo_status rondo__streamed_enter(const rondo__unit *unit, const rondo__plan *plan, size_t item) {
    const batch *u = get_batch(plan, item);
    return u != NULL ? rondo_stream_wait_event(unit->stream, u->brought) : RONDO_STATUS_OK;
}

rondo_status rondo__streamed_leave(const rondo__unit *unit, const rondo__plan *plan,
                                   const rondo__step *step, size_t item) {
    const batch *u = get_batch(plan, item);
    if (u == NULL || !is_of_step(plan->streamed, (size_t)(u - plan->streamed->batches) + 2, step)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_record(u->used, unit->stream));
    RETURN_IF_ERROR(rondo_stream_wait_event(unit->executor->resources.streaming, u->used));
    return bring_batch(unit->executor, plan, u + 2);
}

rondo_status rondo__streamed_put(const rondo__plan *plan, size_t item, rondo_stream *stream,
                                 char *buffer, const void **inputs) {
    const batch *u = get_batch(plan, item);
    for (size_t k = 0; u != NULL && k < u->load_count; ++k) {
        const load *l = &u->loads[k];
        char *to = buffer + l->offset;
        RETURN_IF_ERROR(rondo_stream_copy(stream, to, l->bring.from, l->bring.bytes,
                                          RONDO_COPY_HOST_TO_DEVICE));
        inputs[l->bring.input] = to;
    }
    return RONDO_STATUS_OK;
}

void rondo__streamed_drain(const rondo_executor *executor) {
    if (executor->resources.streaming != NULL) {
        (void)!rondo_stream_synchronize(executor->resources.streaming);
    }
}

// ---- what there is ----------------------------------------------------------------------------

rondo__brought rondo__streamed_measure(const rondo__plan *plan, const rondo__step *step) {
    rondo__brought brought = {0};
    const rondo__streamed *streamed = plan->streamed;
    for (size_t u = streamed != NULL ? find_unit(streamed, step->first_item) : 0;
         streamed != NULL && is_of_step(streamed, u, step); ++u) {
        for (size_t k = 0; k < streamed->batches[u].load_count; ++k) {
            brought.count += 1;
            brought.bytes += streamed->batches[u].loads[k].bring.bytes;
        }
    }
    return brought;
}

size_t rondo__streamed_get_bytes(const rondo__plan *plan) {
    return plan->streamed != NULL ? (size_t)plan->streamed->bring.weights.bytes : 0;
}

size_t rondo__streamed_get_buffer_bytes(const rondo__plan *plan) {
    return plan->streamed != NULL ? 2 * plan->streamed->buffer_bytes : 0;
}
