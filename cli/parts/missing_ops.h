// missing_ops.h — which ops models need that Rondo lacks: of one model, and counted over many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Prints the table for `rondo test --list-unsupported` over model directories; returns the exit
// status.
int cli_list_missing_ops(char *const *directories, size_t count);

// Prints every op that one model lacks, as an error. False, and nothing printed, when there are not
// several: then the message of the load says it all.
bool cli_print_missing_ops(const char *path);
