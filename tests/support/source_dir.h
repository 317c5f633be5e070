// support/source_dir.h — where the sources lie, for tests that read shipped models.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The environment variable RONDO_SOURCE_DIR (a packed build runs elsewhere), otherwise where it was
// built.
const char *get_source_dir(void);
