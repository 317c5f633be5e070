// doctor/inject/inject_calls.c — see inject_calls.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/inject/inject_launch.h"
#include "doctor/inject/inject_place.h"
#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_record.h"
#include "doctor/inject/inject_times.h"

enum {
    MEMORY_TYPE = 2,      // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    NOT_INITIALIZED = 3,  // CUDA_ERROR_NOT_INITIALIZED
};

// Two forms of one call.
#define RONDO__DOCTOR_cuCtxSynchronize_v2 RONDO__DOCTOR_cuCtxSynchronize

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ON(what, where, count) \
    (event.object = ADDRESS(what), event.stream = ADDRESS(where), event.bytes = (count))
#define COPY(to, from, count, where) (ON(to, where, count), event.source = ADDRESS(from))

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

#define PICK(name, form, parameters, arguments, before, after)                            \
    static int wrap_##name##_##form parameters {                                          \
        int(*real) parameters = (int(*) parameters)get_real(ROW_##name, form);            \
        if (real == NULL) {                                                               \
            return NOT_INITIALIZED;                                                       \
        }                                                                                 \
        if (!rondo__inject_is_on()) {                                                     \
            return real arguments;                                                        \
        }                                                                                 \
        rondo__doctor_event event;                                                        \
        const uint64_t entered = rondo__inject_begin(&event, RONDO__DOCTOR_##name, form); \
        before;                                                                           \
        event.place = rondo__inject_find_place(event.call);                               \
        event.begin_ns = rondo__inject_now_ns();                                          \
        int status = real arguments;                                                      \
        if (status == 0) {                                                                \
            after;                                                                        \
        }                                                                                 \
        rondo__inject_follow(rondo__inject_end(&event, status, entered));                 \
        return status;                                                                    \
    }
#define PICK_LAUNCH(name, form, parameters, arguments, shape, values, extra_values) \
    static int wrap_##name##_##form parameters {                                    \
        int(*real) parameters = (int(*) parameters)get_real(ROW_##name, form);      \
        if (real == NULL) {                                                         \
            return NOT_INITIALIZED;                                                 \
        }                                                                           \
        if (!rondo__inject_is_on()) {                                               \
            return real arguments;                                                  \
        }                                                                           \
        rondo__inject_launch launch;                                                \
        launch.config = (shape);                                                    \
        launch.function = function;                                                 \
        launch.call = RONDO__DOCTOR_##name;                                         \
        rondo__inject_begin_launch(&launch, form, values, extra_values);            \
        int status = real arguments;                                                \
        rondo__inject_end_launch(&launch, status);                                  \
        return status;                                                              \
    }
#define INJECT(name, oldest, newest, exported, per_thread, parameters, arguments, before, after) \
    PICK(name, 0, parameters, arguments, before, after)                                          \
    PICK(name, 1, parameters, arguments, before, after)
#define INJECT_LAUNCH(name, oldest, newest, exported, per_thread, parameters, arguments, shape, \
                      values, extra_values)                                                     \
    PICK_LAUNCH(name, 0, parameters, arguments, shape, values, extra_values)                    \
    PICK_LAUNCH(name, 1, parameters, arguments, shape, values, extra_values)
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
