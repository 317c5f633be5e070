// A libcupti.so.13 that `rondo doctor` finds in tests: its device works without a pause, for one
// microsecond at a time. DOCTOR_CUPTI=taken: another tool has it; =refused: nobody may profile.
// DOCTOR_WORKS is what it does in turn: a and s are the kernels "add" and "scale", c is a copy; A
// and S are the kernels on another stream.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cupti/cupti_abi.h"

enum { RECORDS = 2000, LENGTH_NS = 1000 };

typedef union slot {
    rondo__cupti_kernel kernel;
    rondo__cupti_memcpy copy;
    uint64_t room[(sizeof(rondo__cupti_kernel) + 7) / 8 + 4];
} slot;

static struct {
    rondo__cupti_request request;
    rondo__cupti_complete complete;
    rondo__cupti_clock clock;
    bool is_enabled;
    uint64_t enabled_ns;
    size_t read;
} g_cupti;

#define EXPORTED __attribute__((visibility("default")))
#define RONDO__CUPTI_SYMBOL(need, name, arguments) EXPORTED rondo__cupti_result name arguments;
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL

// The program goes on until device times were taken, or refused.
static void end_program(void) {
    const char *path = getenv("DOCTOR_PROGRAM_UNTIL");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
}

static bool is_told(const char *what) {
    const char *told = getenv("DOCTOR_CUPTI");
    return told != NULL && strcmp(told, what) == 0;
}

rondo__cupti_result cuptiGetVersion(uint32_t *out_version) {
    *out_version = 130000;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiGetResultString(rondo__cupti_result result, const char **out_text) {
    *out_text = result == RONDO__CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR";
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiSubscribe(rondo__cupti_subscriber *out_subscriber,
                                   rondo__cupti_callback callback, void *user_data) {
    (void)callback, (void)user_data;
    if (is_told("taken") || is_told("refused")) {
        end_program();
    }
    *out_subscriber = (rondo__cupti_subscriber)(void *)&g_cupti;
    return is_told("taken") ? RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS : RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiUnsubscribe(rondo__cupti_subscriber subscriber) {
    return (void *)subscriber == (void *)&g_cupti && !g_cupti.is_enabled
               ? RONDO__CUPTI_SUCCESS
               : RONDO__CUPTI_ERROR_UNKNOWN;
}

rondo__cupti_result cuptiGetTimestamp(uint64_t *out_ns) {
    *out_ns = g_cupti.clock();
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityRegisterTimestampCallback(rondo__cupti_clock clock) {
    g_cupti.clock = clock;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityRegisterCallbacks(rondo__cupti_request request,
                                                   rondo__cupti_complete complete) {
    g_cupti.request = request;
    g_cupti.complete = complete;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityEnable(int kind) {
    (void)kind;
    g_cupti.is_enabled = !is_told("refused");
    g_cupti.enabled_ns = g_cupti.clock();
    return g_cupti.is_enabled ? RONDO__CUPTI_SUCCESS : RONDO__CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
}

rondo__cupti_result cuptiActivityDisable(int kind) {
    (void)kind;
    g_cupti.is_enabled = false;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityEnableDriverApi(uint32_t call, uint8_t is_enabled) {
    (void)call, (void)is_enabled;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiGetGraphExecId(rondo__cu_graph_exec exec, uint32_t *out_number) {
    (void)exec, (void)out_number;
    return RONDO__CUPTI_ERROR_UNKNOWN;
}

// The first flush of a window brings all of its records.
rondo__cupti_result cuptiActivityFlushAll(uint32_t flags) {
    uint8_t *buffer = NULL;
    size_t bytes = 0;
    size_t count = 0;
    if (flags == RONDO__CUPTI_FLUSH_FORCED) {
        end_program();
        return RONDO__CUPTI_SUCCESS;
    }
    g_cupti.request(&buffer, &bytes, &count);
    if (buffer == NULL || bytes < RECORDS * sizeof(slot)) {
        return RONDO__CUPTI_ERROR_UNKNOWN;
    }
    const char *works = getenv("DOCTOR_WORKS");
    works = works != NULL ? works : "a";
    for (uint64_t i = 0; i < RECORDS; i++) {
        // The doctor keeps the first calls of a window, and may give up those of any later moment.
        const uint64_t begin = g_cupti.enabled_ns + i * LENGTH_NS;
        const char work = works[i % strlen(works)];
        const slot kernel = {.kernel = {.kind = RONDO__CUPTI_CONCURRENT_KERNEL,
                                        .start = begin,
                                        .end = begin + LENGTH_NS,
                                        .stream = work == 'A' || work == 'S' ? 8 : 7,
                                        .name = work == 'a' || work == 'A' ? "add" : "scale"}};

        const slot copy = {.copy = {.kind = RONDO__CUPTI_MEMCPY,
                                    .start = begin,
                                    .end = begin + LENGTH_NS,
                                    .stream = 7}};
        memcpy(buffer + i * sizeof(slot), work == 'c' ? &copy : &kernel, sizeof(slot));
    }
    g_cupti.read = 0;
    g_cupti.complete(NULL, 0, buffer, bytes, RECORDS * sizeof(slot));
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                               rondo__cupti_record **in_out_record) {
    if ((g_cupti.read + 1) * sizeof(slot) > valid_bytes) {
        return RONDO__CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *in_out_record = (rondo__cupti_record *)(void *)(buffer + g_cupti.read++ * sizeof(slot));
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityGetNumDroppedRecords(rondo__cu_context context, uint32_t stream,
                                                      size_t *out_count) {
    (void)context, (void)stream;
    *out_count = 0;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    (void)kind, (void)id;
    return RONDO__CUPTI_SUCCESS;
}

rondo__cupti_result cuptiActivityPopExternalCorrelationId(int kind, uint64_t *out_id) {
    (void)kind, (void)out_id;
    return RONDO__CUPTI_SUCCESS;
}
