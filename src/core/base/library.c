// base/library.c — shared libraries loaded when needed.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dlinfo
#endif
#include "base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct rondo__library {
    void *handle;
    char *path;  // where the loader found it; the name asked for when it does not say
};

static char *find_path(void *handle, const char *fallback) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name != NULL &&
        map->l_name[0] != '\0') {
        return rondo__strdup(map->l_name);
    }
    return rondo__strdup(fallback);
}

rondo_status rondo__library_open(const char *const *names, size_t name_count, char *reason,
                                 size_t reason_bytes, rondo__library **out_library) {
    *out_library = NULL;
    char first_reason[256] = "no library name was given";
    bool has_telling_reason = false;
    void *handle = NULL;
    size_t index = 0;
    for (; index < name_count; ++index) {
        handle = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL) {
            break;
        }
        const char *text = dlerror();
        text = text != NULL ? text : "the loader gave no reason";
        // A library that is there but does not load tells more than one that is not there.
        bool is_telling = strstr(text, "No such file") == NULL;
        if (index == 0 || (is_telling && !has_telling_reason)) {
            snprintf(first_reason, sizeof first_reason, "%s", text);
            has_telling_reason = is_telling;
        }
    }
    if (handle == NULL) {
        if (reason != NULL && reason_bytes > 0) {
            snprintf(reason, reason_bytes, "%s", first_reason);
        }
        return RONDO_FAIL(UNAVAILABLE, "%s", first_reason);
    }

    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__library *library = rondo__calloc(1, sizeof *library);
    if (library == NULL) {
        goto close_handle;
    }
    library->handle = handle;
    library->path = find_path(handle, names[index]);
    if (library->path == NULL) {
        goto free_library;
    }
    if (reason != NULL && reason_bytes > 0) {
        reason[0] = '\0';
    }
    *out_library = library;
    return RONDO_STATUS_OK;

free_library:
    rondo__free(library);
close_handle:
    dlclose(handle);
    if (reason != NULL && reason_bytes > 0) {
        snprintf(reason, reason_bytes, "host memory is exhausted");
    }
    return status;
}

void *rondo__library_find(rondo__library *library, const char *symbol) {
    return dlsym(library->handle, symbol);
}

const char *rondo__library_find_all(rondo__library *library, const char *const *names, size_t count,
                                    void *out_functions) {
    for (size_t i = 0; i < count; ++i) {
        void *address = rondo__library_find(library, names[i]);
        if (address == NULL) {
            return names[i];
        }
        memcpy((char *)out_functions + i * sizeof address, &address, sizeof address);
    }
    return NULL;
}

const char *rondo__library_get_path(const rondo__library *library) {
    return library->path;
}

void rondo__library_close(rondo__library *library) {
    if (library == NULL) {
        return;
    }
    dlclose(library->handle);
    rondo__free(library->path);
    rondo__free(library);
}
