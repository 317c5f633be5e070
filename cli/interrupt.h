// interrupt.h — Ctrl-C as a request to stop, so that what was measured is not lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/executor.h"

// From here on the first Ctrl-C is noted and cancels what the executor runs; the second ends the
// process as usual. One thread at a time catches.
void cli_interrupt_catch(rondo_executor *executor);

// From here on the first Ctrl-C is noted, and what runs goes on to its end.
void cli_interrupt_watch(void);

// From here on Ctrl-C ends the process again.
void cli_interrupt_release(void);

bool cli_interrupt_came(void);
