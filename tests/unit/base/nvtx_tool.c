// A tool as NVTX sees it: a library that gets the table of functions, puts its own in, and writes
// down what is called. Built as a module that test_base_nvtx.c names in NVTX_INJECTION64_PATH.
//
// NVTX_TOOL_FORM says what the tool offers: "plain" functions without a domain only, "none" at all,
// or "broken" (it refuses to start); everything otherwise.
// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/nvtx.h"
#include "rondo/export.h"

#define EXPORT __attribute__((visibility("default")))

static char tool_log[16384];
static uint64_t next_range;  // 0 is a range as good as any, as Nsight Compute has it

RONDO_PRINTF(1, 2) static void note(const char *format, ...);

static void note(const char *format, ...) {
    size_t length = strlen(tool_log);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tool_log + length, sizeof tool_log - length, format, arguments);
    va_end(arguments);
}

EXPORT const char *nvtx_tool_get_log(void);
const char *nvtx_tool_get_log(void) {
    return tool_log;
}

EXPORT void nvtx_tool_clear_log(void);
void nvtx_tool_clear_log(void) {
    tool_log[0] = '\0';
}

static int push(const char *text) {
    note("push %s\n", text);
    return 0;
}

static int pop(void) {
    note("pop\n");
    return 0;
}

static uint64_t start(const char *text) {
    note("start %s %llu\n", text, (unsigned long long)next_range);
    return next_range++;
}

static void end(uint64_t range) {
    note("end %llu\n", (unsigned long long)range);
}

static char domain;

static void *create_domain(const char *name) {
    note("domain %s\n", name);
    return &domain;
}

static const char *get_message(const void *of, const rondo__nvtx_attributes *attributes) {
    if (of != &domain || attributes->version != 3 || attributes->size != sizeof *attributes ||
        attributes->message_type != 1) {
        return "(wrong attributes)";
    }
    return attributes->message;
}

static int domain_push(void *of, const rondo__nvtx_attributes *attributes) {
    note("rondo: push %s\n", get_message(of, attributes));
    return 0;
}

static int domain_pop(void *of) {
    note("rondo: pop%s\n", of == &domain ? "" : " of another domain");
    return 0;
}

static uint64_t domain_start(void *of, const rondo__nvtx_attributes *attributes) {
    note("rondo: start %s %llu\n", get_message(of, attributes), (unsigned long long)next_range);
    return next_range++;
}

static void domain_end(void *of, uint64_t range) {
    note("rondo: end%s %llu\n", of == &domain ? "" : " of another domain",
         (unsigned long long)range);
}

#define ENTRY(function) ((rondo__nvtx_function)(void (*)(void))(function))

static void do_nothing(void) {
}

// As Nsight Compute's does: every table must be there, and is written all over.
static bool takes_every_table(const rondo__nvtx_callbacks *callbacks) {
    static const unsigned int counts[] = {0, 16, 9, 15, 7, 16, 7};
    for (int module = 1; module < 7; ++module) {
        rondo__nvtx_function **table = NULL;
        unsigned int count = 0;
        if (callbacks->get_functions(module, &table, &count) != 1 || count != counts[module]) {
            return false;
        }
        bool is_used = module == RONDO__NVTX_MODULE_CORE || module == RONDO__NVTX_MODULE_CORE2;
        for (unsigned int i = 1; i < count && !is_used; ++i) {
            *table[i] = do_nothing;
        }
        if (table[count] != NULL) {
            return false;
        }
    }
    return true;
}

EXPORT int InitializeInjectionNvtx2(rondo__nvtx_get_table get_table);
int InitializeInjectionNvtx2(rondo__nvtx_get_table get_table) {
    const char *form = getenv("NVTX_TOOL_FORM");
    form = form != NULL ? form : "";
    if (strcmp(form, "broken") == 0) {
        return 0;
    }
    const rondo__nvtx_callbacks *callbacks = get_table(RONDO__NVTX_TABLE_CALLBACKS);
    const rondo__nvtx_version *version = get_table(RONDO__NVTX_TABLE_VERSION);
    rondo__nvtx_function **table = NULL;
    unsigned int count = 0;
    if (callbacks == NULL || version == NULL || version->version != 3 || get_table(2) != NULL ||
        callbacks->struct_size < sizeof *callbacks || callbacks->get_functions(7, &table, &count) ||
        callbacks->get_functions(0, &table, &count) || !takes_every_table(callbacks)) {
        return 0;
    }
    version->set_injection_version(3);
    if (strcmp(form, "none") == 0) {
        return 1;
    }
    if (callbacks->get_functions(RONDO__NVTX_MODULE_CORE, &table, &count) != 1 || count < 12) {
        return 0;
    }
    *table[RONDO__NVTX_RANGE_PUSH] = ENTRY(push);
    *table[RONDO__NVTX_RANGE_POP] = ENTRY(pop);
    *table[RONDO__NVTX_RANGE_START] = ENTRY(start);
    *table[RONDO__NVTX_RANGE_END] = ENTRY(end);
    if (strcmp(form, "plain") == 0) {
        return 1;
    }
    if (callbacks->get_functions(RONDO__NVTX_MODULE_CORE2, &table, &count) != 1 || count < 13) {
        return 0;
    }
    *table[RONDO__NVTX_DOMAIN_CREATE] = ENTRY(create_domain);
    *table[RONDO__NVTX_DOMAIN_RANGE_PUSH] = ENTRY(domain_push);
    *table[RONDO__NVTX_DOMAIN_RANGE_POP] = ENTRY(domain_pop);
    *table[RONDO__NVTX_DOMAIN_RANGE_START] = ENTRY(domain_start);
    *table[RONDO__NVTX_DOMAIN_RANGE_END] = ENTRY(domain_end);
    return 1;
}
