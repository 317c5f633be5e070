// doctor/inject/inject_calls.c — see inject_calls.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/cuda_abi.h"
#include "doctor/inject/inject_place.h"
#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_record.h"
#include "doctor/inject/inject_times.h"

enum {
    FUNCTION_SLOTS = 1 << 12,
    PARAMETERS_MAX = 64,
    MEMORY_TYPE = 2,      // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    EXTRA_BUFFER = 1,     // CU_LAUNCH_PARAM_BUFFER_POINTER
    EXTRA_BYTES = 2,      // CU_LAUNCH_PARAM_BUFFER_SIZE
    NOT_INITIALIZED = 3,  // CUDA_ERROR_NOT_INITIALIZED
};

// Two forms of one call.
#define RONDO__DOCTOR_cuCtxSynchronize_v2 RONDO__DOCTOR_cuCtxSynchronize

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ON(what, where, count) \
    (event.object = ADDRESS(what), event.stream = ADDRESS(where), event.bytes = (count))
#define COPY(to, from, count, where) (ON(to, where, count), event.source = ADDRESS(from))

// ---- kernels ----------------------------------------------------------------------------------

// What is known of a function: found once, until a module goes.
typedef struct known_function {
    uint32_t name;
    uint32_t fork_count;       // when it was found
    uint16_t parameter_count;  // 0: not known
    uint16_t bytes[PARAMETERS_MAX];
} known_function;

typedef int (*name_getter)(const char **out_name, void *function);
typedef int (*parameter_getter)(void *function, size_t index, size_t *out_offset,
                                size_t *out_bytes);

// Which words belong to a struct, and which are one byte (a struct without members, or a flag):
// those may be bytes that the program never writes.
static uint64_t find_struct_words(const known_function *known) {
    uint64_t mask = 0;
    size_t word = 0;
    for (uint16_t i = 0; i < known->parameter_count; i++) {
        const size_t bytes = known->bytes[i];
        const bool is_plain = bytes == 2 || bytes == 4 || bytes == 8;
        for (size_t done = 0; done < bytes && word < RONDO__DOCTOR_WORDS_MAX; done += 8) {
            mask |= is_plain ? 0 : (uint64_t)1 << word;
            mask |= bytes == 1 ? (uint64_t)1 << (word + RONDO__DOCTOR_WORDS_MAX) : 0;
            ++word;
        }
    }
    return mask;
}

static void tell_layout(const known_function *known) {
    rondo__doctor_event event = {.call = RONDO__DOCTOR_LAYOUT,
                                 .name = known->name,
                                 .object = find_struct_words(known),
                                 .begin_ns = rondo__inject_now_ns()};
    if (event.object != 0 && event.name != 0) {
        rondo__inject_put(&event, NULL);
    }
}

// A function lies in one of a few places, whose handles share a line of the processor's cache.
enum { WAYS = 8 };
static _Alignas(64) _Atomic(void *) g_handles[FUNCTION_SLOTS];
static known_function g_functions[FUNCTION_SLOTS];
static atomic_flag g_functions_busy = ATOMIC_FLAG_INIT;

static void read_function(known_function *known, void *function) {
    static const char *const getters[2][2] = {{"cuFuncGetName", "cuFuncGetParamInfo"},
                                              {"cuKernelGetName", "cuKernelGetParamInfo"}};
    known->name = 0;
    known->fork_count = rondo__inject_count_forks();
    known->parameter_count = 0;
    for (int i = 0; i < 2 && known->name == 0; i++) {
        name_getter get_name = (name_getter)rondo__inject_find_real(getters[i][0]);
        parameter_getter get_parameter = (parameter_getter)rondo__inject_find_real(getters[i][1]);
        const char *name = NULL;
        if (get_name == NULL || get_name(&name, function) != 0) {
            continue;
        }
        char text[RONDO__DOCTOR_TEXT_MAX];
        rondo__inject_read_symbol(name, text, sizeof(text));
        known->name = rondo__inject_text(text);
        size_t offset = 0;
        size_t bytes = 0;
        while (get_parameter != NULL && known->parameter_count < PARAMETERS_MAX &&
               get_parameter(function, known->parameter_count, &offset, &bytes) == 0) {
            known->bytes[known->parameter_count++] = (uint16_t)bytes;
        }
        tell_layout(known);
        rondo__inject_tell_heap();
    }
}

// If all places are taken one is replaced. The call does not wait for a place that another thread
// is filling.
static const known_function *find_function(void *function) {
    const size_t first =
        (ADDRESS(function) >> 4) * 0x9e3779b97f4a7c15u >> 52 & (FUNCTION_SLOTS - WAYS);
    size_t chosen = first + (ADDRESS(function) >> 8) % WAYS;
    for (size_t i = first + WAYS; i > first; i--) {
        void *found = atomic_load_explicit(&g_handles[i - 1], memory_order_acquire);
        if (found == function && g_functions[i - 1].fork_count == rondo__inject_count_forks()) {
            return &g_functions[i - 1];
        }
        chosen = found == NULL ? i - 1 : chosen;
    }
    if (atomic_flag_test_and_set(&g_functions_busy)) {
        return NULL;
    }
    atomic_store(&g_handles[chosen], NULL);
    read_function(&g_functions[chosen], function);
    atomic_store_explicit(&g_handles[chosen], function, memory_order_release);
    atomic_flag_clear(&g_functions_busy);
    return &g_functions[chosen];
}

// Addresses of functions come again after an unload.
static void forget_functions(void) {
    for (size_t i = 0; i < FUNCTION_SLOTS; i++) {
        atomic_store(&g_handles[i], NULL);
    }
}

static const known_function *read_launch(rondo__doctor_event *event, void *function,
                                         const unsigned *grid, const unsigned *block,
                                         unsigned shared_bytes, const void *stream) {
    const known_function *known = find_function(function);
    event->object = ADDRESS(function);
    event->stream = ADDRESS(stream);
    event->shared_bytes = shared_bytes;
    event->name = known != NULL ? known->name : 0;
    for (int i = 0; i < 3; i++) {
        event->grid[i] = grid[i];
        event->block[i] = block[i];
    }
    return known;
}

static void add_words(rondo__doctor_event *event, const void *bytes, size_t count, uint64_t *room) {
    for (size_t done = 0; done < count && event->word_count < RONDO__DOCTOR_WORDS_MAX; done += 8) {
        const char *from = (const char *)bytes + done;
        uint64_t word = 0;
        if (count - done >= 8) {
            memcpy(&word, from, 8);
        } else if (count - done == 4) {
            memcpy(&word, from, 4);
        } else {
            memcpy(&word, from, count - done);
        }
        room[event->word_count++] = word;
    }
}

// The arguments as words; each parameter begins a word.
static const uint64_t *read_arguments(rondo__doctor_event *event, const known_function *known,
                                      void **parameters, void **extra, uint64_t *room) {
    if (parameters != NULL && known != NULL) {
        size_t words = 0;
        for (uint16_t i = 0; i < known->parameter_count; i++) {
            words += ((size_t)known->bytes[i] + 7) / 8;
            if (parameters[i] != NULL) {
                add_words(event, parameters[i], known->bytes[i], room);
            }
        }
        if (known->parameter_count > 0 && words == event->word_count) {
            event->flags |= RONDO__DOCTOR_WORDS_WHOLE;
        }
    } else if (extra != NULL) {
        const void *buffer = NULL;
        size_t bytes = 0;
        for (size_t i = 0; extra[i] != NULL && i < 8; i += 2) {
            buffer = ADDRESS(extra[i]) == EXTRA_BUFFER ? extra[i + 1] : buffer;
            bytes = ADDRESS(extra[i]) == EXTRA_BYTES ? *(const size_t *)extra[i + 1] : bytes;
        }
        if (buffer != NULL) {
            add_words(event, buffer, bytes, room);
            event->flags |= bytes <= 8 * RONDO__DOCTOR_WORDS_MAX ? RONDO__DOCTOR_WORDS_WHOLE : 0;
        }
    }
    return room;
}

// ---- copies and host functions ----------------------------------------------------------------

// The driver knows no memory that is neither its own nor registered.
static void check_pageable(rondo__doctor_event *event, uint64_t address) {
    static _Atomic(void *) getter;
    void *found = atomic_load(&getter);
    if (found == NULL) {
        found = rondo__inject_find_real("cuPointerGetAttribute");
        atomic_store(&getter, found);
    }
    int (*get)(void *, int, uint64_t) = (int (*)(void *, int, uint64_t))found;
    unsigned type = 0;
    if (get != NULL && get(&type, MEMORY_TYPE, address) != 0) {
        event->flags |= RONDO__DOCTOR_PAGEABLE;
    }
}

typedef struct host_call {
    void (*function)(void *);
    void *data;
} host_call;

static void run_host_call(void *data) {
    const host_call call = *(host_call *)data;
    free(data);
    rondo__inject_enter_callback(true);
    call.function(call.data);
    rondo__inject_enter_callback(false);
}

// Ours runs in its place and says so while it does; not in captures, whose functions run often.
static void (*wrap_host_function(void (*function)(void *), void **in_out_data,
                                 const void *stream))(void *) {
    static _Atomic(void *) getter;
    void *found = atomic_load(&getter);
    if (found == NULL) {
        found = rondo__inject_find_real("cuStreamIsCapturing");
        atomic_store(&getter, found);
    }
    int (*get)(const void *, int *) = (int (*)(const void *, int *))found;
    int is_capturing = 1;
    if (get == NULL || get(stream, &is_capturing) != 0 || is_capturing != 0) {
        return function;
    }
    host_call *call = malloc(sizeof(*call));
    if (call == NULL) {
        return function;
    }
    *call = (host_call){function, *in_out_data};
    *in_out_data = call;
    return run_host_call;
}

// ---- the functions ----------------------------------------------------------------------------

typedef struct injected_row {
    const char *name;
    const char *exported[2];  // the second with a default stream for each thread
    void *wrapper[2];
    int oldest;
    int newest;
} injected_row;

enum {
#define INJECT(name, ...) ROW_##name,
#include "doctor/inject/inject_symbols.h"
#undef INJECT
    ROW_COUNT,
};

static _Atomic(void *) g_reals[ROW_COUNT][2];
static const injected_row g_rows[ROW_COUNT];

static void *get_real(int row, int form) {
    void *real = atomic_load_explicit(&g_reals[row][form], memory_order_acquire);
    if (real == NULL) {
        real = rondo__inject_find_real(g_rows[row].exported[form]);
        atomic_store(&g_reals[row][form], real);
    }
    return real;
}

#define PICK(name, form, parameters, arguments, before, after)                 \
    static int wrap_##name##_##form parameters {                               \
        int(*real) parameters = (int(*) parameters)get_real(ROW_##name, form); \
        if (real == NULL) {                                                    \
            return NOT_INITIALIZED;                                            \
        }                                                                      \
        if (!rondo__inject_is_on()) {                                          \
            return real arguments;                                             \
        }                                                                      \
        uint64_t room[RONDO__DOCTOR_WORDS_MAX];                                \
        const uint64_t *words = room;                                          \
        rondo__doctor_event event;                                             \
        rondo__inject_begin(&event, RONDO__DOCTOR_##name, form);               \
        before;                                                                \
        event.place = rondo__inject_find_place(event.call);                    \
        event.begin_ns = rondo__inject_now_ns();                               \
        int status = real arguments;                                           \
        if (status == 0) {                                                     \
            after;                                                             \
        }                                                                      \
        rondo__inject_end(&event, status, words);                              \
        rondo__inject_follow_times(rondo__inject_wanted_times());              \
        return status;                                                         \
    }
#define INJECT(name, oldest, newest, exported, per_thread, parameters, arguments, before, after) \
    PICK(name, 0, parameters, arguments, before, after)                                          \
    PICK(name, 1, parameters, arguments, before, after)
#include "doctor/inject/inject_symbols.h"
#undef INJECT

// Programs that are linked with libcuda find these first.
#define INJECT(name, oldest, newest, exported, per_thread, parameters, ...) \
    int export_##name parameters __asm__(exported)                          \
        __attribute__((visibility("default"), alias("wrap_" #name "_0")));
#include "doctor/inject/inject_symbols.h"
#undef INJECT

static const injected_row g_rows[ROW_COUNT] = {
#define INJECT(name, oldest, newest, exported, per_thread, ...) \
    {#name,                                                     \
     {exported, per_thread},                                    \
     {(void *)wrap_##name##_0, (void *)wrap_##name##_1},        \
     oldest,                                                    \
     newest},
#include "doctor/inject/inject_symbols.h"
#undef INJECT
};

// The first address of a function is called for all of them.
static void *put_in_front(int row, int form, void *real) {
    void *none = NULL;
    if (real == NULL || real == g_rows[row].wrapper[form]) {
        return real;
    }
    (void)atomic_compare_exchange_strong(&g_reals[row][form], &none, real);
    return g_rows[row].wrapper[form];
}

void *rondo__inject_wrap_exported(const char *exported, void *real) {
    for (int row = 0; row < ROW_COUNT; row++) {
        for (int form = 0; form < 2; form++) {
            const char *candidate = g_rows[row].exported[form];
            if (candidate != NULL && strcmp(candidate, exported) == 0) {
                return put_in_front(row, form, real);
            }
        }
    }
    return real;
}

static bool is_named(const injected_row *row, const char *name, int version) {
    const size_t length = strlen(row->name);
    const bool has_form = length > 3 && strcmp(row->name + length - 3, "_v2") == 0;
    const size_t base = has_form ? length - 3 : length;
    return strlen(name) == base && memcmp(name, row->name, base) == 0 && version >= row->oldest &&
           version <= row->newest;
}

void *rondo__inject_wrap_named(const char *name, int version, int is_per_thread, void *real) {
    for (int row = 0; row < ROW_COUNT; row++) {
        if (is_named(&g_rows[row], name, version)) {
            const bool has_form = is_per_thread && g_rows[row].exported[1] != NULL;
            return put_in_front(row, has_form ? 1 : 0, real);
        }
    }
    return real;
}
