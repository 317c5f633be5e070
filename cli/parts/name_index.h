// name_index.h — which of many tensors is called so, in few steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tensor_file.h"

typedef struct cli_indexed_name {
    char *name;
    size_t place;  // in the set
} cli_indexed_name;

// Two sorted lists of set->count entries.
typedef struct cli_name_index {
    size_t count;
    cli_indexed_name *names;       // as the set has them
    cli_indexed_name *file_names;  // as files are called that they were saved under
} cli_name_index;

// Two tensors of one name are refused: which of them is meant? On failure prints why; `path` is
// where the set is from.
//
// Ownership: free with cli_name_index_free, also after a failure.
bool cli_name_index_init(const cli_tensor_set *set, const char *path, cli_name_index *out_index);
void cli_name_index_free(cli_name_index *index);

// The place of the tensor that is called `name`, or was saved under it. SIZE_MAX: none.
size_t cli_name_index_find(const cli_name_index *index, const char *name);
