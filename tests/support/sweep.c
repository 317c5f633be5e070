// SPDX-License-Identifier: Apache-2.0

#include "support/sweep.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

// ---- steps ------------------------------------------------------------------------------------

bool sweep_step(rondo_status status, uint64_t sequence_before, const char *text) {
    if (status == RONDO_STATUS_OK) {
        return true;
    }
    const rondo_error *error = rondo_error_get_last();
    if (error->sequence <= sequence_before || error->status != status ||
        error->message[0] == '\0' || error->file == NULL) {
        fail_msg("%s: returned %d without a record of its own (%d: %s)", text, (int)status,
                 (int)error->status, error->message);
    }
    return false;
}

void sweep_fail(const sweep_point *point, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s %zu (%s): %s", point->what, point->n, fake_cuda_get_failed_call(), text);
}

// ---- the log ----------------------------------------------------------------------------------

static atomic_bool has_lost_body;

void sweep_ignore_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    if (strstr(message, "that memory is lost until the end of the process") != NULL) {
        atomic_store(&has_lost_body, true);
    }
}

bool sweep_take_lost_body(void) {
    return atomic_exchange(&has_lost_body, false);
}

bool sweep_append_text(void *user_data, const char *bytes, size_t count) {
    sweep_text *text = user_data;
    assert_true(count < sizeof text->bytes - text->length);
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return true;
}

// ---- failing allocations ----------------------------------------------------------------------

// Threads of the host device allocate, too, so the counter is atomic.
typedef struct heap_plan {
    atomic_bool is_of_any_thread;
    atomic_long remaining;
    atomic_bool has_failed;
} heap_plan;

static heap_plan g_heap_plan;
static _Thread_local bool g_is_own_thread;

static bool fail_allocation(void *user_data) {
    heap_plan *plan = user_data;
    if ((!atomic_load(&plan->is_of_any_thread) && !g_is_own_thread) ||
        atomic_fetch_sub(&plan->remaining, 1) != 0) {
        return false;
    }
    atomic_store(&plan->has_failed, true);
    return true;
}

void sweep_fail_allocation(size_t n, bool is_of_any_thread) {
    g_is_own_thread = true;
    atomic_store(&g_heap_plan.is_of_any_thread, is_of_any_thread);
    atomic_store(&g_heap_plan.remaining, (long)n);
    atomic_store(&g_heap_plan.has_failed, false);
    rondo__memory_set_fault(fail_allocation, &g_heap_plan);
}

bool sweep_end_allocations(void) {
    rondo__memory_set_fault(NULL, NULL);
    return atomic_load(&g_heap_plan.has_failed);
}

// ---- rounds -----------------------------------------------------------------------------------

bool sweep_lift(void) {
    bool has_failed = sweep_end_allocations();
    if (fake_cuda_has_failed()) {
        return true;
    }
    fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
    return has_failed;
}

static void check_nothing_is_left(const sweep_point *point) {
    bool may_be_left = sweep_take_lost_body();
    if ((fake_cuda_count_objects() != 0 && !may_be_left) || fake_cuda_get_violations()[0] != '\0') {
        sweep_fail(point, "%zu objects left; violations: %s", fake_cuda_count_objects(),
                   fake_cuda_get_violations());
    }
}

// True when something failed in it.
static bool run_round(const sweep_subject *subject, const sweep_point *point) {
    fake_cuda_reset(subject->options);
    fake_cuda_install();
    if (subject->prepare != NULL) {
        subject->prepare();
    }
    atomic_store(&g_heap_plan.has_failed, false);
    if (point->code != RONDO__CU_SUCCESS) {
        fake_cuda_fail_nth((long)point->n, point->code);
    } else {
        sweep_fail_allocation(point->n, false);
    }
    subject->run(point);
    bool has_failed = sweep_lift();
    check_nothing_is_left(point);
    return has_failed;
}

// first/every, or 1/1.
static void get_part(size_t *out_first, size_t *out_every) {
    const char *text = getenv("RONDO_SWEEP_PART");
    *out_first = 1;
    *out_every = 1;
    if (text != NULL && (sscanf(text, "%zu/%zu", out_first, out_every) != 2 || *out_first < 1 ||
                         *out_first > *out_every)) {
        fail_msg("RONDO_SWEEP_PART is %s, not like 2/3", text);
    }
}

size_t sweep_get_every(void) {
    size_t first, every;
    get_part(&first, &every);
    return every;
}

size_t sweep_get_first(void) {
    size_t first, every;
    get_part(&first, &every);
    return first - 1;
}

static size_t run_rounds(const sweep_subject *subject, sweep_point point) {
    rondo_log_set_sink(sweep_ignore_line, NULL);
    point.data = subject->data;
    point.n = sweep_get_first();
    const size_t every = sweep_get_every();
    size_t count = 0;
    for (; run_round(subject, &point); count += every) {
        point.n += every * (subject->dense > 0 ? 1 + point.n / subject->dense : 1);
    }
    rondo_log_set_sink(NULL, NULL);
    fake_cuda_uninstall();
    return count;
}

// Fails each driver call with each code, or each allocation of the calling thread (the device's own
// threads may allocate at any time), in turn. The number of points: rounds with a failure in them,
// and those left out between.
static size_t sweep_calls(const sweep_subject *subject) {
    static const rondo__cu_result usual[SWEEP_CODES_MAX] = {
        RONDO__CU_ERROR_OUT_OF_MEMORY,
        RONDO__CU_ERROR_UNKNOWN,
        RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        RONDO__CU_ERROR_LAUNCH_FAILED,
    };
    const rondo__cu_result *codes = subject->codes[0] != 0 ? subject->codes : usual;
    sweep_point point = {.device_name = "cuda:0", .what = "driver call"};
    size_t count = 0;
    for (size_t i = 0; i < SWEEP_CODES_MAX && codes[i] != 0; ++i) {
        point.code = codes[i];
        count += run_rounds(subject, point);
    }
    return count;
}

size_t sweep_allocations(const sweep_subject *subject, const char *device_name) {
    return run_rounds(subject, (sweep_point){.device_name = device_name, .what = "allocation"});
}

sweep_count sweep_on_fake(const char *name, const sweep_subject *subject) {
    sweep_count count = {.driver_calls = sweep_calls(subject)};
    count.allocations = sweep_allocations(subject, "cuda:0");
    print_message("%s: swept %zu points (%zu driver calls, %zu allocations), each %zu. of them\n",
                  name, count.driver_calls + count.allocations, count.driver_calls,
                  count.allocations, sweep_get_every());
    return count;
}
