// backend/cuda/driver/discover.c — where NVIDIA's libraries live, tried in order of how deliberate
// a choice they are: what the user names, what the system's loader knows, toolkits, Python wheels.
//
// cuDNN and NVRTC load further libraries by bare name while they work. Wheels let them find each
// other by relative run paths, but a toolkit's NVRTC has none; so what a library will ask for is
// loaded beside it first, and the loader then meets it by its soname.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/discover.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/driver/cuda_api.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "base/thread.h"

enum { NAME_COUNT_MAX = 4, PATH_BYTES = 1024 };

typedef struct known_library {
    const char *short_name;
    struct {
        const char *name;
        int cuda_major;       // the CUDA version it belongs to; 0: any
    } names[NAME_COUNT_MAX];  // newest first
    const char *companions;   // loaded first from the same folder; a glob pattern, or NULL
    const char *needs[2];     // short names of libraries it will want; found when they are there
    const char *wheel;        // how to get it without a toolkit
} known_library;

static const known_library g_libraries[] = {
    {.short_name = "nvrtc",
     .names = {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, {"libnvrtc.so.11.2", 11}},
     .companions = "libnvrtc-builtins.so.*",
     .wheel = "nvidia-cuda-nvrtc"},
    {.short_name = "cublasLt",
     .names = {{"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}, {"libcublasLt.so.11", 11}},
     .wheel = "nvidia-cublas"},
    {.short_name = "cudnn",
     .names = {{"libcudnn.so.9", 0}},
     .needs = {"cublasLt", "nvrtc"},
     .wheel = "nvidia-cudnn-cu13"},
    {.short_name = "cupti",
     .names = {{"libcupti.so.13", 13}, {"libcupti.so.12", 12}},
     .wheel = "nvidia-cuda-cupti"},
    {.short_name = "nccl", .names = {{"libnccl.so.2", 0}}, .wheel = "nvidia-nccl-cu13"},
};

// One search. Folders are offered to it until it has found the library.
typedef struct search {
    const known_library *wanted;
    int driver_major;  // newer libraries are passed over; 0: no driver, so any will do
    rondo__library *found;
    size_t folder_count;
} search;

// Loads what stands beside a library and would be looked for by bare name. Kept open, like the
// library itself; the handle is the dynamic loader's to remember.
static void load_companions(const known_library *library, const char *path) {
    const char *slash = strrchr(path, '/');
    char pattern[PATH_BYTES];
    if (library->companions == NULL || slash == NULL) {
        return;
    }
    int length = snprintf(pattern, sizeof(pattern), "%.*s%s", (int)(slash - path + 1), path,
                          library->companions);
    glob_t matches;
    if (length < 0 || (size_t)length >= sizeof(pattern) || glob(pattern, 0, NULL, &matches) != 0) {
        return;
    }
    for (size_t i = 0; i < matches.gl_pathc; i++) {
        (void)dlopen(matches.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL);
    }
    globfree(&matches);
}

// Tries the library's names in one folder, or with folder "" as the dynamic loader finds them.
static void try_folder(search *s, const char *folder) {
    if (s->found != NULL) {
        return;
    }
    s->folder_count += folder[0] != '\0' ? 1 : 0;
    for (size_t i = 0; i < NAME_COUNT_MAX && s->wanted->names[i].name != NULL; i++) {
        char path[PATH_BYTES];
        char reason[256];
        int length = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                              s->wanted->names[i].name);
        bool is_too_new = s->driver_major != 0 && s->wanted->names[i].cuda_major > s->driver_major;
        if (is_too_new || length < 0 || (size_t)length >= sizeof(path) ||
            (folder[0] != '\0' && access(path, R_OK) != 0)) {
            continue;
        }
        if (folder[0] != '\0') {
            load_companions(s->wanted, path);
        }
        const char *names[] = {path};
        if (rondo__library_open(names, 1, reason, sizeof(reason), &s->found) == RONDO_STATUS_OK) {
            load_companions(s->wanted, rondo__library_get_path(s->found));
            return;
        }
        s->found = NULL;
    }
}

static void try_pattern(search *s, const char *pattern) {
    glob_t matches;
    if (s->found != NULL || glob(pattern, 0, NULL, &matches) != 0) {
        return;
    }
    // glob sorts upwards; the last one is the newest version.
    for (size_t i = matches.gl_pathc; i > 0; i--) {
        try_folder(s, matches.gl_pathv[i - 1]);
    }
    globfree(&matches);
}

static void try_list(search *s, const char *list) {
    while (list != NULL && *list != '\0' && s->found == NULL) {
        size_t length = strcspn(list, ":");
        char folder[PATH_BYTES];
        if (length > 0 && length < sizeof(folder)) {
            memcpy(folder, list, length);
            folder[length] = '\0';
            try_folder(s, folder);
        }
        list += length + (list[length] == ':' ? 1 : 0);
    }
}

static void try_toolkits(search *s) {
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    static const char *const patterns[] = {
        "/usr/local/cuda/lib64",
        "/usr/local/cuda-*/lib64",
        "/usr/local/cuda*/targets/*/lib",
        "/opt/cuda/lib64",
        "/usr/local/cuda/extras/CUPTI/lib64",
        "/usr/local/cuda-*/extras/CUPTI/lib64",
        "/opt/cuda/extras/CUPTI/lib64",
    };
    static const char *const folders[] = {"lib64", "extras/CUPTI/lib64"};
    char folder[PATH_BYTES];
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) * 2; i++) {
        const char *home = getenv(variables[i / 2]);
        if (home != NULL && home[0] == '/' && strlen(home) < sizeof(folder) - 24) {
            snprintf(folder, sizeof(folder), "%.900s/%s", home, folders[i % 2]);
            try_folder(s, folder);
        }
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        try_pattern(s, patterns[i]);
    }
}

// The wheels of one Python prefix, for example /usr or the folder of a virtual environment.
static void try_prefix(search *s, const char *prefix) {
    static const char *const layouts[] = {
        "lib/python3*/site-packages",
        "lib/python3*/dist-packages",
        "local/lib/python3*/dist-packages",
        "lib64/python3*/site-packages",
    };
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        char pattern[PATH_BYTES];
        int length = snprintf(pattern, sizeof(pattern), "%s/%s/nvidia/*/lib", prefix, layouts[i]);
        if (length > 0 && (size_t)length < sizeof(pattern)) {
            try_pattern(s, pattern);
        }
    }
}

// "/opt/env/bin/python3" -> "/opt/env".
static bool strip_two(char *path) {
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = '\0';
    }
    return path[0] != '\0';
}

static void try_python_of(search *s, const char *folder, size_t length) {
    char path[PATH_BYTES];
    char resolved[PATH_MAX];
    int written = snprintf(path, sizeof(path), "%.*s/python3", (int)length, folder);
    if (written < 0 || (size_t)written >= sizeof(path) || access(path, X_OK) != 0) {
        return;
    }
    // A virtual environment's python3 is a link to the one it was made from; both may have wheels.
    bool is_resolved = realpath(path, resolved) != NULL;
    if (strip_two(path)) {
        try_prefix(s, path);
    }
    if (is_resolved && strip_two(resolved)) {
        try_prefix(s, resolved);
    }
}

static void try_wheels(search *s) {
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *prefix = getenv(variables[i]);
        if (prefix != NULL && prefix[0] == '/') {
            try_prefix(s, prefix);
        }
    }
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0' && s->found == NULL) {
        size_t length = strcspn(list, ":");
        if (length > 0 && length < PATH_BYTES && list[0] == '/') {
            try_python_of(s, list, length);
        }
        list += length + (list[length] == ':' ? 1 : 0);
    }
    const char *home = getenv("HOME");
    char prefix[PATH_BYTES];
    if (home != NULL && home[0] == '/' && strlen(home) < sizeof(prefix) - 16) {
        snprintf(prefix, sizeof(prefix), "%.900s/.local", home);
        try_prefix(s, prefix);
    }
}

static const known_library *find_known(const char *short_name) {
    for (size_t i = 0; i < sizeof(g_libraries) / sizeof(g_libraries[0]); i++) {
        if (strcmp(g_libraries[i].short_name, short_name) == 0) {
            return &g_libraries[i];
        }
    }
    return NULL;
}

static rondo__library *find_library(const known_library *wanted, int driver_major,
                                    size_t *out_folder_count) {
    search s = {.wanted = wanted, .driver_major = driver_major};
    try_list(&s, getenv("RONDO_LIBRARY_PATH"));
    try_folder(&s, "");
    try_toolkits(&s);
    try_wheels(&s);
    *out_folder_count = s.folder_count;
    return s.found;
}

rondo_status rondo__cuda_open_library(const char *short_name, rondo__library **out_library) {
    *out_library = NULL;
    const known_library *wanted = find_known(short_name);
    if (wanted == NULL) {
        return RONDO_FAIL(INVALID, "no library is known as \"%s\"", short_name);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const uint64_t start_ns = rondo__clock_now_ns();
    // A library newer than the driver loads and then fails at work; an older one does well.
    const rondo__cuda_api *api = NULL;
    int driver_major =
        rondo__cuda_get_api(&api) == RONDO_STATUS_OK ? api->driver_version / 1000 : 0;
    size_t folder_count = 0;
    for (size_t i = 0; i < 2 && wanted->needs[i] != NULL; i++) {
        // Its handle is not needed; the loader finds it by its soname from now on.
        rondo__library *needed =
            find_library(find_known(wanted->needs[i]), driver_major, &folder_count);
        if (needed != NULL) {
            (void)dlopen(rondo__library_get_path(needed), RTLD_LAZY | RTLD_LOCAL);
            rondo__library_close(needed);
        }
    }
    rondo__library *found = find_library(wanted, driver_major, &folder_count);
    rondo__error_restore(&saved);
    if (found == NULL) {
        return RONDO_FAIL(UNAVAILABLE,
                          "%s was found neither by the loader nor in %zu folders of toolkits and "
                          "Python wheels; install a CUDA toolkit or \"pip install %s\", or name "
                          "its folder in RONDO_LIBRARY_PATH",
                          wanted->names[0].name, folder_count, wanted->wheel);
    }
    RONDO_LOG_DEBUG_F("loaded %s in %.0f ms", rondo__library_get_path(found),
                      (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    *out_library = found;
    return RONDO_STATUS_OK;
}

// ---- ahead ------------------------------------------------------------------------------------

static struct {
    pthread_mutex_t lock;
    pthread_t threads[sizeof(g_libraries) / sizeof(g_libraries[0])];
    bool is_running[sizeof(g_libraries) / sizeof(g_libraries[0])];
    bool is_wanted[sizeof(g_libraries) / sizeof(g_libraries[0])];
    bool joins_at_exit;
} g_ahead = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *load_ahead(void *number) {
    const char *name = g_libraries[(uintptr_t)number].short_name;
    rondo__library *loaded = NULL;
    if (rondo__cuda_open_library(name, &loaded) != RONDO_STATUS_OK) {
        RONDO_LOG_DEBUG_F("%s was not loaded ahead", name);
    }
    return NULL;
}

// At the process's end: waits for the thread, so that the driver does not end while it starts.
static void join_ahead(void) {
    for (size_t i = 0; i < sizeof(g_libraries) / sizeof(g_libraries[0]); i++) {
        if (g_ahead.is_running[i]) {
            (void)pthread_join(g_ahead.threads[i], NULL);
            g_ahead.is_running[i] = false;
        }
    }
}

void rondo__cuda_want_library(const char *short_name) {
    const known_library *wanted = find_known(short_name);
    if (wanted == NULL) {
        return;
    }
    const size_t i = (size_t)(wanted - g_libraries);
    rondo_error saved;
    rondo__error_save(&saved);
    pthread_mutex_lock(&g_ahead.lock);
    g_ahead.joins_at_exit = g_ahead.joins_at_exit || atexit(join_ahead) == 0;
    if (!g_ahead.is_wanted[i] && g_ahead.joins_at_exit) {
        g_ahead.is_wanted[i] = true;
        g_ahead.is_running[i] = rondo__thread_start("rondo load", load_ahead, (void *)(uintptr_t)i,
                                                    &g_ahead.threads[i]) == RONDO_STATUS_OK;
    }
    pthread_mutex_unlock(&g_ahead.lock);
    rondo__error_restore(&saved);
}

rondo_status rondo__cuda_load_functions(rondo__cuda_functions *wanted) {
    pthread_mutex_lock(&wanted->lock);
    if (wanted->library == NULL && wanted->problem[0] == '\0') {
        const char *absent = NULL;
        if (rondo__cuda_open_library(wanted->short_name, &wanted->library) != RONDO_STATUS_OK) {
            rondo__text_fit(wanted->problem, sizeof(wanted->problem),
                            rondo_error_get_last()->message);
        } else if ((absent = rondo__library_find_all(wanted->library, wanted->names,
                                                     wanted->name_count, wanted->table)) != NULL) {
            (void)snprintf(wanted->problem, sizeof(wanted->problem), "%s has no %s",
                           wanted->short_name, absent);
        }
    }
    pthread_mutex_unlock(&wanted->lock);
    const bool has_all = wanted->library != NULL && wanted->problem[0] == '\0';
    return has_all ? RONDO_STATUS_OK : RONDO_FAIL(UNAVAILABLE, "%s", wanted->problem);
}

// Wheels of CUDA 13 keep one include folder beside lib; those of CUDA 12 keep the headers in the
// cuda_runtime wheel.
bool rondo__cuda_find_headers(const char *library_path, char *out_folder, size_t folder_bytes) {
    static const char *const relatives[] = {
        "../include",
        "../../cuda_runtime/include",
        "../../../include",
    };
    const char *slash = strrchr(library_path, '/');
    if (slash != NULL) {
        for (size_t i = 0; i < sizeof(relatives) / sizeof(relatives[0]); i++) {
            char path[PATH_BYTES];
            int length = snprintf(path, sizeof(path), "%.*s%s/cuda_fp16.h",
                                  (int)(slash - library_path + 1), library_path, relatives[i]);
            if (length > 0 && (size_t)length < sizeof(path) && access(path, R_OK) == 0) {
                *strrchr(path, '/') = '\0';
                length = snprintf(out_folder, folder_bytes, "%s", path);
                return length > 0 && (size_t)length < folder_bytes;
            }
        }
    }
    int length = snprintf(out_folder, folder_bytes, "/usr/local/cuda/include");
    return access("/usr/local/cuda/include/cuda_fp16.h", R_OK) == 0 && length > 0 &&
           (size_t)length < folder_bytes;
}
