// random/generator_capture.c — generators in captures.
//
// A section is the capture itself or one conditional body in it. A recorded op reads the state when
// it runs, at a distance from the offset that its section counts from 0. A section that drew ends
// with a node that adds what it drew to the offset, the advance:
//
//      capture:   op +0    op +2   advance 4   [ IF ]   op +0   advance 2
//                                               |
//      body:                                    op +0   advance 1
//
// So a body that does not run takes nothing, and one that runs again goes on. The body counts from
// 0, so the outer section also advances before a conditional node. A graph that is recorded into
// the capture as one node is treated as a conditional node with one body.
//
// Within a section ops only read the state, so they may be on parallel branches. An advance or a
// conditional node in the middle of a section writes it: the barrier. It must come after all
// earlier ops of the section and before all later ones, on whichever stream. Each section therefore
// remembers its streams, makes the barrier depend on the ends of those that drew, and makes each
// stream's next op depend on the barrier. The last advance of a section needs none of that: by then
// all branches are joined.
//
// A capture changes nothing in the generator itself: one that fails takes its counts with it.
// SPDX-License-Identifier: Apache-2.0
#include "random/generator_capture.h"

#include "base/error.h"
#include "base/memory.h"
#include "device/stream_tag.h"
#include "random/generator_state.h"

enum { FRONTIER_MAX = 64 };

// A stream of a section that drew.
typedef struct section_stream {
    rondo__stream_tag *tag;  // retained
    rondo_stream *stream;    // alive unless the tag is finished
    bool has_drawn;          // since the barrier
    bool is_behind_barrier;
} section_stream;

typedef struct section {
    uint64_t id;        // of the capture or body
    uint64_t relative;  // counters drawn since the last advance
    uint64_t epoch;     // barriers so far, for marks
    bool has_barrier;
    rondo__node_handle barrier;  // the last one
    section_stream *streams;
    size_t stream_count;
    size_t stream_capacity;
    struct section *next;
} section;

// What one graph has to do with one generator.
typedef struct generator_use {
    rondo__participant base;
    rondo_generator *generator;  // retained
    section *sections;           // while the capture is open
} generator_use;

static const rondo__participant_type generator_use_type;

// ---- sections ---------------------------------------------------------------------------------

static section *find_section(const generator_use *use, uint64_t id) {
    section *s = use->sections;
    while (s != NULL && s->id != id) {
        s = s->next;
    }
    return s;
}

static rondo_status get_section(generator_use *use, uint64_t id, section **out_section) {
    section *s = find_section(use, id);
    if (s == NULL) {
        s = rondo__calloc(1, sizeof *s);
        if (s == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        s->id = id;
        s->next = use->sections;
        use->sections = s;
    }
    *out_section = s;
    return RONDO_STATUS_OK;
}

static void remove_section(generator_use *use, section *s) {
    section **link = &use->sections;
    while (*link != s) {
        link = &(*link)->next;
    }
    *link = s->next;
    for (size_t i = 0; i < s->stream_count; ++i) {
        rondo__stream_tag_release(s->streams[i].tag);
    }
    rondo__free(s->streams);
    rondo__free(s);
}

static rondo_status get_section_id(rondo_stream *stream, uint64_t *out_id) {
    rondo__capture_state state;
    return stream->device->backend->get_capture_id(stream, &state, out_id);
}

// ---- taking part ------------------------------------------------------------------------------

// The generator joins the capture at its first use.
static rondo_status get_use(rondo_generator *generator, rondo__capture *capture,
                            generator_use **out_use) {
    generator_use *use =
        (generator_use *)rondo__capture_find_participant(capture, &generator_use_type, generator);
    if (use == NULL) {
        use = rondo__calloc(1, sizeof *use);
        if (use == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        use->base.type = &generator_use_type;
        use->base.key = generator;
        use->generator = generator;
        rondo_generator_retain(generator);
        rondo__capture_add_participant(capture, &use->base);
    }
    *out_use = use;
    return RONDO_STATUS_OK;
}

static rondo_status join(rondo_generator *generator, rondo__capture *capture, uint64_t id,
                         generator_use **out_use, section **out_section) {
    RETURN_IF_ERROR(get_use(generator, capture, out_use));
    return get_section(*out_use, id, out_section);
}

rondo_status rondo__generator_refuse_recording(const rondo_generator *generator, const char *call) {
    rondo_device *device = generator->device;
    rondo_status status = RONDO_STATUS_OK;
    if (atomic_load(&device->open_capture_count) == 0) {
        return status;
    }
    // The lock keeps the captures from ending meanwhile.
    pthread_mutex_lock(&device->capture_list_lock);
    for (rondo__capture *c = device->capture_list; c != NULL && status == RONDO_STATUS_OK;
         c = c->next) {
        if (rondo__capture_find_participant(c, &generator_use_type, generator) != NULL) {
            status = RONDO_FAIL_AS(
                call, STATE,
                "graph \"%s\" records and draws from generator %u, whose state belongs to the "
                "replays; call this before the capture or after its end",
                c->label, (unsigned)generator->number);
        }
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return status;
}

// ---- drawing ----------------------------------------------------------------------------------

static rondo_status find_stream(section *s, rondo_stream *stream, section_stream **out_entry) {
    for (size_t i = 0; i < s->stream_count; ++i) {
        if (s->streams[i].tag == stream->tag) {
            *out_entry = &s->streams[i];
            return RONDO_STATUS_OK;
        }
    }
    rondo_status status = RONDO__ARRAY_RESERVE(s->streams, s->stream_capacity, s->stream_count + 1);
    RETURN_IF_ERROR(status);
    *out_entry = &s->streams[s->stream_count++];
    **out_entry = (section_stream){.tag = rondo__stream_tag_retain(stream), .stream = stream};
    return status;
}

// The entry of a stream that is about to draw: its next op comes after the barrier.
static rondo_status put_behind_barrier(section *s, rondo_stream *stream,
                                       section_stream **out_entry) {
    RETURN_IF_ERROR(find_stream(s, stream, out_entry));
    if (s->has_barrier && !(*out_entry)->is_behind_barrier) {
        RETURN_IF_ERROR(stream->device->backend->add_dependencies(stream, &s->barrier, 1));
        (*out_entry)->is_behind_barrier = true;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_draw_recorded(rondo_generator *generator, rondo_stream *stream,
                                            rondo__capture *capture, uint64_t id, uint64_t counters,
                                            rondo__random_issue issue, void *data,
                                            uint64_t *out_relative) {
    generator_use *use = NULL;
    section *s = NULL;
    section_stream *entry = NULL;
    RETURN_IF_ERROR(join(generator, capture, id, &use, &s));
    RETURN_IF_ERROR(put_behind_barrier(s, stream, &entry));
    *out_relative = s->relative;
    if (issue != NULL) {
        RETURN_IF_ERROR(issue(generator, stream, s->relative, data));
    }
    entry->has_drawn = true;
    s->relative += counters;
    return RONDO_STATUS_OK;
}

// ---- barriers ---------------------------------------------------------------------------------

static void set_barrier(section *s, rondo__node_handle barrier) {
    s->has_barrier = true;
    s->barrier = barrier;
    ++s->epoch;
    for (size_t i = 0; i < s->stream_count; ++i) {
        s->streams[i].has_drawn = false;
        s->streams[i].is_behind_barrier = false;
    }
}

// The node that `stream` ends in becomes the barrier.
static rondo_status set_barrier_at_end(section *s, rondo_stream *stream) {
    rondo__node_handle node = 0;
    size_t count = 0;
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &node, 1, &count));
    if (count != 1) {
        return RONDO_FAIL(INTERNAL, "a recorded node left %zu nodes at the end of stream %u", count,
                          (unsigned)stream->number);
    }
    set_barrier(s, node);
    return RONDO_STATUS_OK;
}

// The next node on `stream` comes after what `entry`'s stream was given so far.
static rondo_status put_behind_stream(const section_stream *entry, rondo_stream *stream) {
    const rondo__backend *backend = stream->device->backend;
    rondo__node_handle nodes[FRONTIER_MAX];
    size_t count = 0;
    RETURN_IF_ERROR(backend->get_frontier(entry->stream, nodes, FRONTIER_MAX, &count));
    if (count > FRONTIER_MAX) {
        return RONDO_FAIL(UNSUPPORTED,
                          "stream %u waits for %zu branches at once; at most %d are possible where "
                          "a generator is used on several streams before a conditional node: let "
                          "it do some work in between",
                          (unsigned)entry->stream->number, count, (int)FRONTIER_MAX);
    }
    return count > 0 ? backend->add_dependencies(stream, nodes, count) : RONDO_STATUS_OK;
}

// The next node on `stream` comes after all draws of the section so far.
static rondo_status put_behind_draws(const section *s, rondo_stream *stream) {
    if (s->has_barrier) {
        RETURN_IF_ERROR(stream->device->backend->add_dependencies(stream, &s->barrier, 1));
    }
    for (size_t i = 0; i < s->stream_count; ++i) {
        const section_stream *entry = &s->streams[i];
        if (entry->has_drawn && entry->tag != stream->tag &&
            !rondo__stream_tag_is_finished(entry->tag)) {
            RETURN_IF_ERROR(put_behind_stream(entry, stream));
        }
    }
    return RONDO_STATUS_OK;
}

// Adds to the offset what the section drew so far: whatever `stream` is given next counts from 0.
static rondo_status advance_before_node(const generator_use *use, section *s,
                                        rondo_stream *stream) {
    RETURN_IF_ERROR(put_behind_draws(s, stream));
    if (s->relative == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__generator_launch_advance(use->generator, stream, s->relative));
    s->relative = 0;
    return set_barrier_at_end(s, stream);
}

// The same as the last node of a section, whose branches are joined to `stream`.
static rondo_status advance_at_end(const generator_use *use, const section *s,
                                   rondo_stream *stream) {
    return s->relative > 0 ? rondo__generator_launch_advance(use->generator, stream, s->relative)
                           : RONDO_STATUS_OK;
}

// ---- conditional nodes ------------------------------------------------------------------------

static rondo_status enter_scope(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *parent) {
    (void)capture;
    const generator_use *use = (generator_use *)participant;
    uint64_t id = 0;
    RETURN_IF_ERROR(get_section_id(parent, &id));
    section *s = find_section(use, id);
    return s != NULL ? advance_before_node(use, s, parent) : RONDO_STATUS_OK;
}

static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body) {
    generator_use *use = (generator_use *)participant;
    section *parent = NULL;
    uint64_t id = 0;
    RETURN_IF_ERROR(get_section_id(body, &id));
    const rondo__capture_body *entry = rondo__capture_find_body(capture, id);
    section *s = find_section(use, id);
    if (s == NULL || entry == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(advance_at_end(use, s, body));
    // Later draws of the parent come after the conditional node.
    RETURN_IF_ERROR(get_section(use, entry->parent_id, &parent));
    set_barrier(parent, entry->node);
    remove_section(use, s);
    return RONDO_STATUS_OK;
}

// ---- graphs recorded into the capture ---------------------------------------------------------

// `participant` is the recorded graph's; the capture uses the generator, too, from now on.
static rondo_status join_for_child(const rondo__participant *participant, rondo__capture *capture,
                                   rondo_stream *stream, generator_use **out_use,
                                   section **out_section) {
    uint64_t id = 0;
    RETURN_IF_ERROR(get_section_id(stream, &id));
    return join(((const generator_use *)participant)->generator, capture, id, out_use, out_section);
}

static rondo_status enter_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    generator_use *use = NULL;
    section *s = NULL;
    RETURN_IF_ERROR(join_for_child(participant, capture, stream, &use, &s));
    return advance_before_node(use, s, stream);
}

static rondo_status leave_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    generator_use *use = NULL;
    section *s = NULL;
    RETURN_IF_ERROR(join_for_child(participant, capture, stream, &use, &s));
    return set_barrier_at_end(s, stream);
}

// ---- the end of the capture -------------------------------------------------------------------

static rondo_status finish(rondo__participant *participant, rondo__capture *capture) {
    const generator_use *use = (generator_use *)participant;
    const section *s = find_section(use, capture->id);
    return s != NULL ? advance_at_end(use, s, capture->origin) : RONDO_STATUS_OK;
}

static void close_use(rondo__participant *participant, rondo__capture *capture,
                      bool has_succeeded) {
    (void)capture;
    (void)has_succeeded;
    generator_use *use = (generator_use *)participant;
    while (use->sections != NULL) {
        remove_section(use, use->sections);
    }
}

static void destroy(rondo__participant *participant) {
    generator_use *use = (generator_use *)participant;
    rondo_generator_release(use->generator);
    rondo__free(use);
}

// ---- replays: the generator is this thread's until the graph is launched ------------------------

static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    rondo_generator *generator = ((generator_use *)participant)->generator;
    RETURN_IF_ERROR(rondo__generator_enter(generator, "rondo_graph_replay"));
    rondo_status status = rondo__generator_settle(generator, stream);
    if (status != RONDO_STATUS_OK) {
        rondo__generator_leave(generator);
    }
    return status;
}

static void note_replay(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    rondo__generator_leave(((generator_use *)participant)->generator);
}

static void cancel_replay(rondo__participant *participant) {
    rondo__generator_leave(((generator_use *)participant)->generator);
}

static const rondo__participant_type generator_use_type = {
    .name = "generator",
    .enter_scope = enter_scope,
    .leave_body = leave_body,
    .enter_child = enter_child,
    .leave_child = leave_child,
    .finish = finish,
    .close = close_use,
    .prepare_replay = prepare_replay,
    .note_replay = note_replay,
    .cancel_replay = cancel_replay,
    .destroy = destroy,
};

// ---- marks ------------------------------------------------------------------------------------

rondo_status rondo__generator_mark_recorded(rondo_generator *generator, rondo__capture *capture,
                                            uint64_t id, rondo_generator_mark *out_mark) {
    generator_use *use = NULL;
    section *s = NULL;
    RETURN_IF_ERROR(join(generator, capture, id, &use, &s));
    *out_mark = (rondo_generator_mark){.scope = id, .epoch = s->epoch, .relative = s->relative};
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_rewind_recorded(rondo_generator *generator, rondo__capture *capture,
                                              uint64_t id, const rondo_generator_mark *mark) {
    generator_use *use = NULL;
    section *s = NULL;
    RETURN_IF_ERROR(join(generator, capture, id, &use, &s));
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
