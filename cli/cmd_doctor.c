// rondo doctor — what CUDA graphs would gain a program, and what stands in the way.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "doctor_rehearsal.h"
#include "doctor_report.h"
#include "doctor_watch.h"
#include "output_file.h"
#include "suggest.h"

typedef struct doctor_settings {
    const char *from;
    const char *record;
    const char *json_path;
    const char *page_path;
    const char *earlier;
    cli_list fail_on;
    bool without_times;
    bool without_rehearsal;
    bool is_all;
    bool is_quiet;
} doctor_settings;

static bool find_rule(const char *id, size_t *out_rule) {
    for (size_t rule = 0; rule < RONDO__DOCTOR_RULE_COUNT; rule++) {
        if (strcmp(rondo__doctor_rule_id(rule), id) == 0) {
            *out_rule = rule;
            return true;
        }
    }
    return false;
}

static bool check_rules(const cli_command *command, const cli_list *ids) {
    char near[128];
    size_t rule = 0;
    for (size_t i = 0; i < ids->count; i++) {
        if (strcmp(ids->items[i], "any") == 0 || find_rule(ids->items[i], &rule)) {
            continue;
        }
        cli_suggestion suggestion = {.word = ids->items[i]};
        for (rule = 0; rule < RONDO__DOCTOR_RULE_COUNT; rule++) {
            cli_suggest_offer(&suggestion, rondo__doctor_rule_id(rule));
        }
        (void)cli_fail_misuse(command, "there is no rule \"%s\"%s", ids->items[i],
                              cli_suggest_format(&suggestion, near, sizeof near));
        return false;
    }
    return true;
}

// Whether a rule of --fail-on was found; "any" means those that break a capture.
static bool has_failed(const cli_doctor *doctor, const cli_list *ids) {
    for (size_t i = 0; i < doctor->findings.count; i++) {
        const rondo__doctor_rule rule = doctor->findings.rows[i].rule;
        for (size_t k = 0; k < ids->count; k++) {
            const bool is_any = strcmp(ids->items[k], "any") == 0 &&
                                rondo__doctor_get_rule(rule)->harm == RONDO__DOCTOR_BREAKS;
            if (is_any || strcmp(ids->items[k], rondo__doctor_rule_id(rule)) == 0) {
                return true;
            }
        }
    }
    return false;
}

// Says everything of one log. Returns the tool's status; the program's goes first.
static int report(cli_doctor *doctor, const doctor_settings *settings) {
    if (!cli_doctor_examine(doctor)) {
        return CLI_FAILED;
    }
    cli_doctor_print(doctor, settings->is_all);
    bool is_done = cli_output_save(settings->json_path, cli_doctor_write_json, doctor);
    is_done = cli_output_save(settings->page_path, cli_doctor_write_page, doctor) && is_done;
    is_done = cli_output_save(settings->record, cli_doctor_write_stream, doctor) && is_done;
    is_done =
        (settings->earlier == NULL || cli_doctor_compare(doctor, settings->earlier)) && is_done;
    const bool is_refused = has_failed(doctor, &settings->fail_on);
    cli_doctor_clear(doctor);
    if (doctor->status != 0) {
        return doctor->status;
    }
    return is_done && !is_refused ? CLI_DONE : CLI_FAILED;
}

static int examine_file(const doctor_settings *settings) {
    rondo__doctor_log log = {.events = NULL};
    FILE *file = fopen(settings->from, "rb");
    if (file == NULL) {
        cli_print_error("%s: %s", settings->from, strerror(errno));
        return CLI_FAILED;
    }
    const char *problem = rondo__doctor_log_read(&log, file);
    (void)fclose(file);
    int status = CLI_FAILED;
    if (problem != NULL) {
        cli_print_error("%s: %s", settings->from, problem);
    } else {
        cli_doctor doctor = {.program = settings->from, .log = &log};
        status = report(&doctor, settings);
    }
    rondo__doctor_log_clear(&log);
    return status;
}

// Why this machine has no usable GPU; NULL: it has one. Writes what there is into infos[2].
static const char *find_hindrance(rondo_device_info *infos) {
    size_t count = 0;
    infos[0].struct_size = sizeof infos[0];
    if (rondo_device_list(infos, 2, &count) != RONDO_STATUS_OK || count < 2 || infos[1].available) {
        return NULL;
    }
    return infos[1].reason;
}

// Why there is nothing to report, in one message.
static int explain_silence(const cli_watch *watch, const char *program) {
    rondo_device_info infos[2] = {{0}};
    const cli_watched *broken = watch->count > 0 ? &watch->processes[0] : NULL;
    if (broken != NULL && broken->problem != 0) {
        cli_print_error("the calls of %s could not be recorded: %s (TMPDIR names the folder)",
                        program, strerror(broken->problem));
    } else if (watch->is_static) {
        cli_print_error("%s is linked statically, so that nothing can be put into it", program);
    } else if (watch->is_privileged) {
        cli_print_error(
            "%s runs with the rights of its file (setuid), so that nothing is put "
            "into it",
            program);
    } else {
        const char *hindrance = find_hindrance(infos);
        cli_print_error(
            "%s ended with status %d and made no call of the CUDA driver that is "
            "watched%s%s",
            program, watch->status, hindrance != NULL ? "; no GPU can be used here: " : "",
            hindrance != NULL ? hindrance : "");
    }
    return watch->status != 0 ? watch->status : CLI_FAILED;
}

static int examine_program(const doctor_settings *settings, char **program, size_t count) {
    char *line[CLI_LIST_MAX * 16];
    if (count >= sizeof line / sizeof line[0]) {
        cli_print_error("a program may have %zu arguments here", sizeof line / sizeof line[0] - 2);
        return CLI_FAILED;
    }
    memcpy(line, program, count * sizeof line[0]);
    line[count] = NULL;
    cli_watch watch;
    if (!cli_watch_program(line, !settings->without_times, &watch)) {
        const int status = watch.status;
        cli_watch_clear(&watch);
        return status;
    }
    cli_watched *best = cli_watch_choose(&watch);
    int status = 0;
    if (best == NULL || best->log.seen_count == 0) {
        status = explain_silence(&watch, program[0]);
    } else {
        cli_doctor doctor = {.program = best->program,
                             .log = &best->log,
                             .process = best->process,
                             .other_count = watch.count - 1,
                             .cost_us = best->cost_us,
                             .lost_count = best->lost_count,
                             .status = watch.status};
        if (!settings->without_rehearsal) {
            cli_doctor_rehearse(&best->log, doctor.rehearsal_problem,
                                sizeof doctor.rehearsal_problem);
        }
        size_t others = 0;
        for (size_t i = 0; i < watch.count; i++) {
            if (&watch.processes[i] != best) {
                doctor.others[others++] = &watch.processes[i].log;
            }
        }
        status = report(&doctor, settings);
    }
    cli_watch_clear(&watch);
    return status;
}

static int run_doctor(const cli_command *command, int argc, char **argv) {
    doctor_settings settings = {.from = NULL};
    size_t count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if ((settings.from == NULL) == (count == 0)) {
        return cli_fail_misuse(command, settings.from == NULL
                                            ? "missing operand: the program to watch"
                                            : "--from FILE is instead of a program");
    }
    if (!check_rules(command, &settings.fail_on)) {
        return CLI_MISUSE;
    }
    if (!cli_output_check(settings.json_path) || !cli_output_check(settings.record) ||
        !cli_output_check(settings.page_path)) {
        return CLI_FAILED;
    }
    const bool is_silent = settings.json_path != NULL && strcmp(settings.json_path, "-") == 0;
    cli_set_level(is_silent ? CLI_SILENT : settings.is_quiet ? CLI_RESULT : CLI_NORMAL);
    return settings.from != NULL ? examine_file(&settings)
                                 : examine_program(&settings, argv, count);
}

#define FIELD(name) offsetof(doctor_settings, name)
static const cli_option doctor_options[] = {
    {"--all", NULL, CLI_SWITCH, FIELD(is_all), NULL, "show every finding, not the worst alone"},
    {"--json", "FILE", CLI_TEXT, FIELD(json_path), NULL,
     "write the report as JSON (\"-\": stdout)"},
    {"--html", "FILE", CLI_TEXT, FIELD(page_path), NULL,
     "write a page with the timeline of a step"},
    {"--compare", "FILE", CLI_TEXT, FIELD(earlier), NULL,
     "show what is other than in an earlier report (--json)"},
    {"--fail-on", "RULE", CLI_LIST, FIELD(fail_on), NULL,
     "end with status 1 when this rule was found, or, for \"any\",\n"
     "any that breaks a capture (may be repeated)"},
    {"--record", "FILE", CLI_TEXT, FIELD(record), NULL,
     "keep the calls of the latest steps in a file"},
    {"--from", "FILE", CLI_TEXT, FIELD(from), NULL, "examine such a file, and run no program"},
    {"--no-times", NULL, CLI_SWITCH, FIELD(without_times), NULL,
     "take no device times, so that CUPTI is left alone"},
    {"--no-rehearsal", NULL, CLI_SWITCH, FIELD(without_rehearsal), NULL,
     "replay no graph of waits to predict by, so that the GPU is\n"
     "left alone once the program has ended"},
    {"--quiet", NULL, CLI_SWITCH, FIELD(is_quiet), NULL, "print nothing but errors"},
};

const cli_command cli_command_doctor = {
    .name = "doctor",
    .operands = "-- PROGRAM...",
    .summary = "what CUDA graphs would gain a program, and what hinders",
    .details =
        "Runs a program that knows nothing of Rondo, and watches its calls of the CUDA driver:\n"
        "finds the step that repeats, how long the device idles in it, what in it would break a\n"
        "capture or stay as it was captured, with a cure for each, and how long the step would\n"
        "take as one graph. What follows -- is the program and its arguments. The exit status is\n"
        "the program's own; where that is 0, it is 1 if a rule of --fail-on was found or no call\n"
        "of the driver was seen. 126 and 127 mean that the program did not start.",
    .operand_min = 0,
    .operand_max = INT_MAX,
    .options = doctor_options,
    .option_count = sizeof doctor_options / sizeof doctor_options[0],
    .run = run_doctor,
};
