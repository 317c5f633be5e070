// base/log/hook.c — see hook.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/log/hook.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log/nvtx.h"

enum { OPEN_MAX = 64, NAME_BYTES = 256 };

// NVTX's part of a span.
enum { FORM_NONE, FORM_PUSHED, FORM_STARTED };

// Whether there is a tool of NVTX is not known before the first span.
atomic_uint rondo__hook_mask = RONDO__HOOK_RANGES;

static _Atomic(const rondo__hook_listener *) g_listener;
static _Atomic(uint64_t) g_last_span;
static atomic_int g_label_holders;

// The spans of this thread that are open, the innermost last. If more than OPEN_MAX are open, the
// oldest are forgotten, which changes only the span that work belongs to.
static _Thread_local uint64_t t_open[OPEN_MAX];
static _Thread_local size_t t_open_count;

// ---- listeners --------------------------------------------------------------------------------

bool rondo__hook_listen(const rondo__hook_listener *listener, uint32_t what) {
    const rondo__hook_listener *expected = NULL;
    if (!atomic_compare_exchange_strong(&g_listener, &expected, listener)) {
        return false;
    }
    atomic_fetch_or(&rondo__hook_mask, what);
    return true;
}

void rondo__hook_unlisten(void) {
    atomic_fetch_and(&rondo__hook_mask,
                     ~(RONDO__HOOK_SPANS | RONDO__HOOK_WORK | RONDO__HOOK_COUNTERS));
    atomic_store(&g_listener, NULL);
}

void rondo__hook_hold_labels(void) {
    atomic_fetch_add(&g_label_holders, 1);
    atomic_fetch_or(&rondo__hook_mask, RONDO__HOOK_LABELS);
}

void rondo__hook_release_labels(void) {
    if (atomic_fetch_sub(&g_label_holders, 1) == 1) {
        atomic_fetch_and(&rondo__hook_mask, ~RONDO__HOOK_LABELS);
        // Another holder may have come in between.
        if (atomic_load(&g_label_holders) > 0) {
            atomic_fetch_or(&rondo__hook_mask, RONDO__HOOK_LABELS);
        }
    }
}

void rondo__hook_forget(void) {
    rondo__hook_unlisten();
    t_open_count = 0;
}

static const rondo__hook_listener *get_listener(void) {
    return atomic_load_explicit(&g_listener, memory_order_acquire);
}

// ---- NVTX -------------------------------------------------------------------------------------

// NVTX gets what it always got: the program's scopes, replays, and captures, which may end out of
// order and so are ranges that start and end.
static void begin_range(const rondo__hook_span *what, rondo__hook_scope *scope) {
    if (!rondo__nvtx_is_on()) {
        atomic_fetch_and(&rondo__hook_mask, ~RONDO__HOOK_RANGES);
        return;
    }
    if (what->category == RONDO__SPAN_USER || what->category == RONDO__SPAN_REPLAY) {
        rondo__nvtx_push(what->name);
        scope->form = FORM_PUSHED;
    } else if (what->category == RONDO__SPAN_CAPTURE) {
        scope->range = rondo__nvtx_start_range(what->name);
        scope->form = FORM_STARTED;
    }
}

static void end_range(const rondo__hook_scope *scope) {
    if (scope->form == FORM_PUSHED) {
        rondo__nvtx_pop();
    } else if (scope->form == FORM_STARTED) {
        rondo__nvtx_end_range(scope->range);
    }
}

// ---- spans ------------------------------------------------------------------------------------

static void open_span(uint64_t span) {
    if (t_open_count == OPEN_MAX) {
        memmove(t_open, t_open + 1, (OPEN_MAX - 1) * sizeof *t_open);
        --t_open_count;
    }
    t_open[t_open_count++] = span;
}

static void close_span(uint64_t span) {
    for (size_t i = t_open_count; i-- > 0;) {
        if (t_open[i] == span) {
            memmove(t_open + i, t_open + i + 1, (t_open_count - i - 1) * sizeof *t_open);
            --t_open_count;
            return;
        }
    }
}

rondo__hook_scope rondo__hook_begin(const rondo__hook_span *what) {
    rondo__hook_scope scope = {0};
    if (rondo__hook_is_on(RONDO__HOOK_RANGES)) {
        begin_range(what, &scope);
    }
    const rondo__hook_listener *listener = get_listener();
    if (listener != NULL && rondo__hook_is_on(RONDO__HOOK_SPANS)) {
        scope.span = atomic_fetch_add_explicit(&g_last_span, 1, memory_order_relaxed) + 1;
        open_span(scope.span);
        listener->begin(listener->self, scope.span, what);
    }
    return scope;
}

rondo__hook_scope rondo__hook_begin_named(rondo__span_category category, const char *format, ...) {
    char name[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return rondo__hook_begin(&(rondo__hook_span){.category = category, .name = name});
}

rondo__hook_scope rondo__hook_begin_op(struct rondo_stream *stream, bool is_next,
                                       const char *format, ...) {
    char name[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return rondo__hook_begin(&(rondo__hook_span){
        .category = RONDO__SPAN_OP, .name = name, .stream = stream, .is_next = is_next});
}

void rondo__hook_end(const rondo__hook_scope *scope) {
    if (scope->span != 0) {
        const rondo__hook_listener *listener = get_listener();
        close_span(scope->span);
        if (listener != NULL) {
            listener->end(listener->self, scope->span);
        }
    }
    end_range(scope);
}

uint64_t rondo__hook_get_span(void) {
    return t_open_count > 0 ? t_open[t_open_count - 1] : 0;
}

// ---- work and amounts -------------------------------------------------------------------------

void rondo__hook_post_work(const rondo__hook_work *work) {
    const rondo__hook_listener *listener = get_listener();
    if (listener != NULL) {
        listener->work(listener->self, work);
    }
}

void rondo__hook_post_counter(const char *name, uint64_t value) {
    const rondo__hook_listener *listener = get_listener();
    if (listener != NULL) {
        listener->counter(listener->self, name, value);
    }
}
