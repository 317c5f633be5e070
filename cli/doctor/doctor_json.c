// doctor_json.c — the report of `rondo doctor` as JSON, and beside an earlier one.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "doctor_report.h"
#include "file_bytes.h"
#include "json_reader.h"
#include "json_writer.h"

static const char *const g_harms[] = {[RONDO__DOCTOR_BREAKS] = "breaks",
                                      [RONDO__DOCTOR_FREEZES] = "freezes",
                                      [RONDO__DOCTOR_COSTS] = "costs",
                                      [RONDO__DOCTOR_NOTES] = "notes"};

static void write_step(const cli_doctor *doctor, cli_json *json) {
    const rondo__doctor_costs *costs = &doctor->costs;
    cli_json_begin(json, "step", '{');
    if (doctor->steps.name != 0) {
        cli_json_text(json, "name", rondo__doctor_log_text(doctor->log, doctor->steps.name));
    }
    cli_json_count(json, "works", doctor->steps.period);
    cli_json_count(json, "launches", costs->launch_count);
    cli_json_count(json, "graph_launches", costs->graph_launch_count);
    cli_json_count(json, "seen", doctor->steps.count);
    cli_json_count(json, "typical", doctor->steps.typical_count);
    cli_json_number(json, "match", doctor->steps.match);
    cli_json_flag(json, "shapes_differ", doctor->steps.is_loose);
    cli_json_number(json, "us", costs->step_us);
    cli_json_number(json, "low_us", costs->step_low_us);
    cli_json_number(json, "high_us", costs->step_high_us);
    cli_json_number(json, "launch_us", costs->launch_us);
    cli_json_number(json, "calls_us", costs->calls_us);
    cli_json_number(json, "waits_us", costs->waits_us);
    cli_json_number(json, "away_us", costs->away_us);
    cli_json_number(json, "between_us", costs->between_us);
    if (costs->has_times) {
        cli_json_number(json, "device_us", costs->device_us);
        cli_json_number(json, "copy_us", costs->copy_us);
        cli_json_number(json, "idle_share", costs->idle_share);
        if (costs->path.is_known) {
            cli_json_number(json, "path_us", costs->path.path_us);
            cli_json_count(json, "path_works", costs->path.work_count);
            cli_json_count(json, "streams", costs->path.stream_count);
        }
    }
    cli_json_end(json, '}');
}

static void write_prediction(const cli_doctor *doctor, cli_json *json) {
    const rondo__doctor_costs *costs = &doctor->costs;
    cli_json_begin(json, "graph", '{');
    cli_json_number(json, "us", costs->graph_us);
    cli_json_number(json, "low_us", costs->graph_low_us);
    cli_json_number(json, "high_us", costs->graph_high_us);
    cli_json_flag(json, "rehearsed", costs->is_rehearsed);
    cli_json_number(json, "model_us", costs->model_us);
    cli_json_number(json, "step_us", costs->after_us);
    cli_json_flag(json, "worth_it", rondo__doctor_is_worth_it(costs));
    cli_json_end(json, '}');
}

static void write_finding(const cli_doctor *doctor, const rondo__doctor_finding *finding,
                          cli_json *json) {
    const rondo__doctor_rule_row *rule = rondo__doctor_get_rule(finding->rule);
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "rule", rondo__doctor_rule_id(finding->rule));
    cli_json_text(json, "harm", g_harms[rule->harm]);
    cli_json_text(json, "call", rondo__doctor_call_name(finding->call));
    if (finding->name != 0) {
        cli_json_text(json, "kernel", rondo__doctor_log_text(doctor->log, finding->name));
    }
    if (finding->place != 0) {
        cli_json_text(json, "place", rondo__doctor_log_text(doctor->log, finding->place));
    }
    if (finding->line != 0) {
        cli_json_text(json, "line", rondo__doctor_log_text(doctor->log, finding->line));
    }
    if (finding->range != 0) {
        cli_json_text(json, "range", rondo__doctor_log_text(doctor->log, finding->range));
    }
    if (finding->word >= 0) {
        cli_json_count(json, "word", (uint64_t)finding->word);
    }
    cli_json_number(json, "count", finding->count);
    cli_json_number(json, "cost_us", finding->cost_us);
    cli_json_text(json, "what", rule->what);
    cli_json_text(json, "cure", rule->cure);
    cli_json_text(json, "rondo", rule->rondo);
    cli_json_end(json, '}');
}

bool cli_doctor_write_json(void *doctor, FILE *file) {
    const cli_doctor *from = doctor;
    cli_json json = {.file = file};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "rondo", rondo_version_get_text());
    cli_json_text(&json, "program", from->program);
    cli_json_whole(&json, "status", from->status);
    cli_json_count(&json, "calls", from->log->seen_count);
    cli_json_count(&json, "launches", from->log->launch_count);
    cli_json_count(&json, "lost", from->lost_count);
    cli_json_number(&json, "watching_us", from->cost_us);
    cli_json_text(&json, "verdict", rondo__doctor_verdict_name(from->costs.verdict));
    if (from->steps.period > 0) {
        write_step(from, &json);
    }
    if (from->costs.has_times) {
        write_prediction(from, &json);
    }
    cli_json_begin(&json, "findings", '[');
    for (size_t i = 0; i < from->findings.count; i++) {
        write_finding(from, &from->findings.rows[i], &json);
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    return !ferror(file);
}

// ---- beside an earlier report -----------------------------------------------------------------

static void compare_number(json_t *earlier, const char *path, const char *what, double now) {
    double before = 0.0;
    char texts[2][32];
    if (now > 0.0 && cli_json_find_number(earlier, path, &before) && before > 0.0) {
        cli_say(CLI_NORMAL, "%-8s %s, was %s (%+.1f %%)", what,
                cli_doctor_format_us(now, texts[0], sizeof texts[0]),
                cli_doctor_format_us(before, texts[1], sizeof texts[1]),
                100.0 * (now / before - 1.0));
    }
}

// How often a step a rule was found, all its findings together.
static double count_now(const cli_doctor *doctor, size_t rule) {
    double count = 0.0;
    for (size_t i = 0; i < doctor->findings.count; i++) {
        count += doctor->findings.rows[i].rule == rule ? doctor->findings.rows[i].count : 0.0;
    }
    return count;
}

static double count_before(json_t *findings, const char *id) {
    double count = 0.0;
    size_t index = 0;
    json_t *finding = NULL;
    json_array_foreach(findings, index, finding) {
        const char *rule = cli_json_find_text(finding, "rule");
        double one = 0.0;
        if (rule != NULL && strcmp(rule, id) == 0 && cli_json_find_number(finding, "count", &one)) {
            count += one;
        }
    }
    return count;
}

static void compare_rules(const cli_doctor *doctor, json_t *findings) {
    size_t changed = 0;
    for (size_t rule = 0; rule < RONDO__DOCTOR_RULE_COUNT; rule++) {
        const char *id = rondo__doctor_rule_id(rule);
        const double now = count_now(doctor, rule);
        const double before = count_before(findings, id);
        if (fabs(now - before) > 1e-6 * (now + before)) {
            ++changed;
            cli_say(CLI_NORMAL, "%-8s %s: %.3g a step, was %.3g",
                    before <= 0.0 ? "new"
                    : now <= 0.0  ? "gone"
                                  : "changed",
                    id, now, before);
        }
    }
    if (changed == 0) {
        cli_say(CLI_NORMAL, "findings as before");
    }
}

bool cli_doctor_compare(const cli_doctor *doctor, const char *path) {
    cli_bytes file;
    json_t *earlier = NULL;
    if (!cli_bytes_load(path, &file)) {
        return false;
    }
    const bool is_read = cli_json_parse((const char *)file.data, file.count, path, &earlier);
    cli_bytes_free(&file);
    json_t *findings = is_read ? json_object_get(earlier, "findings") : NULL;
    if (is_read && !json_is_array(findings)) {
        cli_print_error("%s is no report of rondo doctor --json", path);
    }
    if (json_is_array(findings)) {
        cli_say(CLI_NORMAL, "Beside %s:", path);
        compare_number(earlier, "step.us", "step", doctor->costs.step_us);
        compare_number(earlier, "step.device_us", "device", doctor->costs.device_us);
        compare_number(earlier, "graph.us", "graph", doctor->costs.graph_us);
        compare_rules(doctor, findings);
    }
    const bool is_done = json_is_array(findings);
    json_decref(earlier);
    return is_done;
}
