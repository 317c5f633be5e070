// backend/host/host_team.h — helpers for parallel branches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_program.h"

// Nodes that this thread ran since it began, programs inside programs included.
extern _Thread_local uint64_t rondo__host_executed_count;

rondo__host_team *rondo__host_team_create(void);  // NULL: no memory, recorded
void rondo__host_team_destroy(rondo__host_team *team);
void rondo__host_team_start(rondo__host_team *team);  // starts the threads; too few is fine
// Wakes helpers for a program that is about to run. Harmless when it comes too late.
void rondo__host_team_rouse(rondo__host_team *team, const rondo__host_program *program);
// Runs the job to its end on this thread and the helpers.
void rondo__host_team_run(rondo__host_team *team, rondo__host_job *job);
