// doctor_report.c — see doctor_report.h: the examination and the text.
// SPDX-License-Identifier: Apache-2.0
#include "doctor_report.h"

#include <string.h>

#include "console.h"
#include "doctor/analysis/doctor_changes.h"

enum { SHOWN = 6, KEPT_STEPS = 8, KEPT_WORKS = 1024, LOOKED_AT = 64 };

bool cli_doctor_examine(cli_doctor *doctor) {
    if (!rondo__doctor_find_steps(doctor->log, &doctor->steps) ||
        !rondo__doctor_predict(&doctor->steps, &doctor->costs)) {
        return cli_fail_memory();
    }
    rondo__doctor_apply_rules(&doctor->steps, &doctor->findings);
    for (size_t i = 0; i < doctor->other_count; i++) {
        rondo__doctor_steps other;
        if (rondo__doctor_find_steps(doctor->others[i], &other)) {
            rondo__doctor_compare_ranks(&doctor->steps, &other, &doctor->findings);
            rondo__doctor_steps_clear(&other);
        }
    }
    return true;
}

void cli_doctor_clear(cli_doctor *doctor) {
    rondo__doctor_steps_clear(&doctor->steps);
}

char *cli_doctor_format_us(double us, char *buffer, size_t bytes) {
    if (us < 1000.0) {
        snprintf(buffer, bytes, us < 10.0 ? "%.2f us" : "%.1f us", us);
    } else if (us < 1e6) {
        snprintf(buffer, bytes, us < 1e4 ? "%.2f ms" : "%.1f ms", us * 1e-3);
    } else {
        snprintf(buffer, bytes, "%.2f s", us * 1e-6);
    }
    return buffer;
}

#define US(value) cli_doctor_format_us((value), (char[32]){0}, 32)

// ---- the step ---------------------------------------------------------------------------------

static void print_head(const cli_doctor *doctor) {
    const rondo__doctor_log *log = doctor->log;
    char process[48] = "";
    if (doctor->process != 0) {
        snprintf(process, sizeof process, " (process %u)", doctor->process);
    }
    cli_say(CLI_NORMAL, "rondo doctor: %s%s: %llu calls, %llu launches in %s", doctor->program,
            process, (unsigned long long)log->seen_count, (unsigned long long)log->launch_count,
            US((double)(log->last_ns - log->first_ns) * 1e-3));
    if (doctor->other_count > 0) {
        cli_say(CLI_NORMAL,
                "         %zu more of its processes called the driver; this one "
                "launched most",
                doctor->other_count);
    }
    if (doctor->lost_count > 0) {
        cli_say(CLI_NORMAL, "         %u calls came faster than they were read, and are missing",
                doctor->lost_count);
    }
}

static void count_kinds(const cli_doctor *doctor, size_t *out_copies, size_t *out_fills) {
    const rondo__doctor_steps *steps = &doctor->steps;
    const rondo__doctor_step *step = &steps->steps[steps->reference];
    *out_copies = 0;
    *out_fills = 0;
    for (size_t i = 0; i < step->work_count; i++) {
        const uint16_t call = steps->log->events[steps->works[step->work_first + i]].call;
        const rondo__doctor_kind kind = rondo__doctor_call_kind(call);
        *out_copies += kind == RONDO__DOCTOR_KIND_COPY || kind == RONDO__DOCTOR_KIND_COPY_WAIT;
        *out_fills += kind == RONDO__DOCTOR_KIND_FILL || kind == RONDO__DOCTOR_KIND_FILL_WAIT;
    }
}

// Why nothing is known of what the device did.
static const char *explain_lack(const rondo__doctor_log *log) {
    for (size_t i = 0; log->note == NULL && i < log->event_count; i++) {
        if ((log->events[i].flags & RONDO__DOCTOR_TIMED) != 0) {
            return "the program ended while they were taken; let it make steps for a second longer";
        }
    }
    return log->note != NULL ? log->note
                             : "they were not taken: --no-times, or less than a second of steps";
}

static void print_step(const cli_doctor *doctor) {
    const rondo__doctor_costs *costs = &doctor->costs;
    size_t copies = 0;
    size_t fills = 0;
    count_kinds(doctor, &copies, &fills);
    const char *name = rondo__doctor_log_text(doctor->log, doctor->steps.name);
    cli_say(CLI_NORMAL,
            "step     %.80s%s%zu launches, %zu graphs, %zu copies, %zu fills; %s (%s to %s)", name,
            name[0] != '\0' ? ": " : "", costs->launch_count, costs->graph_launch_count, copies,
            fills, US(costs->step_us), US(costs->step_low_us), US(costs->step_high_us));
    cli_say(
        CLI_NORMAL,
        "         seen %zu times, %zu of them with as much work; %.1f %% of the work is that of "
        "the step before%s",
        doctor->steps.count, doctor->steps.typical_count, 100.0 * doctor->steps.match,
        doctor->steps.is_loose ? ", but for grids and amounts" : "");
    cli_say(CLI_NORMAL, "host     %s a launch; of a step %s in such calls, %s in waits, %s away",
            US(costs->launch_us), US(costs->calls_us), US(costs->waits_us), US(costs->away_us));
    if (costs->has_times) {
        cli_say(CLI_NORMAL, "device   works %s of a step, %s of that for copies; idle %.0f %%",
                US(costs->device_us), US(costs->copy_us), 100.0 * costs->idle_share);
    } else {
        cli_say(CLI_NORMAL, "device   its times are not known (%s)", explain_lack(doctor->log));
    }
    if (costs->path.is_known) {
        cli_say(CLI_NORMAL,
                "path     %zu of its works follow each other, %s of the device; %zu stream%s",
                costs->path.work_count, US(costs->path.path_us), costs->path.stream_count,
                costs->path.stream_count == 1 ? "" : "s");
    }
    if (doctor->cost_us > 0.0 && costs->step_us > 0.0) {
        const rondo__doctor_step *step = &doctor->steps.steps[doctor->steps.reference];
        cli_say(CLI_NORMAL, "watching %s a call, %.1f %% of a step", US(doctor->cost_us),
                100.0 * doctor->cost_us * (double)(step->last - step->first) / costs->step_us);
    }
}

// ---- the verdict ------------------------------------------------------------------------------

static const char *explain(rondo__doctor_verdict verdict) {
    static const char *const texts[] = {
        [RONDO__DOCTOR_NO_STEP] = "no sequence of launches and copies came three times in a row",
        [RONDO__DOCTOR_NO_TIMES] = "without device times nothing can be said of graphs",
        [RONDO__DOCTOR_LAUNCH_BOUND] = "the device waits for launches",
        [RONDO__DOCTOR_HOST_BOUND] = "the device waits for what the host does between steps",
        [RONDO__DOCTOR_KERNEL_BOUND] = "the device works nearly all of the time",
        [RONDO__DOCTOR_COPY_BOUND] = "the device works nearly all of the time, mostly at copies",
        [RONDO__DOCTOR_IS_GRAPH] = "the step launches graphs already",
    };
    return texts[verdict];
}

static void print_verdict(const cli_doctor *doctor) {
    const rondo__doctor_costs *costs = &doctor->costs;
    cli_say(CLI_NORMAL, "verdict  %s: %s", rondo__doctor_verdict_name(costs->verdict),
            explain(costs->verdict));
    if (!costs->has_times) {
        return;
    }
    cli_say(CLI_NORMAL, "         as one graph a replay would take about %s (%s to %s)",
            US(costs->graph_us), US(costs->graph_low_us), US(costs->graph_high_us));
    if (costs->is_rehearsed) {
        cli_say(
            CLI_NORMAL,
            "         rehearsed: a graph of its shape, with waits as kernels, took %s on this GPU",
            US((double)doctor->log->rehearsal.median_ns * 1e-3));
    } else if (doctor->rehearsal_problem[0] != '\0') {
        cli_say(CLI_NORMAL, "         by constants: it was not rehearsed (%s)",
                doctor->rehearsal_problem);
    }
    if (rondo__doctor_is_worth_it(costs)) {
        cli_say(CLI_NORMAL,
                "         and the step %s: %.2f times as fast; the capture is paid for after %.0f "
                "replay%s",
                US(costs->after_us), costs->step_us / costs->after_us, costs->break_even + 1.0,
                costs->break_even < 0.5 ? "" : "s");
    } else {
        cli_say(CLI_NORMAL, "         graphs would gain nothing that is worth it");
    }
}

// ---- findings ---------------------------------------------------------------------------------

static void print_finding(const cli_doctor *doctor, const rondo__doctor_finding *finding) {
    static const char *const harms[] = {[RONDO__DOCTOR_BREAKS] = "breaks a capture",
                                        [RONDO__DOCTOR_FREEZES] = "stays as it was captured",
                                        [RONDO__DOCTOR_COSTS] = "costs time",
                                        [RONDO__DOCTOR_NOTES] = "most likely harmless"};
    const rondo__doctor_rule_row *rule = rondo__doctor_get_rule(finding->rule);
    const char *name = rondo__doctor_log_text(doctor->log, finding->name);
    const char *place = rondo__doctor_log_text(doctor->log, finding->place);
    const char *line = rondo__doctor_log_text(doctor->log, finding->line);
    char cost[64] = "";
    char word[48] = "";
    if (finding->cost_us > 0.0) {
        snprintf(cost, sizeof cost, ", %s", US(finding->cost_us));
    }
    if (finding->word >= 0) {
        snprintf(word, sizeof word, ", word %d of its arguments", finding->word);
    }
    cli_say(CLI_NORMAL, "%s: %s, %.3g a step%s: %s", rondo__doctor_rule_id(finding->rule),
            rondo__doctor_call_name(finding->call), finding->count, cost, harms[rule->harm]);
    cli_say(CLI_NORMAL, "    it %s%s", rule->what, word);
    if (name[0] != '\0') {
        cli_say(CLI_NORMAL, "    kernel %.120s", name);
    }
    if (line[0] != '\0') {
        cli_say(CLI_NORMAL, "    at %.160s", line);
    } else if (place[0] != '\0') {
        cli_say(CLI_NORMAL, "    at %.160s", place);
    }
    const char *range = rondo__doctor_log_text(doctor->log, finding->range);
    if (range[0] != '\0') {
        cli_say(CLI_NORMAL, "    in the range %.80s", range);
    }
    cli_say(CLI_NORMAL, "    cure: %s", rule->cure);
    if (rule->rondo != NULL) {
        cli_say(CLI_NORMAL, "    Rondo: %s", rule->rondo);
    }
}

// Other findings of a rule that was shown are counted only.
static bool is_shown_before(const cli_doctor *doctor, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (doctor->findings.rows[i].rule == doctor->findings.rows[index].rule) {
            return true;
        }
    }
    return false;
}

static void print_findings(const cli_doctor *doctor, bool is_all) {
    const rondo__doctor_findings *findings = &doctor->findings;
    size_t shown = 0;
    if (doctor->steps.period == 0) {
        return;
    }
    // The harmless ones come last.
    const bool is_free =
        findings->count == 0 ||
        rondo__doctor_get_rule(findings->rows[0].rule)->harm == RONDO__DOCTOR_NOTES;
    cli_say(CLI_NORMAL, "%s",
            is_free ? "Nothing stands in the way of a capture."
                    : "What stands in the way, the worst first:");
    for (size_t i = 0; i < findings->count && (is_all || shown < SHOWN); i++) {
        if (is_all || !is_shown_before(doctor, i)) {
            print_finding(doctor, &findings->rows[i]);
            ++shown;
        }
    }
    if (shown < findings->count) {
        cli_say(CLI_NORMAL, "%zu more, many of them alike (--all shows each)",
                findings->count - shown + findings->dropped_count);
    }
}

void cli_doctor_print(const cli_doctor *doctor, bool is_all) {
    print_head(doctor);
    if (doctor->steps.period > 0) {
        print_step(doctor);
    }
    print_verdict(doctor);
    print_findings(doctor, is_all);
}

// ---- the stream -------------------------------------------------------------------------------

static bool write_bytes(FILE *file, const void *bytes, size_t count) {
    return count == 0 || fwrite(bytes, 1, count, file) == count;
}

static bool write_text(FILE *file, uint32_t number, const char *text) {
    char tail[RONDO__DOCTOR_TEXT_MAX + 8] = {0};
    const size_t length = strlen(text);
    const rondo__doctor_event event = {
        .call = RONDO__DOCTOR_TEXT, .name = number, .word_count = (uint32_t)length};
    memcpy(tail, text, length);
    return write_bytes(file, &event, sizeof event) &&
           write_bytes(file, tail, rondo__doctor_tail_bytes(&event));
}

static bool write_work(FILE *file, const rondo__doctor_work *work) {
    const rondo__doctor_event event = {.call = RONDO__DOCTOR_WORK,
                                       .begin_ns = work->begin_ns,
                                       .duration_ns = work->duration_ns,
                                       .stream = work->stream,
                                       .object = work->is_of_graph ? 1 : 0,
                                       .source = work->order,
                                       .bytes = work->bytes,
                                       .name = work->name};
    return write_bytes(file, &event, sizeof event);
}

typedef struct event_range {
    size_t first;
    size_t end;
} event_range;

// Whether it lies beside calls that are kept.
static bool is_kept(const rondo__doctor_log *log, const rondo__doctor_range *range,
                    const event_range *kept, size_t count) {
    for (size_t i = 0; i < count && log->event_count > 0; i++) {
        const rondo__doctor_event *last = &log->events[kept[i].end - 1];
        if (range->end_ns >= log->events[kept[i].first].begin_ns &&
            range->begin_ns <= last->begin_ns + last->duration_ns) {
            return true;
        }
    }
    return false;
}

// What is known beside calls: the device, the heap, layouts, memory, ranges.
static bool write_facts(FILE *file, const rondo__doctor_log *log, const event_range *kept,
                        size_t kept_count) {
    const rondo__doctor_event device = {
        .call = RONDO__DOCTOR_DEVICE,
        .grid = {log->multiprocessors, log->multiprocessor_threads, log->multiprocessor_blocks},
        .stream = log->device_uuid[0],
        .object = log->device_uuid[1],
        .bytes = log->multiprocessor_shared_bytes};
    const rondo__doctor_event rehearsal = {.call = RONDO__DOCTOR_REHEARSAL,
                                           .object = log->rehearsal.works,
                                           .duration_ns = log->rehearsal.median_ns,
                                           .begin_ns = log->rehearsal.low_ns,
                                           .bytes = log->rehearsal.high_ns};
    const rondo__doctor_event heap = {.call = RONDO__DOCTOR_HEAP,
                                      .object = log->heap.begin,
                                      .bytes = log->heap.end - log->heap.begin};
    bool is_done = (log->multiprocessors == 0 || write_bytes(file, &device, sizeof device)) &&
                   (rehearsal.object == 0 || write_bytes(file, &rehearsal, sizeof rehearsal)) &&
                   (heap.bytes == 0 || write_bytes(file, &heap, sizeof heap));
    for (size_t i = 0; is_done && i < log->text_count; i++) {
        const rondo__doctor_event layout = {
            .call = RONDO__DOCTOR_LAYOUT, .name = (uint32_t)(i + 1), .object = log->layouts[i]};
        is_done = layout.object == 0 || write_bytes(file, &layout, sizeof layout);
    }
    for (size_t i = 0; is_done && i < log->block_count && i < RONDO__DOCTOR_BLOCKS_MAX; i++) {
        const rondo__doctor_event block = {.call = RONDO__DOCTOR_BLOCK,
                                           .object = log->blocks[i].begin,
                                           .bytes = log->blocks[i].end - log->blocks[i].begin};
        is_done = write_bytes(file, &block, sizeof block);
    }
    for (size_t i = 0; is_done && i < log->range_count; i++) {
        const rondo__doctor_range *range = &log->ranges[i];
        const rondo__doctor_event push = {.call = RONDO__DOCTOR_RANGE_PUSH,
                                          .begin_ns = range->begin_ns,
                                          .object = i + 1,
                                          .thread = range->thread,
                                          .name = range->name};
        const rondo__doctor_event pop = {
            .call = RONDO__DOCTOR_RANGE_POP, .begin_ns = range->end_ns, .object = i + 1};
        is_done = !is_kept(log, range, kept, kept_count) ||
                  (write_bytes(file, &push, sizeof push) && write_bytes(file, &pop, sizeof pop));
    }
    return is_done;
}

// Of the device, at most as many as a step has.
static size_t count_works(const rondo__doctor_steps *steps, const rondo__doctor_step *step) {
    const rondo__doctor_log *log = steps->log;
    size_t count = 0;
    for (size_t i = 0; i < log->work_count; i++) {
        const uint64_t begin_ns = log->works[i].begin_ns;
        count += begin_ns >= step->begin_ns && begin_ns < step->begin_ns + step->length_ns;
    }
    return count < steps->period ? count : steps->period;
}

// The latest step of which device times are there, too, of all works or of most, and the one behind
// it.
static event_range find_timed(const rondo__doctor_steps *steps) {
    const rondo__doctor_log *log = steps->log;
    const rondo__doctor_work *last = log->work_count > 0 ? &log->works[log->work_count - 1] : NULL;
    size_t looked_at = 0;
    size_t most = steps->period / 2;
    event_range found = {0, 0};
    for (size_t i = steps->count; last != NULL && i > 1 && looked_at < LOOKED_AT; i--) {
        const rondo__doctor_step *one = &steps->steps[i - 2];
        const rondo__doctor_step *next = &steps->steps[i - 1];
        if (one->is_typical && one->is_timed && next->is_typical && one->last == next->first &&
            one->begin_ns <= last->begin_ns) {
            ++looked_at;
            const size_t works = count_works(steps, one);
            if (works > most) {
                most = works;
                found = (event_range){one->first, next->last};
            }
            if (works == steps->period) {
                break;
            }
        }
    }
    return found;
}

// A few steps without device times suffice, and times of as many. The step ahead of a gap is not
// complete, and the last one is ended by the next.
static size_t find_kept(const rondo__doctor_steps *steps, event_range *out_ranges) {
    const size_t all = steps->log->event_count;
    size_t kept[KEPT_STEPS];
    const size_t count =
        steps->period > 0 ? rondo__doctor_choose_steps(steps, RONDO__DOCTOR_QUIET, KEPT_STEPS, kept)
                          : 0;
    if (count == 0) {
        out_ranges[0] = (event_range){0, all};
        return 1;
    }
    event_range plain = {steps->steps[kept[0]].first, steps->steps[kept[count - 1]].last};
    const event_range timed = find_timed(steps);
    const bool is_apart = timed.first >= plain.end || timed.end <= plain.first;
    const size_t ranges = timed.end > 0 && is_apart ? 2 : 1;
    if (!is_apart) {
        plain.first = timed.first < plain.first ? timed.first : plain.first;
        plain.end = timed.end > plain.end ? timed.end : plain.end;
    }
    out_ranges[ranges == 2 && timed.first < plain.first ? 1 : 0] = plain;
    if (ranges == 2) {
        out_ranges[timed.first < plain.first ? 0 : 1] = timed;
    }
    out_ranges[ranges - 1].end += out_ranges[ranges - 1].end < all ? 1 : 0;
    return ranges;
}

static bool write_calls(FILE *file, const rondo__doctor_log *log, event_range range, bool is_cut) {
    bool is_done = true;
    for (size_t i = range.first; is_done && i < range.end; i++) {
        rondo__doctor_event event = log->events[i];
        event.flags |= is_cut && i + 1 == range.end ? RONDO__DOCTOR_AFTER_LOSS : 0;
        is_done =
            write_bytes(file, &event, sizeof event) &&
            write_bytes(file, rondo__doctor_log_words(log, i), sizeof(uint64_t) * event.word_count);
    }
    return is_done;
}

bool cli_doctor_write_stream(void *doctor, FILE *file) {
    const cli_doctor *from = doctor;
    const rondo__doctor_log *log = from->log;
    const rondo__doctor_header header = {RONDO__DOCTOR_MAGIC, RONDO__DOCTOR_VERSION,
                                         sizeof(rondo__doctor_event)};
    bool is_done = write_bytes(file, &header, sizeof header);
    for (size_t i = 0; is_done && i < log->text_count; i++) {
        is_done = write_text(file, (uint32_t)(i + 1), log->texts[i]);
    }
    event_range ranges[2];
    const size_t range_count = find_kept(&from->steps, ranges);
    is_done = is_done && write_facts(file, log, ranges, range_count);
    for (size_t i = 0; is_done && i < range_count; i++) {
        is_done = write_calls(file, log, ranges[i], i + 1 < range_count);
    }
    const size_t works = KEPT_WORKS + KEPT_STEPS * from->steps.period;
    for (size_t i = log->work_count > works ? log->work_count - works : 0;
         is_done && i < log->work_count; i++) {
        is_done = write_work(file, &log->works[i]);
    }
    return is_done;
}
