// executor/run/carried.c — see carried.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/carried.h"

#include <string.h>

#include "backend/areas.h"
#include "backend/backend.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/devices/transfers.h"
#include "executor/run/stand_ins.h"

enum { LANES = 4 };  // copies of feeds beside each other: a GPU has a few engines for them

typedef enum way {
    WAY_NONE,      // nothing is to be brought
    WAY_IN_PLACE,  // the ops work on the tensor
    WAY_COPIED,    // a node copies from it, or to it
    WAY_STAGED,    // the same, by way of staging memory
} way;

typedef struct port {
    way way;
    bool is_near;
    const void *address;  // the tensor's
    rondo_node node;
} port;

struct rondo__carried {
    rondo__stand_ins places;
    rondo_graph *graph;
    port *inputs, *outputs;
};

// ---- what goes which way ----------------------------------------------------------------------

static const rondo__slot *get_slot(const rondo__plan *plan, int32_t value) {
    return &plan->slots[value];
}

// The way of a tensor whose value lies in the arena of the GPU.
static way choose_way(const rondo__stand_ins *places, int32_t value, const rondo_tensor *tensor) {
    const rondo_executor *executor = places->unit->executor;
    if (rondo__stand_ins_is_near(executor, tensor)) {
        return rondo__stand_ins_find(places, value) == tensor->data ? WAY_IN_PLACE : WAY_COPIED;
    }
    return rondo__areas_is_pageable(executor->device, tensor->data, rondo_tensor_get_bytes(tensor))
               ? WAY_STAGED
               : WAY_COPIED;
}

// False: the value lies where no copy node of this graph may bring it.
static bool choose_input(rondo__carried *carried, size_t i, const rondo_tensor *feed) {
    const rondo__plan *plan = carried->places.plan;
    const int32_t value = plan->program->inputs[i];
    const rondo__slot *slot = get_slot(plan, value);
    if (slot->kind == RONDO__SLOT_DYNAMIC || slot->is_on_host || slot->is_bound ||
        rondo__plan_get_host_input(plan, i) != NULL) {
        return false;
    }
    const bool is_brought = slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0;
    carried->inputs[i] = (port){
        .way = is_brought ? choose_way(&carried->places, value, feed) : WAY_NONE,
        .is_near = rondo__stand_ins_is_near(carried->places.unit->executor, feed),
        .address = feed->data,
    };
    return true;
}

static bool choose_output(rondo__carried *carried, size_t i, const rondo_tensor *result) {
    const rondo__plan *plan = carried->places.plan;
    const int32_t value = plan->program->outputs[i];
    const rondo__slot *slot = get_slot(plan, value);
    const bool is_near = rondo__stand_ins_is_near(carried->places.unit->executor, result);
    if (slot->kind == RONDO__SLOT_DYNAMIC || slot->is_on_host || slot->is_bound ||
        (slot->kind == RONDO__SLOT_CONSTANT && is_near)) {
        return false;
    }
    const bool is_taken = slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0;
    carried->outputs[i] =
        (port){.way = is_taken ? choose_way(&carried->places, value, result) : WAY_NONE,
               .is_near = is_near,
               .address = result->data};
    return true;
}

static bool choose_ways(rondo__carried *carried, const rondo__fetch *fetch,
                        const rondo_tensor *feeds) {
    const rondo_program *program = fetch->plan->program;
    bool can = true;
    rondo__stand_ins_choose(&carried->places, feeds, fetch->results, fetch->wants);
    for (size_t i = 0; i < program->input_count && can; ++i) {
        can = choose_input(carried, i, &feeds[i]);
    }
    for (size_t i = 0; i < program->output_count && can; ++i) {
        can = !fetch->wants[i] || choose_output(carried, i, &fetch->results[i]);
    }
    return can;
}

// ---- recording --------------------------------------------------------------------------------

// The copy that brings input `i`, or takes output `i` away; `bound` is the program's tensor.
static rondo_work describe_feed(const rondo__carried *carried, size_t i) {
    const rondo__plan *plan = carried->places.plan;
    const int32_t value = plan->program->inputs[i];
    const port *p = &carried->inputs[i];
    return (rondo_work){
        .struct_size = sizeof(rondo_work),
        .kind = RONDO_NODE_COPY,
        .copy_kind = p->is_near ? RONDO_COPY_DEVICE_TO_DEVICE : RONDO_COPY_HOST_TO_DEVICE,
        .source = p->way == WAY_STAGED ? plan->memory.staging + plan->memory.input_staging[i]
                                       : p->address,
        .destination = rondo__stand_ins_find(&carried->places, value),
        .byte_count = get_slot(plan, value)->bytes};
}

static rondo_work describe_fetch(const rondo__carried *carried, size_t i) {
    const rondo__plan *plan = carried->places.plan;
    const int32_t value = plan->program->outputs[i];
    const port *p = &carried->outputs[i];
    union {
        const void *read_only;
        void *written;
    } bound = {.read_only = p->address};
    return (rondo_work){
        .struct_size = sizeof(rondo_work),
        .kind = RONDO_NODE_COPY,
        .copy_kind = p->is_near ? RONDO_COPY_DEVICE_TO_DEVICE : RONDO_COPY_DEVICE_TO_HOST,
        .source = rondo__stand_ins_find(&carried->places, value),
        .destination = p->way == WAY_STAGED ? plan->memory.staging + plan->memory.output_staging[i]
                                            : bound.written,
        .byte_count = get_slot(plan, value)->bytes};
}

static bool has_node(const port *p) {
    return p->way == WAY_COPIED || p->way == WAY_STAGED;
}

// Copies of feeds in a few lanes. *out_count: the ends of these.
static rondo_status add_feeds(rondo__carried *carried, rondo_node ends[LANES], size_t *out_count) {
    size_t count = 0;
    for (size_t i = 0; i < carried->places.plan->program->input_count; ++i) {
        if (!has_node(&carried->inputs[i])) {
            continue;
        }
        const rondo_work work = describe_feed(carried, i);
        rondo_node *end = &ends[count % LANES];
        RETURN_IF_ERROR(
            rondo_graph_add_node(carried->graph, end, count >= LANES ? 1 : 0, &work, end));
        carried->inputs[i].node = *end;
        count += 1;
    }
    *out_count = count < LANES ? count : LANES;
    return RONDO_STATUS_OK;
}

static rondo_status launch_plan(rondo_stream *stream, void *user_data) {
    rondo__carried *carried = user_data;
    return rondo__stand_ins_launch(&carried->places, stream);
}

static rondo_status add_nodes(rondo__carried *carried) {
    rondo_node before[LANES], last[LANES];
    size_t count, last_count;
    RETURN_IF_ERROR(add_feeds(carried, before, &count));
    RETURN_IF_ERROR(rondo_graph_add_step(carried->graph, before, count, launch_plan, carried, last,
                                         LANES, &last_count));
    if (last_count > LANES) {
        return RONDO_FAIL(UNSUPPORTED, "the plan's work ends at %zu nodes", last_count);
    }
    for (size_t i = 0; i < carried->places.plan->program->output_count; ++i) {
        if (has_node(&carried->outputs[i])) {
            const rondo_work work = describe_fetch(carried, i);
            RETURN_IF_ERROR(rondo_graph_add_node(carried->graph, last, last_count, &work,
                                                 &carried->outputs[i].node));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status record(rondo__carried *carried) {
    const rondo__unit *unit = carried->places.unit;
    const rondo_graph_options options = {.struct_size = sizeof options, .label = "bound run"};
    RETURN_IF_ERROR(rondo_graph_create(unit->executor->device, &options, &carried->graph));
    RETURN_IF_ERROR(rondo_graph_build_begin(carried->graph));
    RETURN_IF_ERROR(add_nodes(carried));
    RETURN_IF_ERROR(rondo_graph_capture_end(carried->graph));
    return rondo_graph_upload(carried->graph, unit->stream);
}

static rondo_status fill_in(rondo__carried *carried, const rondo__fetch *fetch,
                            const rondo_tensor *feeds) {
    const rondo__plan *plan = fetch->plan;
    RETURN_IF_ERROR(rondo__stand_ins_init(fetch->unit, plan, &carried->places));
    carried->inputs = rondo__calloc(plan->program->input_count + 1, sizeof *carried->inputs);
    carried->outputs = rondo__calloc(plan->program->output_count + 1, sizeof *carried->outputs);
    if (carried->inputs == NULL || carried->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    carried->places.arena = plan->memory.arena->address;
    (void)rondo__stand_ins_watch(&carried->places);
    RETURN_IF_ERROR(rondo__stand_ins_check(plan, "rondo_bound_run_run", false));
    return choose_ways(carried, fetch, feeds)
               ? record(carried)
               : RONDO_FAIL(UNSUPPORTED, "a feed or fetch lies with the processor");
}

rondo_status rondo__carried_make(const rondo__fetch *fetch, const rondo_tensor *feeds,
                                 rondo__carried **out_carried) {
    rondo_error saved;
    *out_carried = NULL;
    rondo__error_save(&saved);
    rondo__carried *carried = rondo__calloc(1, sizeof *carried);
    if (carried == NULL) {
        rondo__error_restore(&saved);
        return RONDO_STATUS_OK;
    }
    const rondo_status status = fill_in(carried, fetch, feeds);
    if (status == RONDO_STATUS_OK) {
        *out_carried = carried;
        return RONDO_STATUS_OK;
    }
    RONDO_LOG_INFO_F("a bound run is no single graph: %s", rondo_error_get_last()->message);
    rondo__carried_destroy(carried);
    if (status == RONDO_STATUS_LOST) {
        return status;
    }
    rondo__error_restore(&saved);
    return RONDO_STATUS_OK;
}

void rondo__carried_destroy(rondo__carried *carried) {
    if (carried == NULL) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_destroy(carried->graph);
    rondo__stand_ins_deinit(&carried->places);
    rondo__free(carried->inputs);
    rondo__free(carried->outputs);
    rondo__free(carried);
    rondo__error_restore(&saved);
}

bool rondo__carried_is_watched_so(rondo__carried *carried) {
    return rondo__stand_ins_watch(&carried->places);
}

// ---- runs -------------------------------------------------------------------------------------

// Whether the port can go on with the tensor; `out_is_moved`: by a patch of its copy.
static bool fits(const rondo__carried *carried, const port *p, const rondo_tensor *tensor,
                 bool *out_is_moved) {
    const rondo_executor *executor = carried->places.unit->executor;
    *out_is_moved = false;
    if (p->address == tensor->data || p->way == WAY_NONE) {
        return p->is_near == rondo__stand_ins_is_near(executor, tensor);
    }
    if (p->is_near || rondo__stand_ins_is_near(executor, tensor)) {
        return false;
    }
    const bool is_pageable =
        rondo__areas_is_pageable(executor->device, tensor->data, rondo_tensor_get_bytes(tensor));
    *out_is_moved = p->way == WAY_COPIED;
    return is_pageable == (p->way == WAY_STAGED);
}

static bool follow(const rondo__carried *carried, port *p, const rondo_tensor *tensor, bool is_feed,
                   size_t i) {
    bool is_moved;
    if (!fits(carried, p, tensor, &is_moved)) {
        return false;
    }
    p->address = tensor->data;
    if (!is_moved) {
        return true;
    }
    const rondo_work work = is_feed ? describe_feed(carried, i) : describe_fetch(carried, i);
    return rondo_graph_patch_node(carried->graph, p->node, &work) == RONDO_STATUS_OK;
}

bool rondo__carried_follow(rondo__carried *carried, const rondo__fetch *fetch,
                           const rondo_tensor *feeds) {
    const rondo_program *program = carried->places.plan->program;
    rondo_error saved;
    bool fits_all = true;
    rondo__error_save(&saved);
    for (size_t i = 0; i < program->input_count && fits_all; ++i) {
        fits_all = follow(carried, &carried->inputs[i], &feeds[i], true, i);
    }
    for (size_t i = 0; i < program->output_count && fits_all; ++i) {
        port *p = &carried->outputs[i];
        fits_all = fetch->wants[i]
                       ? p->address != NULL && follow(carried, p, &fetch->results[i], false, i)
                       : p->address == NULL;
    }
    rondo__error_restore(&saved);
    return fits_all;
}

static rondo_status put_replay(void *user_data) {
    const rondo__carried *carried = user_data;
    return rondo_graph_replay(carried->graph, carried->places.unit->stream);
}

rondo_status rondo__carried_put(rondo__carried *carried, const rondo_tensor *feeds) {
    const rondo__plan *plan = carried->places.plan;
    for (size_t i = 0; i < plan->program->input_count; ++i) {
        if (carried->inputs[i].way == WAY_STAGED) {
            memcpy(plan->memory.staging + plan->memory.input_staging[i], feeds[i].data,
                   get_slot(plan, plan->program->inputs[i])->bytes);
        }
    }
    return rondo__stand_ins_replay(&carried->places, put_replay, carried);
}

bool rondo__carried_is_near(const rondo__carried *carried) {
    bool is = false;
    for (size_t i = 0; i < carried->places.plan->program->input_count; ++i) {
        is = is || carried->inputs[i].is_near;
    }
    return is;
}

bool rondo__carried_writes(const rondo__carried *carried, size_t i) {
    return carried->outputs[i].way == WAY_COPIED || carried->outputs[i].way == WAY_IN_PLACE;
}
