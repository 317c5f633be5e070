// session_text.h — what is said of a session: how its ports look, and what went wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session.h"

// Prints this thread's error record, with the model's name, and with what may be at fault: the
// dimensions that nobody set. Returns CLI_FAILED.
int cli_session_fail(const cli_session *session);

// Writes "f32 [batch=1, 3, 224, 224]" into `buffer` and returns it.
char *cli_format_port(const rondo_port *port, char *buffer, size_t buffer_bytes);
