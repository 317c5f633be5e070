// graph/record.c — a graph's work as one node of another capture.
//
// The node holds a copy of the template. What the graph keeps alive (its participants: memory,
// generators, external events) is from then on shared by the graph and the capture's graph, and
// freed with the last of them:
//
//      graph ----- sharer ---+
//                            +--> share { participants of the graph }
//      outer ----- sharer ---+
//
// Each replay of either asks the shared participants, which may keep other threads out until it is
// launched. That of the outer graph has asked its own generators by then, among which are those of
// the graph: it only enters them once more.
#include <pthread.h>
#include <stdatomic.h>

#include "backend/cause.h"
#include "backend/check.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "graph/label.h"
#include "pool/arena.h"

typedef struct share {
    atomic_int reference_count;
    pthread_mutex_t lock;  // calls of the participants while something records
    rondo__participant *participants;
} share;

typedef struct sharer {
    rondo__participant head;  // its key is the share
    share *share;             // retained
    bool is_own;              // of the graph whose participants are shared: its only one
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
    if (atomic_fetch_sub_explicit(&self->share->reference_count, 1, memory_order_acq_rel) == 1) {
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
        atomic_fetch_add_explicit(&shared->reference_count, 1, memory_order_relaxed);
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

// ---- recording --------------------------------------------------------------------------------

static rondo_status check_copyable(const rondo_graph *graph) {
    const rondo__backend *backend = graph->device->backend;
    size_t count = 0;
    RETURN_IF_ERROR(backend->count_nodes(graph->recorded, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo__node_info info;
        RETURN_IF_ERROR(backend->describe_node(graph->recorded, i, &info));
        if (info.kind == RONDO__NODE_CONDITIONAL) {
            return RONDO_FAIL_AS("rondo_stream_add_graph", UNSUPPORTED,
                                 "graph \"%s\" has a conditional node (number %zu), and those "
                                 "cannot be copied into another graph; record its work directly",
                                 graph->label, i);
        }
    }
    return RONDO_STATUS_OK;
}

// A capture that is not Rondo's makes a graph whose replays nobody tells us of. Memory that no
// other graph shares needs no telling.
static rondo_status check_foreign(const rondo_graph *graph) {
    for (const rondo__participant *participant = rondo__graph_get_participants(graph);
         participant != NULL; participant = participant->next) {
        bool is_own_memory = participant->type == &rondo__arena_graph_type &&
                             !atomic_load(&graph->arena->is_exposed);
        if (participant->type->prepare_replay != NULL && !is_own_memory) {
            return RONDO_FAIL_AS("rondo_stream_add_graph", UNSUPPORTED,
                                 "graph \"%s\" uses %s, which has to be asked before each "
                                 "replay, and this capture is not Rondo's; begin it with "
                                 "rondo_graph_capture_begin",
                                 graph->label, participant->type->name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS("rondo_stream_add_graph", STATE,
                             "stream %u does not record; rondo_graph_replay runs the graph",
                             (unsigned)stream->number);
    }
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, "rondo_stream_add_graph");
    }
    return RONDO_STATUS_OK;
}

// A sharer for the capture to take over, unless it has one of this graph's share already.
static rondo_status add_sharer(rondo_graph *graph, rondo__capture *capture, sharer **out_added) {
    share *shared;
    RETURN_IF_ERROR(share_participants(graph, &shared));
    if (rondo__capture_find_participant(capture, &sharer_type, shared) != NULL) {
        return RONDO_STATUS_OK;
    }
    *out_added = create_sharer(shared);
    return *out_added != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static rondo_status find_capture(const rondo_graph *graph, rondo_stream *stream,
                                 rondo__capture **out_capture, uint64_t *out_id) {
    static const char call[] = "rondo_stream_add_graph";
    RETURN_IF_ERROR(rondo__graph_check_template(graph, call));
    if (graph->device != stream->device) {
        return RONDO_FAIL_AS(call, INVALID, "graph \"%s\" is of %s, the stream of %s", graph->label,
                             graph->device->name, stream->device->name);
    }
    RETURN_IF_ERROR(check_recording(stream));
    return rondo__capture_find(stream, out_capture, out_id);
}

rondo_status rondo_stream_add_graph(rondo_stream *stream, rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__capture *capture;
    uint64_t id;
    rondo_status found = find_capture(graph, stream, &capture, &id);
    if (found != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, "graph", found);
    }
    sharer *added = NULL;
    rondo_status status = check_copyable(graph);
    if (status == RONDO_STATUS_OK && capture == NULL) {
        status = check_foreign(graph);
    } else if (status == RONDO_STATUS_OK && graph->participants != NULL) {
        status = add_sharer(graph, capture, &added);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__participants_enter_child(graph->participants, capture, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->add_child(stream, graph->recorded);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__label_note_child(capture, id, stream, rondo__graph_get_participants(graph),
                                         graph->recorded);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__participants_leave_child(graph->participants, capture, stream);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(graph->label);
        if (added != NULL) {
            destroy_sharer(&added->head);
        }
    } else if (added != NULL) {
        rondo__capture_add_participant(capture, &added->head);
    }
    return rondo__mark_work(stream, "graph", status);
}
