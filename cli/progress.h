// progress.h — one line that shows how long work goes on. On a terminal only; nothing when piped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// A rondo_progress_function; `user_data` is not used.
void cli_progress_show(void *user_data, const char *what, size_t done, size_t total);

// Says that a file is being loaded, when it is large enough for people to wonder.
void cli_progress_show_loading(const char *path);

// Of a clock that never goes back.
double cli_get_seconds(void);

// Removes the line, if one is shown.
void cli_progress_clear(void);
