// model_file.h — a program from a model's file: ONNX, or a plan file that rondo compile has made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/models.h"

// Whether the file is a plan file, by its first bytes.
bool cli_is_plan_file(const char *path);

// Loads either. allow_remake is for plan files only, the options for ONNX files.
rondo_status cli_model_load(const char *path, const rondo_load_options *options, bool allow_remake,
                            rondo_program **out_program);

// What to name in place of a folder that has a model.onnx: a hint behind an error's text; "" where
// `path` is no such folder.
//
// room    as long as the path and 40 bytes more, or there is no hint.
const char *cli_model_hint(const char *path, char *room, size_t room_bytes);
