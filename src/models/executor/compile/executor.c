// executor/compile/executor.c — making a caller's executor, and the options it is made with.
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/thread_count.h"
#include "base/workers.h"
#include "collective/communicator.h"
#include "executor/compile/destroy.h"
#include "executor/compile/unit.h"
#include "executor/devices/op_device.h"
#include "executor/state/limits.h"
#include "executor/state/prepared.h"
#include "executor/state/run_arena.h"
#include "executor/state/states.h"
#include "executor/state/verbosity.h"
#include "graph/watchdog.h"
#include "tensor/elements.h"

enum {
    PLAN_LIMIT_DEFAULT = 256,
    DEPTH_MAX = 16,  // bodies within bodies
};

// The value of RONDO_GRAPHS; AUTO if it is not set or invalid.
static rondo_graphs_mode read_graphs_variable(void) {
    static const char *const names[] = {"auto", "on", "off", "measured", "1", "0"};
    static const rondo_graphs_mode modes[] = {RONDO_GRAPHS_AUTO, RONDO_GRAPHS_ON,
                                              RONDO_GRAPHS_OFF,  RONDO_GRAPHS_MEASURED,
                                              RONDO_GRAPHS_ON,   RONDO_GRAPHS_OFF};
    const char *text = getenv("RONDO_GRAPHS");
    if (text == NULL || text[0] == '\0') {
        return RONDO_GRAPHS_AUTO;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        if (strcmp(text, names[i]) == 0) {
            return modes[i];
        }
    }
    RONDO_LOG_WARN_F(
        "RONDO_GRAPHS is \"%.40s\", which is none of auto, on, off, measured, 1 and 0; auto is "
        "used",
        text);
    return RONDO_GRAPHS_AUTO;
}

// The caller's options with defaults filled in and the environment applied.
static rondo_status read_options(const rondo_executor_options *options,
                                 rondo_executor_options *out_options) {
    rondo_executor_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(rondo__read_options(options, &merged, sizeof merged, "rondo_executor_create",
                                        "rondo_executor_options"));
    if (merged.dtype == RONDO_DTYPE_NONE) {
        merged.dtype = RONDO_DTYPE_F32;
    }
    if ((int)merged.graphs < RONDO_GRAPHS_AUTO || merged.graphs > RONDO_GRAPHS_MEASURED) {
        return RONDO_FAIL(INVALID, "options.graphs is %d, not a rondo_graphs_mode",
                          (int)merged.graphs);
    }
    if (merged.self_check_action < RONDO_SELF_CHECK_FAIL ||
        merged.self_check_action > RONDO_SELF_CHECK_KEEP_EAGER) {
        return RONDO_FAIL(INVALID, "options.self_check_action is %d, not a rondo_self_check_action",
                          (int)merged.self_check_action);
    }
    if ((int)merged.branches < RONDO_BRANCHES_AUTO || merged.branches > RONDO_BRANCHES_OFF) {
        return RONDO_FAIL(INVALID, "options.branches is %d, not a rondo_branches_mode",
                          (int)merged.branches);
    }
    if (merged.tuning < RONDO_TUNING_AUTO || merged.tuning > RONDO_TUNING_KEEP) {
        return RONDO_FAIL(INVALID, "options.tuning is %d, not a rondo_tuning", (int)merged.tuning);
    }
    if (merged.dtype != RONDO_DTYPE_F32 && merged.dtype != RONDO_DTYPE_F16 &&
        merged.dtype != RONDO_DTYPE_BF16) {
        return RONDO_FAIL(INVALID,
                          "options.dtype is %s; computing is possible in f32, f16 and bf16",
                          rondo_dtype_get_name(merged.dtype));
    }
    merged.plan_limit = merged.plan_limit > 0 ? merged.plan_limit : PLAN_LIMIT_DEFAULT;
    if (merged.thread_count > RONDO__HOST_THREAD_COUNT_MAX) {
        return RONDO_FAIL(INVALID,
                          "options.thread_count is %u; it is 1 to %d, or 0 for the default",
                          (unsigned)merged.thread_count, RONDO__HOST_THREAD_COUNT_MAX);
    }
    if (merged.workers != NULL && merged.thread_count == 0) {
        merged.thread_count = (uint32_t)rondo__workers_get_limit(merged.workers);
    }
    if (merged.graphs == RONDO_GRAPHS_AUTO) {
        merged.graphs = read_graphs_variable();
    }
    *out_options = merged;
    return RONDO_STATUS_OK;
}

// Copies the caller's patterns, which bases and variants made later need again.
static rondo_status own_patterns(rondo_executor *executor) {
    rondo_executor_options *options = &executor->options;
    struct {
        const char *name;
        const char *const **list;
        size_t count;
    } groups[] = {{"keep_f32", &options->keep_f32, options->keep_f32_count},
                  {"use_f16", &options->use_f16, options->use_f16_count},
                  {"place", &options->place, options->place_count}};
    size_t count = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
        if (groups[g].count > 0 && *groups[g].list == NULL) {
            return RONDO_FAIL_AS("rondo_executor_create", INVALID,
                                 "options.%s is NULL, and options.%s_count is %zu", groups[g].name,
                                 groups[g].name, groups[g].count);
        }
        count += groups[g].count;
    }
    executor->caller.patterns = rondo__calloc(count + 1, sizeof *executor->caller.patterns);
    if (executor->caller.patterns == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
        char **first = executor->caller.patterns + executor->caller.pattern_count;
        for (size_t i = 0; i < groups[g].count; ++i) {
            const char *pattern = (*groups[g].list)[i];
            first[i] = pattern != NULL ? rondo__strdup(pattern) : NULL;
            if (pattern != NULL && first[i] == NULL) {
                return RONDO_STATUS_NO_MEMORY;
            }
            executor->caller.pattern_count += 1;
        }
        *groups[g].list = groups[g].count > 0 ? (const char *const *)first : NULL;
    }
    return RONDO_STATUS_OK;
}

// Where the source has which value as input or output.
static rondo_status index_ports(rondo_executor *executor) {
    const rondo_program *source = executor->main.source;
    const size_t count = source->value_count + 1;
    executor->ports.input_of = rondo__calloc(count, sizeof *executor->ports.input_of);
    executor->ports.output_of = rondo__calloc(count, sizeof *executor->ports.output_of);
    executor->ports.symbols =
        rondo__calloc(source->symbol_count + 1, sizeof *executor->ports.symbols);
    if (executor->ports.input_of == NULL || executor->ports.output_of == NULL ||
        executor->ports.symbols == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < count; ++v) {
        executor->ports.input_of[v] = -1;
        executor->ports.output_of[v] = -1;
    }
    for (size_t i = 0; i < source->input_count; ++i) {
        executor->ports.input_of[source->inputs[i]] = (int32_t)i;
    }
    for (size_t i = 0; i < source->optional_count; ++i) {
        executor->ports.input_of[source->optionals[i].value] = (int32_t)(source->input_count + i);
    }
    for (size_t i = source->output_count; i-- > 0;) {
        executor->ports.output_of[source->outputs[i]] = (int32_t)i;
    }
    return RONDO_STATUS_OK;
}

// What each call of the caller needs.
static rondo_status make_lists(rondo_executor *executor) {
    const rondo_program *source = executor->main.source;
    const size_t input_count = source->input_count + source->optional_count + 1;
    const size_t output_count = source->output_count + 1;
    rondo__call_lists *lists = &executor->ports.lists;
    lists->feeds = rondo__calloc(input_count, sizeof *lists->feeds);
    lists->results = rondo__calloc(output_count, sizeof *lists->results);
    lists->wants = rondo__calloc(output_count, sizeof *lists->wants);
    lists->places = rondo__calloc(output_count, sizeof *lists->places);
    lists->is_fed = rondo__calloc(input_count, sizeof *lists->is_fed);
    return lists->feeds != NULL && lists->results != NULL && lists->wants != NULL &&
                   lists->places != NULL && lists->is_fed != NULL
               ? RONDO_STATUS_OK
               : RONDO_STATUS_NO_MEMORY;
}

// Where a loop may be decided on the device, that has to see when it is to end; and where a GPU
// meets data that an op does not allow, the host has to see that.
static rondo_status make_watch(rondo_executor *executor) {
    const rondo_program *program = executor->main.source;
    const bool is_host = rondo_device_is_host(executor->device);
    bool is_wanted = false;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__op *op = &program->nodes[n].op;
        is_wanted = is_wanted || (op->def->flags & RONDO__OP_CONTROL) != 0 ||
                    (!is_host && op->def->is_fallible);
    }
    if (!is_wanted) {
        return RONDO_STATUS_OK;
    }
    void *memory;
    RETURN_IF_ERROR(
        rondo__executor_allocate_pinned(executor, sizeof *executor->resources.watch, &memory));
    executor->resources.watch = memory;
    atomic_init(&executor->resources.watch->call, 0);
    atomic_init(&executor->resources.watch->stopped, 0);
    atomic_init(&executor->resources.watch->faulty, 0);
    executor->call.state = &executor->resources.watch->call;
    return RONDO_STATUS_OK;
}

static rondo_status make_weights(rondo_executor *executor) {
    rondo__weight_account *weights = &executor->resources.weights;
    weights->budget = rondo_device_is_host(executor->device) ? executor->resources.budget
                                                             : executor->resources.device_budget;
    return rondo__shared_acquire_store(executor->main.source, executor->device, RONDO_MEMORY_DEVICE,
                                       &weights->store);
}

// All that units share, and then the unit of the caller's program.
static rondo_status make_parts(rondo_executor *executor) {
    RETURN_IF_ERROR(rondo__executor_make_budgets(executor));
    RETURN_IF_ERROR(index_ports(executor));
    RETURN_IF_ERROR(rondo__states_add_variables(executor));
    rondo__op_device_pin_states(executor);
    RETURN_IF_ERROR(own_patterns(executor));
    RETURN_IF_ERROR(
        rondo__tuning_choices_create(executor->options.tuning_file, &executor->resources.choices));
    executor->options.tuning_file = NULL;  // the caller's, read
    RETURN_IF_ERROR(rondo__prepared_give_choices(executor));
    RETURN_IF_ERROR(rondo__prepared_give_kernels(executor));
    RETURN_IF_ERROR(make_weights(executor));
    rondo__budget *before = rondo__budget_enter(executor->resources.budget);
    rondo_status status = make_watch(executor);
    if (status == RONDO_STATUS_OK) {
        status = make_lists(executor);
    }
    (void)rondo__budget_enter(before);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(rondo__unit_prepare(&executor->main, executor->options.stream));
    executor->resources.weights.stream = executor->main.stream;
    executor->caller.may_record_stream = executor->options.stream != NULL;
    return RONDO_STATUS_OK;
}

static rondo_status create(rondo_program *program, rondo_device *device,
                           const rondo_executor_options *options, rondo_executor **out_executor) {
    rondo_executor *executor = rondo__calloc(1, sizeof *executor);
    if (executor == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    executor->device = device;
    executor->options = *options;
    rondo_workers_retain(options->workers);
    rondo__communicator_retain(options->communicator);
    rondo__run_arena_retain(options->run_arena);
    executor->graphs = options->graphs;
    executor->variants.active = &executor->main;
    executor->variants.is_training = options->training;
    executor->call.state = &executor->call.own;
    atomic_init(&executor->reference_count, 1);
    rondo__verbose_init(executor);
    rondo__unit_init(&executor->main, executor, program, options->training);
    const rondo_status status = make_parts(executor);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_executor_destroy(executor);
        rondo__error_restore(&saved);
        return status;
    }
    *out_executor = executor;
    return RONDO_STATUS_OK;
}

// The caller's stream has to be of the device, and to run what is put there.
static rondo_status check_stream(rondo_stream *stream, rondo_device *device) {
    bool is_recording = false;
    if (stream == NULL) {
        return RONDO_STATUS_OK;
    }
    if (rondo_stream_get_device(stream) != device) {
        return RONDO_FAIL_AS("rondo_executor_create", INVALID,
                             "options.stream is of %s, the executor is to run on %s",
                             rondo_device_get_name(rondo_stream_get_device(stream)),
                             rondo_device_get_name(device));
    }
    RETURN_IF_ERROR(rondo_stream_is_recording(stream, &is_recording));
    return !is_recording ? RONDO_STATUS_OK
                         : RONDO_FAIL_AS("rondo_executor_create", STATE,
                                         "options.stream records; create the executor before the "
                                         "capture or after its end");
}

// Ranks meet in runs: what runs twice on one rank must not on another.
static rondo_status check_communicator(const rondo_executor_options *options,
                                       const rondo_device *device) {
    if (options->communicator == NULL) {
        return RONDO_STATUS_OK;
    }
    const rondo_device *own = rondo__communicator_get_device(options->communicator);
    if (own != device) {
        return RONDO_FAIL_AS("rondo_executor_create", INVALID,
                             "options.communicator is of %s, the executor is to run on %s",
                             rondo_device_get_name(own), rondo_device_get_name(device));
    }
    return options->self_check_every == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_create", UNSUPPORTED,
                               "a checked run computes twice, and other ranks would not; leave out "
                               "self_check_every or the communicator");
}

static rondo_status check_run_arena(const rondo_run_arena *arena, const rondo_device *device) {
    return arena == NULL || arena->device == device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_create", INVALID,
                               "options.run_arena is of %s, the executor is to run on %s",
                               rondo_device_get_name(arena->device), rondo_device_get_name(device));
}

static rondo_status check_watchdog(rondo_watchdog *watchdog, const rondo_device *device) {
    rondo_device *own = watchdog != NULL ? rondo__watchdog_get_device(watchdog) : NULL;
    return own == NULL || own == device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_create", INVALID,
                               "options.watchdog is of %s, the executor is to run on %s",
                               rondo_device_get_name(own), rondo_device_get_name(device));
}

rondo_status rondo_executor_create(rondo_program *program, rondo_device *device,
                                   const rondo_executor_options *options,
                                   rondo_executor **out_executor) {
    if (out_executor == NULL) {
        return RONDO_FAIL(INVALID, "out_executor is NULL");
    }
    *out_executor = NULL;
    if (program == NULL || device == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", program == NULL ? "program" : "device");
    }
    rondo_executor_options merged;
    RETURN_IF_ERROR(read_options(options, &merged));
    if (merged.reference && !rondo_device_is_host(device)) {
        return RONDO_FAIL(UNSUPPORTED, "the reference runs on device \"host\" only, not on \"%s\"",
                          rondo_device_get_name(device));
    }
    RETURN_IF_ERROR(check_stream(merged.stream, device));
    RETURN_IF_ERROR(rondo__prepared_check(program, device));
    RETURN_IF_ERROR(check_communicator(&merged, device));
    RETURN_IF_ERROR(check_run_arena(merged.run_arena, device));
    RETURN_IF_ERROR(check_watchdog(merged.watchdog, device));
    return create(program, device, &merged, out_executor);
}
