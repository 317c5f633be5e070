// Captures as the model knows them: who records, what broke it, and what an end leaves.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "sequence/sequence.h"

capture *capture_of(const stream_model *s) {
    return s->frame != NULL ? s->frame->owner : NULL;
}

bool is_broken(const stream_model *s) {
    return s->frame != NULL && s->frame->owner->is_broken;
}

void break_capture(world *w, capture *c) {
    (void)w;
    c->is_broken = true;
}

// What captures in global mode forbid; broken ones forbid nothing any more.
ban find_global_ban(const world *w) {
    ban found = BAN_NONE;
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        const capture *c = w->graphs[i].capture;
        if (c != NULL && !c->is_broken && c->mode == RONDO_CAPTURE_GLOBAL) {
            ban its = c->may_be_broken ? BAN_PERHAPS : BAN_SURE;
            found = its > found ? its : found;
        }
    }
    return found;
}

// While a stream records, its device cannot be waited for, even if the capture is broken.
bool has_capture(const world *w) {
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        if (w->graphs[i].capture != NULL) {
            return true;
        }
    }
    return false;
}

uint32_t mask_of_ban(ban its) {
    return its == BAN_NONE ? CAN_OK : its == BAN_SURE ? CAN_STATE : CAN_OK | CAN_STATE;
}

void break_global(world *w) {
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        capture *c = w->graphs[i].capture;
        if (c != NULL && c->mode == RONDO_CAPTURE_GLOBAL) {
            break_capture(w, c);
        }
    }
}

bool scope_is_open_in(const world *w, const capture *c) {
    for (int i = 0; i < SCOPE_COUNT; ++i) {
        if (w->scopes[i].is_open && w->scopes[i].parent_frame->owner == c) {
            return true;
        }
    }
    return false;
}

// ---- what graphs hold -------------------------------------------------------------------------

void hold_content(graph_model *g, content *nodes) {
    content_release(g->nodes);
    content_release(g->executed);
    g->nodes = nodes;
    g->executed = NULL;
}

// Handles are patched through the template.
bool has_template(const graph_model *g) {
    bool keeps = g->options.keep != RONDO_KEEP_EXECUTABLE || g->handles.has_any;
    return g->state == GRAPH_RECORDED || (g->state == GRAPH_READY && keeps);
}

bool may_have_lost_addresses(const world *w, const graph_model *g) {
    return g->is_stale && !w->context->is_host;
}

void end_handles(world *w, handle_list *handles) {
    for (int i = 0; i < handles->count; ++i) {
        w->ended[w->ended_count++ % ENDED_MAX] = handles->real[i];
    }
    handles->count = 0;
}

// ---- ends -------------------------------------------------------------------------------------

static void leave_streams(world *w, const capture *c) {
    for (int i = 0; i < ALL_STREAMS; ++i) {
        stream_model *s = &w->streams[i];
        if (capture_of(s) == c) {
            s->frame = NULL;
            s->closure = 0;
            s->scope = NULL;
            s->real = i < STREAM_COUNT ? s->real : NULL;
        }
    }
    for (int i = 0; i < SCOPE_COUNT; ++i) {
        if (w->scopes[i].is_open && w->scopes[i].parent_frame->owner == c) {
            w->scopes[i].is_open = false;
            w->scopes[i].body = NULL;
        }
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        event_model *e = &w->events[i];
        if (e->state == EVENT_PLACE && e->frame->owner == c) {
            e->state = EVENT_ENDED;
            e->frame = NULL;
        }
    }
}

static void settle_blocks(world *w, capture *c, bool has_succeeded) {
    for (int i = 0; i < w->block_count; ++i) {
        block_model *b = &w->blocks[i];
        bool is_own = b->capture == c;
        if (b->freed_in == c) {
            b->freed_in = NULL;
            b->is_live = !has_succeeded;
            if (b->is_live) {
                for (int slot = 0; slot < SLOT_COUNT; ++slot) {
                    if (w->slots[slot] < 0) {
                        w->slots[slot] = i;
                        break;
                    }
                }
            } else {
                forget_block(w, i, NULL);
            }
        }
        if (is_own) {
            b->capture = NULL;
            b->graph = has_succeeded ? b->graph : NULL;
        }
    }
}

void close_capture(world *w, capture *c, bool has_succeeded) {
    graph_model *g = c->graph;
    leave_streams(w, c);
    settle_blocks(w, c, has_succeeded);
    if (!has_succeeded && c->origin >= 0) {
        stream_model *origin = &w->streams[c->origin];
        if (origin->label_depth > c->label_depth) {
            origin->label_depth = c->label_depth;
        }
    }
    g->capture = NULL;
    if (has_succeeded) {
        hold_content(g, content_retain(c->nodes));
        g->handles = c->handles;
        g->state = g->options.keep == RONDO_KEEP_TEMPLATE_ONLY ? GRAPH_RECORDED : GRAPH_READY;
        g->is_stale = g->is_stale || c->uses_freed;
        g->arena_count = c->child_count;
        for (int i = 0; i < c->child_count; ++i) {
            g->arenas[i] = c->children[i].arena;
        }
        if (g->has_memory && g->arena_count < CHILD_MAX) {
            g->arenas[g->arena_count++] = g->arena;
        }
    } else {
        g->state = GRAPH_EMPTY;
        g->has_memory = false;
        end_handles(w, &c->handles);
    }
    while (c->frames != NULL) {
        frame *f = c->frames;
        c->frames = f->next;
        free(f);
    }
    content_release(c->nodes);
    free(c);
    if (!has_capture(w)) {
        w->host.at[LINE_KEPT] = w->kept_time;  // the ends waited for the streams that were kept
    }
}

void renew_graph(world *w, graph_model *g) {
    if (g->replay_count > 0 && w->streams[g->last_line].frame != NULL) {
        g->last = (ticks){{0}};
        w->held_lines |= UINT64_C(1) << g->last_line;
    }
}

void reset_graph(world *w, graph_model *g) {
    // The library has waited for its replays, unless their stream records by now.
    if (g->replay_count > 0 && w->streams[g->last_line].frame == NULL) {
        clock_join(&w->host, &g->last);
    } else if (g->replay_count > 0) {
        w->held_lines |= UINT64_C(1) << g->last_line;
    }
    hold_content(g, NULL);
    end_handles(w, &g->handles);
    g->handles.has_any = false;
    g->state = GRAPH_EMPTY;
    g->is_stale = false;
    g->replay_count = 0;
    g->last = (ticks){{0}};
    for (int i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].graph == g) {
            w->blocks[i].graph = NULL;
            if (g->has_memory) {
                forget_block(w, i, g);
            }
        }
    }
    g->has_memory = false;
    g->arena_count = 0;
}

// Graphs that use the block beyond its life hold an address that means nothing any more.
void forget_block(world *w, int index, const graph_model *except) {
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        graph_model *g = &w->graphs[i];
        if (g == except) {
            continue;
        }
        if ((g->nodes != NULL && content_uses_block(g->nodes, index)) ||
            (g->executed != NULL && content_uses_block(g->executed, index))) {
            g->is_stale = true;
        }
        if (g->capture != NULL && content_uses_block(g->capture->nodes, index)) {
            g->capture->uses_freed = true;
        }
    }
}

// The stream is about to be destroyed.
void give_up_stream(world *w, int index) {
    stream_model *s = &w->streams[index];
    capture *c = capture_of(s);
    if (c != NULL) {
        break_capture(w, c);
        if (c->origin == index) {
            // Nothing of it records any more; the end still has to be called.
            leave_streams(w, c);
            c->origin = -1;
        }
        s->frame = NULL;
        s->closure = 0;
    }
    for (int i = 0; i < SCOPE_COUNT; ++i) {
        scope_model *scope = &w->scopes[i];
        if (scope->is_open && scope->parent == index) {
            close_scope(w, scope);
        }
    }
    s->scope = NULL;
}

// Also the scopes inside its body.
void close_scope(world *w, scope_model *scope) {
    scope->is_open = false;
    if (scope->body != NULL) {
        for (int i = 0; i < ALL_STREAMS; ++i) {
            stream_model *s = &w->streams[i];
            if (s->frame == scope->body) {
                if (s->scope != NULL) {
                    close_scope(w, s->scope);
                }
                s->frame = NULL;
                s->closure = 0;
                s->scope = NULL;
                s->real = i < STREAM_COUNT ? s->real : NULL;
            }
        }
        for (int i = 0; i < EVENT_COUNT; ++i) {
            if (w->events[i].state == EVENT_PLACE && w->events[i].frame == scope->body) {
                w->events[i].state = EVENT_ENDED;
                w->events[i].frame = NULL;
            }
        }
    }
    scope->body = NULL;
    w->streams[scope->parent].scope = NULL;
}
