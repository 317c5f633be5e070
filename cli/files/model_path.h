// model_path.h — where a model lies that is named by its directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CLI_PATH_MAX = 4096 };

// Puts the path of the directory's model into `path`; a path of a .onnx file is taken as it is.
// False when it is too long.
bool cli_format_model_path(const char *directory, char *path, size_t path_bytes);
