// profile/cupti_session.c — see cupti_session.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/cupti_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "profile/chunk.h"

enum {
    BUFFER_BYTES = 1 << 20,  // CUPTI writes records of some 200 bytes into it
    SPARE_COUNT = 8,         // empty buffers that are kept
    WORK_COUNT_MAX = 1 << 21,
    NAME_SLOTS = 1 << 10,
    SPAN_DEPTH = 64,  // of a thread; what is deeper belongs to the span around it
};

// Our ids are pushed under this kind, so that another's do not mix with them.
enum { EXTERNAL_KIND = RONDO__CUPTI_EXTERNAL_CUSTOM };

typedef struct external {
    uint32_t correlation;
    uint64_t span;
} external;

typedef struct pending_work {
    rondo__cupti_work work;
    uint32_t correlation;
} pending_work;

// A kernel's name: CUPTI's and our copy, which stays when the module is unloaded.
typedef struct known_name {
    const char *foreign;
    const char *copy;
} known_name;

static struct {
    pthread_mutex_t lock;  // a leaf; held by CUPTI's callbacks, too
    bool is_active;
    _Atomic(const rondo__cupti_api *)
        api;  // of the latest session; stays, as late ends of spans come
    rondo__cupti_subscriber subscriber;
    uint8_t *spares[SPARE_COUNT];
    size_t spare_count;
    rondo__profile_list works;
    rondo__profile_list externals;
    rondo__profile_list texts;
    known_name names[NAME_SLOTS];
    uint64_t dropped_count;
    rondo__profile_list flushed;  // used by the thread that starts and stops
} g_session = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_uint_fast64_t g_number;  // of the latest session

// Spans that this thread has pushed and not popped.
static _Thread_local struct {
    uint64_t session;
    size_t depth;
    uint64_t spans[SPAN_DEPTH];
} t_stack;

// ---- spans ------------------------------------------------------------------------------------

// Removes ids that a former session left on CUPTI's stack of this thread.
static void begin_stack(const rondo__cupti_api *api, uint64_t session) {
    uint64_t popped = 0;
    for (size_t i = 0; i < t_stack.depth; i++) {
        (void)api->cuptiActivityPopExternalCorrelationId(EXTERNAL_KIND, &popped);
    }
    t_stack.session = session;
    t_stack.depth = 0;
}

void rondo__cupti_session_push(uint64_t span) {
    const rondo__cupti_api *api = atomic_load(&g_session.api);
    const uint64_t session = atomic_load_explicit(&g_number, memory_order_relaxed);
    if (t_stack.session != session) {
        begin_stack(api, session);
    }
    if (t_stack.depth < SPAN_DEPTH &&
        api->cuptiActivityPushExternalCorrelationId(EXTERNAL_KIND, span) == RONDO__CUPTI_SUCCESS) {
        t_stack.spans[t_stack.depth++] = span;
    }
}

void rondo__cupti_session_pop(uint64_t span) {
    const rondo__cupti_api *api = atomic_load(&g_session.api);
    size_t place = t_stack.depth;
    uint64_t popped = 0;
    if (t_stack.session != atomic_load_explicit(&g_number, memory_order_relaxed)) {
        return;
    }
    while (place > 0 && t_stack.spans[place - 1] != span) {
        --place;
    }
    if (place == 0) {
        return;
    }
    for (size_t i = place - 1; i < t_stack.depth; i++) {
        (void)api->cuptiActivityPopExternalCorrelationId(EXTERNAL_KIND, &popped);
    }
    // Those that began inside it and go on.
    size_t depth = place - 1;
    for (size_t i = place; i < t_stack.depth; i++) {
        if (api->cuptiActivityPushExternalCorrelationId(EXTERNAL_KIND, t_stack.spans[i]) ==
            RONDO__CUPTI_SUCCESS) {
            t_stack.spans[depth++] = t_stack.spans[i];
        }
    }
    t_stack.depth = depth;
}

// ---- records ----------------------------------------------------------------------------------

static const char *copy_name(const char *foreign) {
    if (foreign == NULL) {
        return "";
    }
    known_name *known = &g_session.names[((uintptr_t)foreign >> 4) % NAME_SLOTS];
    if (known->foreign != foreign || known->copy == NULL || strcmp(known->copy, foreign) != 0) {
        known->foreign = foreign;
        known->copy = rondo__profile_list_add_text(&g_session.texts, foreign);
    }
    return known->copy != NULL ? known->copy : "";
}

static rondo__way find_way(uint8_t kind) {
    switch (kind) {
        case RONDO__CUPTI_COPY_HTOD:
            return RONDO__WAY_H2D;
        case RONDO__CUPTI_COPY_DTOH:
            return RONDO__WAY_D2H;
        case RONDO__CUPTI_COPY_DTOD:
        case RONDO__CUPTI_COPY_PTOP:
            return RONDO__WAY_D2D;
        case RONDO__CUPTI_COPY_HTOH:
            return RONDO__WAY_H2H;
        default:
            return RONDO__WAY_NONE;
    }
}

static bool read_kernel(const rondo__cupti_kernel *from, pending_work *to) {
    to->correlation = from->correlation;
    to->work = (rondo__cupti_work){
        .kind = RONDO__WORK_KERNEL,
        .name = copy_name(from->name),
        .device = (int32_t)from->device,
        .stream = from->stream,
        .begin_ns = from->start,
        .end_ns = from->end,
        .graph_node = from->graph_node,
        .graph = from->graph,
    };
    return true;
}

// Copies within a device, between two, and fills look alike but for the places of their fields.
#define READ_TRANSFER(to, from, what, direction)                         \
    ((to)->correlation = (from)->correlation,                            \
     (to)->work = (rondo__cupti_work){.kind = (what),                    \
                                      .way = (direction),                \
                                      .name = "",                        \
                                      .device = (int32_t)(from)->device, \
                                      .stream = (from)->stream,          \
                                      .bytes = (from)->bytes,            \
                                      .begin_ns = (from)->start,         \
                                      .end_ns = (from)->end,             \
                                      .graph_node = (from)->graph_node,  \
                                      .graph = (from)->graph},           \
     true)

// False: the record is of no device's work.
static bool read_work(const rondo__cupti_record *record, pending_work *out) {
    const void *body = record;
    const rondo__cupti_memcpy *copy = body;
    const rondo__cupti_memcpy_peer *peer = body;
    const rondo__cupti_memset *fill = body;
    switch (record->kind) {
        case RONDO__CUPTI_KERNEL:
        case RONDO__CUPTI_CONCURRENT_KERNEL:
            return read_kernel(body, out);
        case RONDO__CUPTI_MEMCPY:
            return READ_TRANSFER(out, copy, RONDO__WORK_COPY, find_way(copy->copy_kind));
        case RONDO__CUPTI_MEMCPY_PEER:
            return READ_TRANSFER(out, peer, RONDO__WORK_COPY, RONDO__WAY_D2D);
        case RONDO__CUPTI_MEMSET:
            return READ_TRANSFER(out, fill, RONDO__WORK_FILL, RONDO__WAY_NONE);
        default:
            return false;
    }
}

// The caller holds the lock.
static void keep_record(const rondo__cupti_record *record) {
    if (record->kind == RONDO__CUPTI_EXTERNAL_CORRELATION) {
        const rondo__cupti_external *from = (const void *)record;
        if (from->external_kind != EXTERNAL_KIND) {
            return;
        }
        external *to = rondo__profile_list_add(&g_session.externals, sizeof(*to));
        if (to != NULL) {
            *to = (external){.correlation = from->correlation, .span = from->id};
        } else {
            ++g_session.dropped_count;
        }
        return;
    }
    pending_work work;
    if (!read_work(record, &work)) {
        return;
    }
    pending_work *to = NULL;
    if (work.work.end_ns >= work.work.begin_ns && g_session.works.count < WORK_COUNT_MAX) {
        to = rondo__profile_list_add(&g_session.works, sizeof(*to));
    }
    if (to == NULL) {
        ++g_session.dropped_count;
        return;
    }
    *to = work;
}

// CUPTI wants room. Without any it drops records and counts them.
static void request_buffer(uint8_t **out_buffer, size_t *out_bytes, size_t *out_count) {
    uint8_t *buffer = NULL;
    pthread_mutex_lock(&g_session.lock);
    if (g_session.spare_count > 0) {
        buffer = g_session.spares[--g_session.spare_count];
    }
    pthread_mutex_unlock(&g_session.lock);
    if (buffer == NULL) {
        buffer = rondo__profile_take(BUFFER_BYTES);
    }
    *out_buffer = buffer;
    *out_bytes = buffer != NULL ? BUFFER_BYTES : 0;
    *out_count = 0;
}

// A buffer comes back, perhaps after the session has ended.
static void complete_buffer(rondo__cu_context context, uint32_t stream, uint8_t *buffer,
                            size_t bytes, size_t valid_bytes) {
    (void)context;
    (void)stream;
    (void)bytes;
    pthread_mutex_lock(&g_session.lock);
    rondo__cupti_record *record = NULL;
    while (g_session.is_active && valid_bytes > 0) {
        rondo__cupti_result result =
            atomic_load(&g_session.api)->cuptiActivityGetNextRecord(buffer, valid_bytes, &record);
        if (result != RONDO__CUPTI_SUCCESS) {
            g_session.dropped_count += result != RONDO__CUPTI_ERROR_MAX_LIMIT_REACHED ? 1 : 0;
            break;
        }
        keep_record(record);
    }
    if (g_session.is_active && g_session.spare_count < SPARE_COUNT) {
        g_session.spares[g_session.spare_count++] = buffer;
        buffer = NULL;
    }
    pthread_mutex_unlock(&g_session.lock);
    rondo__profile_give_back(buffer);
}

// ---- start and stop ---------------------------------------------------------------------------

static rondo_status fail(const rondo__cupti_api *api, rondo__cupti_result result,
                         const char *call) {
    const char *name = NULL;
    if (api->cuptiGetResultString(result, &name) != RONDO__CUPTI_SUCCESS || name == NULL) {
        name = "";
    }
    const char *advice = "the driver and CUPTI may not be of versions that go together";
    switch (result) {
        case RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS:
            advice =
                "another tool (Nsight, a debugger, PyTorch's profiler) has taken CUPTI; end it";
            break;
        case RONDO__CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
            advice = "the driver lets only administrators profile; see NVIDIA's ERR_NVGPUCTRPERM";
            break;
        case RONDO__CUPTI_ERROR_VIRTUALIZED_DEVICE:
            advice = "this virtual GPU allows no profiles";
            break;
        default:
            break;
    }
    return RONDO_FAIL_DRIVER(RONDO_STATUS_UNAVAILABLE, result, name, call,
                             "CUPTI does not start: %s; timing events still work "
                             "(RONDO_PROFILE_SOURCE_EVENTS)",
                             advice);
}

static const int g_kinds[] = {
    RONDO__CUPTI_EXTERNAL_CORRELATION,
    RONDO__CUPTI_CONCURRENT_KERNEL,
    RONDO__CUPTI_MEMCPY,
    RONDO__CUPTI_MEMCPY_PEER,
    RONDO__CUPTI_MEMSET,
    // Libraries such as cuBLASLt launch through the runtime. All of its calls: chosen one by one,
    // CUPTI 13.0 accepts them and tells nothing (seen with cudaLaunchKernelExC).
    RONDO__CUPTI_RUNTIME,
};
enum { KIND_COUNT = sizeof(g_kinds) / sizeof(g_kinds[0]) };

#define CALL_NUMBER(number, name) (number),
static const uint32_t g_driver_calls[] = {RONDO__CUPTI_DRIVER_CALL_MAP(CALL_NUMBER)};
enum { DRIVER_CALL_COUNT = sizeof(g_driver_calls) / sizeof(g_driver_calls[0]) };

// Records of calls, which bring the records of spans with them. Of the driver's those that launch
// something, or all where CUPTI cannot choose. The first failure ends it, unless they are switched
// off.
static rondo__cupti_result enable_driver_calls(const rondo__cupti_api *api, bool is_enabled) {
    if (api->cuptiActivityEnableDriverApi == NULL) {
        return is_enabled ? api->cuptiActivityEnable(RONDO__CUPTI_DRIVER)
                          : api->cuptiActivityDisable(RONDO__CUPTI_DRIVER);
    }
    rondo__cupti_result first = RONDO__CUPTI_SUCCESS;
    for (size_t i = 0; i < DRIVER_CALL_COUNT && (!is_enabled || first == RONDO__CUPTI_SUCCESS);
         i++) {
        rondo__cupti_result result =
            api->cuptiActivityEnableDriverApi(g_driver_calls[i], is_enabled ? 1 : 0);
        first = first == RONDO__CUPTI_SUCCESS ? result : first;
    }
    return first;
}

static void log_failure(const rondo__cupti_api *api, rondo__cupti_result result, const char *call) {
    const char *name = NULL;
    if (result != RONDO__CUPTI_SUCCESS) {
        (void)api->cuptiGetResultString(result, &name);
        RONDO_LOG_WARN_F("%s failed: %s (%d)", call, name != NULL ? name : "", result);
    }
}

static void disable(const rondo__cupti_api *api, size_t kind_count) {
    log_failure(api, enable_driver_calls(api, false), "cuptiActivityEnableDriverApi");
    for (size_t i = kind_count; i > 0; i--) {
        log_failure(api, api->cuptiActivityDisable(g_kinds[i - 1]), "cuptiActivityDisable");
    }
}

static rondo_status enable_all(const rondo__cupti_api *api) {
    size_t kind_count = 0;
    rondo__cupti_result result = RONDO__CUPTI_SUCCESS;
    const char *call = "cuptiActivityEnable";
    while (kind_count < KIND_COUNT && result == RONDO__CUPTI_SUCCESS) {
        result = api->cuptiActivityEnable(g_kinds[kind_count]);
        kind_count += result == RONDO__CUPTI_SUCCESS ? 1 : 0;
    }
    if (result == RONDO__CUPTI_SUCCESS) {
        call = "cuptiActivityEnableDriverApi";
        result = enable_driver_calls(api, true);
    }
    if (result == RONDO__CUPTI_SUCCESS) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = fail(api, result, call);
    disable(api, kind_count);
    return status;
}

// The subscription is what keeps two tools apart; nothing is called back.
static void ignore_callback(void *user_data, int domain, uint32_t id, const void *data) {
    (void)user_data;
    (void)domain;
    (void)id;
    (void)data;
}

static void set_active(rondo__cupti_subscriber subscriber) {
    pthread_mutex_lock(&g_session.lock);
    g_session.subscriber = subscriber;
    g_session.is_active = subscriber != NULL;
    pthread_mutex_unlock(&g_session.lock);
}

rondo_status rondo__cupti_session_start(const rondo__cupti_api *api) {
    rondo__cupti_subscriber subscriber = NULL;
    rondo__cupti_result result = api->cuptiSubscribe(&subscriber, ignore_callback, NULL);
    if (result != RONDO__CUPTI_SUCCESS) {
        return fail(api, result, "cuptiSubscribe");
    }
    rondo_status status = RONDO_STATUS_OK;
    result = api->cuptiActivityRegisterTimestampCallback(rondo__clock_now_ns);
    if (result != RONDO__CUPTI_SUCCESS) {
        status = fail(api, result, "cuptiActivityRegisterTimestampCallback");
        goto unsubscribe;
    }
    result = api->cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
    if (result != RONDO__CUPTI_SUCCESS) {
        status = fail(api, result, "cuptiActivityRegisterCallbacks");
        goto unsubscribe;
    }
    g_session.dropped_count = 0;
    atomic_store(&g_session.api, api);
    atomic_fetch_add(&g_number, 1);
    set_active(subscriber);
    status = enable_all(api);
    if (status == RONDO_STATUS_OK) {
        return status;
    }
    set_active(NULL);
unsubscribe:
    log_failure(api, api->cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
    return status;
}

// ---- joining ----------------------------------------------------------------------------------

static int compare_externals(const void *a, const void *b) {
    const external *x = a;
    const external *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

// All of them in one array, by correlation; NULL where there are none, or no memory.
static external *sort_externals(void) {
    const size_t count = g_session.externals.count;
    external *sorted = count > 0 ? rondo__profile_take(count * sizeof(*sorted)) : NULL;
    size_t n = 0;
    for (const rondo__profile_chunk *chunk = g_session.externals.first;
         sorted != NULL && chunk != NULL; chunk = chunk->next) {
        memcpy(sorted + n, chunk->bytes, chunk->used);
        n += chunk->used / sizeof(*sorted);
    }
    if (sorted != NULL) {
        qsort(sorted, n, sizeof(*sorted), compare_externals);
    }
    return sorted;
}

static uint64_t find_span(const external *sorted, size_t count, uint32_t correlation) {
    const external key = {.correlation = correlation};
    const external *found =
        sorted != NULL ? bsearch(&key, sorted, count, sizeof(key), compare_externals) : NULL;
    return found != NULL ? found->span : 0;
}

// Work of an executable whose replay is known.
typedef struct launched {
    uint32_t graph;
    uint64_t begin_ns;
    uint64_t span;
} launched;

static int compare_launched(const void *a, const void *b) {
    const launched *x = a;
    const launched *y = b;
    return x->graph != y->graph ? (x->graph > y->graph) - (x->graph < y->graph)
                                : (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

// The replay whose work began last before; of the executable's first work where none did.
static uint64_t find_replay(const launched *sorted, size_t count, const rondo__cupti_work *work) {
    size_t low = 0;
    size_t high = count;
    const launched key = {.graph = work->graph, .begin_ns = work->begin_ns};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_launched(&sorted[middle], &key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const bool has_before = low > 0 && sorted[low - 1].graph == work->graph;
    const size_t at = has_before ? low - 1 : low;
    return at < count && sorted[at].graph == work->graph ? sorted[at].span : 0;
}

static bool is_orphan(const rondo__cupti_work *work) {
    return work->graph_node != 0 && work->span == 0;
}

// Counts the flushed works that are wanted, and lists them, unless out is NULL.
static size_t count_flushed(bool (*is_wanted)(const rondo__cupti_work *work), launched *out) {
    size_t count = 0;
    for (const rondo__profile_chunk *chunk = g_session.flushed.first; chunk != NULL;
         chunk = chunk->next) {
        const pending_work *pending = (const void *)chunk->bytes;
        for (size_t i = 0; i < chunk->used / sizeof(*pending); i++) {
            const rondo__cupti_work *work = &pending[i].work;
            if (!is_wanted(work)) {
                continue;
            }
            if (out != NULL) {
                out[count] = (launched){work->graph, work->begin_ns, work->span};
            }
            ++count;
        }
    }
    return count;
}

static bool is_launched(const rondo__cupti_work *work) {
    return work->graph_node != 0 && work->span != 0;
}

// Work in bodies of conditional nodes comes without the call that launched it (driver 580).
static void adopt_orphans(void) {
    const size_t count = count_flushed(is_orphan, NULL) > 0 ? count_flushed(is_launched, NULL) : 0;
    launched *sorted = count > 0 ? rondo__profile_take(count * sizeof(*sorted)) : NULL;
    if (sorted == NULL) {
        return;
    }
    (void)count_flushed(is_launched, sorted);
    qsort(sorted, count, sizeof(*sorted), compare_launched);
    for (rondo__profile_chunk *chunk = g_session.flushed.first; chunk != NULL;
         chunk = chunk->next) {
        pending_work *pending = (void *)chunk->bytes;
        for (size_t i = 0; i < chunk->used / sizeof(*pending); i++) {
            if (is_orphan(&pending[i].work)) {
                pending[i].work.span = find_replay(sorted, count, &pending[i].work);
            }
        }
    }
    rondo__profile_give_back(sorted);
}

void rondo__cupti_session_flush(void) {
    const rondo__cupti_api *api = atomic_load(&g_session.api);
    const rondo__cupti_result result = api->cuptiActivityFlushAll(0);
    size_t dropped_count = 0;
    log_failure(api, result, "cuptiActivityFlushAll");
    log_failure(api, api->cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped_count),
                "cuptiActivityGetNumDroppedRecords");
    rondo__profile_chunks_free(g_session.flushed.first);
    pthread_mutex_lock(&g_session.lock);
    g_session.dropped_count += dropped_count + (result != RONDO__CUPTI_SUCCESS ? 1 : 0);
    g_session.flushed = g_session.works;
    g_session.works = (rondo__profile_list){0};
    external *sorted = sort_externals();
    const size_t count = g_session.externals.count;
    pthread_mutex_unlock(&g_session.lock);
    for (rondo__profile_chunk *chunk = g_session.flushed.first; chunk != NULL;
         chunk = chunk->next) {
        pending_work *pending = (void *)chunk->bytes;
        for (size_t i = 0; i < chunk->used / sizeof(*pending); i++) {
            pending[i].work.span = find_span(sorted, count, pending[i].correlation);
        }
    }
    rondo__profile_give_back(sorted);
    adopt_orphans();
}

void rondo__cupti_session_visit(void (*visit)(void *user_data, const rondo__cupti_work *work),
                                void *user_data) {
    for (const rondo__profile_chunk *chunk = g_session.flushed.first; chunk != NULL;
         chunk = chunk->next) {
        const pending_work *pending = (const void *)chunk->bytes;
        for (size_t i = 0; i < chunk->used / sizeof(*pending); i++) {
            visit(user_data, &pending[i].work);
        }
    }
}

void rondo__cupti_session_stop(void) {
    const rondo__cupti_api *api = atomic_load(&g_session.api);
    disable(api, KIND_COUNT);
    // Records on their way still arrive now, and are dropped.
    log_failure(api, api->cuptiActivityFlushAll(RONDO__CUPTI_FLUSH_FORCED),
                "cuptiActivityFlushAll");
    rondo__cupti_subscriber subscriber = g_session.subscriber;
    set_active(NULL);
    log_failure(api, api->cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
    pthread_mutex_lock(&g_session.lock);
    rondo__profile_list *lists[] = {&g_session.works, &g_session.flushed, &g_session.externals,
                                    &g_session.texts};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        rondo__profile_chunks_free(lists[i]->first);
        *lists[i] = (rondo__profile_list){0};
    }
    memset(g_session.names, 0, sizeof(g_session.names));
    while (g_session.spare_count > 0) {
        rondo__profile_give_back(g_session.spares[--g_session.spare_count]);
    }
    pthread_mutex_unlock(&g_session.lock);
}

void rondo__cupti_session_drop(void) {
    pthread_mutex_lock(&g_session.lock);
    ++g_session.dropped_count;
    pthread_mutex_unlock(&g_session.lock);
}

uint64_t rondo__cupti_session_count_dropped(void) {
    pthread_mutex_lock(&g_session.lock);
    const uint64_t count = g_session.dropped_count;
    pthread_mutex_unlock(&g_session.lock);
    return count;
}
