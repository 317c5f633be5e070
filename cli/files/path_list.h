// path_list.h — the files of a folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_path_list {
    size_t count;
    char **paths;
} cli_path_list;

// Lists what lies in `folder` under a name that `is_wanted` takes, in the order of names, in which
// numbers count as numbers. On failure prints why; an empty list is none.
//
// Ownership: free with cli_path_list_free, also after a failure.
bool cli_path_list_read(const char *folder, bool (*is_wanted)(const char *name),
                        cli_path_list *out_list);
void cli_path_list_free(cli_path_list *list);

// The last part of a path.
const char *cli_path_get_name(const char *path);
