// doctor/analysis/doctor_path_times.h — the device's time of each work of a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_steps.h"

// Medians over the timed steps, for each work of the reference step. False: the timed works do not
// look like the step's, or out of memory.
bool rondo__doctor_find_work_times(const rondo__doctor_steps *steps, double *out_us);

void rondo__doctor_sort_lengths(double *lengths, size_t count);  // the shortest first

// Whether a name that a device told is that of a copy, or of a fill.
bool rondo__doctor_is_copy_name(const char *name);
