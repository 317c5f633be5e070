// Arguments that no public call takes: each pointer NULL in turn, sizes and counts that cannot be,
// numbers that are no enumerator, structs of another size. Each function of the headers has a row.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/source_dir.h"
#include "support/test.h"

#define OK(call) assert_int_equal((call), RONDO_STATUS_OK)

// ---- turns ------------------------------------------------------------------------------------

typedef enum wrong {
    NOTHING,   // all arguments were right: the row has no more turns
    REFUSED,   // must be INVALID
    ANY,       // may be fine, or fail in another way
    TOO_MUCH,  // must fail
} wrong;

static int g_turn;  // the argument that is wrong, from 1
static int g_at;    // arguments seen so far
static wrong g_wrong;

static bool is_turn(wrong kind) {
    const bool is_mine = ++g_at == g_turn;
    g_wrong = is_mine ? kind : g_wrong;
    return is_mine;
}

// A pointer that is needed; one that may be NULL; a number that is none of an enumeration's, and of
// dtypes; flags; a size or count; a struct that is filled in; options; a struct that is read.
#define P(good) (is_turn(REFUSED) ? NULL : (good))
#define O(good) (is_turn(ANY) ? NULL : (good))
#define E(good) (is_turn(REFUSED) ? 1000 : is_turn(REFUSED) ? -1000 : (good))
#define D(good) (is_turn(TOO_MUCH) ? 1000 : is_turn(TOO_MUCH) ? -1000 : (good))
#define F(good) (is_turn(REFUSED) ? 0x80000001u : (good))
#define N(good) (is_turn(TOO_MUCH) ? SIZE_MAX : is_turn(TOO_MUCH) ? SIZE_MAX / 2 + 3 : (good))
#define SIZED(type, size) (&(type){.struct_size = (size)})
#define W(type)                                         \
    (is_turn(REFUSED)   ? NULL                          \
     : is_turn(REFUSED) ? SIZED(type, 1)                \
     : is_turn(REFUSED) ? SIZED(type, sizeof(type) + 8) \
                        : SIZED(type, sizeof(type)))
#define S(type) \
    (is_turn(REFUSED) ? SIZED(type, 1) : is_turn(REFUSED) ? SIZED(type, sizeof(type) + 8) : NULL)
#define R(good)                                                           \
    (is_turn(REFUSED)   ? NULL                                            \
     : is_turn(REFUSED) ? resize(&(good), sizeof(good), 1)                \
     : is_turn(REFUSED) ? resize(&(good), sizeof(good), sizeof(good) + 8) \
                        : (const void *)&(good))

// A copy with another struct_size.
static const void *resize(const void *good, size_t bytes, size_t size) {
    static char copy[512];
    assert_true(bytes <= sizeof copy);
    memcpy(copy, good, bytes);
    memcpy(copy, &size, sizeof size);
    return copy;
}

// ---- what the calls are given -----------------------------------------------------------------

// Objects that a call makes though an argument was wrong.
typedef struct made {
    rondo_builder *builder, *body;
    rondo_communicator *ranks;
    rondo_program *program;
    rondo_device *device;
    rondo_stream *stream;
    rondo_event *event;
    rondo_executor *executor;
    rondo_bound_run *bound;
    rondo_run_arena *run_arena;
    rondo_graph *graph;
    rondo_graph_cache *cache;
    rondo_learned *learned;
    rondo_op *op;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_profile *profile;
    rondo_generator *generator;
    rondo_stepper *stepper;
    rondo_workers *workers;
    void *address, *block;
    rondo_dlpack_managed *managed;
    rondo_dlpack_versioned *versioned;
    rondo_tensor tensor;
} made;

typedef struct scene {
    rondo_device *device;
    rondo_stream *stream;   // idle
    rondo_stream *records;  // into `recording`
    rondo_graph *graph;     // ready, with its template
    rondo_graph *recording;
    rondo_graph *empty, *built;  // by hand
    rondo_event *event;
    rondo_builder *builder;
    rondo_program *program;
    rondo_executor *executor;
    rondo_op *op;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_generator *generator;
    rondo_stepper *stepper;  // a step is open
    rondo_graph_cache *cache;
    rondo_learned *learned;
    rondo_profile *profile;
    rondo_workers *workers;
    uint32_t *memory;
    void *block;
    rondo_node node;    // of the graph
    rondo_node before;  // of the built one
    rondo_work work;
    rondo_work kernel;
    rondo_launch launch;
    rondo_patch patch;
    rondo_tensor x, y;
    rondo_binding feed, fetch;
    rondo_port port;
    made out;
} scene;

static scene s;

static const char *const one_x[] = {"x"};
static const char *const one_new[] = {"gradient_of_x"};

static rondo_status no_gradient(void *data, const rondo_gradient_node *node, rondo_builder *builder,
                                const char **out_changes) {
    (void)data;
    (void)node;
    (void)builder;
    (void)out_changes;
    return RONDO_STATUS_OK;
}

static void take_op(void *user_data, const char *domain, const char *op, int64_t version,
                    const char *detail, size_t count) {
    (void)user_data;
    (void)domain;
    (void)op;
    (void)version;
    (void)detail;
    (void)count;
}

static rondo_status do_body(rondo_stream *stream, void *user_data) {
    (void)user_data;
    return rondo_stream_fill(stream, s.memory + 8, 1, 4, 1);
}

static rondo_status do_learned(rondo_stream *stream, const rondo_value *values, void *user_data) {
    (void)user_data;
    return rondo_stream_fill(stream, s.memory + 8, (uint32_t)values[0].integer, 4, 1);
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

static const rondo_shape four = {1, {4}};
static const int64_t numbers[] = {0, 1};
static const char *const names[] = {"x"};
static const char *const new_names[] = {"z"};
static const rondo_string words[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
static const rondo_body_function bodies[] = {do_body};
static const float four_numbers[4] = {1, 2, 3, 4};
static const rondo_argument argument = {
    .struct_size = sizeof(rondo_argument), .name = "value", .kind = RONDO_ARGUMENT_UINT32};
static const rondo_value value = {.unsigned_integer = 5};

// ---- opening and closing ----------------------------------------------------------------------

static rondo_binding bind(const char *name, void *data) {
    return (rondo_binding){name, {.dtype = RONDO_DTYPE_F32, .shape = four, .data = data}};
}

static void open_program(void) {
    OK(rondo_builder_create(NULL, &s.builder));
    OK(rondo_builder_add_input(s.builder, &s.port));
    OK(rondo_builder_add_node(s.builder, "Neg", names, 1, (const char *[]){"y"}, 1, NULL));
    OK(rondo_builder_add_output(s.builder, "y", NULL));
    OK(rondo_builder_finish(s.builder, &s.program));
    rondo_builder_destroy(s.builder);
    OK(rondo_builder_create(NULL, &s.builder));
    OK(rondo_builder_add_input(s.builder, &s.port));
    OK(rondo_executor_create(s.program, s.device, NULL, &s.executor));
    OK(rondo_executor_run(s.executor, &s.feed, 1, &s.fetch, 1));
}

static void open_graphs(void) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph **graphs[] = {&s.graph, &s.recording, &s.built, &s.empty};
    for (size_t i = 0; i < 4; ++i) {
        OK(rondo_graph_create(s.device, &options, graphs[i]));
    }
    OK(rondo_graph_capture_begin(s.graph, s.stream, 0));
    OK(rondo_stream_add_node(s.stream, &s.work, &s.node));
    OK(rondo_graph_capture_end(s.graph));
    s.patch = (rondo_patch){.node = s.node, .work = &s.work};
    OK(rondo_graph_build_begin(s.built));
    OK(rondo_graph_add_node(s.built, NULL, 0, &s.work, &s.before));
    OK(rondo_graph_capture_begin(s.recording, s.records, 0));
    OK(rondo_stream_fill(s.records, s.memory, 1, 4, 1));
}

static void open_scene(void) {
    memset(&s, 0, sizeof s);
    OK(rondo_device_open("host", &s.device));
    OK(rondo_stream_create(s.device, NULL, &s.stream));
    OK(rondo_stream_create(s.device, NULL, &s.records));
    OK(rondo_event_create(s.device, 0, &s.event));
    OK(rondo_event_record(s.event, s.stream));
    OK(rondo_memory_allocate(s.device, RONDO_MEMORY_PINNED, 4096, (void **)&s.memory));
    memset(s.memory, 0, 4096);
    OK(rondo_pool_create(s.device, NULL, &s.pool));
    OK(rondo_pool_allocate(s.pool, s.stream, 256, &s.block));
    OK(rondo_arena_create(s.device, NULL, &s.arena));
    OK(rondo_generator_create(s.device, 1, &s.generator));
    OK(rondo_stepper_create(s.device, NULL, &s.stepper));
    OK(rondo_graph_cache_create(s.device, NULL, &s.cache));
    OK(rondo_learned_create(s.device, NULL, &argument, 1, do_learned, NULL, &s.learned));
    OK(rondo_profile_create(NULL, &s.profile));
    OK(rondo_profile_start(s.profile));
    OK(rondo_profile_stop(s.profile));
    OK(rondo_workers_create(1, &s.workers));
    s.work = (rondo_work){.struct_size = sizeof s.work,
                          .kind = RONDO_NODE_FILL,
                          .destination = s.memory,
                          .element_bytes = 4,
                          .element_count = 1};
    s.launch = (rondo_launch){.struct_size = sizeof s.launch,
                              .name = "nothing",
                              .function = (void *)(uintptr_t)do_nothing,
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1}};
    s.x = bind("x", s.memory + 256).tensor;
    s.y = bind("y", s.memory + 512).tensor;
    s.feed = (rondo_binding){"x", s.x};
    s.fetch = (rondo_binding){"y", s.y};
    s.port = (rondo_port){.struct_size = sizeof s.port,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 1,
                          .extent = {4}};
    OK(rondo_op_prepare(s.device, "Neg", NULL, &(rondo_tensor){.dtype = 1, .shape = four}, 1, 1,
                        &s.op));
    open_program();
    open_graphs();
}

static void drop_made(void) {
    made *m = &s.out;
    rondo_builder_destroy(m->body);
    rondo_builder_destroy(m->builder);
    rondo_program_destroy(m->program);
    rondo_stream_destroy(m->stream);
    rondo_event_destroy(m->event);
    rondo_bound_run_destroy(m->bound);
    rondo_run_arena_destroy(m->run_arena);
    rondo_executor_destroy(m->executor);
    rondo_communicator_destroy(m->ranks);
    rondo_graph_destroy(m->graph);
    rondo_graph_cache_destroy(m->cache);
    rondo_learned_destroy(m->learned);
    rondo_op_destroy(m->op);
    rondo_pool_release(m->pool);
    rondo_arena_release(m->arena);
    rondo_profile_destroy(m->profile);
    rondo_generator_release(m->generator);
    rondo_stepper_destroy(m->stepper);
    rondo_workers_release(m->workers);
    rondo_memory_free(s.device, m->address);
    if (m->block != NULL) {
        OK(rondo_pool_free(s.pool, m->block));
    }
    if (m->managed != NULL && m->managed->deleter != NULL) {
        m->managed->deleter(m->managed);
    }
    if (m->versioned != NULL && m->versioned->deleter != NULL) {
        m->versioned->deleter(m->versioned);
    }
    rondo_tensor_deinit(&m->tensor);
    rondo_device_release(m->device);
    memset(m, 0, sizeof *m);
}

static void close_scene(void) {
    rondo_graph *graphs[] = {s.recording, s.built, s.graph, s.empty};
    drop_made();
    rondo_graph_capture_abort(s.recording);
    rondo_graph_capture_abort(s.built);
    rondo_stepper_destroy(s.stepper);
    for (size_t i = 0; i < 4; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    rondo_learned_destroy(s.learned);
    rondo_graph_cache_destroy(s.cache);
    rondo_profile_destroy(s.profile);
    rondo_executor_destroy(s.executor);
    rondo_op_destroy(s.op);
    rondo_program_destroy(s.program);
    rondo_builder_destroy(s.builder);
    rondo_generator_release(s.generator);
    rondo_workers_release(s.workers);
    rondo_arena_release(s.arena);
    rondo_pool_release(s.pool);
    rondo_event_destroy(s.event);
    rondo_stream_destroy(s.records);
    rondo_stream_destroy(s.stream);
    rondo_memory_free(s.device, s.memory);
    rondo_device_release(s.device);
}

// ---- the table --------------------------------------------------------------------------------

#define PLAIN(type) (&(type){0})

// X: gives a status. V: gives none, so it only must not fall over.
#define BUILDER_ROWS(X, V)                                                                         \
    X(rondo_builder_create, (S(rondo_builder_options), P(&s.out.builder)))                         \
    V(rondo_builder_destroy, (NULL))                                                               \
    X(rondo_builder_add_input, (P(s.builder), R(s.port)))                                          \
    X(rondo_builder_add_parameter, (P(s.builder), P("p"), P(&s.x), E(0)))                          \
    X(rondo_builder_add_constant, (P(s.builder), P("c"), E(1), P(&four), P(four_numbers)))         \
    X(rondo_builder_add_node,                                                                      \
      (P(s.builder), P("Neg"), P(names), N(1), P(new_names), N(1), S(rondo_builder_node_options))) \
    X(rondo_builder_begin_place, (P(s.builder), P("host")))                                        \
    X(rondo_builder_end_place, (P(s.builder)))                                                     \
    X(rondo_builder_create_body, (P(s.builder), O("b"), P(&s.out.body)))                           \
    X(rondo_builder_add_output, (P(s.builder), P("x"), O(&s.port)))                                \
    X(rondo_builder_finish, (P(s.builder), P(&s.out.program)))                                     \
    X(rondo_builder_add_embedding, (P(s.builder), P("x"), P("x"), P("z")))                         \
    X(rondo_builder_add_variable, (P(s.builder), R(s.port), S(rondo_start)))                       \
    X(rondo_builder_set_update, (P(s.builder), P("x"), P("x")))                                    \
    X(rondo_builder_add_l2_normalize, (P(s.builder), P("x"), 0, 1e-6f, P("z")))                    \
    X(rondo_builder_add_square_error_cost, (P(s.builder), P("x"), P("x"), P("z")))                 \
    X(rondo_builder_add_mean, (P(s.builder), P("x"), P("z")))                                      \
    X(rondo_builder_add_shape, (P(s.builder), P("x"), P("z")))                                     \
    X(rondo_builder_add_slice, (P(s.builder), P("x"), O(numbers), P(numbers), P(numbers + 1),      \
                                O(numbers + 1), N(1), P("z")))                                     \
    X(rondo_program_list_parameters,                                                               \
      (P(s.program), 0, O(PLAIN(rondo_parameter)), P(PLAIN(size_t))))                              \
    V(rondo_program_get_opset, (P(s.program), P("x")))                                             \
    V(rondo_program_get_node_count, (P(s.program)))                                                \
    X(rondo_program_get_node, (P(s.program), 0, W(rondo_program_node)))                            \
    V(rondo_program_get_node_input, (P(s.program), N(0), N(0)))                                    \
    V(rondo_program_get_node_output, (P(s.program), N(0), N(0)))                                   \
    X(rondo_program_get_node_attribute, (P(s.program), N(0), N(0), P(PLAIN(rondo_attribute))))     \
    X(rondo_program_describe, (P(s.program), E(0), P(text_sink_ignore), NULL))

#define DEVICE_ROWS(X, V)                                                                  \
    X(rondo_control_if, (P(s.records), P(s.memory), O(do_body), O(do_body), NULL))         \
    X(rondo_control_switch, (P(s.records), P(s.memory), P(bodies), N32(1), NULL))          \
    X(rondo_control_while, (P(s.records), P(s.memory), P(do_body), NULL))                  \
    X(rondo_scope_begin, (P(s.records), E(0), P(s.memory), N32(0), P(PLAIN(rondo_scope)))) \
    X(rondo_scope_enter, (any_scope(), N32(0), P(PLAIN(rondo_stream *))))                  \
    X(rondo_scope_leave, (any_scope()))                                                    \
    X(rondo_scope_end, (any_scope()))                                                      \
    X(rondo_stream_copy_between,                                                           \
      (P(s.stream), P(s.device), P(s.memory), P(s.device), P(s.memory + 64), N(4)))        \
    X(rondo_device_copies_directly, (P(s.device), P(s.device), P(PLAIN(bool))))            \
    X(rondo_device_list,                                                                   \
      (O(SIZED(rondo_device_info, sizeof(rondo_device_info))), 0, P(PLAIN(size_t))))       \
    X(rondo_device_open, (P("host"), P(&s.out.device)))                                    \
    V(rondo_device_retain, (NULL))                                                         \
    V(rondo_device_release, (NULL))                                                        \
    X(rondo_device_get_info, (P(s.device), W(rondo_device_info)))                          \
    V(rondo_device_get_name, (P(s.device)))                                                \
    V(rondo_device_is_host, (P(s.device)))                                                 \
    X(rondo_device_synchronize, (P(s.device)))                                             \
    X(rondo_device_supports, (P(s.device), E(0)))                                          \
    X(rondo_memory_allocate, (P(s.device), E(0), N(64), P(&s.out.address)))                \
    V(rondo_memory_free, (P(s.device), NULL))                                              \
    X(rondo_stream_create, (P(s.device), S(rondo_stream_options), P(&s.out.stream)))       \
    X(rondo_stream_wrap, (P(s.device), O(s.memory), P(&s.out.stream)))                     \
    V(rondo_stream_destroy, (NULL))                                                        \
    V(rondo_stream_get_device, (P(s.stream)))                                              \
    V(rondo_stream_get_native, (P(s.stream)))                                              \
    X(rondo_stream_synchronize, (P(s.stream)))                                             \
    X(rondo_stream_query, (P(s.stream), P(PLAIN(bool))))                                   \
    X(rondo_stream_wait_event, (P(s.stream), P(s.event)))                                  \
    X(rondo_stream_is_recording, (P(s.stream), P(PLAIN(bool))))                            \
    X(rondo_event_create, (P(s.device), F(0), P(&s.out.event)))                            \
    V(rondo_event_destroy, (NULL))                                                         \
    X(rondo_event_record, (P(s.event), P(s.stream)))                                       \
    X(rondo_event_query, (P(s.event), P(PLAIN(bool))))                                     \
    X(rondo_event_synchronize, (P(s.event)))                                               \
    X(rondo_event_get_elapsed_ns, (P(s.event), P(s.event), P(PLAIN(int64_t))))             \
    X(rondo_stream_copy, (P(s.stream), P(s.memory), P(s.memory + 64), N(4), E(0)))         \
    X(rondo_stream_fill, (P(s.stream), P(s.memory), 1, F(4), N(1)))                        \
    X(rondo_stream_call_host, (P(s.stream), O("x"), P(do_nothing), P(s.memory), N(4)))     \
    X(rondo_stream_launch, (P(s.stream), R(s.launch)))                                     \
    X(rondo_label_push, (P(s.stream), P("x")))                                             \
    X(rondo_label_pop, (P(s.stream)))                                                      \
    V(rondo_label_get_path, (P(s.stream)))                                                 \
    X(rondo_workers_create, (N32(1), P(&s.out.workers)))                                   \
    V(rondo_workers_retain, (NULL))                                                        \
    V(rondo_workers_release, (NULL))

#define TENSOR_ROWS(X, V)                                                                       \
    X(rondo_tensor_from_dlpack, (P(PLAIN(rondo_dlpack_managed)), P(&s.out.tensor), NULL))       \
    X(rondo_tensor_from_dlpack_versioned,                                                       \
      (P(PLAIN(rondo_dlpack_versioned)), P(&s.out.tensor), NULL))                               \
    X(rondo_dlpack_get_device, (P(s.device), E(0), P(PLAIN(rondo_dlpack_device))))              \
    X(rondo_tensor_to_dlpack,                                                                   \
      (P(&s.x), O(PLAIN(rondo_dlpack_device)), O(PLAIN(rondo_dlpack_type)), P(&s.out.managed))) \
    X(rondo_tensor_to_dlpack_versioned, (P(&s.x), O(PLAIN(rondo_dlpack_device)),                \
                                         O(PLAIN(rondo_dlpack_type)), 0, P(&s.out.versioned)))  \
    V(rondo_dtype_get_bytes, (E(0)))                                                            \
    V(rondo_dtype_get_name, (E(0)))                                                             \
    V(rondo_narrow_from_float, (E(0), 1.0f))                                                    \
    V(rondo_narrow_to_float, (E(0), 1))                                                         \
    V(rondo_shape_get_count, (P(&four)))                                                        \
    V(rondo_shape_is_equal, (P(&four), P(&four)))                                               \
    V(rondo_shape_format, (P(&four), P(text), SIZE_OF_TEXT))                                    \
    X(rondo_tensor_init, (E(1), P(&four), P(&s.out.tensor)))                                    \
    X(rondo_tensor_init_device, (P(s.device), E(1), P(&four), P(&s.out.tensor)))                \
    V(rondo_tensor_is_on_host, (P(&s.x)))                                                       \
    X(rondo_tensor_copy, (P(s.stream), P(&s.x), P(&s.y)))                                       \
    X(rondo_tensor_init_strings, (P(&four), P(words), P(&s.out.tensor)))                        \
    X(rondo_tensor_init_sequence, (P(&s.x), 1, P(&s.out.tensor)))                               \
    X(rondo_tensor_init_optional, (O(&s.x), P(&s.out.tensor)))                                  \
    V(rondo_tensor_get_item, (P(&s.x), N(0)))                                                   \
    V(rondo_tensor_share, (P(&s.x), P(&s.out.tensor)))                                          \
    V(rondo_tensor_deinit, (NULL))                                                              \
    V(rondo_tensor_get_bytes, (P(&s.x)))                                                        \
    V(rondo_text_escape, (P("x"), P(text), SIZE_OF_TEXT))                                       \
    V(rondo_status_get_name, (E(0)))

#define GRAPH_ROWS(X, V)                                                                           \
    X(rondo_graph_create, (P(s.device), S(rondo_graph_options), P(&s.out.graph)))                  \
    V(rondo_graph_destroy, (NULL))                                                                 \
    X(rondo_graph_capture_begin, (P(s.empty), P(s.stream), E(0)))                                  \
    X(rondo_graph_capture_end, (P(s.recording)))                                                   \
    V(rondo_graph_capture_abort, (NULL))                                                           \
    X(rondo_graph_capture_step, (P(s.empty), P(s.stream), S(rondo_step_options), P(do_body), NULL, \
                                 P(PLAIN(rondo_step_outcome))))                                    \
    X(rondo_graph_replay, (P(s.graph), P(s.stream)))                                               \
    X(rondo_graph_upload, (P(s.graph), P(s.stream)))                                               \
    X(rondo_graph_reset, (P(s.graph)))                                                             \
    X(rondo_graph_get_stats, (P(s.graph), W(rondo_graph_stats)))                                   \
    X(rondo_graph_instantiate, (P(s.graph)))                                                       \
    X(rondo_stream_add_graph, (P(s.records), P(s.graph)))                                          \
    X(rondo_graph_cache_create, (P(s.device), S(rondo_graph_cache_options), P(&s.out.cache)))      \
    V(rondo_graph_cache_destroy, (NULL))                                                           \
    X(rondo_graph_cache_run,                                                                       \
      (P(s.cache), P("k"), 1, P(s.stream), P(do_body), NULL, O(PLAIN(rondo_cache_outcome))))       \
    X(rondo_graph_cache_wait, (P(s.cache)))                                                        \
    X(rondo_graph_cache_pin, (P(s.cache), P("k"), 1))                                              \
    X(rondo_graph_cache_unpin, (P(s.cache), P("k"), 1))                                            \
    X(rondo_graph_cache_forget, (P(s.cache), P("k"), 1))                                           \
    X(rondo_graph_cache_clear, (P(s.cache)))                                                       \
    X(rondo_graph_cache_get_stats, (P(s.cache), W(rondo_graph_cache_stats)))                       \
    X(rondo_graph_cache_get_entry, (P(s.cache), P("k"), 1, W(rondo_graph_cache_entry)))            \
    X(rondo_graph_get_node_count, (P(s.graph), P(PLAIN(size_t))))                                  \
    X(rondo_graph_get_node, (P(s.graph), N(0), W(rondo_graph_node)))                               \
    X(rondo_graph_list_edges, (P(s.graph), P(PLAIN(rondo_graph_edge)), 1, P(PLAIN(size_t))))       \
    X(rondo_graph_dump, (P(s.graph), E(0), P(text_sink_ignore), NULL))                             \
    X(rondo_graph_measure_device_bytes, (P(s.graph), P(PLAIN(uint64_t))))                          \
    X(rondo_graph_get_native, (P(s.graph), O(PLAIN(void *)), O(PLAIN(void *))))                    \
    X(rondo_stream_get_last_node, (P(s.records), P(PLAIN(rondo_node))))                            \
    X(rondo_stream_add_node, (P(s.records), R(s.work), O(PLAIN(rondo_node))))                      \
    X(rondo_graph_get_node_index, (P(s.graph), s.node, P(PLAIN(size_t))))                          \
    X(rondo_graph_build_begin, (P(s.empty)))                                                       \
    X(rondo_graph_add_node, (P(s.built), P(&s.before), 1, R(s.work), O(PLAIN(rondo_node))))        \
    X(rondo_graph_patch, (P(s.graph), P(&s.patch), 1))                                             \
    X(rondo_graph_patch_node, (P(s.graph), s.node, R(s.work)))                                     \
    X(rondo_graph_get_report, (P(s.graph), W(rondo_capture_report)))                               \
    V(rondo_capture_report_format, (P(PLAIN(rondo_capture_report)), P(text), SIZE_OF_TEXT))        \
    V(rondo_capture_cause_get_name, (E(0)))                                                        \
    X(rondo_graph_update, (P(s.empty), P(s.graph), WO(rondo_update_report)))                       \
    X(rondo_graph_recapture,                                                                       \
      (P(s.graph), P(s.stream), S(rondo_step_options), P(do_body), NULL, WO(rondo_update_report))) \
    X(rondo_graph_compare, (P(s.graph), P(s.graph), W(rondo_difference), 1, P(PLAIN(size_t))))     \
    V(rondo_difference_format, (P(PLAIN(rondo_difference)), P(text), SIZE_OF_TEXT))                \
    X(rondo_stepper_create, (P(s.device), S(rondo_stepper_options), P(&s.out.stepper)))            \
    V(rondo_stepper_destroy, (NULL))                                                               \
    X(rondo_stepper_begin, (P(s.stepper), P(s.stream)))                                            \
    X(rondo_stepper_put, (P(begun()), R(s.work)))                                                  \
    X(rondo_stepper_end, (P(s.stepper)))                                                           \
    X(rondo_stepper_reset, (P(s.stepper)))                                                         \
    V(rondo_stepper_get_mode, (P(s.stepper)))                                                      \
    V(rondo_stepper_get_graph, (P(s.stepper)))                                                     \
    X(rondo_pool_create, (P(s.device), S(rondo_pool_options), P(&s.out.pool)))                     \
    V(rondo_pool_retain, (NULL))                                                                   \
    V(rondo_pool_release, (NULL))                                                                  \
    X(rondo_pool_allocate, (P(s.pool), P(s.stream), N(64), P(&s.out.block)))                       \
    X(rondo_pool_free, (P(s.pool), O(s.block)))                                                    \
    X(rondo_pool_use, (P(s.pool), P(s.stream), P(s.block)))                                        \
    X(rondo_pool_trim, (P(s.pool), 0, O(PLAIN(uint64_t))))                                         \
    X(rondo_pool_get_stats, (P(s.pool), W(rondo_pool_stats)))                                      \
    X(rondo_arena_create, (P(s.device), S(rondo_arena_options), P(&s.out.arena)))                  \
    X(rondo_graph_get_arena, (P(s.graph), P(PLAIN(rondo_arena *))))                                \
    V(rondo_arena_retain, (NULL))                                                                  \
    V(rondo_arena_release, (NULL))                                                                 \
    X(rondo_arena_begin_round, (P(s.arena)))                                                       \
    X(rondo_arena_get_stats, (P(s.arena), W(rondo_arena_stats)))

#define RANDOM_ROWS(X, V)                                                                      \
    X(rondo_generator_create, (P(s.device), 1, P(&s.out.generator)))                           \
    V(rondo_generator_retain, (NULL))                                                          \
    V(rondo_generator_release, (NULL))                                                         \
    X(rondo_generator_set_seed, (P(s.generator), 1))                                           \
    X(rondo_generator_set_state, (P(s.generator), P(PLAIN(rondo_generator_state))))            \
    X(rondo_generator_get_state, (P(s.generator), P(PLAIN(rondo_generator_state))))            \
    X(rondo_generator_get_mark, (P(s.generator), P(s.stream), P(PLAIN(rondo_generator_mark)))) \
    X(rondo_generator_rewind, (P(s.generator), P(s.stream), P(PLAIN(rondo_generator_mark))))   \
    X(rondo_random_words, (P(s.generator), P(s.stream), P(s.memory), N(1)))                    \
    X(rondo_random_uniform, (P(s.generator), P(s.stream), D(1), P(s.memory), N(1), 0, 1))      \
    X(rondo_random_normal, (P(s.generator), P(s.stream), D(1), P(s.memory), N(1), 0, 1))       \
    X(rondo_random_bernoulli, (P(s.generator), P(s.stream), D(1), P(s.memory), N(1), 0.5))     \
    X(rondo_random_bernoulli_each,                                                             \
      (P(s.generator), P(s.stream), D(1), P(s.memory), D(1), P(s.memory + 64), N(1)))          \
    X(rondo_random_dropout, (P(s.generator), P(s.stream), D(1), P(s.memory), P(s.memory + 64), \
                             O((uint8_t *)s.memory + 1024), N(1), 0.5))                        \
    X(rondo_generator_reserve, (P(s.generator), P(s.stream), 1, P(PLAIN(rondo_random_range)))) \
    V(rondo_random_philox, (1, 2, 3, P(s.memory)))

#include "support/text_sink.h"
#include "unit/api_hostile_files.h"
#define EXECUTOR_ROWS(X, V)                                                                        \
    X(rondo_executor_create,                                                                       \
      (P(s.program), P(s.device), S(rondo_executor_options), P(&s.out.executor)))                  \
    V(rondo_executor_destroy, (NULL))                                                              \
    X(rondo_executor_run, (P(s.executor), P(&s.feed), 1, P(&s.fetch), 1))                          \
    X(rondo_executor_rerun, (P(s.executor)))                                                       \
    X(rondo_executor_cancel, (P(s.executor)))                                                      \
    X(rondo_executor_set_graphs, (P(s.executor), E(0)))                                            \
    X(rondo_executor_get_times, (P(s.executor), W(rondo_run_times)))                               \
    X(rondo_executor_get_stats, (P(s.executor), W(rondo_executor_stats)))                          \
    X(rondo_executor_describe, (P(s.executor), E(0), P(text_sink_ignore), NULL))                   \
    X(rondo_executor_describe_feeds,                                                               \
      (P(s.executor), P(&s.feed), 1, E(0), P(text_sink_ignore), NULL))                             \
    X(rondo_executor_find_loss, (P(s.program), P(s.device), S(rondo_executor_options), P(&s.feed), \
                                 1, 0.1, W(rondo_precision_loss)))                                 \
    X(rondo_executor_bind, (P(s.executor), O("y"), P("x")))                                        \
    X(rondo_executor_get_variable, (P(s.executor), P("x"), P(&s.out.tensor)))                      \
    X(rondo_executor_set_variable, (P(s.executor), P("x"), P(&s.x)))                               \
    X(rondo_executor_reserve_variable, (P(s.executor), P("x"), N(64)))                             \
    X(rondo_executor_reset_variables, (P(s.executor)))                                             \
    X(rondo_executor_snapshot, (P(s.executor), P(&s.out.program)))                                 \
    X(rondo_executor_set_training, (P(s.executor), true))                                          \
    V(rondo_executor_get_stream, (P(s.executor)))                                                  \
    X(rondo_executor_run_async, (P(s.executor), P(&s.feed), 1, P(&s.fetch), 1, O(s.event)))        \
    X(rondo_executor_wait, (P(s.executor)))                                                        \
    X(rondo_executor_record, (P(s.executor), P(s.records), P(&s.feed), 1, P(&s.fetch), 1))         \
    X(rondo_executor_self_check,                                                                   \
      (P(s.executor), P(&s.feed), 1, P(&s.fetch), 1, W(rondo_self_check_report)))                  \
    X(rondo_executor_get_self_check, (P(s.executor), W(rondo_self_check_report)))                  \
    X(rondo_executor_list_placements,                                                              \
      (P(s.executor), P(&s.feed), 1, 0, O(NULL), P(PLAIN(size_t))))                                \
    X(rondo_executor_get_transfers, (P(s.executor), W(rondo_transfer_stats)))                      \
    FILE_ROWS(X)                                                                                   \
    X(rondo_op_prepare,                                                                            \
      (P(s.device), P("Neg"), S(rondo_op_options), P(&typed), N(1), N(1), P(&s.out.op)))           \
    V(rondo_op_destroy, (NULL))                                                                    \
    X(rondo_op_get_output, (P(s.op), N(0), P(PLAIN(rondo_tensor))))                                \
    X(rondo_op_put, (P(s.op), P(s.stream), P(&s.x), N(1), P(&s.y), N(1)))                          \
    X(rondo_builder_create_from, (P(s.program), P(&s.out.builder)))                                \
    X(rondo_builder_add_gradients,                                                                 \
      (P(s.builder), P("x"), P(one_x), P(one_new), N(1), S(rondo_gradient_options)))               \
    X(rondo_builder_minimize, (P(s.builder), P("x"), S(rondo_minimize_options)))                   \
    X(rondo_builder_add_adapters, (P(s.builder), P(one_x), N(1), 1))                               \
    X(rondo_find_ranks, (W(rondo_ranks)))                                                          \
    X(rondo_communicator_create, (P(s.device), S(rondo_communicator_options), P(&s.out.ranks)))    \
    V(rondo_communicator_destroy, (NULL))                                                          \
    X(rondo_op_set_gradient, (P("test"), P("Nothing"), P(no_gradient), O(&s)))                     \
    X(rondo_checkpoint_save, (P(s.executor), P("no/such/folder/none")))                            \
    X(rondo_executor_gather_variables, (P(s.executor)))                                            \
    X(rondo_checkpoint_load, (P(s.executor), P("no/such/folder/none")))                            \
    X(rondo_executor_get_trained, (P(s.executor), P(s.program), P(&s.out.program)))                \
    X(rondo_op_register, (W(rondo_op_definition)))                                                 \
    X(rondo_builder_add_all_reduce, (P(s.builder), E(0), P(one_x), P(one_new), N(1)))              \
    V(rondo_op_get_name, (NULL))                                                                   \
    V(rondo_op_get_data, (NULL))                                                                   \
    V(rondo_op_get_version, (NULL))                                                                \
    V(rondo_op_is_training, (NULL))                                                                \
    V(rondo_op_get_attribute, (NULL, P("x"), P(PLAIN(rondo_attribute))))                           \
    V(rondo_op_need_value, (NULL, N(0)))                                                           \
    X(rondo_op_fail, (NULL, RONDO_STATUS_INVALID, O("x")))                                         \
    X(rondo_learned_create, (P(s.device), S(rondo_learned_options), R(argument), 1, P(do_learned), \
                             NULL, P(&s.out.learned)))                                             \
    V(rondo_learned_destroy, (NULL))                                                               \
    X(rondo_learned_learn, (P(s.learned), P(s.stream), P(&value), N(1)))                           \
    X(rondo_learned_run, (P(s.learned), P(s.stream), P(&value), N(1)))                             \
    X(rondo_learned_try, (P(s.learned), P(&value), N(1)))                                          \
    X(rondo_learned_list_findings, (P(s.learned), W(rondo_learned_finding), 1, P(PLAIN(size_t))))  \
    V(rondo_learned_get_graph, (P(s.learned)))                                                     \
    V(rondo_learned_get_cache, (P(s.learned)))                                                     \
    X(rondo_learned_get_report, (P(s.learned), W(rondo_learned_report)))                           \
    X(rondo_learned_list_slots, (P(s.learned), W(rondo_learned_slot), 1, P(PLAIN(size_t))))        \
    X(rondo_learned_describe, (P(s.learned), E(0), P(text_sink_ignore), NULL))                     \
    V(rondo_refusal_get_name, (E(0)))                                                              \
    X(rondo_learned_get_stats, (P(s.learned), W(rondo_learned_stats)))
#define PROGRAM_ROWS(X, V)                                                                         \
    V(rondo_program_destroy, (NULL))                                                               \
    V(rondo_program_get_input_count, (P(s.program)))                                               \
    V(rondo_program_get_output_count, (P(s.program)))                                              \
    X(rondo_program_get_input, (P(s.program), N(0), W(rondo_port)))                                \
    X(rondo_program_get_output, (P(s.program), N(0), W(rondo_port)))                               \
    V(rondo_program_get_optional_input_count, (P(s.program)))                                      \
    X(rondo_program_get_optional_input, (P(s.program), N(0), W(rondo_port)))                       \
    V(rondo_program_get_metadata, (P(s.program), P("none")))                                       \
    X(rondo_program_set_dimension, (P(s.program), P("n"), 1))                                      \
    X(rondo_program_set_update, (P(s.program), P("x"), P("none")))                                 \
    X(rondo_program_make_variables, (P(s.program), P(&some_name), 1, P(&s.out.program)))           \
    X(rondo_program_list_variables, (P(s.program), 1, P(PLAIN(rondo_variable)), P(PLAIN(size_t)))) \
    X(rondo_program_set_place, (P(s.program), P("*"), P("host")))                                  \
    X(rondo_program_load_onnx, (P("none.onnx"), P(&s.out.program)))                                \
    X(rondo_program_load_onnx_with, (P("none.onnx"), S(rondo_load_options), P(&s.out.program)))    \
    X(rondo_program_parse_onnx, (P("none"), 4, P(&s.out.program)))                                 \
    X(rondo_program_parse_onnx_with, (P("none"), 4, S(rondo_load_options), P(&s.out.program)))     \
    X(rondo_onnx_list_unsupported, (P("none.onnx"), P(take_op), NULL))                             \
    X(rondo_program_save_onnx, (P(s.program), P("no/such/folder/none.onnx")))                      \
    X(rondo_tensor_load_onnx, (P("none.pb"), P(&s.out.tensor)))                                    \
    X(rondo_port_load_onnx, (R(s.port), P("none.pb"), P(&s.out.tensor)))                           \
    X(rondo_profile_create, (S(rondo_profile_options), P(&s.out.profile)))                         \
    V(rondo_profile_destroy, (NULL))                                                               \
    X(rondo_profile_start, (P(s.profile)))                                                         \
    X(rondo_profile_stop, (P(s.profile)))                                                          \
    X(rondo_profile_begin, (P("x")))                                                               \
    X(rondo_profile_get_summary, (P(s.profile), W(rondo_profile_summary)))                         \
    X(rondo_profile_get_rows,                                                                      \
      (P(s.profile), E(0), false, W(rondo_profile_row), 1, P(PLAIN(size_t))))                      \
    X(rondo_profile_write,                                                                         \
      (P(s.profile), S(rondo_profile_write_options), P(text_sink_ignore), NULL))                   \
    X(rondo_log_set_levels, (O("x=1")))                                                            \
    X(rondo_set_allocator, (W(rondo_allocator)))

// Functions without arguments, of numbers alone, or that set what the whole process logs with.
static const char *const exempt[] = {"rondo_error_get_last",      "rondo_f16_from_float",
                                     "rondo_f16_to_float",        "rondo_log_set_level",
                                     "rondo_log_set_record_sink", "rondo_log_set_sink",
                                     "rondo_profile_end",         "rondo_random_get_device_text",
                                     "rondo_version_get_number",  "rondo_version_get_text"};

#define N32(good) (is_turn(TOO_MUCH) ? UINT32_MAX : (good))
#define WO(type)                                        \
    (is_turn(ANY)       ? NULL                          \
     : is_turn(REFUSED) ? SIZED(type, 1)                \
     : is_turn(REFUSED) ? SIZED(type, sizeof(type) + 8) \
                        : SIZED(type, sizeof(type)))
#define SIZE_OF_TEXT sizeof text

static char text[128];
static const char *const some_name = "none";
static const rondo_tensor typed = {.dtype = RONDO_DTYPE_F32, .shape = {1, {4}}};

static rondo_scope any_scope(void) {
    static const rondo_scope none;
    return none;
}

static rondo_stepper *begun(void) {
    (void)!rondo_stepper_begin(s.stepper, s.stream);
    return s.stepper;
}

#define STATUS_FUNCTION(name, arguments)    \
    static rondo_status call_##name(void) { \
        return name arguments;              \
    }
#define VOID_FUNCTION(name, arguments)      \
    static rondo_status call_##name(void) { \
        (void)name arguments;               \
        return RONDO_STATUS_INVALID;        \
    }
#define ROW(name, arguments) {#name, call_##name},
#include "unit/api_hostile_runs.h"
#define ALL_ROWS(X, V) \
    BUILDER_ROWS(X, V) \
    DEVICE_ROWS(X, V)  \
    TENSOR_ROWS(X, V)  \
    GRAPH_ROWS(X, V) RANDOM_ROWS(X, V) EXECUTOR_ROWS(X, V) PROGRAM_ROWS(X, V) RUN_ROWS(X, V)

ALL_ROWS(STATUS_FUNCTION, VOID_FUNCTION)

static const struct row {
    const char *name;
    rondo_status (*call)(void);
} rows[] = {ALL_ROWS(ROW, ROW)};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

// ---- the cases --------------------------------------------------------------------------------

static bool is_as_wanted(rondo_status status) {
    return g_wrong == REFUSED    ? status == RONDO_STATUS_INVALID
           : g_wrong == TOO_MUCH ? status != RONDO_STATUS_OK
                                 : true;
}

// Each turn on objects of its own: a wrong argument may break a capture, as it should.
static int run_row(const struct row *row) {
    int failures = 0;
    for (g_turn = 1;; ++g_turn) {
        open_scene();
        g_at = 0;
        g_wrong = NOTHING;
        const rondo_status status = row->call();
        if (!is_as_wanted(status)) {
            print_error("%s, argument check %d: %s%s%s\n", row->name, g_turn,
                        rondo_status_get_name(status), status != RONDO_STATUS_OK ? ": " : "",
                        status != RONDO_STATUS_OK ? rondo_error_get_last()->message : "");
            failures += 1;
        }
        const bool is_last = g_wrong == NOTHING;
        close_scene();
        if (is_last) {
            return failures;
        }
    }
}

TEST(test_api_hostile__every_call_refuses_what_cannot_be) {
    int failures = 0;
    rondo_log_set_level(RONDO_LOG_ERROR);
    for (size_t i = 0; i < ROW_COUNT; ++i) {
        failures += run_row(&rows[i]);
    }
    assert_int_equal(failures, 0);
}

static bool is_listed(const char *name, size_t length) {
    for (size_t i = 0; i < ROW_COUNT; ++i) {
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; ++i) {
        if (strlen(exempt[i]) == length && strncmp(exempt[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

// The functions of a header that the table lacks.
static int look_through(const char *path) {
    static char bytes[1 << 17];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    (void)fclose(file);
    int missing = 0;
    for (const char *at = strstr(bytes, "RONDO_API "); at != NULL;
         at = strstr(at + 1, "RONDO_API ")) {
        const char *open = strchr(at, '(');
        const char *name = open;
        while (name != NULL && name > at &&
               (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
                (name[-1] >= 'a' && name[-1] <= 'z'))) {
            name -= 1;
        }
        if (name != NULL && strncmp(name, "rondo_", 6) == 0 &&
            !is_listed(name, (size_t)(open - name))) {
            print_error("%.*s has no row\n", (int)(open - name), name);
            missing += 1;
        }
    }
    return missing;
}

TEST(test_api_hostile__every_function_has_a_row) {
    static const char *const headers[] = {"allocator",  "builder",        "control",
                                          "copy",       "device",         "dlpack",
                                          "executor",   "executor_state", "executor_stream",
                                          "graph",      "graph_cache",    "inspect",
                                          "label",      "learn",          "log",
                                          "log_record", "node",           "onnx",
                                          "op",         "placement",      "pool",
                                          "profile",    "program",        "random",
                                          "report",     "self_check",     "status",
                                          "stepper",    "tensor",         "text",
                                          "tuning",     "update",         "user_op",
                                          "version",    "workers"};
    int missing = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/include/rondo/%s.h", get_source_dir(), headers[i]);
        missing += look_through(path);
    }
    assert_int_equal(missing, 0);
}

TEST_MAIN()
