// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth.h"
#include "truth_main.h"

truth_driver d;
truth_world w;

enum { KEPT_MAX = 2048, ANSWER_BYTES = 400 };

static char answer[ANSWER_BYTES];
static rondo__cu_graph graphs[KEPT_MAX];
static rondo__cu_graph_exec execs[KEPT_MAX];
static rondo__cu_event events[KEPT_MAX];
static size_t graph_count, exec_count, event_count;

// ---- words ------------------------------------------------------------------------------------

void say(const char *format, ...) {
    const size_t used = strlen(answer);
    const size_t start =
        used + (size_t)snprintf(answer + used, sizeof answer - used, "%s", used > 0 ? "; " : "");
    va_list arguments;
    va_start(arguments, format);
    if (start < sizeof answer) {
        vsnprintf(answer + start, sizeof answer - start, format, arguments);
    }
    va_end(arguments);
}

const char *name_of(rondo__cu_result code) {
    const char *name = NULL;
    if (code == RONDO__CU_SUCCESS) {
        return "ok";
    }
    if (d.cuGetErrorName(code, &name) != RONDO__CU_SUCCESS || name == NULL) {
        return "unknown code";
    }
    return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : name;
}

const char *state_of(rondo__cu_stream stream) {
    static const char *const words[] = {"no capture", "capture lives", "capture broken"};
    int status = 0;
    return d.cuStreamIsCapturing(stream, &status) == RONDO__CU_SUCCESS && status >= 0 && status < 3
               ? words[status]
               : "state unknown";
}

const char *result_of(int32_t result) {
    static const char *const words[] = {"Success",          "Error",
                                        "TopologyChanged",  "NodeTypeChanged",
                                        "FunctionChanged",  "ParametersChanged",
                                        "NotSupported",     "UnsupportedFunctionChange",
                                        "AttributesChanged"};
    return result >= 0 && result < 9 ? words[result] : "unknown result";
}

bool must(rondo__cu_result code, const char *call) {
    if (code != RONDO__CU_SUCCESS) {
        say("%.60s: %s", call, name_of(code));
    }
    return code == RONDO__CU_SUCCESS;
}

// ---- work -------------------------------------------------------------------------------------

rondo__cu_address word_at(size_t index) {
    return w.words + index * sizeof(uint32_t);
}

uint32_t read_word(size_t index) {
    uint32_t value = 0xdeadbeef;
    (void)d.cuMemcpyDtoH(&value, word_at(index), sizeof value);
    return value;
}

// A copy of at most 64 KiB from pageable memory returns before it has arrived, and w.stream does
// not wait for it.
static void write_words(const uint32_t *values, size_t first, size_t count) {
    (void)d.cuMemcpyHtoD(word_at(first), values, count * sizeof *values);
    (void)d.cuStreamSynchronize(NULL);
}

void write_word(size_t index, uint32_t value) {
    write_words(&value, index, 1);
}

typedef struct work_arguments {
    rondo__cu_address word;
    uint32_t us, a, b;
    void *list[4];
} work_arguments;

static void **list_arguments(work_arguments *arguments, size_t index, uint32_t us, uint32_t a,
                             uint32_t b) {
    *arguments = (work_arguments){.word = word_at(index), .us = us, .a = a, .b = b};
    arguments->list[0] = &arguments->word;
    arguments->list[1] = &arguments->us;
    arguments->list[2] = &arguments->a;
    arguments->list[3] = &arguments->b;
    return arguments->list;
}

rondo__cu_result work_on(rondo__cu_stream stream, size_t index, uint32_t us, uint32_t a,
                         uint32_t b) {
    work_arguments arguments;
    return d.cuLaunchKernel(w.work, 1, 1, 1, 1, 1, 1, 0, stream,
                            list_arguments(&arguments, index, us, a, b), NULL);
}

rondo__cu_result work_with(rondo__cu_stream stream, rondo__cu_function function,
                           rondo__cu_launch_attribute attribute, size_t index, uint32_t us,
                           uint32_t a, uint32_t b) {
    work_arguments arguments;
    const unsigned blocks = function == w.cluster ? 16 : 1;
    const rondo__cu_launch_config config = {.grid = {blocks, 1, 1},
                                            .block = {1, 1, 1},
                                            .stream = stream,
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    return attribute.id == 0
               ? d.cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, stream,
                                  list_arguments(&arguments, index, us, a, b), NULL)
               : d.cuLaunchKernelEx(&config, function, list_arguments(&arguments, index, us, a, b),
                                    NULL);
}

rondo__cu_kernel_node describe_work(size_t index, uint32_t us, uint32_t a, uint32_t b) {
    static work_arguments arguments;
    return (rondo__cu_kernel_node){.function = w.work,
                                   .grid = {1, 1, 1},
                                   .block = {1, 1, 1},
                                   .parameters = list_arguments(&arguments, index, us, a, b)};
}

rondo__cu_fill_node describe_fill(size_t index, uint32_t value, unsigned element_bytes,
                                  size_t width) {
    return (rondo__cu_fill_node){.destination = word_at(index),
                                 .pitch_bytes = 0,
                                 .value = value,
                                 .element_bytes = element_bytes,
                                 .width = width,
                                 .height = 1};
}

void do_nothing(void *data) {
    (void)data;
}

// ---- graphs -----------------------------------------------------------------------------------

void begin(int mode) {
    (void)must(d.cuStreamBeginCapture(w.stream, mode), "begin");
}

void keep_graph(rondo__cu_graph graph) {
    if (graph != NULL && graph_count < KEPT_MAX) {
        graphs[graph_count++] = graph;
    }
}

rondo__cu_graph end(void) {
    rondo__cu_graph graph = NULL;
    (void)must(d.cuStreamEndCapture(w.stream, &graph), "end");
    keep_graph(graph);
    return graph;
}

rondo__cu_graph new_graph(void) {
    rondo__cu_graph graph = NULL;
    (void)must(d.cuGraphCreate(&graph, 0), "cuGraphCreate");
    keep_graph(graph);
    return graph;
}

rondo__cu_result try_instantiate(rondo__cu_graph graph, uint64_t flags, int32_t *out_result,
                                 rondo__cu_graph_exec *out_exec) {
    rondo__cu_instantiate_params params = {.flags = flags};
    rondo__cu_graph_exec exec = NULL;
    rondo__cu_result code = d.cuGraphInstantiateWithParams(&exec, graph, &params);
    if (code == RONDO__CU_SUCCESS && exec_count < KEPT_MAX) {
        execs[exec_count++] = exec;
    }
    if (out_result != NULL) {
        *out_result = params.result;
    }
    if (out_exec != NULL) {
        *out_exec = exec;
    }
    return code;
}

rondo__cu_graph_exec instantiate(rondo__cu_graph graph) {
    rondo__cu_graph_exec exec = NULL;
    if (graph != NULL) {
        (void)must(try_instantiate(graph, 0, NULL, &exec), "instantiate");
    }
    return exec;
}

rondo__cu_event new_event(unsigned flags) {
    rondo__cu_event event = NULL;
    (void)must(d.cuEventCreate(&event, flags), "cuEventCreate");
    if (event != NULL && event_count < KEPT_MAX) {
        events[event_count++] = event;
    }
    return event;
}

void launch(rondo__cu_graph_exec exec) {
    MUST(d.cuGraphLaunch(exec, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
}

rondo__cu_graph_node node_at(rondo__cu_graph graph, size_t index) {
    rondo__cu_graph_node nodes[64] = {NULL};
    size_t count = 64;
    (void)must(d.cuGraphGetNodes(graph, nodes, &count), "cuGraphGetNodes");
    return index < 64 ? nodes[index] : NULL;
}

size_t count_nodes(rondo__cu_graph graph) {
    size_t count = 0;
    (void)must(d.cuGraphGetNodes(graph, NULL, &count), "cuGraphGetNodes");
    return count;
}

void say_update(rondo__cu_graph_exec exec, rondo__cu_graph graph) {
    rondo__cu_update_result result = {.result = -1};
    const rondo__cu_result code = d.cuGraphExecUpdate(exec, graph, &result);
    say("%s/%s", name_of(code), result_of(result.result));
}

rondo__cu_graph get_recorded(rondo__cu_stream stream, rondo__cu_graph_node *out_last) {
    int status = 0;
    uint64_t id = 0;
    size_t count = 0;
    rondo__cu_graph graph = NULL;
    const rondo__cu_graph_node *nodes = NULL;
    (void)must(d.cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &count), "info");
    *out_last = count > 0 ? nodes[0] : NULL;
    return graph;
}

rondo__cu_result set_condition(rondo__cu_stream stream, uint64_t handle, size_t word) {
    struct {
        uint64_t handle;
        rondo__cu_address predicate;
        uint32_t how, wanted;
    } arguments = {.handle = handle, .predicate = word_at(word)};
    size_t bytes = sizeof arguments;
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, &arguments, RONDO__CU_LAUNCH_BUFFER_SIZE,
                     &bytes, RONDO__CU_LAUNCH_END};
    return d.cuLaunchKernel(w.condition, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
}

rondo__cu_result begin_in(rondo__cu_graph graph) {
    return d.cuStreamBeginCaptureToGraph(w.stream, graph, NULL, NULL, 0,
                                         RONDO__CU_CAPTURE_MODE_RELAXED);
}

rondo__cu_graph_node add_condition(rondo__cu_graph graph, int type, unsigned body_count,
                                   size_t word, uint64_t *out_handle, rondo__cu_graph *bodies) {
    rondo__cu_graph_node before = NULL;
    rondo__cu_graph_node node = NULL;
    rondo__cu_graph same = NULL;
    rondo__cu_node_params params = {.type = RONDO__CU_GRAPH_NODE_CONDITIONAL};
    uint64_t handle = 0;
    if (!must(d.cuGraphConditionalHandleCreate(&handle, graph, w.context, 0, 0), "handle") ||
        !must(begin_in(graph), "begin in a graph") ||
        !must(set_condition(w.stream, handle, word), "launch of the condition")) {
        return NULL;
    }
    (void)get_recorded(w.stream, &before);
    if (!must(d.cuStreamEndCapture(w.stream, &same), "end in a graph")) {
        return NULL;
    }
    params.value.conditional.handle = handle;
    params.value.conditional.type = type;
    params.value.conditional.body_count = body_count;
    params.value.conditional.context = w.context;
    if (!must(d.cuGraphAddNode(&node, graph, &before, NULL, 1, &params), "cuGraphAddNode")) {
        return NULL;
    }
    for (unsigned i = 0; i < body_count; ++i) {
        bodies[i] = params.value.conditional.bodies[i];
    }
    if (out_handle != NULL) {
        *out_handle = handle;
    }
    return node;
}

// ---- one question -----------------------------------------------------------------------------

static void prepare(void) {
    uint32_t words[TRUTH_WORDS];
    for (size_t i = 0; i < TRUTH_WORDS; ++i) {
        words[i] = 1;
        w.pinned[i] = 7;
    }
    answer[0] = '\0';
    (void)d.cuStreamCreate(&w.stream, RONDO__CU_STREAM_NON_BLOCKING);
    (void)d.cuStreamCreate(&w.other, RONDO__CU_STREAM_NON_BLOCKING);
    (void)d.cuStreamCreate(&w.blocking, 0);
    write_words(words, 0, TRUTH_WORDS);
}

static void give_up(rondo__cu_stream stream) {
    int status = RONDO__CU_CAPTURE_STATUS_NONE;
    rondo__cu_graph graph = NULL;
    (void)d.cuStreamIsCapturing(stream, &status);
    if (status != RONDO__CU_CAPTURE_STATUS_NONE &&
        d.cuStreamEndCapture(stream, &graph) == RONDO__CU_SUCCESS) {
        (void)d.cuGraphDestroy(graph);
    }
}

static void clean_up(void) {
    give_up(w.stream);
    give_up(w.other);
    give_up(w.blocking);
    (void)d.cuCtxSynchronize();
    while (exec_count > 0) {
        (void)d.cuGraphExecDestroy(execs[--exec_count]);
    }
    while (graph_count > 0) {
        (void)d.cuGraphDestroy(graphs[--graph_count]);
    }
    while (event_count > 0) {
        (void)d.cuEventDestroy(events[--event_count]);
    }
    (void)d.cuStreamDestroy(w.stream);
    (void)d.cuStreamDestroy(w.other);
    (void)d.cuStreamDestroy(w.blocking);
}

const char *truth_get_answer(void) {
    return answer;
}

const char *truth_ask(const truth_question *question) {
    prepare();
    question->ask();
    clean_up();
    return answer;
}
