// SPDX-License-Identifier: Apache-2.0

#include "name_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

enum { FILE_NAME_BYTES = 256 };

static int compare_entries(const void *a, const void *b) {
    const cli_indexed_name *left = a;
    const cli_indexed_name *right = b;
    const int order = strcmp(left->name, right->name);
    return order != 0 ? order : left->place < right->place ? -1 : 1;
}

// The first entry of this name; SIZE_MAX: none.
static size_t find(const cli_indexed_name *entries, size_t count, const char *name) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(entries[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && strcmp(entries[low].name, name) == 0 ? entries[low].place : SIZE_MAX;
}

static bool check_names_differ(const cli_name_index *index, const char *path) {
    for (size_t i = 1; i < index->count; i++) {
        if (strcmp(index->names[i - 1].name, index->names[i].name) == 0) {
            cli_print_error("%s: holds two tensors that are called \"%s\"; rename one of them",
                            path, index->names[i].name);
            return false;
        }
    }
    return true;
}

bool cli_name_index_init(const cli_tensor_set *set, const char *path, cli_name_index *out_index) {
    *out_index = (cli_name_index){
        .names = calloc(set->count + 1, sizeof *out_index->names),
        .file_names = calloc(set->count + 1, sizeof *out_index->file_names),
    };
    if (out_index->names == NULL || out_index->file_names == NULL) {
        return cli_fail_memory();
    }
    for (size_t i = 0; i < set->count; i++) {
        char file_name[FILE_NAME_BYTES];
        cli_tensor_file_name(set->names[i], 1, file_name, sizeof file_name);
        out_index->names[i] = (cli_indexed_name){.name = set->names[i], .place = i};
        out_index->file_names[i] = (cli_indexed_name){.name = strdup(file_name), .place = i};
        out_index->count = i + 1;
        if (out_index->file_names[i].name == NULL) {
            return cli_fail_memory();
        }
    }
    qsort(out_index->names, out_index->count, sizeof *out_index->names, compare_entries);
    qsort(out_index->file_names, out_index->count, sizeof *out_index->file_names, compare_entries);
    return check_names_differ(out_index, path);
}

void cli_name_index_free(cli_name_index *index) {
    for (size_t i = 0; i < index->count; i++) {
        free(index->file_names[i].name);
    }
    free(index->names);
    free(index->file_names);
    memset(index, 0, sizeof *index);
}

size_t cli_name_index_find(const cli_name_index *index, const char *name) {
    char file_name[FILE_NAME_BYTES];
    const size_t place = find(index->names, index->count, name);
    if (place != SIZE_MAX) {
        return place;
    }
    cli_tensor_file_name(name, 1, file_name, sizeof file_name);
    return find(index->file_names, index->count, file_name);
}
