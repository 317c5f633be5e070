// Captures: what breaks them, what does not, and how they end.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stddef.h>

#include "truth.h"

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

static void say_code_and_state(rondo__cu_result code, rondo__cu_stream stream) {
    say("%s, %s", name_of(code), state_of(stream));
}

// ---- calls on the recording stream, and beside it ---------------------------------------------

static void ask_synchronize(void) {
    begin(RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    say_code_and_state(d.cuStreamSynchronize(w.stream), w.stream);
    rondo__cu_graph graph = NULL;
    say("end %s", name_of(d.cuStreamEndCapture(w.stream, &graph)));
}

static void ask_query(void) {
    begin(RELAXED);
    say_code_and_state(d.cuStreamQuery(w.stream), w.stream);
}

static void ask_context(void) {
    begin(RELAXED);
    say_code_and_state(d.cuCtxSynchronize(), w.stream);
}

static void ask_legacy_launch(void) {
    MUST(d.cuStreamBeginCapture(w.blocking, RELAXED));
    say_code_and_state(work_on(NULL, 0, 0, 2, 1), w.blocking);
}

static void ask_legacy_copy(void) {
    uint32_t value = 0;
    MUST(d.cuStreamBeginCapture(w.blocking, RELAXED));
    say_code_and_state(d.cuMemcpyDtoH(&value, w.words, 4), w.blocking);
}

static void ask_legacy_beside(void) {
    begin(GLOBAL);
    say_code_and_state(work_on(NULL, 0, 0, 2, 1), w.stream);
}

static void ask_waiting_copies(void) {
    uint32_t value = 0;
    begin(GLOBAL);
    say_code_and_state(d.cuMemcpyDtoH(&value, w.words, 4), w.stream);
    say_code_and_state(d.cuMemsetD8(w.words, 0, 4), w.stream);
}

static void take_memory(int mode) {
    rondo__cu_address address = 0;
    begin(mode);
    const rondo__cu_result code = d.cuMemAlloc(&address, 256);
    say_code_and_state(code, w.stream);
    if (code == RONDO__CU_SUCCESS) {
        rondo__cu_graph graph = NULL;
        (void)d.cuStreamEndCapture(w.stream, &graph);
        keep_graph(graph);
        MUST(d.cuMemFree(address));
    }
}

static void ask_take_global(void) {
    take_memory(GLOBAL);
}

static void ask_take_local(void) {
    take_memory(THREAD_LOCAL);
}

static void ask_take_relaxed(void) {
    take_memory(RELAXED);
}

static void ask_trim(void) {
    void *pool = NULL;
    MUST(d.cuDeviceGetDefaultMemPool(&pool, w.device));
    begin(GLOBAL);
    say_code_and_state(d.cuMemPoolTrimTo(pool, 0), w.stream);
}

static void ask_new_objects(void) {
    rondo__cu_stream stream = NULL;
    begin(GLOBAL);
    say_code_and_state(d.cuStreamCreate(&stream, RONDO__CU_STREAM_NON_BLOCKING), w.stream);
    (void)new_event(0);
    say("%s", state_of(w.stream));
    (void)end();
    MUST(d.cuStreamDestroy(stream));
}

static void ask_module(void) {
    rondo__cu_module module = NULL;
    begin(GLOBAL);
    say_code_and_state(d.cuModuleLoadData(&module, w.module_text), w.stream);
    (void)end();
    MUST(d.cuModuleUnload(module));
}

static void ask_large_block(void) {
    begin(RELAXED);
    say_code_and_state(d.cuLaunchKernel(w.work, 1, 1, 1, 2048, 1, 1, 0, w.stream,
                                        describe_work(0, 0, 2, 1).parameters, NULL),
                       w.stream);
}

static void ask_graph_launch(void) {
    begin(RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    const rondo__cu_graph_exec exec = instantiate(end());
    begin(RELAXED);
    say_code_and_state(d.cuGraphLaunch(exec, w.stream), w.stream);
}

static void ask_peer_copy(void) {
    begin(RELAXED);
    say_code_and_state(
        d.cuMemcpyPeerAsync(word_at(4), w.context, word_at(0), w.context, 4, w.stream), w.stream);
}

static void ask_instantiate(void) {
    rondo__cu_graph_node last = NULL;
    begin(RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    const rondo__cu_graph graph = get_recorded(w.stream, &last);
    say_code_and_state(try_instantiate(graph, 0, NULL, NULL), w.stream);
    MUST(work_on(w.stream, 0, 0, 3, 0));
    const rondo__cu_graph_exec exec = instantiate(end());
    launch(exec);
    say("%u", read_word(0));
}

static void ask_legacy_begin(void) {
    say("%s", name_of(d.cuStreamBeginCapture(NULL, RELAXED)));
}

static void ask_begin_twice(void) {
    begin(RELAXED);
    say_code_and_state(d.cuStreamBeginCapture(w.stream, RELAXED), w.stream);
}

static void ask_end_of_nothing(void) {
    rondo__cu_graph graph = NULL;
    say("%s", name_of(d.cuStreamEndCapture(w.stream, &graph)));
}

static void ask_empty(void) {
    begin(RELAXED);
    const rondo__cu_graph graph = end();
    say("%s, %zu nodes", graph != NULL ? "graph" : "none", graph != NULL ? count_nodes(graph) : 0);
}

// ---- events -----------------------------------------------------------------------------------

static void ask_captured_query(void) {
    const rondo__cu_event event = new_event(0);
    begin(RELAXED);
    MUST(d.cuEventRecord(event, w.stream));
    say_code_and_state(d.cuEventQuery(event), w.stream);
}

static void ask_captured_synchronize(void) {
    const rondo__cu_event event = new_event(0);
    begin(RELAXED);
    MUST(d.cuEventRecord(event, w.stream));
    say_code_and_state(d.cuEventSynchronize(event), w.stream);
}

static void ask_captured_time(void) {
    const rondo__cu_event first = new_event(0);
    const rondo__cu_event second = new_event(0);
    float milliseconds = 0;
    begin(RELAXED);
    MUST(d.cuEventRecord(first, w.stream));
    MUST(work_on(w.stream, 0, 0, 2, 1));
    MUST(d.cuEventRecord(second, w.stream));
    say_code_and_state(d.cuEventElapsedTime(&milliseconds, first, second), w.stream);
}

static void ask_ended_event(void) {
    const rondo__cu_event event = new_event(0);
    begin(RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    MUST(d.cuEventRecord(event, w.stream));
    (void)end();
    say("wait %s", name_of(d.cuStreamWaitEvent(w.other, event, 0)));
    say("query %s", name_of(d.cuEventQuery(event)));
    say("synchronize %s", name_of(d.cuEventSynchronize(event)));
}

static void ask_isolation(void) {
    const rondo__cu_event event = new_event(0);
    MUST(d.cuEventRecord(event, w.other));
    begin(RELAXED);
    say_code_and_state(d.cuStreamWaitEvent(w.stream, event, 0), w.stream);
}

static void ask_unrecorded(void) {
    const rondo__cu_event event = new_event(0);
    begin(RELAXED);
    say_code_and_state(d.cuStreamWaitEvent(w.stream, event, 0), w.stream);
}

static void ask_merge(void) {
    const rondo__cu_event event = new_event(0);
    begin(RELAXED);
    MUST(d.cuStreamBeginCapture(w.other, RELAXED));
    MUST(work_on(w.other, 0, 0, 2, 1));
    MUST(d.cuEventRecord(event, w.other));
    say("%s", name_of(d.cuStreamWaitEvent(w.stream, event, 0)));
    say("%s, other %s", state_of(w.stream), state_of(w.other));
}

static void ask_external(void) {
    const rondo__cu_event event = new_event(0);
    int type = -1;
    begin(RELAXED);
    MUST(d.cuEventRecordWithFlags(event, w.stream, RONDO__CU_EVENT_RECORD_EXTERNAL));
    MUST(d.cuStreamWaitEvent(w.stream, event, RONDO__CU_EVENT_WAIT_EXTERNAL));
    const rondo__cu_graph graph = end();
    for (size_t i = 0; i < 2; ++i) {
        MUST(d.cuGraphNodeGetType(node_at(graph, i), &type));
        say("type %d", type);
    }
}

// ---- ends -------------------------------------------------------------------------------------

static rondo__cu_event fork_to_other(void) {
    const rondo__cu_event event = new_event(RONDO__CU_EVENT_DISABLE_TIMING);
    begin(RELAXED);
    (void)must(work_on(w.stream, 0, 0, 2, 1), "launch");
    (void)must(d.cuEventRecord(event, w.stream), "record");
    (void)must(d.cuStreamWaitEvent(w.other, event, 0), "wait");
    return event;
}

static void say_end(void) {
    rondo__cu_graph graph = NULL;
    say("end %s", name_of(d.cuStreamEndCapture(w.stream, &graph)));
    keep_graph(graph);
}

static void ask_unjoined_kernel(void) {
    (void)fork_to_other();
    MUST(work_on(w.other, 1, 0, 2, 1));
    say_end();
}

static void ask_joined(void) {
    const rondo__cu_event event = fork_to_other();
    MUST(work_on(w.other, 1, 0, 2, 1));
    MUST(d.cuEventRecord(event, w.other));
    MUST(d.cuStreamWaitEvent(w.stream, event, 0));
    say_end();
}

static void ask_unjoined_child(void) {
    rondo__cu_graph_node node = NULL;
    rondo__cu_graph_node last = NULL;
    begin(RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    const rondo__cu_graph child = end();
    (void)fork_to_other();
    const rondo__cu_graph graph = get_recorded(w.other, &last);
    MUST(d.cuGraphAddChildGraphNode(&node, graph, &last, 1, child));
    MUST(
        d.cuStreamUpdateCaptureDependencies(w.other, &node, 1, RONDO__CU_CAPTURE_SET_DEPENDENCIES));
    say_end();
}

static void ask_end_by_branch(void) {
    rondo__cu_graph graph = NULL;
    (void)fork_to_other();
    say_code_and_state(d.cuStreamEndCapture(w.other, &graph), w.stream);
}

static void *end_here(void *data) {
    rondo__cu_graph graph = NULL;
    rondo__cu_context popped = NULL;
    (void)d.cuCtxPushCurrent(w.context);
    *(rondo__cu_result *)data = d.cuStreamEndCapture(w.stream, &graph);
    (void)d.cuCtxPopCurrent(&popped);
    keep_graph(graph);
    return NULL;
}

static void end_by_thread(int mode) {
    pthread_t thread;
    rondo__cu_result code = RONDO__CU_ERROR_UNKNOWN;
    begin(mode);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    if (pthread_create(&thread, NULL, end_here, &code) != 0) {
        say("no thread");
        return;
    }
    (void)pthread_join(thread, NULL);
    say("%s, then %s", name_of(code), state_of(w.stream));
    say_end();
}

static void ask_end_thread_global(void) {
    end_by_thread(GLOBAL);
}

static void ask_end_thread_local(void) {
    end_by_thread(THREAD_LOCAL);
}

static void ask_end_thread_relaxed(void) {
    end_by_thread(RELAXED);
}

const truth_question truth_captures[] = {
    {"501", "the recording stream is waited for", ask_synchronize,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken; end STREAM_CAPTURE_INVALIDATED", NULL},
    {"502", "the recording stream is asked whether it is done", ask_query,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"515", "the context is waited for, beside a relaxed capture", ask_context,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"512", "a launch on the legacy stream, while a stream that it waits for records relaxed",
     ask_legacy_launch, "STREAM_CAPTURE_IMPLICIT, capture broken", NULL},
    {"517", "a waiting copy, while a stream that the legacy one waits for records relaxed",
     ask_legacy_copy, "STREAM_CAPTURE_IMPLICIT, capture broken", NULL},
    {"513", "a launch on the legacy stream beside a global capture that it does not wait for",
     ask_legacy_beside, "ok, capture lives", NULL},
    {"514", "a waiting copy and a waiting fill beside such a capture", ask_waiting_copies,
     "ok, capture lives; ok, capture lives", NULL},
    {"509", "memory is taken beside a global capture", ask_take_global,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"c1", "memory is taken beside a thread's own capture", ask_take_local,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"c2", "memory is taken beside a relaxed capture", ask_take_relaxed, "ok, capture lives", NULL},
    {"554", "a pool of memory is trimmed beside a global capture", ask_trim,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"519", "streams and events are made beside a global capture", ask_new_objects,
     "ok, capture lives; capture lives", NULL},
    {"522", "a module is loaded beside a global capture", ask_module, "ok, capture lives", NULL},
    {"556", "a launch of 2048 threads is recorded", ask_large_block,
     "INVALID_VALUE, capture broken", NULL},
    {"550", "a graph is launched into a recording stream", ask_graph_launch,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"545", "a peer copy from a device to itself is recorded relaxed", ask_peer_copy,
     "STREAM_CAPTURE_UNSUPPORTED, capture broken", NULL},
    {"564", "a graph is instantiated while it is recorded", ask_instantiate, "ok, capture lives; 9",
     NULL},
    {"c3", "a capture begins on the legacy stream", ask_legacy_begin, "STREAM_CAPTURE_UNSUPPORTED",
     NULL},
    {"c4", "a capture begins where one is", ask_begin_twice, "ILLEGAL_STATE, capture lives", NULL},
    {"c5", "the end of no capture", ask_end_of_nothing, "ILLEGAL_STATE", NULL},
    {"c6", "a capture of nothing", ask_empty, "graph, 0 nodes", NULL},
    {"525", "an event of the capture is asked whether it has happened", ask_captured_query,
     "CAPTURED_EVENT, capture broken", NULL},
    {"526", "an event of the capture is waited for by the host", ask_captured_synchronize,
     "CAPTURED_EVENT, capture broken", NULL},
    {"527", "the time between events of the capture", ask_captured_time,
     "CAPTURED_EVENT, capture lives", NULL},
    {"563", "an event of a capture that has ended", ask_ended_event,
     "wait INVALID_VALUE; query INVALID_VALUE; synchronize INVALID_VALUE", NULL},
    {"c7", "a recording stream waits for an event of no capture", ask_isolation,
     "STREAM_CAPTURE_ISOLATION, capture broken", NULL},
    {"c8", "a recording stream waits for an event that nobody recorded", ask_unrecorded,
     "ok, capture lives", NULL},
    {"c9", "a recording stream waits for an event of another capture", ask_merge,
     "STREAM_CAPTURE_MERGE; capture broken, other capture broken", NULL},
    {"c10", "an external record and an external wait", ask_external, "type 7; type 6", NULL},
    {"534", "the end of a capture with a fork that ends in a kernel", ask_unjoined_kernel,
     "end STREAM_CAPTURE_UNJOINED", NULL},
    {"c11", "the same fork, joined", ask_joined, "end ok", NULL},
    {"2006", "the end of a capture with a fork that ends in a child graph", ask_unjoined_child,
     "end ok", NULL},
    {"538", "the end by a stream that was drawn into the capture", ask_end_by_branch,
     "STREAM_CAPTURE_UNMATCHED, capture broken", NULL},
    {"2002a", "the end of a global capture by another thread", ask_end_thread_global,
     "STREAM_CAPTURE_WRONG_THREAD, then no capture; end ILLEGAL_STATE", NULL},
    {"2002b", "the end of a thread's own capture by another thread", ask_end_thread_local,
     "STREAM_CAPTURE_WRONG_THREAD, then no capture; end ILLEGAL_STATE", NULL},
    {"537", "the end of a relaxed capture by another thread", ask_end_thread_relaxed,
     "ok, then no capture; end ILLEGAL_STATE", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
