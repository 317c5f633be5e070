// random/generator_capture.c — generators in captures, and in their conditional bodies.
//
// A recorded op reads the state when it runs, at a distance from the offset that is counted from 0
// for each scope: the capture itself, or a conditional body. A scope that took counters ends with a
// node that adds their number to the offset:
//
//      capture:   op +0    op +2   advance 4   [ IF ]   op +0   advance 2
//                                               |
//      body:                                    op +0   advance 1
//
// So a body that does not run takes nothing, and one that runs again goes on. Before a conditional
// node the capture's own count is added, too, because the body counts from 0. A graph that is
// recorded into the capture as one node is no different.
//
// Within a scope ops may be on branches of their own: they only read. An advance in the middle of a
// scope must come after all earlier ops of the scope and before all later ones, on whichever
// stream; so each scope remembers its streams, makes the advance depend on what they end in, and
// makes each stream's next op depend on the advance or the conditional node, the barrier. The
// scope's last advance needs none of that: by then all branches are joined.
//
// Nothing here touches the generator's own state: a capture that fails takes its counts with it.
#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "random/random_internal.h"

enum { FRONTIER_MAX = 64 };

// A stream of a scope that used the generator.
typedef struct scope_user {
    rondo__stream_tag *tag;  // retained
    rondo_stream *stream;    // alive unless the tag is finished
    bool has_drawn;          // since the barrier
    bool is_after_barrier;
} scope_user;

typedef struct scope {
    uint64_t id;        // of the capture or body
    uint64_t relative;  // counters taken since the scope's last advance
    uint64_t epoch;     // of marks
    bool has_barrier;
    rondo__node_handle barrier;
    scope_user *users;
    size_t user_count;
    size_t user_capacity;
    struct scope *next;
} scope;

// A generator's part in a graph. While the graph records they are participants side by side; from
// the close on the first of them is the only one, and has the others behind it: so a replay asks
// once for all.
typedef struct generator_part {
    rondo__participant base;
    rondo_generator *generator;         // retained
    struct generator_part *next;        // behind the first, once closed
    bool is_recording;                  // in the generator's list
    rondo__random_recording recording;  // its entry there
    scope *scopes;                      // while recording
} generator_part;

// ---- scopes -----------------------------------------------------------------------------------

static void free_scope(scope *s) {
    for (size_t i = 0; i < s->user_count; ++i) {
        rondo__stream_tag_release(s->users[i].tag);
    }
    rondo__free(s->users);
    rondo__free(s);
}

static void free_scopes(generator_part *part) {
    while (part->scopes != NULL) {
        scope *s = part->scopes;
        part->scopes = s->next;
        free_scope(s);
    }
}

static scope *find_scope(const generator_part *part, uint64_t id) {
    scope *s = part->scopes;
    while (s != NULL && s->id != id) {
        s = s->next;
    }
    return s;
}

static rondo_status get_scope(generator_part *part, uint64_t id, scope **out_scope) {
    scope *s = find_scope(part, id);
    if (s == NULL) {
        s = rondo__calloc(1, sizeof *s);
        if (s == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        s->id = id;
        s->next = part->scopes;
        part->scopes = s;
    }
    *out_scope = s;
    return RONDO_STATUS_OK;
}

static void set_barrier(scope *s, rondo__node_handle barrier) {
    s->has_barrier = true;
    s->barrier = barrier;
    for (size_t i = 0; i < s->user_count; ++i) {
        s->users[i].has_drawn = false;
        s->users[i].is_after_barrier = false;
    }
}

// The entry of a stream that is about to draw; what it records next comes after the barrier.
static rondo_status get_user(scope *s, rondo_stream *stream, scope_user **out_user) {
    scope_user *user = NULL;
    for (size_t i = 0; i < s->user_count && user == NULL; ++i) {
        user = s->users[i].tag == stream->tag ? &s->users[i] : NULL;
    }
    if (user == NULL) {
        void *users = s->users;
        rondo_status status =
            rondo__array_reserve(&users, &s->user_capacity, s->user_count + 1, sizeof *s->users);
        s->users = users;
        RETURN_IF_ERROR(status);
        user = &s->users[s->user_count++];
        *user = (scope_user){.tag = rondo__stream_tag_retain(stream), .stream = stream};
    }
    if (s->has_barrier && !user->is_after_barrier) {
        RETURN_IF_ERROR(stream->device->backend->add_dependencies(stream, &s->barrier, 1));
        user->is_after_barrier = true;
    }
    *out_user = user;
    return RONDO_STATUS_OK;
}

// The next node recorded on `stream` comes after all ops of the scope so far.
static rondo_status depend_on_users(scope *s, rondo_stream *stream) {
    const rondo__backend *backend = stream->device->backend;
    if (s->has_barrier) {
        RETURN_IF_ERROR(backend->add_dependencies(stream, &s->barrier, 1));
    }
    for (size_t i = 0; i < s->user_count; ++i) {
        const scope_user *user = &s->users[i];
        if (!user->has_drawn || user->tag == stream->tag ||
            rondo__stream_tag_is_finished(user->tag)) {
            continue;
        }
        rondo__node_handle nodes[FRONTIER_MAX];
        size_t count = 0;
        RETURN_IF_ERROR(backend->get_frontier(user->stream, nodes, FRONTIER_MAX, &count));
        if (count > FRONTIER_MAX) {
            return RONDO_FAIL(UNSUPPORTED,
                              "stream %u waits for %zu branches at once; at most %d are possible "
                              "where a generator is used on several streams before a conditional "
                              "node: let it do some work in between",
                              (unsigned)user->stream->number, count, (int)FRONTIER_MAX);
        }
        if (count > 0) {
            RETURN_IF_ERROR(backend->add_dependencies(stream, nodes, count));
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the participant --------------------------------------------------------------------------

static void stop_recording(generator_part *part) {
    free_scopes(part);
    if (part->is_recording) {
        part->is_recording = false;
        rondo__random_recording **link = &part->generator->recordings;
        while (*link != &part->recording) {
            link = &(*link)->next;
        }
        *link = part->recording.next;
    }
}

// By now all branches are joined to the origin.
static rondo_status finish(rondo__participant *participant, rondo__capture *capture) {
    generator_part *part = (generator_part *)participant;
    rondo_generator *generator = part->generator;
    rondo_status status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(rondo__generator_enter(generator, "rondo_graph_capture_end"));
    const scope *s = find_scope(part, capture->id);
    if (s != NULL && s->relative > 0) {
        status = rondo__generator_launch_advance(generator, capture->origin, s->relative);
    }
    stop_recording(part);
    rondo__generator_unlock(generator);
    return status;
}

static rondo_status get_id(rondo_stream *stream, uint64_t *out_id) {
    rondo__capture_state state;
    return stream->device->backend->get_capture_id(stream, &state, out_id);
}

// What `stream` ends in, one node, becomes the barrier.
static rondo_status set_barrier_behind(scope *s, rondo_stream *stream) {
    rondo__node_handle node = 0;
    size_t count = 0;
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &node, 1, &count));
    if (count != 1) {
        return RONDO_FAIL(INTERNAL, "a recorded node left %zu nodes at the end of stream %u", count,
                          (unsigned)stream->number);
    }
    set_barrier(s, node);
    ++s->epoch;
    return RONDO_STATUS_OK;
}

// Adds what the scope of `parent` took so far. The advance becomes what the conditional depends on.
static rondo_status flush_scope(generator_part *part, scope *s, rondo_stream *parent) {
    RETURN_IF_ERROR(depend_on_users(s, parent));
    if (s->relative == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__generator_launch_advance(part->generator, parent, s->relative));
    s->relative = 0;
    return set_barrier_behind(s, parent);
}

static rondo_status enter_scope(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *parent) {
    (void)capture;
    generator_part *part = (generator_part *)participant;
    uint64_t id = 0;
    RETURN_IF_ERROR(get_id(parent, &id));
    RETURN_IF_ERROR(rondo__generator_enter(part->generator, "rondo_scope_begin"));
    scope *s = find_scope(part, id);
    rondo_status status = s != NULL ? flush_scope(part, s, parent) : RONDO_STATUS_OK;
    rondo__generator_unlock(part->generator);
    return status;
}

static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body) {
    generator_part *part = (generator_part *)participant;
    uint64_t id = 0;
    RETURN_IF_ERROR(get_id(body, &id));
    const rondo__capture_body *entry = rondo__capture_find_body(capture, id);
    rondo_status status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(rondo__generator_enter(part->generator, "rondo_scope_leave"));
    const scope *s = find_scope(part, id);
    if (s == NULL || entry == NULL) {
        goto unlock;
    }
    if (s->relative > 0) {
        status = rondo__generator_launch_advance(part->generator, body, s->relative);
        if (status != RONDO_STATUS_OK) {
            goto unlock;
        }
    }
    // Whoever draws in the parent from now on comes after the conditional.
    scope *parent = NULL;
    status = get_scope(part, entry->parent_id, &parent);
    if (status != RONDO_STATUS_OK) {
        goto unlock;
    }
    set_barrier(parent, entry->node);
    ++parent->epoch;
    scope **link = &part->scopes;
    while ((*link)->id != id) {
        link = &(*link)->next;
    }
    scope *closed = *link;
    *link = closed->next;
    free_scope(closed);
unlock:
    rondo__generator_unlock(part->generator);
    return status;
}

static rondo_status get_part(rondo_generator *generator, rondo__capture *capture,
                             generator_part **out_part);

// The graph counts from 0 and moves the generator on by itself, as a conditional body does. The
// outer capture takes part from now on: its later ops must come after the graph.
static rondo_status enter_child_part(rondo_generator *generator, rondo__capture *capture,
                                     rondo_stream *stream, uint64_t id) {
    generator_part *outer = NULL;
    scope *s = NULL;
    RETURN_IF_ERROR(rondo__generator_enter(generator, "rondo_graph_record"));
    rondo_status status = get_part(generator, capture, &outer);
    if (status == RONDO_STATUS_OK) {
        status = get_scope(outer, id, &s);
    }
    if (status == RONDO_STATUS_OK) {
        status = flush_scope(outer, s, stream);
    }
    rondo__generator_unlock(generator);
    return status;
}

static rondo_status enter_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    uint64_t id = 0;
    RETURN_IF_ERROR(get_id(stream, &id));
    for (const generator_part *part = (generator_part *)participant; part != NULL;
         part = part->next) {
        RETURN_IF_ERROR(enter_child_part(part->generator, capture, stream, id));
    }
    return RONDO_STATUS_OK;
}

static rondo_status leave_child_part(rondo_generator *generator, rondo__capture *capture,
                                     rondo_stream *stream, uint64_t id) {
    generator_part *outer = NULL;
    scope *s = NULL;
    RETURN_IF_ERROR(rondo__generator_enter(generator, "rondo_graph_record"));
    rondo_status status = get_part(generator, capture, &outer);
    if (status == RONDO_STATUS_OK) {
        status = get_scope(outer, id, &s);
    }
    if (status == RONDO_STATUS_OK) {
        status = set_barrier_behind(s, stream);
    }
    rondo__generator_unlock(generator);
    return status;
}

static rondo_status leave_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    uint64_t id = 0;
    RETURN_IF_ERROR(get_id(stream, &id));
    for (const generator_part *part = (generator_part *)participant; part != NULL;
         part = part->next) {
        RETURN_IF_ERROR(leave_child_part(part->generator, capture, stream, id));
    }
    return RONDO_STATUS_OK;
}

static const rondo__participant_type generator_part_type;

// The first part in the graph's list takes the others behind it.
static void close_part(rondo__participant *participant, rondo__capture *capture,
                       bool has_succeeded) {
    (void)capture;
    (void)has_succeeded;
    generator_part *last = (generator_part *)participant;
    rondo__participant **link = &participant->next;
    while (*link != NULL) {
        rondo__participant *other = *link;
        if (other->type == &generator_part_type) {
            *link = other->next;
            last->next = (generator_part *)other;
            last = last->next;
        } else {
            link = &other->next;
        }
    }
}

// ---- replays ----------------------------------------------------------------------------------

// Takes the one lock of all the graph's generators; at the first replay they may have several.
static rondo_status lock_together(const generator_part *first, rondo__random_group **out_group) {
    for (;;) {
        rondo__random_group *group = rondo__generator_lock(first->generator);
        const generator_part *part = first->next;
        while (part != NULL &&
               atomic_load_explicit(&part->generator->group, memory_order_relaxed) == group) {
            part = part->next;
        }
        *out_group = group;
        if (part == NULL) {
            return RONDO_STATUS_OK;
        }
        rondo__random_group_unlock(group);
        RETURN_IF_ERROR(rondo__generator_unite(first->generator, part->generator));
    }
}

static rondo_status prepare_slowly(const generator_part *first, rondo_stream *stream) {
    rondo__random_group *group = NULL;
    RETURN_IF_ERROR(lock_together(first, &group));
    rondo_status status = RONDO_STATUS_OK;
    for (const generator_part *part = first; part != NULL && status == RONDO_STATUS_OK;
         part = part->next) {
        status = rondo__generator_prepare_replay(part->generator, stream);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__random_group_unlock(group);
    }
    return status;
}

static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    const generator_part *first = (generator_part *)participant;
    rondo__random_group *group = rondo__generator_lock(first->generator);
    for (const generator_part *part = first; part != NULL; part = part->next) {
        if (__builtin_expect(!rondo__generator_is_prepared(part->generator, group, stream), 0)) {
            rondo__random_group_unlock(group);
            return prepare_slowly(first, stream);
        }
    }
    return RONDO_STATUS_OK;
}

static void note_replay(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    rondo__generator_unlock(((generator_part *)participant)->generator);
}

static void cancel_replay(rondo__participant *participant) {
    rondo__generator_unlock(((generator_part *)participant)->generator);
}

static void destroy(rondo__participant *participant) {
    generator_part *part = (generator_part *)participant;
    while (part != NULL) {
        generator_part *next = part->next;
        rondo_generator *generator = part->generator;
        (void)rondo__generator_lock(generator);
        stop_recording(part);
        rondo__generator_unlock(generator);
        rondo__free(part);
        rondo_generator_release(generator);
        part = next;
    }
}

static const rondo__participant_type generator_part_type = {
    .name = "generator",
    .finish = finish,
    .enter_scope = enter_scope,
    .leave_body = leave_body,
    .enter_child = enter_child,
    .leave_child = leave_child,
    .close = close_part,
    .prepare_replay = prepare_replay,
    .note_replay = note_replay,
    .cancel_replay = cancel_replay,
    .destroy = destroy,
};

// ---- drawing ----------------------------------------------------------------------------------

// The generator's part in the capture; joins it at the first use.
static rondo_status get_part(rondo_generator *generator, rondo__capture *capture,
                             generator_part **out_part) {
    generator_part *part =
        (generator_part *)rondo__capture_find_participant(capture, &generator_part_type, generator);
    if (part == NULL) {
        part = rondo__calloc(1, sizeof *part);
        if (part == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        part->base.type = &generator_part_type;
        part->base.key = generator;
        part->generator = generator;
        part->is_recording = true;
        rondo_generator_retain(generator);
        part->recording =
            (rondo__random_recording){.label = capture->label, .next = generator->recordings};
        generator->recordings = &part->recording;
        rondo__capture_add_participant(capture, &part->base);
    }
    *out_part = part;
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_draw_recorded(rondo_generator *generator, rondo_stream *stream,
                                            rondo__capture *capture, uint64_t id, uint64_t counters,
                                            rondo__random_issue issue, void *data,
                                            uint64_t *out_relative) {
    generator_part *part = NULL;
    scope *s = NULL;
    scope_user *user = NULL;
    RETURN_IF_ERROR(get_part(generator, capture, &part));
    RETURN_IF_ERROR(get_scope(part, id, &s));
    RETURN_IF_ERROR(get_user(s, stream, &user));
    *out_relative = s->relative;
    if (issue != NULL) {
        RETURN_IF_ERROR(issue(generator, stream, s->relative, data));
    }
    user->has_drawn = true;
    s->relative += counters;
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_mark_recorded(rondo_generator *generator, rondo__capture *capture,
                                            uint64_t id, rondo_generator_mark *out_mark) {
    generator_part *part = NULL;
    scope *s = NULL;
    RETURN_IF_ERROR(get_part(generator, capture, &part));
    RETURN_IF_ERROR(get_scope(part, id, &s));
    *out_mark = (rondo_generator_mark){.scope = id, .epoch = s->epoch, .relative = s->relative};
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_rewind_recorded(rondo_generator *generator, rondo__capture *capture,
                                              uint64_t id, const rondo_generator_mark *mark) {
    generator_part *part = NULL;
    scope *s = NULL;
    RETURN_IF_ERROR(get_part(generator, capture, &part));
    RETURN_IF_ERROR(get_scope(part, id, &s));
    if (mark->scope != id) {
        return RONDO_FAIL_AS("rondo_generator_rewind", STATE,
                             "the mark is not of this part of graph \"%s\": it was made outside of "
                             "the capture or conditional body",
                             capture->label);
    }
    if (mark->epoch != s->epoch) {
        return RONDO_FAIL_AS("rondo_generator_rewind", STATE,
                             "a conditional node came between the mark and this rewind in graph "
                             "\"%s\": how far its bodies move generator %u is known only when they "
                             "run",
                             capture->label, (unsigned)generator->number);
    }
    s->relative = mark->relative;
    return RONDO_STATUS_OK;
}
