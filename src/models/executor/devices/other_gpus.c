// executor/devices/other_gpus.c — see other_gpus.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/other_gpus.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/limits.h"
#include "executor/state/run_memory.h"

// ---- devices ----------------------------------------------------------------------------------

int rondo__other_gpus_get_own(const rondo_executor *executor) {
    const char *colon = strchr(rondo_device_get_name(executor->device), ':');
    return rondo_device_is_host(executor->device) || colon == NULL
               ? -1
               : (int)strtol(colon + 1, NULL, 10);
}

static void free_peer(const rondo_executor *executor, rondo__peer *peer) {
    if (peer != NULL) {
        rondo_stream_destroy(peer->stream);
        rondo__shared_release_store(executor->main.source, peer->weights.store);
        rondo__budget_release(peer->budget);
        rondo_device_release(peer->device);
        rondo__free(peer);
    }
}

static rondo_status open_peer(rondo_executor *executor, int ordinal, rondo__peer *peer) {
    const char *own = rondo_device_get_name(executor->device);
    char name[40];
    (void)snprintf(name, sizeof name, "%.*s:%d", (int)strcspn(own, ":"), own, ordinal);
    RETURN_IF_ERROR(rondo_device_open(name, &peer->device));
    RETURN_IF_ERROR(rondo_stream_create(peer->device, NULL, &peer->stream));
    RETURN_IF_ERROR(rondo__executor_make_device_budget(executor, &peer->budget));
    peer->weights.budget = peer->budget;
    peer->weights.stream = peer->stream;
    return RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_open(rondo_executor *executor, int ordinal, rondo__peer **out_peer) {
    assert(ordinal >= 0 && ordinal < RONDO__PLACE_GPU_MAX);
    if (executor->resources.peers[ordinal] == NULL) {
        rondo__peer *peer = rondo__calloc(1, sizeof *peer);
        if (peer == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        const rondo_status status = open_peer(executor, ordinal, peer);
        if (status != RONDO_STATUS_OK) {
            rondo_error saved;
            rondo__error_save(&saved);
            free_peer(executor, peer);
            rondo__error_restore(&saved);
            return status;
        }
        executor->resources.peers[ordinal] = peer;
    }
    *out_peer = executor->resources.peers[ordinal];
    return RONDO_STATUS_OK;
}

void rondo__other_gpus_free(rondo_executor *executor) {
    for (int i = 0; i < RONDO__PLACE_GPU_MAX; ++i) {
        free_peer(executor, executor->resources.peers[i]);
        executor->resources.peers[i] = NULL;
    }
}

void rondo__other_gpus_forget_weights(rondo_executor *executor) {
    for (int i = 0; i < RONDO__PLACE_GPU_MAX; ++i) {
        if (executor->resources.peers[i] != NULL) {
            rondo__shared_release_store(executor->main.source,
                                        executor->resources.peers[i]->weights.store);
            executor->resources.peers[i]->weights.store = NULL;
        }
    }
}

// ---- of a plan --------------------------------------------------------------------------------

rondo_status rondo__other_gpus_add(rondo_executor *executor, rondo__plan *plan, int ordinal) {
    rondo__peer *peer = NULL;
    for (size_t i = 0; i < plan->peer_count; ++i) {
        if (plan->peers[i].ordinal == ordinal) {
            return RONDO_STATUS_OK;
        }
    }
    if (plan->peers == NULL) {
        plan->peers = rondo__calloc(RONDO__PLACE_GPU_MAX, sizeof *plan->peers);
        if (plan->peers == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    RETURN_IF_ERROR(rondo__other_gpus_open(executor, ordinal, &peer));
    if (peer->weights.store == NULL) {  // not when it is opened: then the program may be locked
        RETURN_IF_ERROR(rondo__shared_acquire_store(executor->main.source, peer->device,
                                                    RONDO_MEMORY_DEVICE, &peer->weights.store));
    }
    rondo__plan_peer *added = &plan->peers[plan->peer_count++];
    *added = (rondo__plan_peer){.peer = peer, .ordinal = ordinal};
    rondo__weight_list_init(&peer->weights, &added->weights);
    return RONDO_STATUS_OK;
}

void rondo__other_gpus_drop(rondo__unit *unit, rondo__plan *plan) {
    for (size_t i = 0; i < plan->peer_count; ++i) {
        rondo__plan_peer *p = &plan->peers[i];
        rondo__weight_list_cut(&p->weights, 0);
        rondo__run_memory_release(unit, p->arena);
        rondo__free(p->constants);
        rondo_event_destroy(p->ended);
    }
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__free(plan->steps[s].waits);
        rondo_event_destroy(plan->steps[s].done);
    }
    rondo_event_destroy(plan->begun);
    rondo__free(plan->peers);
}

uint8_t rondo__other_gpus_get_side(const rondo__plan *plan, size_t n) {
    const int place = plan->homes != NULL ? plan->homes[n].place : RONDO__PLACE_ANY;
    for (size_t i = 0; i < plan->peer_count; ++i) {
        if (place == RONDO__PLACE_GPU_0 + plan->peers[i].ordinal) {
            return (uint8_t)(RONDO__SIDE_PEER + i);
        }
    }
    return RONDO__SIDE_DEVICE;
}

// ---- waits between streams --------------------------------------------------------------------

// The stream that a step is on: 0 the executor's, others those of its peers.
static size_t get_lane(const rondo__plan *plan, size_t step) {
    const rondo__plan_peer *peer = rondo__step_get_peer(plan, &plan->steps[step]);
    return peer != NULL ? 1 + (size_t)(peer - plan->peers) : 0;
}

typedef struct linking {
    rondo__plan *plan;
    size_t *made;  // by value: 1 + the step that makes it; 0: none does
    size_t *last;  // by stream: 1 + the latest step that the step at hand has to wait for
} linking;

static void note_output(linking *l, size_t n, size_t step) {
    const rondo__node *node = &l->plan->program->nodes[n];
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0) {
            l->made[node->outputs[i]] = 1 + step;
        }
    }
}

static void note_inputs(linking *l, size_t n) {
    const rondo__node *node = &l->plan->program->nodes[n];
    for (size_t i = 0; i < node->input_count; ++i) {
        const size_t maker = node->inputs[i] >= 0 ? l->made[node->inputs[i]] : 0;
        if (maker > 0) {
            size_t *last = &l->last[get_lane(l->plan, maker - 1)];
            *last = maker > *last ? maker : *last;
        }
    }
}

static void for_nodes(linking *l, size_t s, void (*act)(linking *, size_t, size_t)) {
    const rondo__step *step = &l->plan->steps[s];
    if (!rondo__step_has_kernels(step)) {
        act(l, step->node, s);
    }
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        act(l, l->plan->items[i].node, s);
    }
}

static void collect(linking *l, size_t n, size_t step) {
    (void)step;
    note_inputs(l, n);
}

// Views, which no step makes, are ready when their source is.
static void note_views(linking *l) {
    const rondo_program *program = l->plan->program;
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[l->plan->order[i]];
        const int32_t from = node->input_count > 0 ? node->inputs[0] : -1;
        for (size_t k = 0; k < node->output_count; ++k) {
            const int32_t value = node->outputs[k];
            if (value >= 0 && from >= 0 && l->made[value] == 0) {
                l->made[value] = l->made[from];
            }
        }
    }
}

static rondo_status mark_done(const rondo__unit *unit, rondo__plan *plan, size_t s) {
    rondo__step *step = &plan->steps[s];
    rondo_device *device = rondo_stream_get_device(rondo__step_get_stream(unit, plan, step));
    return step->done != NULL ? RONDO_STATUS_OK : rondo_event_create(device, 0, &step->done);
}

static rondo_status link_step(const rondo__unit *unit, linking *l, size_t s) {
    rondo__step *step = &l->plan->steps[s];
    const size_t lane_count = 1 + l->plan->peer_count;
    memset(l->last, 0, lane_count * sizeof *l->last);
    for_nodes(l, s, collect);
    step->waits = rondo__calloc(lane_count, sizeof(rondo_event *));
    if (step->waits == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t lane = 0; lane < lane_count; ++lane) {
        if (l->last[lane] > 0 && lane != get_lane(l->plan, s)) {
            RETURN_IF_ERROR(mark_done(unit, l->plan, l->last[lane] - 1));
            step->waits[step->wait_count++] = l->plan->steps[l->last[lane] - 1].done;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status link_steps(const rondo__unit *unit, linking *l) {
    for (size_t s = 0; s < l->plan->step_count; ++s) {
        for_nodes(l, s, note_output);
    }
    note_views(l);
    for (size_t s = 0; s < l->plan->step_count; ++s) {
        RETURN_IF_ERROR(link_step(unit, l, s));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_link(rondo__unit *unit, rondo__plan *plan) {
    if (plan->peer_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_create(unit->executor->device, 0, &plan->begun));
    for (size_t i = 0; i < plan->peer_count; ++i) {
        RETURN_IF_ERROR(rondo_event_create(plan->peers[i].peer->device, 0, &plan->peers[i].ended));
    }
    linking l = {.plan = plan};
    l.made = rondo__calloc(plan->program->value_count + 1, sizeof *l.made);
    l.last = rondo__calloc(1 + plan->peer_count, sizeof *l.last);
    const rondo_status status =
        l.made == NULL || l.last == NULL ? RONDO_STATUS_NO_MEMORY : link_steps(unit, &l);
    rondo__free(l.made);
    rondo__free(l.last);
    return status;
}

// ---- a run ------------------------------------------------------------------------------------

rondo_status rondo__other_gpus_begin(rondo__unit *unit, rondo__plan *plan) {
    if (plan->peer_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo_event_record(plan->begun, unit->stream));
    for (size_t i = 0; i < plan->peer_count; ++i) {
        RETURN_IF_ERROR(rondo_stream_wait_event(plan->peers[i].peer->stream, plan->begun));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_enter(const rondo__unit *unit, const rondo__plan *plan,
                                     const rondo__step *step) {
    for (size_t i = 0; i < step->wait_count; ++i) {
        RETURN_IF_ERROR(
            rondo_stream_wait_event(rondo__step_get_stream(unit, plan, step), step->waits[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_leave(const rondo__unit *unit, const rondo__plan *plan,
                                     const rondo__step *step) {
    return step->done != NULL
               ? rondo_event_record(step->done, rondo__step_get_stream(unit, plan, step))
               : RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_end(rondo__unit *unit, rondo__plan *plan) {
    for (size_t i = 0; i < plan->peer_count; ++i) {
        const rondo__plan_peer *p = &plan->peers[i];
        RETURN_IF_ERROR(rondo_event_record(p->ended, p->peer->stream));
        RETURN_IF_ERROR(rondo_stream_wait_event(unit->stream, p->ended));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__other_gpus_synchronize_all(const rondo_executor *executor) {
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < RONDO__PLACE_GPU_MAX; ++i) {
        if (executor->resources.peers[i] != NULL) {
            const rondo_status waited =
                rondo_stream_synchronize(executor->resources.peers[i]->stream);
            status = status == RONDO_STATUS_OK ? waited : status;
        }
    }
    return status;
}

rondo_status rondo__other_gpus_synchronize(const rondo__plan *plan) {
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < plan->peer_count; ++i) {
        const rondo_status waited = rondo_stream_synchronize(plan->peers[i].peer->stream);
        status = status == RONDO_STATUS_OK ? waited : status;
    }
    return status;
}
