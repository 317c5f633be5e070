// executor/compile/plan_cache.c — see plan_cache.h.
// SPDX-License-Identifier: Apache-2.0

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "base/workers.h"
#include "device/device.h"
#include "executor/compile/base_form.h"
#include "executor/compile/declared.h"
#include "executor/compile/destroy.h"
#include "executor/compile/plan_cache.h"
#include "executor/compile/retire.h"
#include "executor/devices/transfers.h"
#include "executor/state/prepared.h"
#include "executor/state/states.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// Plans made for new values of a keyed input before values stop being keys.
enum { KEYED_MISS_LIMIT = 8 };

// Values that only decide branches are not fetched from a device: the device decides these branches
// itself.
static bool is_wanted(const rondo__unit *unit, size_t input, const rondo_tensor *feed) {
    return (unit->keys.keyed[input] != RONDO__WANT_NOTHING ||
            (unit->keys.deciding[input] && feed->device == NULL)) &&
           feed->shape.rank >= 0 && rondo_tensor_get_bytes(feed) > 0;
}

static bool is_bounded(const rondo__unit *unit, size_t input, const rondo_tensor *feed) {
    return unit->keys.keyed[input] == RONDO__WANT_BOUND &&
           !(unit->keys.deciding[input] && feed->device == NULL);
}

// Reads the value of an input; one on a GPU is waited for.
static rondo_status read_value(const rondo__unit *unit, size_t input, const rondo_tensor *feed,
                               void *bytes) {
    const size_t count = rondo_tensor_get_bytes(feed);
    if (feed->device != unit->executor->device) {
        memcpy(bytes, feed->data, count);
        return RONDO_STATUS_OK;
    }
    if (rondo_device_is_host(unit->executor->device)) {  // what is on the stream makes it
        RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
        memcpy(bytes, feed->data, count);
        return RONDO_STATUS_OK;
    }
    const char *name = unit->base->values[unit->base->inputs[input]].name;
    const rondo__copy_note note = {"key", NULL, name, feed->dtype, &feed->shape};
    RETURN_IF_ERROR(
        rondo__transfers_copy(unit->stream, RONDO__TO_HOST, &note, bytes, feed->data, count));
    rondo__transfers_note(unit->executor, RONDO__TO_HOST, count, true);
    return rondo_stream_synchronize(unit->stream);
}

// The largest value of a bounded input that is within its bounds.
int64_t rondo__unit_find_most(const rondo__unit *unit, const rondo_tensor *feeds, size_t input) {
    int64_t most = INT64_MAX;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        const rondo__value_bound *bound = &unit->keys.bounds[i];
        if (bound->of == (int32_t)input) {
            const int64_t extent =
                bound->axis < feeds[i].shape.rank ? feeds[i].shape.extent[bound->axis] : 0;
            most = extent < most ? extent : most;
        }
    }
    return most < INT64_MAX ? most : 0;
}

// Whether a value that was read is within its bounds.
static bool is_within(const rondo__unit *unit, const rondo_tensor *feeds, size_t input,
                      const void *value) {
    int64_t number = -1;
    if (feeds[input].dtype == RONDO_DTYPE_I32) {
        number = *(const int32_t *)value;
    } else if (feeds[input].dtype == RONDO_DTYPE_I64) {
        memcpy(&number, value, sizeof number);
    }
    return rondo_shape_get_count(&feeds[input].shape) == 1 && number > 0 &&
           number <= rondo__unit_find_most(unit, feeds, input);
}

// Whether the value of an input is part of a plan's key, and whether that it is within its bounds
// is. Values above bounds are none once they keep changing.
static rondo_status find_key(const rondo__unit *unit, const rondo_tensor *feeds, size_t input,
                             bool *out_has_value, bool *out_is_within) {
    const rondo_tensor *feed = &feeds[input];
    uint64_t value = 0;
    *out_has_value = is_wanted(unit, input, feed);
    *out_is_within = false;
    if (!*out_has_value || !is_bounded(unit, input, feed)) {
        return RONDO_STATUS_OK;
    }
    if (rondo_tensor_get_bytes(feed) <= sizeof value) {
        RETURN_IF_ERROR(read_value(unit, input, feed, &value));
        *out_is_within = is_within(unit, feeds, input, &value);
    }
    *out_has_value = !*out_is_within && unit->keys.miss_count <= KEYED_MISS_LIMIT;
    return RONDO_STATUS_OK;
}

// The part of a plan's key that says where an input lies. It counts for states, with the output
// that becomes the state and the bytes that its memory has, and for device tensors of a body whose
// data stay on the device.
typedef struct input_place {
    const void *address;
    int64_t output;
    size_t bytes;
} input_place;

static bool find_place(const rondo__unit *unit, size_t input, const rondo_tensor *feed,
                       input_place *out_place) {
    const rondo__state *state = rondo__state_find_read(unit, input);
    const bool is_near = unit->stays_on_device && feed->device == unit->executor->device;
    *out_place =
        (input_place){state != NULL ? state->value.tensor.data : feed->data,
                      state != NULL ? state->output : 0, state != NULL ? state->value.bytes : 0};
    return feed->shape.rank >= 0 && (state != NULL || is_near);
}

// Writes what a plan is found by: of each input dtype and shape, the value where plans are made
// for values, and where it lies if that counts. A plan serves sequences of any length.
static rondo_status write_key(rondo__unit *unit, const rondo_tensor *feeds, size_t *out_bytes) {
    size_t length = 0;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        const rondo_tensor *feed = &feeds[i];
        const bool is_nested = rondo__dtype_is_nested(feed->dtype);
        bool has_value, is_inside;
        RETURN_IF_ERROR(find_key(unit, feeds, i, &has_value, &is_inside));
        const size_t value_bytes = has_value ? rondo_tensor_get_bytes(feed) : 0;
        const int32_t rank = is_nested ? 0 : feed->shape.rank;
        input_place place;
        const bool is_placed = find_place(unit, i, feed, &place);
        const int32_t head[2] = {
            (int32_t)feed->dtype,
            8 * rank + (is_inside ? 4 : 0) + (is_placed ? 2 : 0) + (has_value ? 1 : 0)};
        const size_t place_bytes = is_placed ? sizeof place : 0;
        const size_t extent_bytes = rank > 0 ? (size_t)rank * sizeof feed->shape.extent[0] : 0;
        RETURN_IF_ERROR(
            RONDO__ARRAY_RESERVE(unit->keys.key, unit->keys.key_capacity,
                                 length + sizeof head + extent_bytes + place_bytes + value_bytes));
        memcpy(unit->keys.key + length, head, sizeof head);
        length += sizeof head;
        memcpy(unit->keys.key + length, feed->shape.extent, extent_bytes);
        length += extent_bytes;
        if (place_bytes > 0) {
            memcpy(unit->keys.key + length, &place, place_bytes);
            length += place_bytes;
        }
        if (value_bytes > 0) {
            RETURN_IF_ERROR(read_value(unit, i, feed, unit->keys.key + length));
        }
        length += value_bytes;
    }
    *out_bytes = length;
    return RONDO_STATUS_OK;
}

static void destroy_plan(void *user_data, void *value) {
    rondo__unit *unit = user_data;
    unit->plan_changes += 1;
    unit->current = unit->current == value ? NULL : unit->current;
    unit->fed_plan = unit->fed_plan == value ? NULL : unit->fed_plan;
    rondo__plan_give_up(unit, value);
}

// On a GPU, whose memory others use, too, plans leave three quarters of it alone. On the host the
// memory limit bounds them: see drop_crowded.
static uint64_t choose_byte_limit(const rondo_executor *executor) {
    const rondo_executor_options *options = &executor->options;
    rondo_device_info info = {.struct_size = sizeof info};
    if (options->plan_limit_bytes > 0) {
        return options->plan_limit_bytes;
    }
    if (options->memory_limit_bytes > 0) {
        return options->memory_limit_bytes / 2;
    }
    return rondo_device_is_host(executor->device) ||
                   rondo__device_get_facts(executor->device, &info) != RONDO_STATUS_OK
               ? 0
               : info.memory_bytes / 4;
}

void rondo__unit_init_plans(rondo__unit *unit) {
    unit->plan_limit_bytes = choose_byte_limit(unit->executor);
    rondo__lru_map_init(&unit->plans, unit->executor->options.plan_limit, unit->plan_limit_bytes,
                        destroy_plan, unit);
}

// Limits the plans to the bytes that the shared memory leaves of the limit.
static void update_limits(rondo__unit *unit) {
    const uint64_t limit = unit->plan_limit_bytes;
    const uint64_t shared = unit->run_memory_bytes;
    if (limit > 0) {
        rondo__lru_map_set_limits(&unit->plans, unit->executor->options.plan_limit,
                                  shared < limit ? limit - shared : 1);
    }
}

static void evict_plans(rondo__unit *unit, size_t count) {
    while (count > 0 && rondo__lru_map_evict_oldest(&unit->plans)) {
        count -= 1;
    }
}

// Plans wait for their shapes to come back; they leave half of the limit to runs.
static void drop_crowded(rondo__unit *unit) {
    const rondo__budget *budget = unit->executor->resources.budget;
    while (rondo__budget_get_used(budget) > rondo__budget_get_limit(budget) / 2 &&
           rondo__lru_map_evict_oldest(&unit->plans)) {
    }
}

static rondo_status copy_key(const rondo__unit *unit, size_t input, const rondo_tensor *feed,
                             rondo_tensor *out_key) {
    if (feed->device != unit->executor->device) {
        return rondo__tensor_copy(feed, out_key);
    }
    RETURN_IF_ERROR(rondo_tensor_init(feed->dtype, &feed->shape, out_key));
    return read_value(unit, input, feed, out_key->data);
}

// The feeds as a plan is compiled for them: without their bytes, except a copy of the keyed inputs'
// bytes. To be freed with rondo__tensors_free.
static rondo_status copy_keys(const rondo__unit *unit, const rondo_tensor *feeds,
                              rondo_tensor **out_keys) {
    const size_t count = unit->base->input_count;
    rondo_status status = RONDO_STATUS_OK;
    rondo_tensor *keys = rondo__calloc(count + 1, sizeof *keys);
    if (keys == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        bool has_value = false, is_inside = false;
        status = find_key(unit, feeds, i, &has_value, &is_inside);
        unit->keys.most[i] = is_inside ? rondo__unit_find_most(unit, feeds, i) : 0;
        if (status == RONDO_STATUS_OK && has_value) {
            status = copy_key(unit, i, &feeds[i], &keys[i]);
        } else {
            keys[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = feeds[i].shape};
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__tensors_free(keys, count);
        return status;
    }
    *out_keys = keys;
    return RONDO_STATUS_OK;
}

// Makes keys of the inputs whose values were wanted. False: all of them were keys before.
static bool add_keys(const rondo__unit *unit, const uint8_t *wanted) {
    bool has_new = false;
    uint8_t *keyed = unit->keys.keyed;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        has_new = has_new || wanted[i] > keyed[i];
        keyed[i] = wanted[i] > keyed[i] ? wanted[i] : keyed[i];
    }
    return has_new;
}

static bool add_deciding(const rondo__unit *unit, const bool *decides) {
    bool has_new = false;
    bool *deciding = unit->keys.deciding;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        has_new = has_new || (decides[i] && !deciding[i]);
        deciding[i] = deciding[i] || decides[i];
    }
    return has_new;
}

static bool takes_decisions(const rondo__unit *unit) {
    const rondo_executor_options *options = &unit->executor->options;
    return unit->depth == 0 && !unit->executor->is_described && !options->op_by_op &&
           !options->no_folding && unit->keys.decision_count <= RONDO__DECISIONS_MAX;
}

bool rondo__plan_leaves_branches(const rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (step->kind == RONDO__STEP_BYPASS && step->bypass == RONDO__BYPASS_CONTROL &&
            rondo__node_is(&plan->program->nodes[step->node], RONDO__OP_If)) {
            return true;
        }
    }
    return false;
}

// Finds the small inputs whose values decide shapes, and makes them keys. Gives the keys of the
// plan, and its program, or NULL where memory is short. Bodies of If, Loop and Scan are spared
// keys: their inputs change each turn.
static rondo_status find_keys(rondo__unit *unit, const rondo_tensor *feeds, rondo_tensor **out_keys,
                              rondo_program **out_program) {
    const size_t count = unit->base->input_count;
    const bool takes_keys =
        unit->worth != NULL || (unit->depth == 0 && unit->keys.miss_count <= KEYED_MISS_LIMIT);
    uint8_t *wanted = rondo__calloc(count + 1, sizeof *wanted);
    rondo_tensor *keys = NULL;
    rondo_program *program = NULL;
    rondo_status status = wanted == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    for (bool has_new = true; has_new && status == RONDO_STATUS_OK;) {
        rondo_program_destroy(program);
        rondo__tensors_free(keys, count);
        program = NULL;
        keys = NULL;
        has_new = false;
        status = copy_keys(unit, feeds, &keys);
        if (status == RONDO_STATUS_OK) {
            status = rondo__plan_specialise(unit, keys, &program, takes_keys ? wanted : NULL);
            has_new = status == RONDO_STATUS_OK && takes_keys && add_keys(unit, wanted);
        }
    }
    rondo__free(wanted);
    if (status != RONDO_STATUS_OK && (keys == NULL || !rondo__is_out_of_memory(status))) {
        rondo__tensors_free(keys, count);
        return status;
    }
    *out_keys = keys;
    *out_program = program;
    return RONDO_STATUS_OK;
}

// Evicts the plans that variants of the executor keep for other sets of optional inputs.
static void evict_others(const rondo__unit *unit) {
    rondo_executor *executor = unit->executor;
    for (size_t v = 0; unit->depth == 0 && v < executor->variants.count; ++v) {
        if (executor->variants.list[v] != unit) {
            evict_plans(executor->variants.list[v], SIZE_MAX);
        }
    }
    if (unit->depth == 0 && &executor->main != unit) {
        evict_plans(&executor->main, SIZE_MAX);
    }
}

// Takes `program`; NULL: it is made here.
static rondo_status compile(rondo__unit *unit, const rondo_tensor *keys, rondo_program *program,
                            rondo__plan **out_plan) {
    if (program == NULL) {
        RETURN_IF_ERROR(rondo__plan_specialise(unit, keys, &program, NULL));
    }
    return rondo__plan_create(unit, program, out_plan);
}

// Compiles a plan. Where memory is short, what plans of other shapes hold is given up for it (the
// older half of them, then all), and then what was folded ahead, which may be more than a run
// needs.
//
// halves     of a program from a plan file, which the passes have been over; NULL: it is none.
static rondo_status create_plan(rondo__unit *unit, const rondo_tensor *keys, rondo_program *program,
                                rondo__half_report *halves, const rondo__record *kernels,
                                rondo__plan **out_plan) {
    // Kernels that cut their work ahead must see the number of threads that will run them.
    const int32_t count = (int32_t)unit->executor->options.thread_count;
    const int32_t former = rondo__host_choose_thread_count(count);
    rondo__workers *former_workers = rondo__workers_choose(unit->executor->options.workers);
    rondo__crew_enter();
    const rondo__lru_stats *plans = &unit->plans.stats;
    rondo_status status = halves != NULL
                              ? rondo__plan_create_ready(unit, program, halves, kernels, out_plan)
                              : compile(unit, keys, program, out_plan);
    for (size_t keep = plans->entry_count / 2;
         rondo__is_out_of_memory(status) && plans->entry_count > 0; keep = 0) {
        evict_plans(unit, plans->entry_count - keep);
        evict_others(unit);
        status = compile(unit, keys, NULL, out_plan);
    }
    if (rondo__is_out_of_memory(status) && !unit->is_lean) {
        rondo_error saved;
        rondo__error_save(&saved);
        unit->is_lean = true;
        evict_others(unit);
        if (rondo__unit_make_base(unit) == RONDO_STATUS_OK) {
            status = compile(unit, keys, NULL, out_plan);
        } else {
            rondo__error_restore(&saved);
        }
    }
    rondo__crew_leave();
    (void)rondo__workers_choose(former_workers);
    (void)rondo__host_choose_thread_count(former);
    return status;
}

// Destroys a plan whose outputs contradict what the model declares.
static rondo_status check_outputs(rondo__unit *unit, rondo__plan *plan) {
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
        if (slot->kind == RONDO__SLOT_DYNAMIC) {
            continue;  // known after the run
        }
        rondo_status status = rondo__unit_check_output(unit, i, slot->dtype, &slot->shape);
        if (status != RONDO_STATUS_OK) {
            rondo__plan_destroy(unit, plan);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

// Branches that are taken by ever new values, as a counter of steps, are decided at run time.
static void count_decision(rondo__unit *unit, const rondo_tensor *feeds) {
    uint64_t hash = 0;
    bool is_deciding = false;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        if (unit->keys.deciding[i] && is_wanted(unit, i, &feeds[i])) {
            hash = rondo__hash64(hash, feeds[i].data, rondo_tensor_get_bytes(&feeds[i]));
            is_deciding = true;
        }
    }
    is_deciding = is_deciding && !unit->executor->is_described;
    for (size_t i = 0; i < unit->keys.decision_count && is_deciding; ++i) {
        is_deciding = unit->keys.decisions[i] != hash;
    }
    if (!is_deciding) {
        return;
    }
    if (unit->keys.decision_count < RONDO__DECISIONS_MAX) {
        unit->keys.decisions[unit->keys.decision_count] = hash;
    } else {
        RONDO_LOG_INFO_F(
            "input values that decide branches keep changing; they are decided at run time from "
            "now on");
        memset(unit->keys.deciding, 0, unit->base->input_count * sizeof *unit->keys.deciding);
    }
    ++unit->keys.decision_count;
}

// Where values keep changing, making a plan for each costs more than bypassing those ops.
static void give_up_keys(rondo__unit *unit, const rondo_tensor *feeds) {
    bool has_keys = false;
    if (unit->worth != NULL) {
        return;  // which decides
    }
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        bool has_value = false, is_inside;
        const rondo_status status = find_key(unit, feeds, i, &has_value, &is_inside);
        has_keys = has_keys || (status == RONDO_STATUS_OK && has_value);
    }
    if (has_keys && ++unit->keys.miss_count > KEYED_MISS_LIMIT) {
        RONDO_LOG_INFO_F(
            "input values that decide shapes keep changing; such ops are bypassed from now on");
        for (size_t i = 0; i < unit->base->input_count; ++i) {
            if (unit->keys.keyed[i] == RONDO__WANT_VALUE) {
                unit->keys.keyed[i] = RONDO__WANT_NOTHING;
            }
        }
    }
}

// Puts a plan among the others, or destroys it. The keys may be others than when it was looked
// for.
static rondo_status keep_plan(rondo__unit *unit, const rondo_tensor *feeds, rondo__plan *plan) {
    size_t key_bytes = 0;
    drop_crowded(unit);
    update_limits(unit);
    rondo_status status = write_key(unit, feeds, &key_bytes);
    if (status == RONDO_STATUS_OK) {
        status = rondo__lru_map_add(&unit->plans, unit->keys.key, key_bytes, plan, plan->bytes,
                                    &plan->entry);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__plan_destroy(unit, plan);
    }
    return status;
}

// Compiles a plan with the keys that are known. *out_has_new: inputs in host memory decide which
// branches are taken of Ifs that the plan leaves to the host, and are keys from now on.
static rondo_status compile_with(rondo__unit *unit, const rondo_tensor *feeds, bool *decides,
                                 rondo__plan **out_plan, bool *out_has_new) {
    const size_t count = unit->base->input_count;
    rondo_tensor *keys = NULL;
    rondo_program *program = NULL;
    rondo_status status = find_keys(unit, feeds, &keys, &program);
    const bool is_asked = status == RONDO_STATUS_OK && program != NULL && takes_decisions(unit);
    if (is_asked) {
        status = rondo__program_find_deciding(program, decides);
    }
    if (status == RONDO_STATUS_OK) {
        status = create_plan(unit, keys, program, NULL, NULL, out_plan);
    } else {
        rondo_program_destroy(program);
    }
    rondo__tensors_free(keys, count);
    if (status == RONDO_STATUS_OK && is_asked && rondo__plan_leaves_branches(*out_plan)) {
        for (size_t i = 0; i < count; ++i) {
            decides[i] = decides[i] && feeds[i].device == NULL;
        }
        *out_has_new = add_deciding(unit, decides);
    }
    return status;
}

// Makes the plan of what a plan file has for these feeds; *out_plan stays NULL where that is
// nothing.
static rondo_status make_ready(rondo__unit *unit, const rondo_tensor *feeds,
                               rondo__plan **out_plan) {
    size_t key_bytes = 0;
    rondo_program *program = NULL;
    rondo__half_report halves = {0};
    rondo__record kernels;
    rondo_tensor *keys = NULL;
    if (unit->source->saved == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(write_key(unit, feeds, &key_bytes));
    char *base_key = rondo__unit_write_base_key(unit);
    if (base_key == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo__prepared_find_plan(unit, base_key, unit->keys.key, key_bytes,
                                                    &program, &halves, &kernels);
    rondo__free(base_key);
    if (status != RONDO_STATUS_OK || program == NULL) {
        return status;
    }
    RONDO_LOG_DEBUG_F("a plan's program comes from the plan file");
    status = copy_keys(unit, feeds, &keys);
    if (status == RONDO_STATUS_OK) {
        status = create_plan(unit, keys, program, &halves, &kernels, out_plan);
        rondo__tensors_free(keys, unit->base->input_count);
    } else {
        rondo_program_destroy(program);
        rondo__half_report_deinit(&halves);
    }
    return status;
}

static rondo_status compile_for(rondo__unit *unit, const rondo_tensor *feeds,
                                rondo__plan **out_plan) {
    bool *decides = rondo__calloc(unit->base->input_count + 1, sizeof *decides);
    rondo_status status = decides != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (bool has_new = true; has_new && status == RONDO_STATUS_OK;) {
        has_new = false;
        status = compile_with(unit, feeds, decides, out_plan, &has_new);
        if (has_new) {
            rondo__plan_destroy(unit, *out_plan);
            *out_plan = NULL;
            count_decision(unit, feeds);
        }
    }
    rondo__free(decides);
    return status;
}

static rondo_status make_new_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                  rondo__plan **out_plan) {
    const uint64_t start_ns = rondo__clock_now_ns();
    rondo__plan *plan = NULL;
    unit->plan_changes += 1;
    give_up_keys(unit, feeds);
    count_decision(unit, feeds);
    rondo__executor_sweep(unit->executor);
    if (unit->plans.stats.entry_count >= unit->executor->options.plan_limit) {
        evict_plans(unit, 1);
    }
    const int64_t taken = rondo__memory_get_thread_bytes();
    rondo_status status = make_ready(unit, feeds, &plan);
    if (status == RONDO_STATUS_OK && plan == NULL) {
        status = compile_for(unit, feeds, &plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_outputs(unit, plan);
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    const int64_t held = rondo__memory_get_thread_bytes() - taken;
    plan->bytes = held > 0 ? (uint64_t)held : 0;
    plan->prepare_ns = rondo__clock_now_ns() - start_ns;
    RONDO_LOG_DEBUG_F("a plan of %zu ops in %.0f ms, %.0f of them for %" PRIu64
                      " bytes of weights that were not there",
                      plan->item_count, (double)plan->prepare_ns * 1e-6,
                      (double)plan->weights.made_ns * 1e-6, plan->weights.made_bytes);
    status = keep_plan(unit, feeds, plan);
    *out_plan = status == RONDO_STATUS_OK ? plan : NULL;
    return status;
}

static rondo_status make_plan(rondo__unit *unit, const rondo_tensor *feeds,
                              rondo__plan **out_plan) {
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_PLAN, "compile a plan");
    const rondo_status status = make_new_plan(unit, feeds, out_plan);
    rondo__hook_leave(&scope);
    return status;
}

// The plan for feeds with just these shapes, or NULL: see plan_worth.h.
static rondo_status find_exact_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                    rondo__plan **out_plan) {
    size_t key_bytes = 0;
    *out_plan = NULL;
    RETURN_IF_ERROR(write_key(unit, feeds, &key_bytes));
    const rondo__lru_entry *entry = rondo__lru_map_find(&unit->plans, unit->keys.key, key_bytes);
    if (entry != NULL) {
        rondo__plan *plan = rondo__lru_entry_get_value(entry);
        if (unit->worth != NULL && plan->is_outweighed) {
            return RONDO_STATUS_OK;
        }
        *out_plan = plan;
        if (unit->worth != NULL) {
            rondo__plan_worth_note_use(unit->worth);
        }
        return RONDO_STATUS_OK;
    }
    if (unit->worth != NULL && !rondo__plan_worth_admits(unit->worth, unit->keys.key, key_bytes)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(make_plan(unit, feeds, out_plan));
    if (unit->worth != NULL) {
        rondo__plan_worth_note_plan(unit->worth, *out_plan);
    }
    return RONDO_STATUS_OK;
}

// The plan that does for shapes of every kind.
static rondo_status find_shapeless_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                        rondo__plan **out_plan) {
    const size_t count = unit->base->input_count;
    rondo_tensor *shapeless = rondo__calloc(count + 1, sizeof *shapeless);
    if (shapeless == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        shapeless[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = {.rank = -1}};
    }
    size_t key_bytes = 0;
    rondo_status status = write_key(unit, shapeless, &key_bytes);
    const rondo__lru_entry *entry =
        status == RONDO_STATUS_OK ? rondo__lru_map_find(&unit->plans, unit->keys.key, key_bytes)
                                  : NULL;
    if (entry != NULL) {
        *out_plan = rondo__lru_entry_get_value(entry);
    } else if (status == RONDO_STATUS_OK) {
        status = make_plan(unit, shapeless, out_plan);
    }
    rondo__free(shapeless);
    return status;
}

rondo_status rondo__unit_find_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                   rondo__plan **out_plan) {
    rondo__plan *plan = NULL;
    *out_plan = NULL;
    RETURN_IF_ERROR(find_exact_plan(unit, feeds, &plan));
    if (plan == NULL) {
        RETURN_IF_ERROR(find_shapeless_plan(unit, feeds, &plan));
    }
    unit->current = plan;
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

bool rondo__unit_has_keys(const rondo__unit *unit) {
    bool has = false;
    for (size_t i = 0; i < unit->base->input_count; ++i) {
        has = has || unit->keys.keyed[i] != RONDO__WANT_NOTHING || unit->keys.deciding[i];
    }
    return has;
}

void rondo__unit_use_plan(rondo__unit *unit, rondo__plan *plan) {
    rondo__lru_map_touch(&unit->plans, plan->entry);
    unit->plans.stats.hit_count += 1;
    unit->current = plan;
}

rondo_status rondo__unit_look_up_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                      rondo__plan **out_plan) {
    *out_plan = NULL;
    const rondo_program *base = unit->base;
    for (size_t i = 0; i < base->input_count; ++i) {
        const char *name = base->values[base->inputs[i]].name;
        if (unit->keys.deciding[i] && is_wanted(unit, i, &feeds[i])) {
            return RONDO_FAIL(INVALID,
                              "feed \"%s\" decides a branch, which a replay would not ask for "
                              "again: give it in device memory, also in the run before",
                              name);
        }
        if (is_wanted(unit, i, &feeds[i]) && feeds[i].device == unit->executor->device) {
            return RONDO_FAIL(INVALID,
                              "feed \"%s\" decides shapes, so its value must be known now: give it "
                              "in host memory",
                              name);
        }
    }
    size_t key_bytes = 0;
    RETURN_IF_ERROR(write_key(unit, feeds, &key_bytes));
    const rondo__lru_entry *entry = rondo__lru_map_find(&unit->plans, unit->keys.key, key_bytes);
    *out_plan = entry != NULL ? rondo__lru_entry_get_value(entry) : NULL;
    return RONDO_STATUS_OK;
}

rondo_status rondo__unit_infer_outputs(rondo__unit *unit, const rondo_tensor *feeds,
                                       rondo__tensor_info *out_infos) {
    const size_t count = unit->base->input_count;
    rondo_tensor *shapes = rondo__calloc(count + 1, sizeof *shapes);
    if (shapes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        shapes[i] = (rondo_tensor){.dtype = feeds[i].dtype, .shape = feeds[i].shape};
    }
    rondo_program *trial = NULL;
    rondo_status status =
        rondo__program_specialise(unit->base, shapes, RONDO__LEAN_FOLD_BYTES, &trial, NULL);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < trial->output_count; ++i) {
        rondo__program_get_info(trial, trial->outputs[i], &out_infos[i]);
        out_infos[i].constant = NULL;
    }
    rondo_program_destroy(trial);
    rondo__free(shapes);
    return status == RONDO_STATUS_NO_MEMORY ? status : RONDO_STATUS_OK;
}
