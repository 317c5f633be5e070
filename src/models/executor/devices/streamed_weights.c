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

struct rondo__spill {
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
    if (executor->resources.spill_weights.store == NULL) {
        RETURN_IF_ERROR(rondo__shared_acquire_store(executor->main.source, executor->device,
                                                    RONDO_MEMORY_PINNED,
                                                    &executor->resources.spill_weights.store));
        executor->resources.spill_weights.budget = executor->resources.budget;
    }
    rondo__spill *spill = rondo__calloc(1, sizeof *spill);
    if (spill == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *spill = (rondo__spill){.value_count = plan->program->value_count, .is_spilled = c->is_spilled};
    c->is_spilled = NULL;
    rondo__weight_list_init(&executor->resources.spill_weights, &spill->bring.weights);
    plan->spill = spill;
    return RONDO_STATUS_OK;
}

rondo_status rondo__spill_decide(rondo__unit *unit, rondo__plan *plan) {
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

bool rondo__spill_has(const rondo__plan *plan, int32_t value) {
    return plan->spill != NULL && (size_t)value < plan->spill->value_count &&
           plan->spill->is_spilled[value];
}

// ---- forms ------------------------------------------------------------------------------------

void rondo__spill_fill_request(const rondo__plan *plan, size_t n, rondo__kernel_request *request) {
    if (plan->spill == NULL || !runs_here(plan, n)) {
        return;
    }
    const rondo__node *node = &plan->program->nodes[n];
    request->bring = &plan->spill->bring;
    request->node = n;
    for (size_t i = 0; i < node->input_count && i < 64; ++i) {
        const bool is_brought = node->inputs[i] >= 0 && rondo__spill_has(plan, node->inputs[i]);
        request->brought_inputs |= is_brought ? UINT64_C(1) << i : 0;
    }
}

size_t rondo__spill_count(const rondo__plan *plan) {
    return plan->spill != NULL ? plan->spill->bring.count : 0;
}

void rondo__spill_cut(const rondo__plan *plan, size_t count) {
    if (plan->spill != NULL) {  // forms stay with the plan: another op may want them
        plan->spill->bring.count = count;
    }
}

rondo_status rondo__spill_add(rondo__plan *plan, size_t node, size_t input, int32_t value) {
    const rondo_tensor *constant = &plan->program->values[value].constant;
    const rondo__weight_want want = {.constant = constant,
                                     .bytes = rondo_tensor_get_bytes(constant)};
    return rondo__bring_list_add(&plan->spill->bring, node, input, &want);
}

// ---- batches ----------------------------------------------------------------------------------

// Puts the loads in the order of the items, and makes a unit of those of one item.
static rondo_status make_batches(const rondo__plan *plan) {
    rondo__spill *spill = plan->spill;
    const rondo__bring_list *bring = &spill->bring;
    spill->loads = rondo__calloc(bring->count + 1, sizeof *spill->loads);
    spill->batches = rondo__calloc(bring->count + 1, sizeof *spill->batches);
    if (spill->loads == NULL || spill->batches == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t count = 0;
    for (size_t i = 0; i < plan->item_count && count < bring->count; ++i) {
        batch *u = &spill->batches[spill->batch_count];
        *u = (batch){.item = i, .loads = spill->loads + count};
        for (size_t k = 0; k < bring->count; ++k) {
            if (bring->list[k].node == plan->items[i].node) {
                spill->loads[count++] = (load){.bring = bring->list[k], .offset = u->bytes};
                u->bytes += rondo__align_up(bring->list[k].bytes, (size_t)RONDO__ARENA_ALIGNMENT);
                u->load_count += 1;
            }
        }
        spill->batch_count += u->load_count > 0 ? 1 : 0;
        spill->buffer_bytes = u->bytes > spill->buffer_bytes ? u->bytes : spill->buffer_bytes;
    }
    return RONDO_STATUS_OK;
}

static char *get_buffer(const rondo__spill *spill, const batch *u) {
    return (char *)spill->buffers->address +
           ((size_t)(u - spill->batches) % 2 == 0 ? 0 : spill->buffer_bytes);
}

static rondo_status check_limit(const rondo_executor *executor, const rondo__plan *plan) {
    const uint64_t limit = executor->options.weight_limit_bytes;
    const uint64_t held = plan->weights.bytes + 2 * plan->spill->buffer_bytes;
    return held <= limit
               ? RONDO_STATUS_OK
               : RONDO_FAIL(NO_MEMORY,
                            "weight_limit_bytes (--weight-limit) is %" PRIu64
                            ": the forms of weights that stay on the GPU, and two buffers for the "
                            "others, take %" PRIu64 " bytes",
                            limit, held);
}

rondo_status rondo__spill_plan(rondo__unit *unit, rondo__plan *plan) {
    rondo__spill *spill = plan->spill;
    rondo_executor *executor = unit->executor;
    if (spill == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(make_batches(plan));
    RETURN_IF_ERROR(check_limit(unit->executor, plan));
    if (executor->resources.spill_stream == NULL) {
        RETURN_IF_ERROR(
            rondo_stream_create(executor->device, NULL, &executor->resources.spill_stream));
    }
    RETURN_IF_ERROR(
        rondo__run_memory_acquire_buffers(unit, 2 * spill->buffer_bytes + 1, &spill->buffers));
    RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &spill->begun));
    for (size_t i = 0; i < spill->batch_count; ++i) {
        batch *u = &spill->batches[i];
        RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &u->brought));
        RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &u->used));
        for (size_t k = 0; k < u->load_count; ++k) {
            plan->items[u->item].inputs[u->loads[k].bring.input] =
                get_buffer(spill, u) + u->loads[k].offset;
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__spill_drop(rondo__unit *unit, rondo__plan *plan) {
    rondo__spill *spill = plan->spill;
    if (spill == NULL) {
        return;
    }
    for (size_t i = 0; i < spill->batch_count; ++i) {
        rondo_event_destroy(spill->batches[i].brought);
        rondo_event_destroy(spill->batches[i].used);
    }
    rondo_event_destroy(spill->begun);
    rondo__run_memory_release(unit, spill->buffers);
    rondo__bring_list_deinit(&spill->bring);
    rondo__free(spill->batches);
    rondo__free(spill->loads);
    rondo__free(spill->is_spilled);
    rondo__free(spill);
    plan->spill = NULL;
}

void rondo__spill_free(rondo_executor *executor) {
    rondo_stream_destroy(executor->resources.spill_stream);
    rondo__shared_release_store(executor->main.source, executor->resources.spill_weights.store);
    executor->resources.spill_stream = NULL;
    executor->resources.spill_weights.store = NULL;
}

// ---- a run ------------------------------------------------------------------------------------

// The first unit of an item from `item` on.
static size_t find_unit(const rondo__spill *spill, size_t item) {
    size_t u = 0;
    while (u < spill->batch_count && spill->batches[u].item < item) {
        u += 1;
    }
    return u;
}

static bool is_of_step(const rondo__spill *spill, size_t u, const rondo__step *step) {
    return u < spill->batch_count && spill->batches[u].item < step->first_item + step->item_count;
}

static rondo_status bring_batch(const rondo_executor *executor, const rondo__plan *plan,
                                const batch *u) {
    rondo_stream *stream = executor->resources.spill_stream;
    const rondo__node *node = &plan->program->nodes[plan->items[u->item].node];
    for (size_t k = 0; k < u->load_count; ++k) {
        const load *l = &u->loads[k];
        const rondo__value *value = &plan->program->values[node->inputs[l->bring.input]];
        const rondo__copy_note note = {node->op.def->name, node->op.name, value->name,
                                       value->constant.dtype, &value->constant.shape};
        RETURN_IF_ERROR(rondo__stream_copy_noted(stream, get_buffer(plan->spill, u) + l->offset,
                                                 l->bring.from, l->bring.bytes,
                                                 RONDO_COPY_HOST_TO_DEVICE, &note));
    }
    return rondo_event_record(u->brought, stream);
}

// The buffers are free: the ops that read them come earlier on the run's stream.
rondo_status rondo__spill_begin(const rondo__unit *unit, const rondo__plan *plan,
                                const rondo__step *step) {
    const rondo__spill *spill = plan->spill;
    const size_t first = spill != NULL ? find_unit(spill, step->first_item) : 0;
    if (spill == NULL || !is_of_step(spill, first, step)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_record(spill->begun, unit->stream));
    RETURN_IF_ERROR(rondo_stream_wait_event(unit->executor->resources.spill_stream, spill->begun));
    for (size_t u = first; u < first + 2 && is_of_step(spill, u, step); ++u) {
        RETURN_IF_ERROR(bring_batch(unit->executor, plan, &spill->batches[u]));
    }
    return RONDO_STATUS_OK;
}

static const batch *get_batch(const rondo__plan *plan, size_t item) {
    const rondo__spill *spill = plan->spill;
    const size_t u = spill != NULL ? find_unit(spill, item) : 0;
    return spill != NULL && u < spill->batch_count && spill->batches[u].item == item
               ? &spill->batches[u]
               : NULL;
}

rondo_status rondo__spill_enter(const rondo__unit *unit, const rondo__plan *plan, size_t item) {
    const batch *u = get_batch(plan, item);
    return u != NULL ? rondo_stream_wait_event(unit->stream, u->brought) : RONDO_STATUS_OK;
}

rondo_status rondo__spill_leave(const rondo__unit *unit, const rondo__plan *plan,
                                const rondo__step *step, size_t item) {
    const batch *u = get_batch(plan, item);
    if (u == NULL || !is_of_step(plan->spill, (size_t)(u - plan->spill->batches) + 2, step)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_record(u->used, unit->stream));
    RETURN_IF_ERROR(rondo_stream_wait_event(unit->executor->resources.spill_stream, u->used));
    return bring_batch(unit->executor, plan, u + 2);
}

rondo_status rondo__spill_put(const rondo__plan *plan, size_t item, rondo_stream *stream,
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

void rondo__spill_drain(const rondo_executor *executor) {
    if (executor->resources.spill_stream != NULL) {
        (void)!rondo_stream_synchronize(executor->resources.spill_stream);
    }
}

// ---- what there is ----------------------------------------------------------------------------

rondo__brought rondo__spill_measure(const rondo__plan *plan, const rondo__step *step) {
    rondo__brought brought = {0};
    const rondo__spill *spill = plan->spill;
    for (size_t u = spill != NULL ? find_unit(spill, step->first_item) : 0;
         spill != NULL && is_of_step(spill, u, step); ++u) {
        for (size_t k = 0; k < spill->batches[u].load_count; ++k) {
            brought.count += 1;
            brought.bytes += spill->batches[u].loads[k].bring.bytes;
        }
    }
    return brought;
}

size_t rondo__spill_get_bytes(const rondo__plan *plan) {
    return plan->spill != NULL ? (size_t)plan->spill->bring.weights.bytes : 0;
}

size_t rondo__spill_get_buffer_bytes(const rondo__plan *plan) {
    return plan->spill != NULL ? 2 * plan->spill->buffer_bytes : 0;
}
