// model_path.c — see model_path.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_path.h"

#include <stdio.h>
#include <string.h>

#include "model_file.h"

bool cli_format_model_path(const char *directory, char *path, size_t path_bytes) {
    const size_t length = strlen(directory);
    const bool is_file =
        (length > 5 && strcmp(directory + length - 5, ".onnx") == 0) || cli_is_plan_file(directory);
    const int written = snprintf(path, path_bytes, is_file ? "%s" : "%s/model.onnx", directory);
    return written >= 0 && (size_t)written < path_bytes;
}
