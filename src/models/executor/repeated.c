// executor/repeated.c — see repeated.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/repeated.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/bound_run.h"
#include "executor/state/run_state.h"
#include "program/program.h"
#include "rondo/executor_stream.h"
#include "tensor/elements.h"

enum {
    PORTS_MAX = 16,     // of a call; the comparison stays short
    FIRST_REPEATS = 4,  // calls alike before the first is bound
    LAST_REPEATS = 1 << 20
};

// Named by number: another program with the same values takes the place of the executor's when a
// parameter is replaced, and the names of the former are gone.
typedef struct port {
    int32_t value;
    rondo_tensor tensor;  // without its storage
} port;

// Feeds, then fetches.
typedef struct call {
    size_t feed_count, count;
    port ports[PORTS_MAX];
} call;

struct rondo__repeated {
    call last;  // of those that are not bound
    uint32_t repeats;
    uint32_t wanted_repeats;
    call bound;
    rondo_bound_run *run;  // NULL: none yet
};

static bool is_near(const rondo_executor *executor, const rondo_tensor *tensor) {
    return tensor->device == executor->device && tensor->data != NULL &&
           rondo__dtype_is_plain(tensor->dtype);
}

static bool are_near(const rondo_executor *executor, const rondo_binding *ports, size_t count) {
    bool are = ports != NULL || count == 0;
    for (size_t i = 0; are && i < count; ++i) {
        are = ports[i].name != NULL && is_near(executor, &ports[i].tensor);
    }
    return are;
}

// Whether executor and call are such that repetitions count. A host device has no graph to launch.
static bool may_repeat(const rondo_executor *executor, const rondo_binding *feeds,
                       size_t feed_count, const rondo_binding *fetches, size_t fetch_count) {
    return !rondo_device_is_host(executor->device) && feed_count <= PORTS_MAX &&
           fetch_count <= PORTS_MAX - feed_count && are_near(executor, feeds, feed_count) &&
           are_near(executor, fetches, fetch_count);
}

static const char *get_name(const rondo_executor *executor, const port *known) {
    return executor->main.source->values[known->value].name;
}

static bool is_same_port(const rondo_executor *executor, const port *a, const rondo_binding *b) {
    return a->tensor.data == b->tensor.data && a->tensor.device == b->tensor.device &&
           a->tensor.dtype == b->tensor.dtype && b->name != NULL &&
           strcmp(get_name(executor, a), b->name) == 0 &&
           rondo_shape_is_equal(&a->tensor.shape, &b->tensor.shape);
}

static bool are_same_ports(const rondo_executor *executor, const port *a, const rondo_binding *b,
                           size_t count) {
    bool are = true;
    for (size_t i = 0; are && i < count; ++i) {
        are = is_same_port(executor, &a[i], &b[i]);
    }
    return are;
}

static bool is_same_call(const rondo_executor *executor, const call *known,
                         const rondo_binding *feeds, size_t feed_count,
                         const rondo_binding *fetches, size_t fetch_count) {
    return known->feed_count == feed_count && known->count == feed_count + fetch_count &&
           are_same_ports(executor, known->ports, feeds, feed_count) &&
           are_same_ports(executor, known->ports + feed_count, fetches, fetch_count);
}

rondo_bound_run *rondo__repeated_find(const rondo_executor *executor, const rondo_binding *feeds,
                                      size_t feed_count, const rondo_binding *fetches,
                                      size_t fetch_count) {
    if (executor == NULL || executor->caller.repeated == NULL ||
        (feeds == NULL && feed_count > 0) || (fetches == NULL && fetch_count > 0)) {
        return NULL;
    }
    const rondo__repeated *repeated = executor->caller.repeated;
    return repeated->run != NULL &&
                   is_same_call(executor, &repeated->bound, feeds, feed_count, fetches, fetch_count)
               ? repeated->run
               : NULL;
}

// The tensors are the program's, whose addresses alone count here.
static void keep_ports(const rondo_executor *executor, const rondo_binding *ports, size_t count,
                       call *known) {
    for (size_t i = 0; i < count; ++i) {
        port *kept = &known->ports[known->count++];
        kept->value = rondo__program_find_value(executor->main.source, ports[i].name);
        kept->tensor = ports[i].tensor;
        kept->tensor.storage = NULL;
    }
}

// An output that the program lists twice may be fetched twice; a bound run has one of the two.
static bool fetches_twice(const call *known) {
    bool does = false;
    for (size_t i = known->feed_count; i < known->count; ++i) {
        for (size_t k = known->feed_count; k < i; ++k) {
            does = does || known->ports[k].value == known->ports[i].value;
        }
    }
    return does;
}

static rondo_status bind(const rondo_executor *executor, rondo_bound_run *run, const call *known) {
    for (size_t i = 0; i < known->count; ++i) {
        const port *kept = &known->ports[i];
        const char *name = get_name(executor, kept);
        RETURN_IF_ERROR(i < known->feed_count
                            ? rondo_bound_run_set_feed(run, name, &kept->tensor)
                            : rondo_bound_run_set_fetch(run, name, &kept->tensor));
    }
    return RONDO_STATUS_OK;
}

// Lets the last call be the one that is bound. Work under way needs nothing of the former.
static void bind_last(rondo_executor *executor) {
    rondo__repeated *repeated = executor->caller.repeated;
    rondo_bound_run *run = NULL;
    rondo_error saved;
    if (fetches_twice(&repeated->last)) {
        return;
    }
    rondo__error_save(&saved);
    if (rondo__bound_run_make(executor, &run) == RONDO_STATUS_OK &&
        bind(executor, run, &repeated->last) == RONDO_STATUS_OK) {
        rondo_bound_run *former = repeated->run;
        repeated->run = run;
        repeated->bound = repeated->last;
        run = former;
    }
    if (run != NULL) {
        rondo__unit_drain(&executor->main);
        rondo__bound_run_free(run);
    }
    rondo__error_restore(&saved);
}

static void free_repeated(rondo_executor *executor) {
    rondo__bound_run_free(executor->caller.repeated->run);
    rondo__free(executor->caller.repeated);
    executor->caller.repeated = NULL;
    executor->caller.end_repeated = NULL;
}

void rondo__repeated_note(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                          const rondo_binding *fetches, size_t fetch_count) {
    rondo__repeated *repeated = executor->caller.repeated;
    if (!may_repeat(executor, feeds, feed_count, fetches, fetch_count)) {
        return;
    }
    if (repeated == NULL) {
        repeated = executor->caller.repeated = rondo__calloc(1, sizeof *repeated);
        if (repeated == NULL) {
            return;
        }
        executor->caller.end_repeated = free_repeated;
        repeated->wanted_repeats = FIRST_REPEATS;
    }
    if (!is_same_call(executor, &repeated->last, feeds, feed_count, fetches, fetch_count)) {
        repeated->last.count = 0;
        repeated->last.feed_count = feed_count;
        keep_ports(executor, feeds, feed_count, &repeated->last);
        keep_ports(executor, fetches, fetch_count, &repeated->last);
        repeated->repeats = 0;
        return;
    }
    repeated->repeats += 1;
    if (repeated->repeats >= repeated->wanted_repeats) {
        bind_last(executor);
        repeated->repeats = 0;
        repeated->wanted_repeats *= repeated->wanted_repeats < LAST_REPEATS ? 2 : 1;
    }
}
