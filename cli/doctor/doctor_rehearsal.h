// doctor_rehearsal.h — replays a graph like the program's step, once the program has ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_log.h"

// Keeps in the log how long replays took, or in out_problem why there were none; "" where the step
// has no device times. A process of its own does it, so that no driver can take the doctor along.
void cli_doctor_rehearse(rondo__doctor_log *log, char *out_problem, size_t bytes);
