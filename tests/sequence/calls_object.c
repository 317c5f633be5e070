// Objects that go and come, and questions that change nothing.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/inspect.h"
#include "sequence/sequence.h"

// A capture keeps the stream to its end, and what was on its way there goes on: the next stream of
// this line does not come behind it, nor behind what it had waited for.
static void leave_work(world *w, int line) {
    ticks *now = &w->streams[line].now;
    const ticks former = *now;
    *now = w->host;
    now->at[line] = former.at[line];
    w->kept_time += 1;
    for (int i = 0; i < w->word_count; ++i) {
        word *x = &w->words[i];
        if (x->written.at[line] > w->host.at[line]) {
            x->written.at[LINE_KEPT] = w->kept_time;
        }
        if (x->read.at[line] > w->host.at[line]) {
            x->read.at[LINE_KEPT] = w->kept_time;
        }
    }
}

bool call_destroy_stream(world *w, const any_call *k) {
    int line = k->a % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    if (k->b % 2 != 0) {
        return false;  // a whole round with the same streams is worth more
    }
    ticks done = s->now;
    bool was_recording = s->frame != NULL;
    rondo_stream_destroy(s->real);
    tell(w, RONDO_STATUS_OK, "stream_destroy(s%d)", line);
    give_up_stream(w, line);
    if (was_recording) {
        leave_work(w, line);
    } else {
        clock_join(&w->host, &done);
    }
    rondo_status status = rondo_stream_create(w->context->device, NULL, &s->real);
    tell(w, status, "stream_create() s%d", line);
    (void)expect(w, status, CAN_OK, "rondo_stream_create");
    s->label_depth = 0;
    leave_blocks(w, line);
    return true;
}

bool call_destroy_event(world *w, const any_call *k) {
    int index = k->a % EVENT_COUNT;
    event_model *e = &w->events[index];
    rondo_event_destroy(e->real);
    tell(w, RONDO_STATUS_OK, "event_destroy(e%d)", index);
    uint32_t flags = e->flags;
    *e = (event_model){.flags = flags};
    (void)expect(w, rondo_event_create(w->context->device, flags, &e->real), CAN_OK,
                 "rondo_event_create");
    return true;
}

bool call_destroy_graph(world *w, const any_call *k) {
    int index = k->a % GRAPH_COUNT;
    graph_model *g = &w->graphs[index];
    rondo_graph_destroy(g->real);
    tell(w, RONDO_STATUS_OK, "graph_destroy(g%d)", index);
    if (g->capture != NULL) {
        close_capture(w, g->capture, false);
    }
    reset_graph(w, g);
    int arena = k->b % 4;
    g->options = (rondo_graph_options){.struct_size = sizeof(rondo_graph_options)};
    g->options.keep = k->c % 3 == 0   ? RONDO_KEEP_EXECUTABLE
                      : k->c % 2 == 0 ? RONDO_KEEP_TEMPLATE_ONLY
                                      : RONDO_KEEP_TEMPLATE;
    g->options.arena = arena < ARENA_COUNT ? w->arenas[arena].real : NULL;
    g->arena = arena < ARENA_COUNT ? &w->arenas[arena] : &w->own_arenas[index];
    w->own_arenas[index] = (arena_model){0};
    rondo_status status = rondo_graph_create(w->context->device, &g->options, &g->real);
    tell(w, status, "graph_create(keep %d, arena %d) g%d", (int)g->options.keep,
         arena < ARENA_COUNT ? arena : -1, index);
    (void)expect(w, status, CAN_OK, "rondo_graph_create");
    return true;
}

static bool count_text(void *user_data, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user_data += bytes;
    return true;
}

bool call_look(world *w, const any_call *k) {
    graph_model *g = &w->graphs[k->a % GRAPH_COUNT];
    size_t length = 0;
    rondo_status status = rondo_graph_dump(
        g->real, k->b % 2 == 0 ? RONDO_TEXT_DOT : RONDO_TEXT_JSON, count_text, &length);
    tell(w, status, "dump(g%d)", k->a % GRAPH_COUNT);
    (void)expect(w, status, has_template(g) ? CAN_OK : CAN_STATE, "rondo_graph_dump");
    if (has_template(g) && length == 0) {
        world_fail(w, "the dump is empty");
    }
    rondo_capture_report report = {.struct_size = sizeof report};
    char text[512];
    if (expect(w, rondo_graph_get_report(g->real, &report), CAN_OK, "rondo_graph_get_report")) {
        (void)rondo_capture_report_format(&report, text, sizeof text);
    }
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    (void)expect(w, rondo_graph_get_stats(g->real, &stats), CAN_OK, "rondo_graph_get_stats");
    if (g->state == GRAPH_READY && stats.replay_count != g->replay_count && g->has_count) {
        world_fail(w, "graph %d was replayed %llu times, the model says %llu", k->a % GRAPH_COUNT,
                   (unsigned long long)stats.replay_count, (unsigned long long)g->replay_count);
    }
    return true;
}

// Reads the cells that the stream comes behind.
bool call_check(world *w, const any_call *k) {
    int line = k->a % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    bool is_read[ALL_CELLS] = {false};
    if (s->frame != NULL || find_global_ban(w) != BAN_NONE) {
        return false;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < ALL_CELLS && status == RONDO_STATUS_OK; ++i) {
        is_read[i] = !races_now(w, s, (operand){.first = i, .count = 1, .block = -1}, false);
        if (is_read[i]) {
            status = rondo_stream_copy(s->real, w->pinned + i, (void *)w->words[i].address,
                                       sizeof *w->memory, RONDO_COPY_DEVICE_TO_HOST);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(s->real);
    }
    tell(w, status, "look at the cells on s%d", line);
    if (!expect(w, status, CAN_OK, "rondo_stream_synchronize")) {
        return true;
    }
    for (int i = 0; i < ALL_CELLS; ++i) {
        const word *x = &w->words[i];
        if (is_read[i] && x->is_known && w->pinned[i] != x->value) {
            world_fail(w, "cell %d is %u, the model says %u", i, (unsigned)w->pinned[i],
                       (unsigned)x->value);
            return true;
        }
    }
    clock_join(&w->host, &s->now);
    return true;
}
