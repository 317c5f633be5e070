// executor/executor.c — executors: making them, finding the plan for some inputs, options and
// statistics.
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/thread_count.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "executor/plan.h"
#include "program/passes.h"
#include "program/specialise.h"
#include "tensor/elements.h"

enum {
    PLAN_LIMIT_DEFAULT = 16,
    DEPTH_MAX = 16,  // bodies within bodies
    KEYED_MISS_LIMIT =
        8,  // plans made for new values of a keyed input before values stop being keys
    BASE_FOLD_BYTES_MAX = 256 << 20,
};

rondo_executor_options rondo_executor_options_default(void) {
    return (rondo_executor_options){.struct_size = sizeof(rondo_executor_options),
                                    .graphs = RONDO_GRAPHS_AUTO,
                                    .dtype = RONDO_DTYPE_F32,
                                    .optimise = true};
}

// What RONDO_GRAPHS says; AUTO when it is not set, or is nonsense.
static rondo_graphs_mode read_graphs_variable(void) {
    static const char *const names[] = {"auto", "on", "off"};
    const char *text = getenv("RONDO_GRAPHS");
    if (text == NULL || text[0] == '\0') {
        return RONDO_GRAPHS_AUTO;
    }
    for (int mode = RONDO_GRAPHS_AUTO; mode <= RONDO_GRAPHS_OFF; ++mode) {
        if (strcmp(text, names[mode]) == 0) {
            return (rondo_graphs_mode)mode;
        }
    }
    RONDO_LOG_WARN_F("RONDO_GRAPHS is \"%.40s\", which is none of auto, on and off; auto is used",
                     text);
    return RONDO_GRAPHS_AUTO;
}

// The caller's options with defaults filled in and the environment applied.
static rondo_status read_options(const rondo_executor_options *options,
                                 rondo_executor_options *out_options) {
    rondo_executor_options merged = rondo_executor_options_default();
    RETURN_IF_ERROR(rondo__read_options(options, &merged, sizeof merged, "rondo_executor_create",
                                        "rondo_executor_options_default"));
    if ((int)merged.graphs < RONDO_GRAPHS_AUTO || merged.graphs > RONDO_GRAPHS_OFF) {
        return RONDO_FAIL(INVALID, "options.graphs is %d, not a rondo_graphs_mode",
                          (int)merged.graphs);
    }
    if (merged.dtype != RONDO_DTYPE_F32 && merged.dtype != RONDO_DTYPE_F16) {
        return RONDO_FAIL(INVALID, "options.dtype is %s; computing is possible in f32 and f16",
                          rondo_dtype_get_name(merged.dtype));
    }
    merged.plan_limit = merged.plan_limit > 0 ? merged.plan_limit : PLAN_LIMIT_DEFAULT;
    if (merged.thread_count > RONDO__HOST_THREAD_COUNT_MAX) {
        return RONDO_FAIL(INVALID,
                          "options.thread_count is %u; it is 1 to %d, or 0 for the default",
                          (unsigned)merged.thread_count, RONDO__HOST_THREAD_COUNT_MAX);
    }
    if (merged.graphs == RONDO_GRAPHS_AUTO) {
        merged.graphs = read_graphs_variable();
    }
    *out_options = merged;
    return RONDO_STATUS_OK;
}

// Runs on the stream's own worker, which has its choice from then on.
static void choose_threads(void *arguments) {
    const uint32_t *count = arguments;
    (void)rondo__host_choose_thread_count((int32_t)*count);
}

// The program after what is done once for all plans, in place of the one there is.
static rondo_status make_base(rondo_executor *executor) {
    const size_t fold_bytes = executor->is_lean ? RONDO__LEAN_FOLD_BYTES : BASE_FOLD_BYTES_MAX;
    rondo_program *base;
    rondo__half_cache *halves = NULL;
    RETURN_IF_ERROR(rondo__program_specialise(executor->source, NULL, fold_bytes, &base, NULL));
    rondo_status status = RONDO_STATUS_OK;
    if (executor->depth == 0) {  // bodies come marked
        status = rondo__precision_mark(base, executor->source, &executor->options);
    }
    if (status == RONDO_STATUS_OK && executor->options.optimise) {
        status = rondo__program_simplify(base);
    }
    if (status == RONDO_STATUS_OK && executor->options.dtype == RONDO_DTYPE_F16) {
        status = rondo__half_cache_create(base, &halves);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(base);
        return status;
    }
    rondo__half_cache_destroy(executor->halves);
    rondo_program_destroy(executor->base);
    executor->base = base;
    executor->halves = halves;
    return RONDO_STATUS_OK;
}

// Copies the caller's patterns, which bases and variants made later need again.
static rondo_status own_patterns(rondo_executor *executor) {
    rondo_executor_options *options = &executor->options;
    const size_t keep = options->keep_f32 != NULL ? options->keep_f32_count : 0;
    const size_t use = options->use_f16 != NULL ? options->use_f16_count : 0;
    executor->patterns = rondo__calloc(keep + use + 1, sizeof *executor->patterns);
    if (executor->patterns == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < keep + use; ++i) {
        const char *pattern = i < keep ? options->keep_f32[i] : options->use_f16[i - keep];
        executor->patterns[i] = pattern != NULL ? rondo__strdup(pattern) : NULL;
        if (pattern != NULL && executor->patterns[i] == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        executor->pattern_count = i + 1;
    }
    options->keep_f32 = keep > 0 ? (const char *const *)executor->patterns : NULL;
    options->use_f16 = use > 0 ? (const char *const *)executor->patterns + keep : NULL;
    return RONDO_STATUS_OK;
}

// Where the source has which value as input or output.
static rondo_status index_ports(rondo_executor *executor) {
    const rondo_program *source = executor->source;
    const size_t count = source->value_count + 1;
    executor->input_of = rondo__calloc(count, sizeof *executor->input_of);
    executor->output_of = rondo__calloc(count, sizeof *executor->output_of);
    executor->symbols = rondo__calloc(source->symbol_count + 1, sizeof *executor->symbols);
    if (executor->input_of == NULL || executor->output_of == NULL || executor->symbols == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < count; ++v) {
        executor->input_of[v] = -1;
        executor->output_of[v] = -1;
    }
    for (size_t i = 0; i < source->input_count; ++i) {
        executor->input_of[source->inputs[i]] = (int32_t)i;
    }
    for (size_t i = 0; i < source->optional_count; ++i) {
        executor->input_of[source->optionals[i].value] = (int32_t)(source->input_count + i);
    }
    for (size_t i = source->output_count; i-- > 0;) {
        executor->output_of[source->outputs[i]] = (int32_t)i;
    }
    return RONDO_STATUS_OK;
}

// Makes an executor at `depth` for `root`; NULL: it is one of the caller's.
static rondo_status create(const rondo_program *program, rondo_device *device,
                           const rondo_executor_options *options, int32_t depth,
                           rondo_executor *root, rondo_executor **out_executor) {
    if (depth > DEPTH_MAX) {
        return RONDO_FAIL(BAD_DATA, "control flow is nested more than %d levels deep", DEPTH_MAX);
    }
    rondo_executor *executor = rondo__calloc(1, sizeof *executor);
    if (executor == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    executor->device = device;
    executor->source = program;
    executor->options = *options;
    executor->graphs = options->graphs;
    executor->depth = depth;
    executor->root = root != NULL ? root : executor;
    executor->active = executor;
    rondo_status status = root != NULL ? RONDO_STATUS_OK : rondo__executor_make_budgets(executor);
    if (status == RONDO_STATUS_OK && root == NULL) {
        status = index_ports(executor);
    }
    if (status == RONDO_STATUS_OK && root == NULL) {
        status = own_patterns(executor);
    }
    rondo__budget *before = rondo__budget_enter(executor->root->budget);
    if (status == RONDO_STATUS_OK) {
        status = make_base(executor);
    }
    if (status == RONDO_STATUS_OK) {
        executor->keyed = rondo__calloc(executor->base->input_count + 1, sizeof *executor->keyed);
        status = executor->keyed == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_create(device, &executor->stream);
    }
    if (status == RONDO_STATUS_OK && options->thread_count > 0 && rondo_device_is_host(device)) {
        status = rondo_stream_call_host(executor->stream, "threads", choose_threads,
                                        &options->thread_count, sizeof options->thread_count);
    }
    for (size_t i = 0; status == RONDO_STATUS_OK && !rondo_device_is_host(device) && i < 4; ++i) {
        status = rondo_event_create(device, RONDO_EVENT_TIMED, &executor->events[i]);
    }
    (void)rondo__budget_enter(before);
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
    return create(program, device, &merged, 0, NULL, out_executor);
}

rondo_status rondo__executor_create_body(rondo_executor *parent, const rondo_program *body,
                                         rondo_executor **out_executor) {
    *out_executor = NULL;
    RETURN_IF_ERROR(create(body, parent->device, &parent->options, parent->depth + 1, parent->root,
                           out_executor));
    (*out_executor)->graphs = parent->graphs;
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_create_variant(rondo_executor *root, const rondo_program *program,
                                            rondo_executor **out_executor) {
    *out_executor = NULL;
    RETURN_IF_ERROR(create(program, root->device, &root->options, 0, root, out_executor));
    (*out_executor)->graphs = root->graphs;
    return RONDO_STATUS_OK;
}

void rondo_executor_destroy(rondo_executor *executor) {
    if (executor == NULL) {
        return;
    }
    rondo__executor_destroy_variants(executor);
    for (size_t i = 0; i < executor->plan_count; ++i) {
        rondo__plan_destroy(executor, executor->plans[i]);
    }
    rondo__free(executor->plans);
    rondo__free(executor->buckets);  // the last plan released the last constant
    rondo__executor_release_generators(executor);
    for (size_t i = 0; i < 4; ++i) {
        rondo_event_destroy(executor->events[i]);
    }
    rondo_stream_destroy(executor->stream);
    rondo__half_cache_destroy(executor->halves);
    rondo_program_destroy(executor->base);
    rondo_program_destroy(executor->own_source);
    rondo__free(executor->keyed);
    rondo__free(executor->is_fed);
    rondo__free(executor->input_of);
    rondo__free(executor->output_of);
    rondo__free(executor->symbols);
    for (size_t i = 0; i < executor->pattern_count; ++i) {
        rondo__free(executor->patterns[i]);
    }
    rondo__free(executor->patterns);
    rondo_device_release(executor->device);
    rondo__budget_release(executor->budget);
    rondo__budget_release(executor->device_budget);
    const bool is_callers = executor->root == executor;
    rondo__free(executor);
    if (is_callers) {
        rondo__memory_trim();  // the small pieces of its plans lay between others'
    }
}

// ---- plans ------------------------------------------------------------------------------------

static bool plan_matches(const rondo_executor *executor, const rondo__plan *plan,
                         const rondo_tensor *feeds) {
    for (size_t i = 0; i < plan->feed_count; ++i) {
        const rondo_tensor *have = &plan->feeds[i];
        // A plan serves sequences of any length.
        if (have->dtype != feeds[i].dtype ||
            (!rondo__dtype_is_nested(have->dtype) &&
             !rondo_shape_is_equal(&have->shape, &feeds[i].shape))) {
            return false;
        }
        bool is_keyed = have->data != NULL;
        if (is_keyed != (executor->keyed[i] && rondo_tensor_get_bytes(&feeds[i]) > 0) ||
            (is_keyed && memcmp(have->data, feeds[i].data, rondo_tensor_get_bytes(have)) != 0)) {
            return false;
        }
    }
    return true;
}

static void evict_oldest(rondo_executor *executor) {
    size_t oldest = 0;
    for (size_t i = 1; i < executor->plan_count; ++i) {
        if (executor->plans[i]->last_use < executor->plans[oldest]->last_use) {
            oldest = i;
        }
    }
    rondo__plan *victim = executor->plans[oldest];
    executor->plans[oldest] = executor->plans[--executor->plan_count];
    if (executor->current == victim) {
        executor->current = NULL;
    }
    rondo__plan_destroy(executor, victim);
}

static void evict_plans(rondo_executor *executor, size_t count) {
    for (; count > 0 && executor->plan_count > 0; --count) {
        evict_oldest(executor);
    }
}

static bool is_out_of_memory(rondo_status status) {
    return status == RONDO_STATUS_NO_MEMORY || status == RONDO_STATUS_NO_DEVICE_MEMORY;
}

// Plans wait for their shapes to come back; they leave half of the limit to runs.
static void drop_crowded(rondo_executor *executor) {
    const rondo__budget *budget = executor->root->budget;
    while (executor->plan_count > 0 &&
           rondo__budget_get_used(budget) > rondo__budget_get_limit(budget) / 2) {
        evict_oldest(executor);
    }
}

// Marks small inputs whose values decide shapes as keys. A body is spared: its inputs change each
// turn.
static rondo_status find_keys(rondo_executor *executor, const rondo_tensor *keys,
                              bool *out_has_new) {
    *out_has_new = false;
    size_t count = executor->base->input_count;
    if (executor->depth > 0 || executor->keyed_miss_count > KEYED_MISS_LIMIT) {
        return RONDO_STATUS_OK;
    }
    bool *wanted = rondo__calloc(count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_program *trial = NULL;
    rondo_status status = rondo__program_specialise(executor->base, keys, 1 << 20, &trial, wanted);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < count; ++i) {
        if (wanted[i] && !executor->keyed[i]) {
            executor->keyed[i] = true;
            *out_has_new = true;
        }
    }
    rondo_program_destroy(trial);
    rondo__free(wanted);
    return status;
}

static void select_keys(const rondo_executor *executor, const rondo_tensor *feeds,
                        rondo_tensor *out_keys) {
    for (size_t i = 0; i < executor->base->input_count; ++i) {
        out_keys[i] = feeds[i];
        out_keys[i].storage = NULL;
        if (!executor->keyed[i]) {
            out_keys[i].data = NULL;
        }
    }
}

// What plans of the same program hold for runs with other optional inputs.
static void evict_others(const rondo_executor *executor) {
    rondo_executor *root = executor->depth == 0 ? executor->root : NULL;
    for (size_t v = 0; root != NULL && v < root->variant_count; ++v) {
        if (root->variants[v] != executor) {
            evict_plans(root->variants[v], SIZE_MAX);
        }
    }
    if (root != NULL && root != executor) {
        evict_plans(root, SIZE_MAX);
    }
}

// Compiles a plan. Where memory is short, what plans of other shapes hold is given up for it (the
// older half of them, then all), and then what was folded ahead, which may be more than a run
// needs.
static rondo_status create_plan(rondo_executor *executor, const rondo_tensor *keys,
                                rondo__plan **out_plan) {
    // Kernels that cut their work ahead must see the number of threads that will run them.
    const int32_t count = (int32_t)executor->options.thread_count;
    const int32_t former = rondo__host_choose_thread_count(count);
    rondo_status status = rondo__plan_create(executor, keys, out_plan);
    for (size_t keep = executor->plan_count / 2;
         is_out_of_memory(status) && executor->plan_count > 0; keep = 0) {
        evict_plans(executor, executor->plan_count - keep);
        evict_others(executor);
        status = rondo__plan_create(executor, keys, out_plan);
    }
    if (is_out_of_memory(status) && !executor->is_lean) {
        rondo_error saved;
        rondo__error_save(&saved);
        executor->is_lean = true;
        evict_others(executor);
        if (make_base(executor) == RONDO_STATUS_OK) {
            status = rondo__plan_create(executor, keys, out_plan);
        } else {
            rondo__error_restore(&saved);
        }
    }
    (void)rondo__host_choose_thread_count(former);
    return status;
}

// Destroys a plan whose outputs contradict what the model declares.
static rondo_status check_outputs(rondo_executor *executor, rondo__plan *plan) {
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
        if (slot->kind == RONDO__SLOT_DYNAMIC) {
            continue;  // known after the run
        }
        rondo_status status = rondo__executor_check_output(executor, i, slot->dtype, &slot->shape);
        if (status != RONDO_STATUS_OK) {
            rondo__plan_destroy(executor, plan);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_find_plan(rondo_executor *executor, const rondo_tensor *feeds,
                                       rondo__plan **out_plan) {
    *out_plan = NULL;
    executor->clock += 1;
    if (executor->current != NULL && plan_matches(executor, executor->current, feeds)) {
        executor->current->last_use = executor->clock;
        *out_plan = executor->current;
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < executor->plan_count; ++i) {
        if (plan_matches(executor, executor->plans[i], feeds)) {
            executor->current = executor->plans[i];
            executor->current->last_use = executor->clock;
            *out_plan = executor->current;
            return RONDO_STATUS_OK;
        }
    }
    bool has_keys = false;
    for (size_t i = 0; i < executor->base->input_count; ++i) {
        has_keys = has_keys || executor->keyed[i];
    }
    if (has_keys && ++executor->keyed_miss_count > KEYED_MISS_LIMIT) {
        // The values keep changing: making a plan for each costs more than running those ops
        // conventionally.
        RONDO_LOG_INFO_F(
            "input values that decide shapes keep changing; such ops now run conventionally");
        memset(executor->keyed, 0, executor->base->input_count * sizeof *executor->keyed);
    }
    rondo_tensor *keys = rondo__calloc(executor->base->input_count + 1, sizeof *keys);
    if (keys == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    rondo__plan *plan = NULL;
    bool has_new = true;
    while (status == RONDO_STATUS_OK && has_new) {
        select_keys(executor, feeds, keys);
        status = find_keys(executor, keys, &has_new);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__array_reserve((void **)&executor->plans, &executor->plan_capacity,
                                      executor->plan_count + 1, sizeof *executor->plans);
    }
    if (status == RONDO_STATUS_OK && executor->plan_count >= executor->options.plan_limit) {
        evict_plans(executor, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = create_plan(executor, keys, &plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_outputs(executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        drop_crowded(executor);
        executor->plans[executor->plan_count++] = plan;
        executor->current = plan;
        plan->last_use = executor->clock;
        *out_plan = plan;
    }
    rondo__free(keys);
    return status;
}

rondo_status rondo__executor_infer_outputs(rondo_executor *executor, const rondo_tensor *feeds,
                                           rondo__tensor_info *out_infos) {
    const size_t count = executor->base->input_count;
    rondo_tensor *shapes = rondo__calloc(count + 1, sizeof *shapes);
    if (shapes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        shapes[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = feeds[i].shape};
    }
    rondo_program *trial = NULL;
    rondo_status status =
        rondo__program_specialise(executor->base, shapes, RONDO__LEAN_FOLD_BYTES, &trial, NULL);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < trial->output_count; ++i) {
        rondo__program_get_info(trial, trial->outputs[i], &out_infos[i]);
        out_infos[i].constant = NULL;
    }
    rondo_program_destroy(trial);
    rondo__free(shapes);
    return status == RONDO_STATUS_NO_MEMORY ? status : RONDO_STATUS_OK;
}

// ---- settings and statistics ------------------------------------------------------------------

static void set_graphs(rondo_executor *executor, rondo_graphs_mode graphs) {
    executor->graphs = graphs;
    for (size_t v = 0; v < executor->variant_count; ++v) {
        set_graphs(executor->variants[v], graphs);
    }
    for (size_t p = 0; p < executor->plan_count; ++p) {
        const rondo__plan *plan = executor->plans[p];
        for (size_t s = 0; s < plan->step_count; ++s) {
            for (size_t b = 0; b < plan->steps[s].body_count; ++b) {
                if (plan->steps[s].bodies[b] != NULL) {
                    set_graphs(plan->steps[s].bodies[b], graphs);
                }
            }
        }
    }
}

rondo_status rondo_executor_set_graphs(rondo_executor *executor, rondo_graphs_mode graphs) {
    if (executor == NULL || (int)graphs < RONDO_GRAPHS_AUTO || graphs > RONDO_GRAPHS_OFF) {
        return RONDO_FAIL(INVALID,
                          executor == NULL ? "executor is NULL" : "no such rondo_graphs_mode");
    }
    set_graphs(executor, graphs);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_get_times(const rondo_executor *executor, rondo_run_times *out_times) {
    if (executor == NULL || out_times == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "out_times");
    }
    if (!executor->active->has_run) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    *out_times = executor->active->times;
    return RONDO_STATUS_OK;
}

// Adds what the graphs of a plan hold, those inside bodies included.
static void add_graph_stats(const rondo__plan *plan, rondo_executor_stats *stats) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo_graph_stats graph;
        if (step->graph != NULL && rondo_graph_get_stats(step->graph, &graph) == RONDO_STATUS_OK) {
            stats->node_count += graph.node_count;
            stats->capture_ns += graph.capture_ns;
            stats->instantiate_ns += graph.instantiate_ns;
            stats->graph_bytes += graph.device_bytes;
        }
        for (size_t b = 0; b < step->body_count; ++b) {
            const rondo_executor *body = step->bodies[b];
            for (size_t p = 0; body != NULL && p < body->plan_count; ++p) {
                add_graph_stats(body->plans[p], stats);
            }
        }
    }
}

rondo_status rondo_executor_get_stats(const rondo_executor *executor,
                                      rondo_executor_stats *out_stats) {
    if (executor == NULL || out_stats == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "out_stats");
    }
    const rondo__plan *plan = executor->active->current;
    if (plan == NULL) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    rondo_executor_stats stats = {
        .op_count = plan->item_count + plan->bypassed_count,
        .segment_count = plan->step_count - plan->bypassed_count,
        .bypassed_count = plan->bypassed_count,
        .random_op_count = plan->random_count,
        .plan_count = executor->plan_count,
        .first_replay_ns = plan->first_replay_ns,
        .prepare_ns = plan->prepare_ns,
        .arena_bytes = plan->arena_bytes,
        .arena_naive_bytes = plan->arena_naive_bytes,
        .constant_bytes = plan->constant_bytes,
        .eager_run_count = executor->eager_run_count,
        .replay_run_count = executor->replay_run_count,
    };
    for (size_t v = 0; v < executor->variant_count; ++v) {
        stats.plan_count += executor->variants[v]->plan_count;
        stats.eager_run_count += executor->variants[v]->eager_run_count;
        stats.replay_run_count += executor->variants[v]->replay_run_count;
    }
    add_graph_stats(plan, &stats);
    *out_stats = stats;
    return RONDO_STATUS_OK;
}
