// executor/run/carried.c — see carried.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/carried.h"

#include <stdint.h>
#include <string.h>

#include "backend/areas.h"
#include "backend/backend.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/devices/stand_ins.h"
#include "executor/devices/transfers.h"
#include "executor/run/branch_trial.h"
#include "executor/run/input_lanes.h"
#include "graph/graph_object.h"
#include "kernel/carry.h"

typedef enum way {
    WAY_NONE,      // nothing is to be brought, or it is not fetched
    WAY_IN_PLACE,  // the ops work on the tensor
    WAY_PIECE,     // of the graph's first or last kernel
    WAY_COPY,      // on the stream; on the host by the thread that runs
    WAY_LANE,      // through an input lane
} way;

// An input or output.
typedef struct port {
    way way;
    bool is_near;
    bool is_staged;       // the processor brings it to staging memory, or takes it from there
    bool is_left;         // on the host: the end of a run that waits copies it
    const void *address;  // the tensor's
    void *place;          // the value's, on the device
    char *staging;
    size_t bytes;
} port;

// A kernel that carries pieces; there is none if `count` is 0.
typedef struct carrier {
    rondo__carry carry;
    size_t count;
    rondo_node node;
} carrier;

struct rondo__carried {
    rondo__stand_ins places;
    rondo_graph *graph;
    void *function;  // NULL: the kernel is not to be had
    bool is_host;
    bool is_in_place;   // it has device tensors, and copies none of them
    bool may_run_here;  // on the host the thread that waits may run the graph
    bool waits;         // so do the runs that it is for
    bool has_far;       // it has tensors of host memory
    bool has_lane;      // some of which are feeds of runs that do not wait
    size_t input_count, output_count;
    port *inputs, *outputs;
    carrier in, out;
    bool has_near_feed;
    // Those of the ports for which a run has something to do; most of a training step have not.
    size_t busy_input_count, busy_output_count;
    size_t *busy;  // inputs, then outputs
};

// ---- what goes which way ----------------------------------------------------------------------

// Fills in the fields of a port that do not depend on its way. False: the graph cannot reach the
// value's place.
static bool begin_port(const rondo__carried *carried, int32_t value, const rondo_tensor *tensor,
                       port *out_port) {
    const rondo__plan *plan = carried->places.plan;
    const rondo__slot *slot = &plan->slots[value];
    const rondo_executor *executor = carried->places.unit->executor;
    *out_port = (port){.is_near = rondo__stand_ins_is_near(executor, tensor),
                       .address = tensor->data,
                       .bytes = slot->bytes};
    if (slot->kind == RONDO__SLOT_DYNAMIC || slot->is_on_host || slot->is_bound) {
        return false;
    }
    if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0) {
        return true;
    }
    out_port->place = rondo__stand_ins_find(&carried->places, value);
    out_port->is_staged =
        !out_port->is_near && !carried->is_host &&
        rondo__areas_is_pageable(executor->device, tensor->data, rondo_tensor_get_bytes(tensor));
    out_port->way = out_port->place == tensor->data ? WAY_IN_PLACE : WAY_COPY;
    return !carried->is_host || !out_port->is_near || out_port->way == WAY_IN_PLACE;
}

// Whether an input is a state, which is there.
static bool is_state(const rondo__carried *carried, size_t input) {
    const rondo__plan *plan = carried->places.plan;
    return plan->slots[plan->program->inputs[input]].is_kept;
}

// Lets a small tensor be a piece, while there is room for one.
static void add_piece(const rondo__carried *carried, carrier *all, port *p) {
    if (p->way == WAY_COPY && p->bytes <= RONDO__CARRY_BYTES && carried->function != NULL &&
        all->count < RONDO__CARRY_PIECES) {
        p->way = WAY_PIECE;
        all->count += 1;
    }
}

static bool choose_ways(rondo__carried *carried, const rondo__fetch *fetch,
                        const rondo_tensor *feeds) {
    const rondo__plan *plan = carried->places.plan;
    rondo__stand_ins_choose(&carried->places, feeds, fetch->results, fetch->wants);
    for (size_t i = 0; i < carried->input_count; ++i) {
        port *p = &carried->inputs[i];
        if (is_state(carried, i)) {
            continue;
        }
        if (!begin_port(carried, plan->program->inputs[i], &feeds[i], p) ||
            rondo__plan_get_host_input(plan, i) != NULL) {
            return false;
        }
        p->staging = plan->memory.staging + plan->memory.input_staging[i];
        if (p->way == WAY_COPY && !p->is_near && !carried->waits) {
            p->way = WAY_LANE;
            p->is_staged = false;
            carried->has_lane = true;
        }
        carried->has_far = carried->has_far || !p->is_near;
        add_piece(carried, &carried->in, p);
    }
    for (size_t i = 0; i < carried->output_count; ++i) {
        port *p = &carried->outputs[i];
        const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
        if (!fetch->wants[i]) {
            continue;
        }
        if (!begin_port(carried, plan->program->outputs[i], &fetch->results[i], p) ||
            (slot->kind == RONDO__SLOT_CONSTANT && (p->is_near || !carried->waits))) {
            return false;
        }
        p->staging = plan->memory.staging + plan->memory.output_staging[i];
        p->is_left = carried->is_host && !p->is_near && carried->waits;
        carried->has_far = carried->has_far || !p->is_near;
        add_piece(carried, &carried->out, p);
    }
    return true;
}

// The program's end of a port.
static void *get_outer(const port *p) {
    union {
        const void *read_only;
        void *written;
    } bound = {.read_only = p->address};
    return p->is_staged ? p->staging : bound.written;
}

static void list_pieces(carrier *all, const port *ports, size_t count, bool is_in) {
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        const port *p = &ports[i];
        if (p->way == WAY_PIECE) {
            all->carry.pieces[used++] =
                (rondo__carry_piece){.from = is_in ? get_outer(p) : p->place,
                                     .to = is_in ? p->place : get_outer(p),
                                     .bytes = (int64_t)p->bytes};
        }
    }
}

static void list_all_pieces(rondo__carried *carried) {
    list_pieces(&carried->in, carried->inputs, carried->input_count, true);
    list_pieces(&carried->out, carried->outputs, carried->output_count, false);
}

static bool is_busy(const port *p) {
    return p->way == WAY_PIECE || p->way == WAY_COPY;
}

static void list_busy_ports(rondo__carried *carried) {
    size_t *next = carried->busy;
    for (size_t i = 0; i < carried->input_count; ++i) {
        carried->has_near_feed = carried->has_near_feed || carried->inputs[i].is_near;
        if (is_busy(&carried->inputs[i])) {
            *next++ = i;
        }
    }
    carried->busy_input_count = (size_t)(next - carried->busy);
    for (size_t i = 0; i < carried->output_count; ++i) {
        if (is_busy(&carried->outputs[i])) {
            *next++ = i;
        }
    }
    carried->busy_output_count = (size_t)(next - carried->busy) - carried->busy_input_count;
}

// ---- recording --------------------------------------------------------------------------------

static rondo_status launch_carrier(const rondo__carried *carried, carrier *all,
                                   rondo_stream *stream) {
    if (all->count == 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_launch launch = rondo__carry_describe(carried->function, &all->carry, all->count);
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
    return rondo_stream_add_node(stream, &work, &all->node);
}

// `branches`: NULL: the plan's graph is a straight line.
static rondo_status record_on(rondo__carried *carried, rondo__branch_recorder *branches,
                              rondo_stream *stream) {
    RETURN_IF_ERROR(launch_carrier(carried, &carried->in, stream));
    RETURN_IF_ERROR(branches != NULL
                        ? rondo__branches_record(branches, stream, rondo__stand_ins_launch_item,
                                                 &carried->places)
                        : rondo__stand_ins_launch(&carried->places, stream));
    return launch_carrier(carried, &carried->out, stream);
}

static rondo_status record_with(rondo__carried *carried, rondo__branch_recorder *branches) {
    rondo_stream *stream = carried->places.unit->stream;
    const rondo_graph_options options = {.struct_size = sizeof options, .label = "bound run"};
    RETURN_IF_ERROR(rondo_graph_create(rondo_stream_get_device(stream), &options, &carried->graph));
    RETURN_IF_ERROR(rondo_graph_capture_begin(carried->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    const rondo_status status = record_on(carried, branches, stream);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_graph_capture_abort(carried->graph);
        rondo__error_restore(&saved);
        return status;
    }
    RETURN_IF_ERROR(rondo_graph_capture_end(carried->graph));
    return rondo_graph_upload(carried->graph, stream);
}

// Records with branches where the plan's graph has them; marks of a watchdog are in a line.
static rondo_status record(rondo__carried *carried) {
    const rondo__step *step = &carried->places.plan->steps[0];
    rondo__branch_recorder *branches = NULL;
    if (step->run.branch_count > 1 && carried->places.watched == NULL) {
        RETURN_IF_ERROR(
            rondo__branches_open(carried->places.unit, carried->places.plan, step, &branches));
    }
    const rondo_status status = record_with(carried, branches);
    rondo__branches_close(branches);
    return status;
}

// How many feeds and fetches are tensors of the device, and how many of these the ops work on.
static void count_near(const rondo__carried *carried, size_t *out_near, size_t *out_in_place) {
    *out_near = *out_in_place = 0;
    for (size_t i = 0; i < carried->input_count + carried->output_count; ++i) {
        const port *p = i < carried->input_count ? &carried->inputs[i]
                                                 : &carried->outputs[i - carried->input_count];
        *out_near += p->is_near ? 1 : 0;
        *out_in_place += p->is_near && p->way == WAY_IN_PLACE ? 1 : 0;
    }
}

static rondo_status fill_in(rondo__carried *carried, const rondo__fetch *fetch,
                            const rondo_tensor *feeds) {
    const rondo__plan *plan = fetch->plan;
    RETURN_IF_ERROR(rondo__stand_ins_init(fetch->unit, plan, &carried->places));
    carried->input_count = plan->program->input_count;
    carried->output_count = plan->program->output_count;
    carried->inputs = rondo__calloc(carried->input_count + 1, sizeof *carried->inputs);
    carried->outputs = rondo__calloc(carried->output_count + 1, sizeof *carried->outputs);
    carried->busy =
        rondo__calloc(carried->input_count + carried->output_count + 1, sizeof *carried->busy);
    if (carried->inputs == NULL || carried->outputs == NULL || carried->busy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    carried->waits = fetch->waits;
    carried->is_host = rondo_device_is_host(fetch->unit->executor->device);
    carried->may_run_here = carried->is_host && plan->steps[0].run.may_run_here;
    carried->places.arena = plan->memory.arena->address;
    (void)rondo__stand_ins_watch(&carried->places);
    RETURN_IF_ERROR(rondo__stand_ins_check(plan, "rondo_bound_run_run", false));
    if (carried->is_host || rondo__carry_get_function(fetch->unit->executor->device,
                                                      &carried->function) != RONDO_STATUS_OK) {
        carried->function = NULL;
    }
    if (!choose_ways(carried, fetch, feeds)) {
        return RONDO_FAIL(UNSUPPORTED, "a feed or fetch lies where its graph cannot bring it");
    }
    size_t near, in_place;
    count_near(carried, &near, &in_place);
    carried->is_in_place = near > 0 && near == in_place;
    list_all_pieces(carried);
    list_busy_ports(carried);
    return record(carried);
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
        rondo__error_restore(&saved);
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
    rondo__free(carried->busy);
    rondo__free(carried);
    rondo__error_restore(&saved);
}

bool rondo__carried_is_watched_so(rondo__carried *carried) {
    return rondo__stand_ins_watch(&carried->places);
}

bool rondo__carried_serves(const rondo__carried *carried, bool waits) {
    return carried->waits == waits || !carried->has_far;
}

// ---- other tensors ----------------------------------------------------------------------------

// False: the tensor cannot take the place of the port's.
static bool follow(const rondo__carried *carried, port *p, const rondo_tensor *tensor) {
    const rondo_executor *executor = carried->places.unit->executor;
    if (p->is_near != rondo__stand_ins_is_near(executor, tensor) ||
        (p->way == WAY_IN_PLACE && p->address != tensor->data)) {
        return false;
    }
    if (p->way == WAY_PIECE || p->way == WAY_COPY) {
        p->is_staged = !p->is_near && !carried->is_host &&
                       rondo__areas_is_pageable(executor->device, tensor->data,
                                                rondo_tensor_get_bytes(tensor));
    }
    p->address = tensor->data;
    return true;
}

static bool is_over_any(const port *ports, size_t count, const port *fetch, uintptr_t to) {
    bool is_over = false;
    for (size_t i = 0; i < count; ++i) {
        const uintptr_t from = (uintptr_t)ports[i].address;
        is_over = is_over || (&ports[i] != fetch && ports[i].way == WAY_IN_PLACE &&
                              to < from + ports[i].bytes && from < to + fetch->bytes);
    }
    return is_over;
}

// Whether a fetch has moved over a tensor that the ops work on.
static bool is_over_others(const rondo__carried *carried, const port *fetch,
                           const rondo_tensor *tensor) {
    const uintptr_t to = (uintptr_t)tensor->data;
    return fetch->address != tensor->data &&
           (is_over_any(carried->inputs, carried->input_count, fetch, to) ||
            is_over_any(carried->outputs, carried->output_count, fetch, to));
}

static rondo_status patch(const rondo__carried *carried, const carrier *all) {
    if (all->count == 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_launch launch = rondo__carry_describe(carried->function, &all->carry, all->count);
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
    return rondo_graph_patch_node(carried->graph, all->node, &work);
}

static bool follow_all(rondo__carried *carried, const rondo__fetch *fetch,
                       const rondo_tensor *feeds) {
    bool fits = true;
    for (size_t i = 0; i < carried->input_count && fits; ++i) {
        fits = is_state(carried, i) || follow(carried, &carried->inputs[i], &feeds[i]);
    }
    for (size_t i = 0; i < carried->output_count && fits; ++i) {
        port *p = &carried->outputs[i];
        fits = fetch->wants[i] == (p->address != NULL) &&
               (!fetch->wants[i] || (!is_over_others(carried, p, &fetch->results[i]) &&
                                     follow(carried, p, &fetch->results[i])));
    }
    if (!fits) {
        return false;
    }
    list_all_pieces(carried);
    return patch(carried, &carried->in) == RONDO_STATUS_OK &&
           patch(carried, &carried->out) == RONDO_STATUS_OK;
}

bool rondo__carried_follow(rondo__carried *carried, const rondo__fetch *fetch,
                           const rondo_tensor *feeds) {
    rondo_error saved;
    rondo__error_save(&saved);
    const bool fits = follow_all(carried, fetch, feeds);
    rondo__error_restore(&saved);
    return fits;
}

// ---- runs -------------------------------------------------------------------------------------

static rondo_status put_replay(void *user_data) {
    const rondo__carried *carried = user_data;
    return rondo_graph_replay(carried->graph, carried->places.unit->stream);
}

// Behind the replay: an output in host memory that no copy on the stream reaches itself.
static rondo_status put_staged(rondo_stream *stream, const port *p) {
    union {
        const void *read_only;
        void *written;
    } bound = {.read_only = p->address};
    return rondo__transfers_put_bytes(stream, bound.written, p->staging, p->bytes);
}

rondo_status rondo__carried_put(const rondo__fetch *fetch, const rondo_tensor *feeds) {
    rondo__carried *carried = fetch->carried;
    rondo_stream *stream = fetch->unit->stream;
    const size_t *busy = carried->busy;
    if (carried->has_lane) {
        RETURN_IF_ERROR(rondo__input_lanes_feed(fetch->unit, fetch->plan, feeds));
    }
    for (size_t k = 0; k < carried->busy_input_count; ++k, ++busy) {
        const port *p = &carried->inputs[*busy];
        if (p->is_staged) {
            memcpy(p->staging, feeds[*busy].data, p->bytes);
        }
        if (p->way == WAY_COPY && carried->is_host) {
            memcpy(p->place, feeds[*busy].data, p->bytes);
        } else if (p->way == WAY_COPY) {
            RETURN_IF_ERROR(rondo_stream_copy(
                stream, p->place, get_outer(p), p->bytes,
                p->is_near ? RONDO_COPY_DEVICE_TO_DEVICE : RONDO_COPY_HOST_TO_DEVICE));
        }
    }
    if (fetch->waits && carried->may_run_here && carried->places.watched == NULL) {
        RETURN_IF_ERROR(rondo__graph_replay_here(carried->graph, stream,
                                                 &fetch->unit->executor->work.is_all_here));
    } else {
        RETURN_IF_ERROR(rondo__stand_ins_replay(&carried->places, put_replay, carried));
    }
    for (size_t k = 0; k < carried->busy_output_count; ++k, ++busy) {
        const port *p = &carried->outputs[*busy];
        if (p->way == WAY_COPY && !p->is_left) {
            RETURN_IF_ERROR(rondo_stream_copy(stream, get_outer(p), p->place, p->bytes,
                                              p->is_near || carried->is_host
                                                  ? RONDO_COPY_DEVICE_TO_DEVICE
                                                  : RONDO_COPY_DEVICE_TO_HOST));
        }
        if (p->is_staged && !fetch->waits) {
            RETURN_IF_ERROR(put_staged(stream, p));
        }
    }
    return RONDO_STATUS_OK;
}

bool rondo__carried_is_near(const rondo__carried *carried) {
    return carried->has_near_feed;
}

bool rondo__carried_writes(const rondo__carried *carried, size_t i) {
    const port *p = &carried->outputs[i];
    return p->way != WAY_NONE && !p->is_staged && !p->is_left;
}

const void *rondo__carried_get_place(const rondo__carried *carried, size_t i) {
    return carried->outputs[i].place;
}

bool rondo__carried_is_in_place(const rondo__carried *carried) {
    return carried->is_in_place;
}
