// doctor/inject/inject_ranges.c — the ranges of NVTX, by which a program names its steps.
//
// The header-only library of the program loads what NVTX_INJECTION64_PATH names, and asks it for
// its functions.
//
// Source: NVTX 3.1, nvtxTypes.h (numbers of modules and calls), nvToolsExt.h (attributes).
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/inject/inject_record.h"

enum {
    CALLBACKS_TABLE = 1,
    CORE = 1,
    CORE_START_EX = 4,
    CORE_START = 5,
    CORE_END = 7,
    CORE_PUSH_EX = 8,
    CORE_PUSH = 9,
    CORE_POP = 11,
    DOMAINS = 5,
    DOMAIN_START_EX = 2,
    DOMAIN_END = 3,
    DOMAIN_PUSH_EX = 4,
    DOMAIN_POP = 5,
    DOMAIN_REGISTER = 10,
    MESSAGE_TEXT = 1,
    MESSAGE_REGISTERED = 3,
};

typedef void (*any_function)(void);

typedef struct callbacks_table {
    size_t struct_size;
    int (*get_functions)(int module, any_function ***out_table, unsigned *out_count);
} callbacks_table;

typedef struct attributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
} attributes;

static _Atomic uint64_t g_range_count;
static _Thread_local int t_depth;

static void put_range(uint16_t call, uint32_t name, uint64_t number) {
    if (!rondo__inject_is_on()) {
        return;
    }
    rondo__doctor_event event = {.call = call,
                                 .name = name,
                                 .object = number,
                                 .thread = (uint32_t)syscall(SYS_gettid),
                                 .begin_ns = rondo__inject_now_ns()};
    rondo__inject_put(&event, NULL);
}

static uint32_t name_text(const char *text) {
    return rondo__inject_is_on() ? rondo__inject_text(text) : 0;
}

// Of registered strings the handle is a copy.
static uint32_t name_message(const attributes *what) {
    if (what == NULL || what->size < sizeof(*what)) {
        return 0;
    }
    const bool is_text =
        what->message_type == MESSAGE_TEXT || what->message_type == MESSAGE_REGISTERED;
    return is_text ? name_text(what->message) : 0;
}

static int push_named(uint32_t name) {
    put_range(RONDO__DOCTOR_RANGE_PUSH, name, 0);
    return t_depth++;
}

static uint64_t start_named(uint32_t name) {
    const uint64_t number = atomic_fetch_add(&g_range_count, 1) + 1;
    put_range(RONDO__DOCTOR_RANGE_PUSH, name, number);
    return number;
}

static int push(const char *text) {
    return push_named(name_text(text));
}

static int push_ex(const attributes *what) {
    return push_named(name_message(what));
}

static int pop(void) {
    put_range(RONDO__DOCTOR_RANGE_POP, 0, 0);
    t_depth -= t_depth > 0 ? 1 : 0;
    return t_depth;
}

static uint64_t start(const char *text) {
    return start_named(name_text(text));
}

static uint64_t start_ex(const attributes *what) {
    return start_named(name_message(what));
}

static void end(uint64_t number) {
    put_range(RONDO__DOCTOR_RANGE_POP, 0, number);
}

static int push_in_domain(void *domain, const attributes *what) {
    (void)domain;
    return push_ex(what);
}

static int pop_in_domain(void *domain) {
    (void)domain;
    return pop();
}

static uint64_t start_in_domain(void *domain, const attributes *what) {
    (void)domain;
    return start_ex(what);
}

static void end_in_domain(void *domain, uint64_t number) {
    (void)domain;
    end(number);
}

static void *register_string(void *domain, const char *text) {
    (void)domain;
    return text != NULL ? strdup(text) : NULL;
}

typedef struct function_row {
    int module;
    unsigned number;
    any_function function;
} function_row;

static const function_row g_functions[] = {
    {CORE, CORE_START_EX, (any_function)start_ex},
    {CORE, CORE_START, (any_function)start},
    {CORE, CORE_END, (any_function)end},
    {CORE, CORE_PUSH_EX, (any_function)push_ex},
    {CORE, CORE_PUSH, (any_function)push},
    {CORE, CORE_POP, (any_function)pop},
    {DOMAINS, DOMAIN_START_EX, (any_function)start_in_domain},
    {DOMAINS, DOMAIN_END, (any_function)end_in_domain},
    {DOMAINS, DOMAIN_PUSH_EX, (any_function)push_in_domain},
    {DOMAINS, DOMAIN_POP, (any_function)pop_in_domain},
    {DOMAINS, DOMAIN_REGISTER, (any_function)register_string},
};

int rondo__inject_ranges(const void *(*get_table)(uint32_t number)) __asm__(
    "InitializeInjectionNvtx2") __attribute__((visibility("default")));

// Returns 1 when the program shall call us.
int rondo__inject_ranges(const void *(*get_table)(uint32_t number)) {
    const callbacks_table *callbacks = get_table(CALLBACKS_TABLE);
    if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(g_functions) / sizeof(g_functions[0]); i++) {
        const function_row *row = &g_functions[i];
        any_function **table = NULL;
        unsigned count = 0;
        if (callbacks->get_functions(row->module, &table, &count) == 1 && row->number < count &&
            table != NULL && table[row->number] != NULL) {
            *table[row->number] = row->function;
        }
    }
    return 1;
}
