// doctor/inject/inject_times.c — see inject_times.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_times.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cupti/cupti_abi.h"
#include "doctor/inject/inject_place.h"
#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_record.h"

enum { BUFFER_BYTES = 1 << 20 };

typedef struct cupti_table {
#define RONDO__CUPTI_SYMBOL(need, name, arguments) rondo__cupti_result(*name) arguments;
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL
} cupti_table;

typedef struct symbol_row {
    const char *name;
    size_t offset;
    bool is_required;
} symbol_row;

enum { REQUIRED = 1, OPTIONAL = 0 };

static const symbol_row g_symbols[] = {
#define RONDO__CUPTI_SYMBOL(need, name, arguments) {#name, offsetof(cupti_table, name), need},
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL
};

static const int g_kinds[] = {
    RONDO__CUPTI_CONCURRENT_KERNEL,
    RONDO__CUPTI_MEMCPY,
    RONDO__CUPTI_MEMCPY_PEER,
    RONDO__CUPTI_MEMSET,
};
enum { KIND_COUNT = sizeof(g_kinds) / sizeof(g_kinds[0]) };

static cupti_table g_cupti;
static rondo__cupti_subscriber g_subscriber;
static atomic_bool g_is_taking;

// ---- the library ------------------------------------------------------------------------------

static void *open_in(const char *folder, const char *name, int flags) {
    char path[4096];
    const int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof(path) ? dlopen(path, flags) : NULL;
}

// The one that the program has loaded, then RONDO_LIBRARY_PATH's, the loader's, a toolkit's.
static void *open_library(void) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const folders[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                          "/usr/local/cuda/lib64"};
    const char *own = getenv("RONDO_LIBRARY_PATH");
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    }
    for (size_t i = 0; library == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        library = own != NULL ? open_in(own, names[i], RTLD_LAZY | RTLD_LOCAL) : NULL;
        library = library != NULL ? library : dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        for (size_t k = 0; library == NULL && k < sizeof(folders) / sizeof(folders[0]); k++) {
            library = open_in(folders[k], names[i], RTLD_LAZY | RTLD_LOCAL);
        }
    }
    return library;
}

static bool load(void) {
    void *library = open_library();
    if (library == NULL) {
        rondo__inject_note(
            "device times: no libcupti was found; name its folder in "
            "RONDO_LIBRARY_PATH");
        return false;
    }
    for (size_t i = 0; i < sizeof(g_symbols) / sizeof(g_symbols[0]); i++) {
        void *address = dlsym(library, g_symbols[i].name);
        memcpy((char *)&g_cupti + g_symbols[i].offset, &address, sizeof(address));
        if (address == NULL && g_symbols[i].is_required) {
            rondo__inject_note("device times: this libcupti is older than CUDA 12.0");
            return false;
        }
    }
    return true;
}

// ---- records ----------------------------------------------------------------------------------

// Kernels by the address of their name, which CUPTI keeps. Its thread asks, and one that flushes.
static uint32_t name_kernel(const char *name) {
    enum { SLOTS = 1 << 10 };
    static struct {
        const char *name;
        uint32_t text;
        uint32_t fork_count;
    } known[SLOTS];
    char text[RONDO__DOCTOR_TEXT_MAX];
    const size_t slot = ((uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u >> 54;
    if (name == NULL) {
        return 0;
    }
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // taken ahead of the ring's
    (void)pthread_mutex_lock(&lock);
    if (known[slot].name != name || known[slot].fork_count != rondo__inject_count_forks()) {
        rondo__inject_read_symbol(name, text, sizeof(text));
        known[slot].name = name;
        known[slot].fork_count = rondo__inject_count_forks();
        known[slot].text = rondo__inject_text(text);
    }
    const uint32_t number = known[slot].text;
    (void)pthread_mutex_unlock(&lock);
    return number;
}

static void keep_kernel(const rondo__cupti_kernel *kernel) {
    rondo__doctor_event event = {.call = RONDO__DOCTOR_WORK,
                                 .begin_ns = kernel->start,
                                 .duration_ns = kernel->end - kernel->start,
                                 .stream = kernel->stream,
                                 .object = kernel->graph,
                                 .source = kernel->correlation,
                                 .name = name_kernel(kernel->name)};
    rondo__inject_put(&event, NULL);
}

static void keep_transfer(const char *name, uint64_t start, uint64_t end, uint32_t stream,
                          uint64_t bytes, uint32_t graph, uint32_t correlation) {
    rondo__doctor_event event = {.call = RONDO__DOCTOR_WORK,
                                 .begin_ns = start,
                                 .duration_ns = end - start,
                                 .stream = stream,
                                 .object = graph,
                                 .bytes = bytes,
                                 .source = correlation,
                                 .name = rondo__inject_text(name)};
    rondo__inject_put(&event, NULL);
}

static const char *name_copy(uint8_t kind) {
    switch (kind) {
        case RONDO__CUPTI_COPY_HTOD:
            return "[copy to the device]";
        case RONDO__CUPTI_COPY_DTOH:
            return "[copy to the host]";
        default:
            return "[copy]";
    }
}

static void keep_record(const rondo__cupti_record *record) {
    const void *body = record;
    const rondo__cupti_kernel *kernel = body;
    const rondo__cupti_memcpy *copy = body;
    const rondo__cupti_memcpy_peer *peer = body;
    const rondo__cupti_memset *fill = body;
    switch (record->kind) {
        case RONDO__CUPTI_KERNEL:
        case RONDO__CUPTI_CONCURRENT_KERNEL:
            if (kernel->start != 0 && kernel->end >= kernel->start) {
                keep_kernel(kernel);
            }
            break;
        case RONDO__CUPTI_MEMCPY:
            if (copy->start != 0 && copy->end >= copy->start) {
                keep_transfer(name_copy(copy->copy_kind), copy->start, copy->end, copy->stream,
                              copy->bytes, copy->graph, copy->correlation);
            }
            break;
        case RONDO__CUPTI_MEMCPY_PEER:
            if (peer->start != 0 && peer->end >= peer->start) {
                keep_transfer("[copy between devices]", peer->start, peer->end, peer->stream,
                              peer->bytes, peer->graph, peer->correlation);
            }
            break;
        case RONDO__CUPTI_MEMSET:
            if (fill->start != 0 && fill->end >= fill->start) {
                keep_transfer("[fill]", fill->start, fill->end, fill->stream, fill->bytes,
                              fill->graph, fill->correlation);
            }
            break;
        default:
            break;
    }
}

static void request_buffer(uint8_t **out_buffer, size_t *out_bytes, size_t *out_count) {
    *out_buffer = malloc(BUFFER_BYTES);
    *out_bytes = *out_buffer != NULL ? BUFFER_BYTES : 0;
    *out_count = 0;
}

static void complete_buffer(rondo__cu_context context, uint32_t stream, uint8_t *buffer,
                            size_t bytes, size_t valid_bytes) {
    (void)context;
    (void)stream;
    (void)bytes;
    rondo__cupti_record *record = NULL;
    while (valid_bytes > 0 && g_cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) ==
                                  RONDO__CUPTI_SUCCESS) {
        keep_record(record);
    }
    free(buffer);
}

// ---- the window -------------------------------------------------------------------------------

static void ignore_callback(void *user_data, int domain, uint32_t id, const void *data) {
    (void)user_data;
    (void)domain;
    (void)id;
    (void)data;
}

static bool check(rondo__cupti_result result, const char *call) {
    char text[256];
    if (result == RONDO__CUPTI_SUCCESS) {
        return true;
    }
    const char *cause = "";
    switch (result) {
        case RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS:
            cause = ": another tool has taken CUPTI, and keeps it";
            break;
        case RONDO__CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
            cause = ": the driver lets only administrators profile (NVIDIA's ERR_NVGPUCTRPERM)";
            break;
        case RONDO__CUPTI_ERROR_VIRTUALIZED_DEVICE:
            cause = ": this virtual GPU allows no profiles";
            break;
        default:
            break;
    }
    (void)snprintf(text, sizeof(text), "device times: %s failed (%d)%s", call, result, cause);
    rondo__inject_note(text);
    return false;
}

// By how much works can share the device, the analysis must know.
static void tell_device(void) {
    enum { MULTIPROCESSORS = 16, THREADS = 39, SHARED = 81, BLOCKS = 106 };  // CU_DEVICE_ATTRIBUTE_
    static const int attributes[] = {MULTIPROCESSORS, THREADS, BLOCKS, SHARED};
    int values[4] = {0};
    uint64_t uuid[2] = {0};
    int device = 0;
    int (*get_device)(int *) = (int (*)(int *))rondo__inject_find_real("cuCtxGetDevice");
    int (*get)(int *, int, int) =
        (int (*)(int *, int, int))rondo__inject_find_real("cuDeviceGetAttribute");
    bool is_known = get_device != NULL && get != NULL && get_device(&device) == 0;
    for (int i = 0; is_known && i < 4; i++) {
        is_known = get(&values[i], attributes[i], device) == 0;
    }
    int (*get_uuid)(void *, int) = (int (*)(void *, int))rondo__inject_find_real("cuDeviceGetUuid");
    if (is_known && get_uuid != NULL) {
        (void)get_uuid(uuid, device);
    }
    rondo__doctor_event event = {
        .call = RONDO__DOCTOR_DEVICE,
        .grid = {(uint32_t)values[0], (uint32_t)values[1], (uint32_t)values[2]},
        .bytes = (uint64_t)values[3],
        .stream = uuid[0],
        .object = uuid[1],
        .begin_ns = rondo__inject_now_ns()};
    if (is_known) {
        rondo__inject_put(&event, NULL);
    }
}

// To a child of fork belongs nothing of its parent's CUPTI.
static void forget(void) {
    atomic_store(&g_is_taking, false);
    atomic_store(&rondo__inject_common.followed, 0);
}

static void open_window(void) {
    static atomic_flag has_handler = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&has_handler)) {
        (void)pthread_atfork(NULL, NULL, forget);
        tell_device();
    }
    if (!load() ||
        !check(g_cupti.cuptiSubscribe(&g_subscriber, ignore_callback, NULL), "cuptiSubscribe")) {
        return;
    }
    bool is_open = check(g_cupti.cuptiActivityRegisterTimestampCallback(rondo__inject_now_ns),
                         "cuptiActivityRegisterTimestampCallback") &&
                   check(g_cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer),
                         "cuptiActivityRegisterCallbacks");
    for (size_t i = 0; is_open && i < KIND_COUNT; i++) {
        is_open = check(g_cupti.cuptiActivityEnable(g_kinds[i]), "cuptiActivityEnable");
    }
    if (!is_open) {
        (void)g_cupti.cuptiUnsubscribe(g_subscriber);
        g_subscriber = NULL;
    }
    atomic_store(&g_is_taking, is_open);
    rondo__inject_set_timed(is_open);
}

static void shut_window(void) {
    if (!atomic_exchange(&g_is_taking, false)) {
        return;
    }
    rondo__inject_tell_heap();
    rondo__inject_set_timed(false);
    (void)g_cupti.cuptiActivityFlushAll(0);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        (void)g_cupti.cuptiActivityDisable(g_kinds[i]);
    }
    (void)g_cupti.cuptiActivityFlushAll(RONDO__CUPTI_FLUSH_FORCED);
    (void)g_cupti.cuptiUnsubscribe(g_subscriber);
    g_subscriber = NULL;
}

void rondo__inject_follow_times(uint32_t wanted) {
    atomic_uint *place = &rondo__inject_common.followed;
    unsigned followed = atomic_load_explicit(place, memory_order_relaxed);
    if (wanted <= followed || !atomic_compare_exchange_strong(place, &followed, wanted)) {
        return;
    }
    const int saved = errno;
    if (wanted % 2 == 1) {
        open_window();
    } else {
        shut_window();
    }
    errno = saved;
}
