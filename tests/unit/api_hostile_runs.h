// The rows of test_api_hostile.c for runs that are bound, and what is known of runs ahead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

static void *give_no_memory(void *user_data, const char *name, const rondo_tensor *wanted,
                            size_t bytes) {
    (void)user_data;
    (void)name;
    (void)wanted;
    (void)bytes;
    return NULL;
}

// One with a feed and a fetch, on the scene's executor.
static rondo_bound_run *bound(void) {
    if (s.out.bound == NULL) {
        OK(rondo_bound_run_create(s.executor, &s.out.bound));
        OK(rondo_bound_run_set_feed(s.out.bound, "x", &s.x));
        OK(rondo_bound_run_set_fetch(s.out.bound, "y", &s.y));
    }
    return s.out.bound;
}

// It outlives the scenes, whose replays write its memory.
static rondo_watchdog *lasting, *made_watchdog;
static rondo_graph *made_clone;

static rondo_watchdog *watchdog(void) {
    if (lasting == NULL) {
        OK(rondo_watchdog_create(s.device, NULL, &lasting));
    }
    return lasting;
}

__attribute__((destructor)) static void end_watchdogs(void) {
    rondo_watchdog_destroy(lasting);
    rondo_watchdog_destroy(made_watchdog);
    rondo_graph_destroy(made_clone);
}

static rondo_status put_nothing(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_OK;
}

#define NODE_ROWS(X, V)                                                                          \
    X(rondo_watchdog_create, (P(s.device), S(rondo_watchdog_options), P(&made_watchdog)))        \
    V(rondo_watchdog_destroy, (NULL))                                                            \
    X(rondo_watchdog_mark, (P(watchdog()), P(s.recording), P(s.records)))                        \
    X(rondo_watchdog_replay, (P(watchdog()), P(s.graph), P(s.stream)))                           \
    V(rondo_watchdog_get_stall_count, (P(watchdog())))                                           \
    X(rondo_graph_get_node_handle, (P(s.graph), N(0), P(PLAIN(rondo_node))))                     \
    X(rondo_graph_find_nodes, (P(s.graph), P(""), P(PLAIN(rondo_node)), 1, P(PLAIN(size_t))))    \
    X(rondo_graph_read_node, (P(s.graph), s.node, W(rondo_node_state)))                          \
    X(rondo_graph_cache_list_keys, (P(s.cache), P(PLAIN(rondo_cache_key)), 1, P(PLAIN(size_t)))) \
    X(rondo_graph_add_step, (P(s.built), P(&s.before), 1, P(put_nothing), NULL,                  \
                             P(PLAIN(rondo_node)), 1, P(PLAIN(size_t))))                         \
    X(rondo_graph_clone, (P(s.graph), NULL, P(&made_clone)))                                     \
    X(rondo_stepper_skip, (P(begun()), R(s.work)))                                               \
    X(rondo_stepper_describe, (P(s.stepper), E(0), P(text_sink_ignore), NULL))

#define RUN_ROWS(X, V)                                                                           \
    NODE_ROWS(X, V)                                                                              \
    X(rondo_executor_list_graphs, (P(s.executor), P(PLAIN(rondo_graph *)), 1, P(PLAIN(size_t)))) \
    X(rondo_run_arena_create, (P(s.device), S(rondo_run_arena_options), P(&s.out.run_arena)))    \
    V(rondo_run_arena_destroy, (NULL))                                                           \
    V(rondo_run_arena_get_bytes, (P(NULL)))                                                      \
    X(rondo_executor_infer_outputs,                                                              \
      (P(s.executor), P(&s.feed), 1, P(PLAIN(rondo_binding)), 1, P(PLAIN(size_t))))              \
    X(rondo_bound_run_create, (P(s.executor), P(&s.out.bound)))                                  \
    V(rondo_bound_run_destroy, (NULL))                                                           \
    X(rondo_bound_run_set_feed, (P(bound()), P("x"), O(&s.x)))                                   \
    X(rondo_bound_run_set_fetch, (P(bound()), P("y"), O(&s.y)))                                  \
    X(rondo_bound_run_set_allocator, (P(bound()), O(give_no_memory), NULL))                      \
    X(rondo_bound_run_get_fetch, (P(bound()), P("y"), P(&s.out.tensor)))                         \
    X(rondo_bound_run_run, (P(bound())))                                                         \
    X(rondo_bound_run_run_async, (P(bound()), O(s.event)))
