// The rows of test_api_hostile.c for tuning files, plan files, graph files and checkpoints.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FILE_ROWS(X)                                                                          \
    X(rondo_executor_write_tuning, (P(s.executor), P(text_sink_ignore), NULL))                \
    X(rondo_graph_save, (P(s.graph), P("no/such/folder/none"), NULL, 0))                      \
    X(rondo_graph_load, (P(s.empty), P("no/such/file"), NULL, 0))                             \
    X(rondo_executor_save, (P(s.executor), P("no/such/folder/none")))                         \
    X(rondo_program_load_plan, (P("no/such/file"), S(rondo_plan_options), P(&s.out.program))) \
    X(rondo_program_get_plan_options, (P(s.program), W(rondo_executor_options)))              \
    X(rondo_executor_load, (P("no/such/file"), P(s.device), S(rondo_executor_options),        \
                            S(rondo_plan_options), O(&s.out.program), P(&s.out.executor)))    \
    X(rondo_checkpoint_read, (P("no/such/file"), P("x"), P(&s.out.tensor)))                   \
    X(rondo_plan_describe, (P("no/such/file"), E(0), P(text_sink_ignore), NULL))
