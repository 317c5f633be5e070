// base/log/hook.h — reports what the library does to listeners: NVTX's tools, a profile.
//
// A span is something that the processor does, from begin to end, on one thread; spans nest. Work
// is something that a device does; it belongs to the span that was innermost on the thread that
// submitted it. One table hands both on:
//
//      rondo__hook_enter ──> span, thread's stack ──┬──> the listener (a profile)
//      rondo__hook_leave                            └──> NVTX: user's scopes, replays, captures
//      rondo__hook_post_work, _post_counter ───────────> the listener
//
// While no listener is there, each hook costs one load and one predictable branch. A span may end
// while spans that began later are open; these stay open, and a listener that builds a tree uses
// the times.
//
//   rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_PLAN, "plan");
//   ...
//   rondo__hook_leave(&scope);
//
// A build with RONDO_NO_HOOKS has no listeners; bench/hook_cost compares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"

// What a span is. The order is that of a report's legend.
typedef enum rondo__span_category {
    RONDO__SPAN_USER,         // rondo_profile_begin, labels
    RONDO__SPAN_RUN,          // one call of an executor
    RONDO__SPAN_PLAN,         // compiling a plan
    RONDO__SPAN_TUNE,         // compiling or choosing kernels
    RONDO__SPAN_CAPTURE,      // from begin to end
    RONDO__SPAN_INSTANTIATE,  // and updating
    RONDO__SPAN_PATCH,
    RONDO__SPAN_REPLAY,    // launching a graph
    RONDO__SPAN_OP,        // launching an op's kernels
    RONDO__SPAN_COMPUTE,   // an op computed on the processor, between graphs
    RONDO__SPAN_COPY,      // putting a copy on a stream, or doing one
    RONDO__SPAN_WAIT,      // for a stream, an event or a device
    RONDO__SPAN_ALLOCATE,  // and freeing
    RONDO__SPAN_COUNT,
} rondo__span_category;

typedef enum rondo__work_kind {
    RONDO__WORK_KERNEL,
    RONDO__WORK_COPY,
    RONDO__WORK_FILL,
    RONDO__WORK_HOST,   // a host function in a stream or graph
    RONDO__WORK_OTHER,  // nodes that take time and are none of these
    RONDO__WORK_GRAPH,  // a replay as a whole, where its nodes are not known
    RONDO__WORK_COUNT,
} rondo__work_kind;

typedef enum rondo__way {
    RONDO__WAY_NONE,
    RONDO__WAY_H2D,
    RONDO__WAY_D2H,
    RONDO__WAY_D2D,
    RONDO__WAY_H2H,
} rondo__way;

// Texts need to live only during the call.
typedef struct rondo__hook_span {
    rondo__span_category category;
    const char *name;    // "Conv /layer1/conv", "replay ops 0 to 7"
    const char *detail;  // NULL: none. Of a copy: variable, dtype and shape
    uint64_t bytes;      // copies, allocations
    rondo__way way;      // copies
    bool is_async;       // copies: the call does not wait for it
    // Ops, replays and copies: the stream that the work is put on; NULL: none, or not known. Of
    // replays the graph, too.
    struct rondo_stream *stream;
    const struct rondo_graph *graph;
    bool is_next;  // nothing was put on the stream since this thread's span before it ended
} rondo__hook_span;

// Something that a device did.
typedef struct rondo__hook_work {
    rondo__work_kind kind;
    rondo__way way;
    const char *name;   // of the kernel or host function
    const char *label;  // path of the node's scopes (rondo/label.h), "" where there is none
    uint64_t span;      // that put it there; 0: not known
    int32_t device;     // ordinal; -1: the processor, by a stream's worker
    uint64_t stream;    // a number that tells streams of the device apart
    uint64_t bytes;
    uint64_t begin_ns;  // rondo__clock_now_ns
    uint64_t end_ns;
} rondo__hook_work;

enum {
    RONDO__HOOK_SPANS = 1u << 0,
    RONDO__HOOK_WORK = 1u << 1,      // the worker of a host stream times what it does
    RONDO__HOOK_COUNTERS = 1u << 2,  // amounts of memory
    RONDO__HOOK_LABELS = 1u << 3,    // graphs keep what their nodes are called
    RONDO__HOOK_RANGES = 1u << 4,    // NVTX; also until the first look for a tool
};

// A listener: any thread may call all of its functions, also shortly after it was given up. They
// call nothing that has hooks. `begin` and `end` of a span come on the same thread, unless another
// thread ended what this one began (a relaxed capture, a label scope).
typedef struct rondo__hook_listener {
    void (*begin)(void *self, uint64_t span, const rondo__hook_span *what);
    void (*end)(void *self, uint64_t span);
    void (*work)(void *self, const rondo__hook_work *work);
    void (*counter)(void *self, const char *name, uint64_t value);
    void *self;
} rondo__hook_listener;

extern atomic_uint rondo__hook_mask;

static inline bool rondo__hook_is_on(uint32_t what) {
#if defined(RONDO_NO_HOOKS)
    (void)what;
    return false;
#else
    return __builtin_expect(
        (atomic_load_explicit(&rondo__hook_mask, memory_order_relaxed) & what) != 0, 0);
#endif
}

// Lets a listener, which lives as long as the process, hear what these bits of the mask say. False:
// there is one already.
//
// Threads: safe, all below.
bool rondo__hook_listen(const rondo__hook_listener *listener, uint32_t what);
void rondo__hook_unlisten(void);
// While a holder exists, graphs keep what their nodes are called (RONDO__HOOK_LABELS); counted.
void rondo__hook_hold_labels(void);
void rondo__hook_release_labels(void);
// In the child of a fork: removes the listeners.
void rondo__hook_forget(void);

// ---- spans ------------------------------------------------------------------------------------

// An open span; zero: there was no listener when it began.
typedef struct rondo__hook_scope {
    uint64_t span;   // a number that no other span of the process has; 0: the listener has none
    uint64_t range;  // NVTX's
    uint32_t form;   // what NVTX has of it; 0: nothing
} rondo__hook_scope;

// Only where rondo__hook_is_on(RONDO__HOOK_SPANS | RONDO__HOOK_RANGES) was true.
rondo__hook_scope rondo__hook_begin(const rondo__hook_span *what);
// The same with a name that is put together.
RONDO_PRINTF(2, 3)
rondo__hook_scope rondo__hook_begin_named(rondo__span_category category, const char *format, ...);
// An op, and the stream that its work is put on.
RONDO_PRINTF(3, 4)
rondo__hook_scope rondo__hook_begin_op(struct rondo_stream *stream, bool is_next,
                                       const char *format, ...);
void rondo__hook_end(const rondo__hook_scope *scope);

static inline rondo__hook_scope rondo__hook_enter(rondo__span_category category, const char *name) {
    return rondo__hook_is_on(RONDO__HOOK_SPANS | RONDO__HOOK_RANGES)
               ? rondo__hook_begin(&(rondo__hook_span){.category = category, .name = name})
               : (rondo__hook_scope){0};
}

static inline void rondo__hook_leave(const rondo__hook_scope *scope) {
    if (__builtin_expect(scope->span != 0 || scope->form != 0, 0)) {
        rondo__hook_end(scope);
    }
}

// The innermost open span of this thread; 0: none.
uint64_t rondo__hook_get_span(void);

// ---- work and amounts -------------------------------------------------------------------------

void rondo__hook_post_work(const rondo__hook_work *work);
// An amount as it is from now on; names are static texts.
void rondo__hook_post_counter(const char *name, uint64_t value);
