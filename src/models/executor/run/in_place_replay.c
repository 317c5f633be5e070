// executor/run/in_place_replay.c — see in_place_replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/in_place_replay.h"

#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/run/branch_trial.h"
#include "executor/run/self_check.h"
#include "executor/state/arena_plan.h"
#include "executor/state/governed.h"
#include "learn/run_here.h"
#include "rondo/learn.h"

void *rondo__in_place_find(const rondo__plan *plan, int32_t value) {
    return plan->run.is_in_place ? rondo__stand_ins_find(&plan->run.in_place->places, value)
                                 : plan->slots[value].address;
}

// ---- life -------------------------------------------------------------------------------------

static rondo_status make_in_place(const rondo__unit *unit, rondo__plan *plan) {
    const size_t ports = plan->program->input_count + plan->program->output_count + 1;
    rondo__in_place *in_place = rondo__calloc(1, sizeof *in_place);
    if (in_place == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    plan->run.in_place = in_place;
    rondo_status status = rondo__stand_ins_init(unit, plan, &in_place->places);
    in_place->roots = rondo__calloc(ports, sizeof *in_place->roots);
    in_place->found = rondo__calloc(ports, sizeof *in_place->found);
    in_place->values = rondo__calloc(ports, sizeof *in_place->values);
    in_place->uses = rondo__calloc(plan->program->value_count, sizeof *in_place->uses);
    if (status == RONDO_STATUS_OK && (in_place->roots == NULL || in_place->found == NULL ||
                                      in_place->values == NULL || in_place->uses == NULL)) {
        status = RONDO_STATUS_NO_MEMORY;
    }
    if (status != RONDO_STATUS_OK) {
        rondo__in_place_free(plan);
        return status;
    }
    rondo__program_count_uses(plan->program, in_place->uses);
    in_place->places.arena = plan->memory.arena->address;
    const rondo_status status_of_plan = rondo__stand_ins_check(plan, "rondo_executor_run", false);
    in_place->is_refused = status_of_plan != RONDO_STATUS_OK;
    return RONDO_STATUS_OK;
}

// ---- learning ---------------------------------------------------------------------------------

static void set_places(rondo__in_place *in_place, const rondo_value *values) {
    for (size_t i = 0; i < in_place->count; ++i) {
        in_place->places.by_root[in_place->roots[i]] = values[i].pointer;
    }
}

static rondo_status put_step(rondo_stream *stream, const rondo_value *arguments, void *user_data) {
    rondo__in_place *in_place = user_data;
    set_places(in_place, arguments);
    return in_place->branches != NULL
               ? rondo__branches_record(in_place->branches, stream, rondo__stand_ins_launch_item,
                                        &in_place->places)
               : rondo__stand_ins_launch(&in_place->places, stream);
}

// Records with branches where the plan's graph has won with them.
static rondo_status open_branches(const rondo__unit *unit, const rondo__plan *plan,
                                  rondo__in_place *in_place) {
    if (in_place->branches != NULL || plan->steps[0].run.branch_count < 2 ||
        in_place->places.watched != NULL) {
        return RONDO_STATUS_OK;
    }
    return rondo__branches_open(unit, plan, &plan->steps[0], &in_place->branches);
}

static rondo_status create_learned(const rondo_executor *executor, const rondo__plan *plan,
                                   rondo__in_place *in_place) {
    const bool is_host = rondo_device_is_host(executor->device);
    rondo_argument *arguments = rondo__calloc(in_place->count, sizeof *arguments);
    if (arguments == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < in_place->count; ++i) {
        arguments[i] = (rondo_argument){.struct_size = sizeof *arguments,
                                        .name = plan->program->values[in_place->roots[i]].name,
                                        .kind = RONDO_ARGUMENT_POINTER,
                                        .extent = plan->slots[in_place->roots[i]].bytes,
                                        .alignment = RONDO__ARENA_ALIGNMENT,
                                        .is_unchecked = is_host};
    }
    // draws_wanted 1: no later run is compared with a recording. The step is the library's own.
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .label = "model",
                                           .fallback = RONDO_LEARN_REFUSE,
                                           .draws_wanted = 1};
    const rondo_status status =
        rondo_learned_create(executor->device, &options, arguments, in_place->count, put_step,
                             in_place, &in_place->learned);
    rondo__free(arguments);
    return status;
}

static rondo_status learn(const rondo__unit *unit, const rondo__plan *plan,
                          rondo__in_place *in_place) {
    rondo_learned_report report = {.struct_size = sizeof report};
    rondo_status status = open_branches(unit, plan, in_place);
    if (status == RONDO_STATUS_OK) {
        status = create_learned(unit->executor, plan, in_place);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            rondo_learned_learn(in_place->learned, unit->stream, in_place->values, in_place->count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_learned_get_report(in_place->learned, &report);
    }
    set_places(in_place, in_place->values);  // trials had others
    // An address that no node shows reaches a kernel through memory.
    if (status != RONDO_STATUS_OK || report.state != RONDO_LEARNED_PROVED ||
        report.unseen_count > 0 || report.excluded_count > 0) {
        RONDO_LOG_INFO_F("device tensors are copied: %s",
                         status != RONDO_STATUS_OK ? rondo_error_get_last()->message
                         : report.finding_count > 0 && report.message[0] == '\0'
                             ? "not every address shows in a node"
                             : report.message);
        rondo_learned_destroy(in_place->learned);
        in_place->learned = NULL;
        in_place->is_refused = true;
    }
    return status;
}

// The same, counted among what the plan takes.
static rondo_status learn_counted(rondo__unit *unit, rondo__plan *plan) {
    const int64_t taken = rondo__memory_get_thread_bytes();
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    const rondo_status status = learn(unit, plan, plan->run.in_place);
    const int64_t held = rondo__memory_get_thread_bytes() - taken;
    plan->bytes += held > 0 ? (uint64_t)held : 0;
    if (plan->run.in_place->learned != NULL &&
        rondo_graph_get_stats(rondo_learned_get_graph(plan->run.in_place->learned), &stats) ==
            RONDO_STATUS_OK) {
        plan->bytes += stats.device_bytes;
    }
    rondo__lru_map_set_bytes(&unit->plans, plan->entry, plan->bytes);
    return status;
}

// ---- a run ------------------------------------------------------------------------------------

// Whether the plan is one graph whose work is the same in each run.
static bool is_possible(const rondo__unit *unit, const rondo__plan *plan) {
    return unit->depth == 0 && unit->executor->graphs != RONDO_GRAPHS_OFF &&
           rondo__governed_may_replay(unit->executor) && plan->run.count > 0 &&
           unit->executor->options.communicator == NULL && plan->step_count == 1 &&
           plan->steps[0].run.graph != NULL && plan->random_count == 0 &&
           !rondo__self_check_is_expected(unit->executor) &&
           !rondo__branches_are_open(unit, plan) &&
           (plan->run.in_place == NULL || !plan->run.in_place->is_refused);
}

static bool has_near(const rondo__fetch *fetch, const rondo_tensor *feeds) {
    const rondo_program *program = fetch->plan->program;
    bool has = false;
    for (size_t i = 0; i < program->input_count; ++i) {
        has = has || (rondo__stand_ins_is_near(fetch->unit->executor, &feeds[i]) &&
                      !fetch->plan->slots[program->inputs[i]].is_bound);
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        has = has || rondo__stand_ins_is_near(fetch->unit->executor, &fetch->results[i]);
    }
    return has;
}

// Lets the run's tensors stand in.
static void choose(const rondo__fetch *fetch, rondo__in_place *in_place,
                   const rondo_tensor *feeds) {
    const rondo_program *program = fetch->plan->program;
    memset(in_place->places.by_root, 0, program->value_count * sizeof *in_place->places.by_root);
    rondo__stand_ins_choose(&in_place->places, feeds, fetch->results, fetch->wants);
}

static size_t add_found(rondo__in_place *in_place, int32_t root, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (in_place->found[i] == root) {
            return count;
        }
    }
    if (in_place->places.by_root[root] == NULL) {
        return count;
    }
    in_place->found[count] = root;
    in_place->values[count].pointer = in_place->places.by_root[root];
    return count + 1;
}

// Lists what stands in. False: something else than in the run before.
static bool list_found(rondo__in_place *in_place, const rondo__plan *plan) {
    const rondo_program *program = plan->program;
    size_t count = 0;
    for (size_t i = 0; i < program->input_count; ++i) {
        if (in_place->uses[program->inputs[i]] > 0) {
            count = add_found(in_place, plan->slots[program->inputs[i]].root, count);
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        count = add_found(in_place, plan->slots[program->outputs[i]].root, count);
    }
    const bool is_same = count == in_place->count && memcmp(in_place->found, in_place->roots,
                                                            count * sizeof *in_place->roots) == 0;
    memcpy(in_place->roots, in_place->found, count * sizeof *in_place->roots);
    in_place->count = count;
    return is_same;
}

rondo_status rondo__in_place_begin(const rondo__fetch *fetch, rondo__plan *plan,
                                   const rondo_tensor *feeds) {
    rondo__unit *unit = fetch->unit;
    plan->run.is_in_place = false;
    if (!is_possible(unit, plan) || !has_near(fetch, feeds)) {
        return RONDO_STATUS_OK;
    }
    if (plan->run.in_place == NULL && make_in_place(unit, plan) != RONDO_STATUS_OK) {
        return RONDO_STATUS_OK;
    }
    rondo__in_place *in_place = plan->run.in_place;
    choose(fetch, in_place, feeds);
    const bool is_watched_so = rondo__stand_ins_watch(&in_place->places);
    if (!list_found(in_place, plan) || !is_watched_so) {
        in_place->seen = 0;
        rondo_learned_destroy(in_place->learned);
        in_place->learned = NULL;
    }
    in_place->seen += 1;
    if (in_place->is_refused || in_place->count == 0 || in_place->seen < 2) {
        return RONDO_STATUS_OK;
    }
    if (in_place->learned == NULL) {
        const rondo_status status = learn_counted(unit, plan);
        if (status == RONDO_STATUS_LOST) {
            return status;
        }
    }
    plan->run.is_in_place = in_place->learned != NULL;
    return RONDO_STATUS_OK;
}

static rondo_status put_learned(void *user_data) {
    const rondo__in_place *in_place = user_data;
    return rondo_learned_run(in_place->learned, in_place->places.unit->stream, in_place->values,
                             in_place->count);
}

rondo_status rondo__in_place_run(rondo__unit *unit, rondo__plan *plan) {
    rondo__in_place *in_place = plan->run.in_place;
    const bool is_whole = plan->run.is_fed && plan->steps[0].run.may_run_here;
    if (is_whole && in_place->places.watched == NULL) {
        RETURN_IF_ERROR(rondo__learned_run_here(in_place->learned, unit->stream, in_place->values,
                                                in_place->count,
                                                &unit->executor->work.is_all_here));
    } else {
        RETURN_IF_ERROR(rondo__stand_ins_replay(&in_place->places, put_learned, in_place));
    }
    unit->runs.in_place_count += 1;
    unit->executor->work.ran_count += plan->item_count;
    unit->executor->work.replayed_count += plan->item_count;
    return RONDO_STATUS_OK;
}
