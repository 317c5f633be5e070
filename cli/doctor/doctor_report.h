// doctor_report.h — what `rondo doctor` says of a stream of calls: as text, as JSON, and beside an
// earlier report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "doctor/analysis/doctor_predict.h"
#include "doctor/analysis/doctor_rules.h"
#include "doctor_watch.h"

typedef struct cli_doctor {
    const char *program;  // its command line, or the file of the stream
    const rondo__doctor_log *log;
    uint32_t process;    // 0: of a file
    size_t other_count;  // processes that called the driver, too
    const rondo__doctor_log *others[CLI_WATCH_PROCESSES_MAX];
    double cost_us;  // what watching a call takes; 0: not known
    uint32_t lost_count;
    int status;                   // the program's
    char rehearsal_problem[128];  // why no graph like the step was replayed; "": none is missed
    rondo__doctor_steps steps;
    rondo__doctor_costs costs;
    rondo__doctor_findings findings;
} cli_doctor;

// Fills steps, costs and findings from the log. False with a message: out of memory.
bool cli_doctor_examine(cli_doctor *doctor);
void cli_doctor_clear(cli_doctor *doctor);

// The worst findings, so that the report fits a screen; or all of them.
void cli_doctor_print(const cli_doctor *doctor, bool is_all);

bool cli_doctor_write_json(void *doctor, FILE *file);

// The same as a page with the timeline of a step.
bool cli_doctor_write_page(void *doctor, FILE *file);

// Prints what is other than in the JSON report `path`. False with a message.
bool cli_doctor_compare(const cli_doctor *doctor, const char *path);

// Writes the stream, cut to the latest steps where there are some. A cli_output_save function;
// `doctor` is a cli_doctor.
bool cli_doctor_write_stream(void *doctor, FILE *file);

// "9.81 ms"; returns `buffer`.
char *cli_doctor_format_us(double us, char *buffer, size_t bytes);
