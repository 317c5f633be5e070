// The objects of a round: made, given back, and what must hold of them at any time.
// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conformance/random/random_support.h"
#include "rondo/pool.h"
#include "sequence/sequence.h"

// ---- failures and tracing ---------------------------------------------------------------------

void world_fail(world *w, const char *format, ...) {
    if (w->has_failed) {
        return;
    }
    w->has_failed = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w->failure, sizeof w->failure, format, arguments);
    va_end(arguments);
}

void tell(world *w, rondo_status status, const char *format, ...) {
    if (!w->is_tracing) {
        return;
    }
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const rondo_error *record = rondo_error_get_last();
    bool is_error = status != RONDO_STATUS_OK;
    printf("  %-62s %s%s%s%s%s\n", text, rondo_status_get_name(status), is_error ? ": " : "",
           is_error ? record->message : "", is_error && record->driver_name[0] ? ", " : "",
           is_error ? record->driver_name : "");
    fflush(stdout);
}

void note_record(world *w) {
    memcpy(w->record, rondo_error_get_last()->message, sizeof w->record);
}

bool expect(world *w, rondo_status status, uint32_t mask, const char *call) {
    if (status < 0 || status > 31 || (mask >> status & 1) == 0) {
        char wanted[160] = "";
        for (int i = 0; i < 12; ++i) {
            if ((mask >> i & 1) != 0) {
                size_t length = strlen(wanted);
                snprintf(wanted + length, sizeof wanted - length, "%s%s", length > 0 ? " or " : "",
                         rondo_status_get_name(i));
            }
        }
        world_fail(w, "%s gave %s, not %s%s%s", call, rondo_status_get_name(status), wanted,
                   status != RONDO_STATUS_OK ? ": " : "",
                   status != RONDO_STATUS_OK ? rondo_error_get_last()->message : "");
    }
    if (status == RONDO_STATUS_OK && strcmp(rondo_error_get_last()->message, w->record) != 0) {
        world_fail(w, "%s succeeded and left a record: %s", call, rondo_error_get_last()->message);
    }
    note_record(w);
    if (status != RONDO_STATUS_OK && rondo_error_get_last()->status != status) {
        world_fail(w, "%s gave %s, its record says %s: %s", call, rondo_status_get_name(status),
                   rondo_status_get_name(rondo_error_get_last()->status),
                   rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

// For calls that only set the round up.
static void must(world *w, rondo_status status, const char *call) {
    (void)expect(w, status, CAN_OK, call);
}

enum { WIDE_WORDS = 64, MEMORY_WORDS = (WIDE_COUNT + 1) * WIDE_WORDS };

// ---- beginning --------------------------------------------------------------------------------

static void begin_graphs(world *w) {
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        graph_model *g = &w->graphs[i];
        g->options = (rondo_graph_options){.struct_size = sizeof(rondo_graph_options)};
        g->options.keep = i == 0   ? RONDO_KEEP_EXECUTABLE
                          : i == 1 ? RONDO_KEEP_TEMPLATE_ONLY
                                   : RONDO_KEEP_TEMPLATE;
        g->options.arena = i > 1 ? w->arenas[i == 4].real : NULL;
        must(w, rondo_graph_create(w->context->device, &g->options, &g->real),
             "rondo_graph_create");
        g->arena = i > 1 ? &w->arenas[i == 4] : &w->own_arenas[i];
    }
}

void world_begin(world *w, suite_context *context, rondo_pool *shared_pool,
                 rondo_arena *shared_arena) {
    bool is_tracing = w->is_tracing;
    const tools *kept = w->tools;
    memset(w, 0, sizeof *w);
    w->is_tracing = is_tracing;
    w->tools = kept;
    w->context = context;
    w->is_threaded = shared_pool != NULL;
    w->word_count = ALL_CELLS;
    void *address = NULL;
    rondo_device *device = context->device;
    note_record(w);
    must(w, rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 4096, &address), "memory");
    w->memory = address;
    must(w, rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 4096, &address), "memory");
    w->pinned = address;
    must(w, rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 64, &address), "memory");
    w->counter = address;
    if (w->has_failed) {
        return;
    }
    *w->counter = 0;
    for (int i = 0; i < STREAM_COUNT; ++i) {
        must(w, rondo_stream_create(device, NULL, &w->streams[i].real), "rondo_stream_create");
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        w->events[i].flags = i == 3   ? RONDO_EVENT_EXTERNAL
                             : i == 4 ? RONDO_EVENT_EXTERNAL | RONDO_EVENT_TIMED
                             : i == 2 ? RONDO_EVENT_TIMED
                                      : 0;
        must(w, rondo_event_create(device, w->events[i].flags, &w->events[i].real),
             "rondo_event_create");
    }
    for (int i = 0; i < ARENA_COUNT; ++i) {
        rondo_arena_options options = {.struct_size = sizeof options};
        options.allows_any_order = i == 1;
        w->arenas[i].allows_any_order = options.allows_any_order;
        if (i == 0 && shared_arena != NULL) {
            rondo_arena_retain(shared_arena);
            w->arenas[i].real = shared_arena;
        } else {
            must(w, rondo_arena_create(device, &options, &w->arenas[i].real), "rondo_arena_create");
        }
    }
    begin_graphs(w);
    for (int i = 0; i < GENERATOR_COUNT; ++i) {
        generator_model *generator = &w->generators[i];
        generator->seed = (uint64_t)i + 5;
        must(w, rondo_generator_create(device, generator->seed, &generator->real),
             "rondo_generator_create");
    }
    w->is_pool_shared = shared_pool != NULL;
    if (w->is_pool_shared) {
        rondo_pool_retain(shared_pool);
        w->pool = shared_pool;
    } else {
        must(w, rondo_pool_create(device, NULL, &w->pool), "rondo_pool_create");
    }
    for (int i = 0; i < SLOT_COUNT; ++i) {
        w->slots[i] = -1;
    }
    for (int i = 0; i < ALL_CELLS; ++i) {
        const int at = i < CELL_COUNT ? i : (i - CELL_COUNT + 1) * WIDE_WORDS;
        w->words[i] = (word){.address = (uintptr_t)(w->memory + at), .is_known = true, .block = -1};
    }
    must(w, rondo_stream_fill(w->streams[0].real, w->memory, 0, 4, MEMORY_WORDS), "fill");
    must(w, rondo_stream_synchronize(w->streams[0].real), "rondo_stream_synchronize");
}

// ---- at any time ------------------------------------------------------------------------------

static uint64_t count_held(const world *w, const arena_model *arena) {
    uint64_t count = 0;
    for (int i = 0; i < w->block_count; ++i) {
        const block_model *b = &w->blocks[i];
        count += b->arena == arena && (b->is_live || b->freed_in != NULL);
    }
    return count;
}

static void check_streams(world *w) {
    note_record(w);  // of a call that rightly failed
    for (int i = 0; i < ALL_STREAMS; ++i) {
        stream_model *s = &w->streams[i];
        bool is_capturing = false;
        if (s->real == NULL) {
            continue;
        }
        rondo_status status = rondo_stream_is_recording(s->real, &is_capturing);
        if (!expect(w, status, CAN_OK, "rondo_stream_is_recording")) {
            return;
        }
        bool is_wanted = s->frame != NULL && !is_broken(s);
        if (is_wanted && !is_capturing && s->frame->owner->may_be_broken) {
            break_capture(w, s->frame->owner);
        } else if (is_capturing != is_wanted) {
            world_fail(w, "rondo_stream_is_recording says %s of %s, the model %s%s",
                       is_capturing ? "yes" : "no", name_stream(w, s), is_wanted ? "yes" : "no",
                       s->frame != NULL ? " (its capture is broken)" : "");
        }
    }
}

static void check_memory_counts(world *w) {
    uint64_t live = 0;
    for (int i = 0; i < w->block_count; ++i) {
        live += w->blocks[i].is_live || w->blocks[i].freed_in != NULL;
    }
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    if (!w->is_pool_shared &&
        expect(w, rondo_pool_get_stats(w->pool, &stats), CAN_OK, "rondo_pool_get_stats") &&
        stats.live_count != live) {
        world_fail(w, "the pool has %llu live blocks, the model %llu",
                   (unsigned long long)stats.live_count, (unsigned long long)live);
    }
    for (int i = w->is_threaded ? 1 : 0; i < ARENA_COUNT; ++i) {
        rondo_arena_stats arena = {.struct_size = sizeof arena};
        uint64_t held = count_held(w, &w->arenas[i]);
        if (expect(w, rondo_arena_get_stats(w->arenas[i].real, &arena), CAN_OK,
                   "rondo_arena_get_stats") &&
            arena.live_count != held) {
            world_fail(w, "arena %d has %llu live blocks, the model %llu", i,
                       (unsigned long long)arena.live_count, (unsigned long long)held);
        }
    }
}

static void check_paths(world *w) {
    for (int i = 0; i < STREAM_COUNT; ++i) {
        const char *path = rondo_label_get_path(w->streams[i].real);
        size_t depth = path[0] != '\0';
        for (; *path != '\0'; ++path) {
            depth += *path == '/';
        }
        if (depth != w->streams[i].label_depth) {
            world_fail(w, "s%d has %zu open labels, the model %zu", i, depth,
                       w->streams[i].label_depth);
        }
    }
}

void check_world(world *w) {
    check_streams(w);
    if (!w->has_failed) {
        check_memory_counts(w);
    }
    if (!w->has_failed) {
        check_paths(w);
    }
}

// ---- the end ----------------------------------------------------------------------------------

static void check_values(world *w) {
    rondo_stream *stream = w->streams[0].real;
    must(w,
         rondo_stream_copy(stream, w->pinned, w->memory, MEMORY_WORDS * sizeof *w->memory,
                           RONDO_COPY_DEVICE_TO_HOST),
         "rondo_stream_copy");
    must(w, rondo_stream_synchronize(stream), "rondo_stream_synchronize");
    for (int i = 0; i < ALL_CELLS && !w->has_failed; ++i) {
        const uint32_t value = w->pinned[(uint32_t *)w->words[i].address - w->memory];
        if (w->words[i].is_known && w->words[i].value != value) {
            world_fail(w, "at the end cell %d is %u, the model says %u", i, (unsigned)value,
                       (unsigned)w->words[i].value);
        }
    }
    if (!w->has_failed && *w->counter != (uint32_t)w->host_count) {
        world_fail(w, "host functions ran %u times, the model says %llu", (unsigned)*w->counter,
                   (unsigned long long)w->host_count);
    }
}

// What two such graphs of one arena had stays as long as the pool.
static void check_left(world *w) {
    const bool may_hold_back = (w->held_lines & (w->held_lines - 1)) != 0;
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    must(w, rondo_pool_trim(w->pool, 0, NULL), "rondo_pool_trim");
    must(w, rondo_pool_get_stats(w->pool, &stats), "rondo_pool_get_stats");
    if (!w->has_failed && !w->is_pool_shared &&
        (stats.live_count != 0 || (stats.reserved_bytes != 0 && !may_hold_back) ||
         stats.pending_bytes != 0)) {
        world_fail(w, "at the end the pool has %llu live blocks, %llu bytes reserved, %llu pending",
                   (unsigned long long)stats.live_count, (unsigned long long)stats.reserved_bytes,
                   (unsigned long long)stats.pending_bytes);
    }
}

void world_end(world *w) {
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        graph_model *g = &w->graphs[i];
        if (g->capture != NULL) {
            capture *c = g->capture;
            rondo_graph_capture_abort(g->real);
            close_capture(w, c, false);
        }
    }
    for (int i = 0; i < STREAM_COUNT && !w->has_failed; ++i) {
        must(w, rondo_stream_synchronize(w->streams[i].real), "rondo_stream_synchronize");
    }
    if (!w->has_failed) {
        check_world(w);
        check_values(w);
    }
    for (int i = 0; i < w->block_count && !w->has_failed; ++i) {
        if (w->blocks[i].is_live) {
            must(w, rondo_pool_free(w->pool, (void *)w->blocks[i].address), "rondo_pool_free");
        }
    }
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        rondo_graph_destroy(w->graphs[i].real);
        hold_content(&w->graphs[i], NULL);
    }
    if (!w->has_failed) {
        check_left(w);
    }
    rondo_pool_release(w->pool);
    for (int i = 0; i < GENERATOR_COUNT; ++i) {
        rondo_generator_release(w->generators[i].real);
    }
    for (int i = 0; i < ARENA_COUNT; ++i) {
        rondo_arena_release(w->arenas[i].real);
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        rondo_event_destroy(w->events[i].real);
    }
    for (int i = 0; i < STREAM_COUNT; ++i) {
        rondo_stream_destroy(w->streams[i].real);
    }
    rondo_memory_free(w->context->device, w->memory);
    rondo_memory_free(w->context->device, w->pinned);
    rondo_memory_free(w->context->device, w->counter);
}
