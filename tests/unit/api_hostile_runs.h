// The rows of test_api_hostile.c for runs that are bound, and what is known of runs ahead.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_API_HOSTILE_RUNS_H
#define RONDO_TESTS_API_HOSTILE_RUNS_H

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

#define RUN_ROWS(X, V)                                                                        \
    X(rondo_run_arena_create, (P(s.device), S(rondo_run_arena_options), P(&s.out.run_arena))) \
    V(rondo_run_arena_destroy, (NULL))                                                        \
    V(rondo_run_arena_get_bytes, (P(NULL)))                                                   \
    X(rondo_executor_infer_outputs,                                                           \
      (P(s.executor), P(&s.feed), 1, P(PLAIN(rondo_binding)), 1, P(PLAIN(size_t))))           \
    X(rondo_bound_run_create, (P(s.executor), P(&s.out.bound)))                               \
    V(rondo_bound_run_destroy, (NULL))                                                        \
    X(rondo_bound_run_set_feed, (P(bound()), P("x"), O(&s.x)))                                \
    X(rondo_bound_run_set_fetch, (P(bound()), P("y"), O(&s.y)))                               \
    X(rondo_bound_run_set_allocator, (P(bound()), O(give_no_memory), NULL))                   \
    X(rondo_bound_run_get_fetch, (P(bound()), P("y"), P(&s.out.tensor)))                      \
    X(rondo_bound_run_run, (P(bound())))                                                      \
    X(rondo_bound_run_run_async, (P(bound()), O(s.event)))

#endif  // RONDO_TESTS_API_HOSTILE_RUNS_H
