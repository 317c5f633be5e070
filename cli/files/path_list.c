// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // versionsort

#include "path_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

void cli_path_list_free(cli_path_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->paths[i]);
    }
    free(list->paths);
    *list = (cli_path_list){0};
}

const char *cli_path_get_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

// The folder's path without slashes at its end, and the name.
static char *join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    char *path = malloc(length + strlen(name) + 2);
    if (path != NULL) {
        sprintf(path, "%.*s/%s", (int)length, folder, name);
    }
    return path;
}

bool cli_path_list_read(const char *folder, bool (*is_wanted)(const char *name),
                        cli_path_list *out_list) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, versionsort);
    *out_list = (cli_path_list){0};
    if (count < 0) {
        cli_print_error("%s: %s", folder, strerror(errno));
        return false;
    }
    out_list->paths = calloc((size_t)count + 1, sizeof *out_list->paths);
    bool has_memory = out_list->paths != NULL;
    for (int i = 0; i < count; i++) {
        if (has_memory && entries[i]->d_name[0] != '.' && is_wanted(entries[i]->d_name)) {
            char *path = join(folder, entries[i]->d_name);
            has_memory = path != NULL;
            out_list->paths[out_list->count] = path;
            out_list->count += has_memory ? 1 : 0;
        }
        free(entries[i]);
    }
    free(entries);
    if (!has_memory) {
        (void)cli_fail_memory();
    }
    return has_memory;
}
