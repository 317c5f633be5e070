// base/log/log_levels.h — which messages are wanted, by room: a level for each.
//
//   RONDO_LOG=info,executor=debug,pool=warn
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/log_record.h"

// "executor" of ".../src/models/executor/run/run.c": the folder behind the last "src"; "" where
// there is none.
void rondo__log_find_room(const char *file, char *room, size_t bytes);

// Whether such a message of a source file is wanted. The first question reads RONDO_LOG.
//
// Threads: safe, all below.
bool rondo__log_is_wanted_in(rondo_log_level level, const char *file);
// Whether debug messages of that file are wanted: then all its messages name their source line.
bool rondo__log_is_detailed_in(const char *file);
// RONDO_LOG if it has an invalid part that was not reported yet; otherwise NULL. `why` names the
// part.
const char *rondo__log_take_unknown(char *why, size_t bytes);
