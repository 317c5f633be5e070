// graph/graph_share.c — the objects that a graph keeps alive, if it was recorded into another one.
//
// The participants (memory, generators, external events) are from then on shared by the graph and
// the capture's graph, and freed with the last of them:
//
//      graph ----- sharer ---+
//      clone ----- sharer ---+--> share { participants of the graph }
//      outer ----- sharer ---+
//
// Each replay of either graph asks the shared participants, which may keep other threads out until
// the replay is launched. A replay of the outer graph has asked its own generators by then, among
// them those of the inner graph, so it only enters these once more.
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_share.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"
#include "pool/arena.h"

typedef struct share {
    atomic_int reference_count;
    pthread_mutex_t lock;  // calls of the participants while something records
    rondo__participant *participants;
} share;

typedef struct sharer {
    rondo__participant head;  // its key is the share
    share *share;             // retained
    bool is_own;              // of the graph whose participants are shared, or of its clone: the
                              // first one, and the only one until a patch
} sharer;

static rondo_status enter_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    share *shared = ((sharer *)participant)->share;
    pthread_mutex_lock(&shared->lock);
    rondo_status status = rondo__participants_enter_child(shared->participants, capture, stream);
    pthread_mutex_unlock(&shared->lock);
    return status;
}

static rondo_status leave_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    share *shared = ((sharer *)participant)->share;
    pthread_mutex_lock(&shared->lock);
    rondo_status status = rondo__participants_leave_child(shared->participants, capture, stream);
    pthread_mutex_unlock(&shared->lock);
    return status;
}

static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    return rondo__participants_prepare_replay(((sharer *)participant)->share->participants, stream);
}

static void note_replay(rondo__participant *participant, rondo_stream *stream) {
    rondo__participants_note_replay(((sharer *)participant)->share->participants, stream);
}

static void cancel_replay(rondo__participant *participant) {
    rondo__participants_cancel_replay(((sharer *)participant)->share->participants, NULL);
}

static void destroy_sharer(rondo__participant *participant) {
    sharer *self = (sharer *)participant;
    if (rondo__reference_drop(&self->share->reference_count)) {
        rondo__participants_destroy(self->share->participants);
        pthread_mutex_destroy(&self->share->lock);
        rondo__free(self->share);
    }
    rondo__free(self);
}

static const rondo__participant_type sharer_type = {
    .name = "what a recorded graph needs",
    .enter_child = enter_child,
    .leave_child = leave_child,
    .prepare_replay = prepare_replay,
    .note_replay = note_replay,
    .cancel_replay = cancel_replay,
    .destroy = destroy_sharer,
};

static bool is_own_share(const rondo__participant *first) {
    return first != NULL && first->type == &sharer_type && ((const sharer *)first)->is_own;
}

rondo__participant *rondo__graph_get_participants(const rondo_graph *graph) {
    rondo__participant *first = graph->participants;
    return is_own_share(first) ? ((sharer *)first)->share->participants : first;
}

static sharer *create_sharer(share *shared) {
    sharer *self = rondo__calloc(1, sizeof *self);
    if (self != NULL) {
        self->head = (rondo__participant){.type = &sharer_type, .key = shared};
        self->share = shared;
        rondo__reference_take(&shared->reference_count);
    }
    return self;
}

// Puts the graph's participants behind a share; *out_share is borrowed from the graph.
static rondo_status share_participants(rondo_graph *graph, share **out_share) {
    rondo__participant *first = graph->participants;
    if (is_own_share(first)) {
        *out_share = ((sharer *)first)->share;
        return RONDO_STATUS_OK;
    }
    share *shared = rondo__calloc(1, sizeof *shared);
    if (shared == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    sharer *self = create_sharer(shared);
    if (self == NULL) {
        rondo__free(shared);
        return RONDO_STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&shared->lock, NULL);
    rondo__arena_expose(graph->arena);  // from now on two executables use its memory
    shared->participants = first;
    self->is_own = true;
    graph->participants = &self->head;
    *out_share = shared;
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_share_with(rondo_graph *graph, rondo__capture *capture,
                                     rondo__participant **out_added) {
    share *shared;
    *out_added = NULL;
    RETURN_IF_ERROR(share_participants(graph, &shared));
    if (rondo__capture_find_participant(capture, &sharer_type, shared) != NULL) {
        return RONDO_STATUS_OK;
    }
    sharer *added = create_sharer(shared);
    if (added == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_added = &added->head;
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_share_own(rondo_graph *graph, rondo_graph *clone) {
    share *shared;
    if (graph->participants == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(share_participants(graph, &shared));
    sharer *own = create_sharer(shared);
    if (own == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    own->is_own = true;
    clone->participants = &own->head;
    return RONDO_STATUS_OK;
}
