// support/fake/fake_cupti.c — see fake_cupti.h.
// SPDX-License-Identifier: Apache-2.0

#include "support/fake/fake_cupti.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "support/fake/fake_cuda_state.h"
#include "support/test.h"

enum { DEPTH_MAX = 256, KINDS_MAX = 64, RECORD_BYTES = 256, CALLS_MAX = 1024 };

static struct {
    fake_cupti_options options;
    rondo__cupti_api api;
    long fail_countdown;
    rondo__cupti_result fail_code;
    bool has_failed;
    size_t call_count;
    bool has_subscriber;
    bool kinds[KINDS_MAX];
    bool calls[CALLS_MAX];  // of the driver
    rondo__cupti_request request;
    rondo__cupti_complete complete;
    rondo__cupti_clock clock;
    uint8_t *buffer;
    size_t bytes;
    size_t used;
    size_t lent_count;
    size_t dropped_count;
    uint32_t launch_count;
    rondo__cupti_external waiting;  // reverses_records: of the launch whose work has not come
    char violations[512];
} g_cupti;

static _Thread_local struct {
    uint64_t ids[DEPTH_MAX];
    size_t depth;
} t_externals;

static void note(const char *text) {
    size_t length = strlen(g_cupti.violations);
    (void)snprintf(g_cupti.violations + length, sizeof(g_cupti.violations) - length, "%s\n", text);
}

static bool is_planned(void) {
    g_cupti.call_count += 1;
    bool is_now = g_cupti.fail_countdown == 0;
    g_cupti.fail_countdown -= g_cupti.fail_countdown >= 0 ? 1 : 0;
    g_cupti.has_failed = g_cupti.has_failed || is_now;
    return is_now;
}

#define FAKE_ENTER()              \
    if (is_planned()) {           \
        return g_cupti.fail_code; \
    }

static rondo__cupti_result fake_cuptiGetVersion(uint32_t *out_version) {
    FAKE_ENTER();
    *out_version = g_cupti.options.version;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiGetResultString(rondo__cupti_result result,
                                                     const char **out_text) {
    *out_text = result == RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS
                    ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                    : "CUPTI_ERROR_UNKNOWN";
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiSubscribe(rondo__cupti_subscriber *out_subscriber,
                                               rondo__cupti_callback callback, void *user_data) {
    (void)callback;
    (void)user_data;
    FAKE_ENTER();
    if (g_cupti.options.is_taken || g_cupti.has_subscriber) {
        return RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
    }
    g_cupti.has_subscriber = true;
    *out_subscriber = (rondo__cupti_subscriber)(void *)&g_cupti;
    return RONDO__CUPTI_SUCCESS;
}

// As those of the driver's fake, what gives something up does so and fails all the same.
static rondo__cupti_result fake_cuptiUnsubscribe(rondo__cupti_subscriber subscriber) {
    if (!g_cupti.has_subscriber || (void *)subscriber != (void *)&g_cupti) {
        note("cuptiUnsubscribe without a subscriber");
    }
    g_cupti.has_subscriber = false;
    FAKE_ENTER();
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiGetTimestamp(uint64_t *out_ns) {
    FAKE_ENTER();
    *out_ns = g_cupti.clock != NULL ? g_cupti.clock() : rondo__clock_now_ns() + 12345;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityRegisterTimestampCallback(rondo__cupti_clock clock) {
    FAKE_ENTER();
    g_cupti.clock = clock;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityRegisterCallbacks(rondo__cupti_request request,
                                                               rondo__cupti_complete complete) {
    FAKE_ENTER();
    g_cupti.request = request;
    g_cupti.complete = complete;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityEnable(int kind) {
    FAKE_ENTER();
    if (!g_cupti.has_subscriber || g_cupti.complete == NULL) {
        note("cuptiActivityEnable before anybody listens");
    }
    g_cupti.kinds[kind] = true;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityDisable(int kind) {
    g_cupti.kinds[kind] = false;
    FAKE_ENTER();
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityEnableDriverApi(uint32_t call, uint8_t is_enabled) {
    bool *calls = g_cupti.calls;
    calls[call] = is_enabled != 0 && calls[call];  // an end does its work
    FAKE_ENTER();
    calls[call] = is_enabled != 0;
    return RONDO__CUPTI_SUCCESS;
}

static void give_buffer(void) {
    if (g_cupti.buffer != NULL) {
        uint8_t *buffer = g_cupti.buffer;
        g_cupti.buffer = NULL;
        g_cupti.lent_count -= 1;
        g_cupti.complete(NULL, 0, buffer, g_cupti.bytes, g_cupti.used);
    }
}

static rondo__cupti_result fake_cuptiGetGraphExecId(rondo__cu_graph_exec exec,
                                                    uint32_t *out_number) {
    FAKE_ENTER();
    *out_number = ((const fake_graph *)(const void *)exec)->number;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityFlushAll(uint32_t flags) {
    (void)flags;
    FAKE_ENTER();
    give_buffer();
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                                           rondo__cupti_record **in_out_record) {
    FAKE_ENTER();
    uint8_t *next = *in_out_record == NULL ? buffer : (uint8_t *)*in_out_record + RECORD_BYTES;
    if (next + RECORD_BYTES > buffer + valid_bytes) {
        return RONDO__CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *in_out_record = (rondo__cupti_record *)(void *)next;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityGetNumDroppedRecords(rondo__cu_context context,
                                                                  uint32_t stream,
                                                                  size_t *out_count) {
    (void)context;
    (void)stream;
    FAKE_ENTER();
    *out_count = g_cupti.dropped_count;
    g_cupti.dropped_count = 0;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    (void)kind;
    FAKE_ENTER();
    if (t_externals.depth == DEPTH_MAX) {
        note("external ids are pushed and not popped");
        return RONDO__CUPTI_ERROR_UNKNOWN;
    }
    t_externals.ids[t_externals.depth++] = id;
    return RONDO__CUPTI_SUCCESS;
}

static rondo__cupti_result fake_cuptiActivityPopExternalCorrelationId(int kind, uint64_t *out_id) {
    (void)kind;
    FAKE_ENTER();
    if (t_externals.depth == 0) {
        return RONDO__CUPTI_ERROR_UNKNOWN;
    }
    *out_id = t_externals.ids[--t_externals.depth];
    return RONDO__CUPTI_SUCCESS;
}

// ---- the test's side --------------------------------------------------------------------------

void *fake_cupti_resolve(void *user_data, const char *symbol) {
    (void)user_data;
    void *address = NULL;
    if (g_cupti.options.missing_symbol != NULL &&
        strcmp(symbol, g_cupti.options.missing_symbol) == 0) {
        return NULL;
    }
#define RONDO__CUPTI_SYMBOL(need, name, arguments)              \
    if (strcmp(symbol, #name) == 0) {                           \
        rondo__cupti_result(*function) arguments = fake_##name; \
        memcpy(&address, &function, sizeof(address));           \
    }
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL
    return address;
}

void fake_cupti_reset(const fake_cupti_options *options) {
    memset(&g_cupti, 0, sizeof(g_cupti));
    memset(&t_externals, 0, sizeof(t_externals));
    g_cupti.options = options != NULL ? *options : (fake_cupti_options){0};
    if (g_cupti.options.version == 0) {
        g_cupti.options.version = 130001;
    }
    g_cupti.fail_countdown = -1;
}

// ---- what the fake driver does ----------------------------------------------------------------

static _Thread_local uint32_t t_launch;

static void watch_launch(void) {
    t_launch = fake_cupti_launch();
}

static bool is_on_device(const void *address) {
    const fake_memory *memory = fake_find_memory(address);
    return memory != NULL && !memory->is_host;
}

static void watch_work(const fake_node *node, uint64_t graph_node, uint64_t begin_ns,
                       uint64_t end_ns) {
    // Driver 580 does not say which call launched the work of a body.
    const uint32_t launch = g_fake_body_depth > 0 ? 0 : t_launch;
    if (node->type == RONDO__CU_GRAPH_NODE_KERNEL) {
        fake_cupti_add_kernel(launch, node->kernel->name, graph_node, begin_ns, end_ns);
    } else if (node->type == RONDO__CU_GRAPH_NODE_MEMCPY) {
        const bool is_from_device = is_on_device(node->source);
        const uint8_t kind = !is_from_device                   ? RONDO__CUPTI_COPY_HTOD
                             : is_on_device(node->destination) ? RONDO__CUPTI_COPY_DTOD
                                                               : RONDO__CUPTI_COPY_DTOH;
        fake_cupti_add_copy(launch, kind, node->count, graph_node, begin_ns, end_ns);
    } else if (node->type == RONDO__CU_GRAPH_NODE_MEMSET) {
        fake_cupti_add_fill(launch, node->count * node->element_bytes, graph_node, begin_ns,
                            end_ns);
    }
}

static const fake_watcher g_watcher = {.launch = watch_launch, .work = watch_work};

void fake_cupti_install(void) {
    g_fake_watcher = &g_watcher;
    assert_int_equal(rondo__cupti_api_load(fake_cupti_resolve, NULL, "the fake", &g_cupti.api),
                     RONDO_STATUS_OK);
    rondo__cupti_set_api(&g_cupti.api);
}

void fake_cupti_uninstall(void) {
    g_fake_watcher = NULL;
    rondo__cupti_set_api(NULL);
}

void fake_cupti_fail_nth(long n, rondo__cupti_result code) {
    g_cupti.fail_countdown = n;
    g_cupti.fail_code = code;
    g_cupti.has_failed = false;
}

bool fake_cupti_has_failed(void) {
    return g_cupti.has_failed;
}

size_t fake_cupti_count_open(void) {
    size_t count = g_cupti.lent_count + (g_cupti.has_subscriber ? 1 : 0);
    for (size_t i = 0; i < KINDS_MAX; i++) {
        count += g_cupti.kinds[i] ? 1 : 0;
    }
    for (size_t i = 0; i < CALLS_MAX; i++) {
        count += g_cupti.calls[i] ? 1u : 0u;
    }
    return count;
}

const char *fake_cupti_get_violations(void) {
    return g_cupti.violations;
}

static void write_record(const void *record, size_t bytes) {
    if (g_cupti.buffer != NULL && g_cupti.used + RECORD_BYTES > g_cupti.bytes) {
        give_buffer();
    }
    if (g_cupti.buffer == NULL) {
        size_t limit = 0;
        g_cupti.request(&g_cupti.buffer, &g_cupti.bytes, &limit);
        g_cupti.used = 0;
        g_cupti.lent_count += g_cupti.buffer != NULL ? 1 : 0;
    }
    if (g_cupti.buffer == NULL) {
        g_cupti.dropped_count += 1;
        return;
    }
    memcpy(g_cupti.buffer + g_cupti.used, record, bytes);
    g_cupti.used += RECORD_BYTES;
}

static void write_waiting(void) {
    if (g_cupti.waiting.kind != 0) {
        write_record(&g_cupti.waiting, sizeof(g_cupti.waiting));
        g_cupti.waiting.kind = 0;
    }
}

static void write_work(const void *record, size_t bytes, int kind) {
    if (g_cupti.kinds[kind]) {
        write_record(record, bytes);
    }
    write_waiting();
}

static uint32_t launch_by(bool has_calls) {
    const uint32_t launch = ++g_cupti.launch_count;
    if (g_cupti.kinds[RONDO__CUPTI_EXTERNAL_CORRELATION] && has_calls && t_externals.depth > 0) {
        g_cupti.waiting = (rondo__cupti_external){
            .kind = RONDO__CUPTI_EXTERNAL_CORRELATION,
            .external_kind = RONDO__CUPTI_EXTERNAL_CUSTOM,
            .id = t_externals.ids[t_externals.depth - 1],
            .correlation = launch,
        };
        if (!g_cupti.options.reverses_records && !g_cupti.options.hides_copy_calls) {
            write_waiting();
        }
    }
    return launch;
}

uint32_t fake_cupti_launch(void) {
    return launch_by(g_cupti.calls[307] || g_cupti.kinds[RONDO__CUPTI_DRIVER]);
}

uint32_t fake_cupti_launch_by_runtime(void) {
    return launch_by(g_cupti.kinds[RONDO__CUPTI_RUNTIME]);
}

void fake_cupti_add_kernel(uint32_t launch, const char *name, uint64_t graph_node,
                           uint64_t begin_ns, uint64_t end_ns) {
    rondo__cupti_kernel record = {.kind = RONDO__CUPTI_CONCURRENT_KERNEL,
                                  .name = name,
                                  .correlation = launch,
                                  .stream = 7,
                                  .graph_node = graph_node,
                                  .graph = (uint32_t)(graph_node >> 32),
                                  .start = begin_ns,
                                  .end = end_ns};
    write_work(&record, sizeof(record), record.kind);
}

void fake_cupti_add_copy(uint32_t launch, uint8_t copy_kind, uint64_t bytes, uint64_t graph_node,
                         uint64_t begin_ns, uint64_t end_ns) {
    rondo__cupti_memcpy record = {.kind = RONDO__CUPTI_MEMCPY,
                                  .copy_kind = copy_kind,
                                  .bytes = bytes,
                                  .correlation = launch,
                                  .stream = 7,
                                  .graph_node = graph_node,
                                  .start = begin_ns,
                                  .end = end_ns};
    rondo__cupti_memcpy_peer peer = {.kind = RONDO__CUPTI_MEMCPY_PEER,
                                     .copy_kind = copy_kind,
                                     .bytes = bytes,
                                     .correlation = launch,
                                     .stream = 7,
                                     .graph_node = graph_node,
                                     .start = begin_ns,
                                     .end = end_ns};
    if (g_cupti.options.hides_copy_calls && graph_node == 0) {
        g_cupti.waiting.kind = 0;
    }
    if (copy_kind == RONDO__CUPTI_COPY_PTOP) {
        write_work(&peer, sizeof(peer), peer.kind);
    } else {
        write_work(&record, sizeof(record), record.kind);
    }
}

void fake_cupti_add_fill(uint32_t launch, uint64_t bytes, uint64_t graph_node, uint64_t begin_ns,
                         uint64_t end_ns) {
    rondo__cupti_memset record = {.kind = RONDO__CUPTI_MEMSET,
                                  .bytes = bytes,
                                  .correlation = launch,
                                  .stream = 7,
                                  .graph_node = graph_node,
                                  .start = begin_ns,
                                  .end = end_ns};
    write_work(&record, sizeof(record), record.kind);
}

void fake_cupti_drop(size_t count) {
    g_cupti.dropped_count += count;
}
