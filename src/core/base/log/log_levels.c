// base/log/log_levels.c — see log_levels.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/log/log_levels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// The folders of src/core and src/models (tools/lint compares). A file of none of them has the
// level of the last entry.
static const char *const g_rooms[] = {"backend", "base",     "cache",  "capture", "collective",
                                      "device",  "executor", "graph",  "kernel",  "learn",
                                      "onnx",    "op",       "pool",   "profile", "program",
                                      "random",  "saved",    "tensor", ""};
enum { ROOM_COUNT = sizeof g_rooms / sizeof *g_rooms, NAME_BYTES = 32 };

static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static atomic_int g_levels[ROOM_COUNT];
static atomic_int g_most_detailed;  // of all rooms: what is beyond is wanted nowhere
static atomic_bool g_has_unknown;   // RONDO_LOG has something unknown that was not reported yet
static char g_unknown_why[160];

// ---- reading ----------------------------------------------------------------------------------

static bool find_level(const char *name, int *out_level) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    for (int level = RONDO_LOG_ERROR; level <= RONDO_LOG_DEBUG; ++level) {
        if (strcmp(name, names[level]) == 0) {
            *out_level = level;
            return true;
        }
    }
    *out_level = RONDO_LOG_WARNING;
    return strcmp(name, "warn") == 0;
}

static size_t find_room(const char *name) {
    size_t room = 0;
    while (room + 1 < ROOM_COUNT && strcmp(g_rooms[room], name) != 0) {
        ++room;
    }
    return room;
}

// One entry, "level" or "room=level". Those of all rooms come first, whatever their order. False:
// `why` says what is wrong.
static bool read_entry(const char *entry, bool is_first_pass, int levels[ROOM_COUNT], char *why,
                       size_t bytes) {
    const char *equals = strchr(entry, '=');
    int level = 0;
    char room[NAME_BYTES] = "";
    if (!find_level(equals != NULL ? equals + 1 : entry, &level)) {
        (void)snprintf(why, bytes, "\"%.40s\" is none of error, warning, info and debug",
                       equals != NULL ? equals + 1 : entry);
        return false;
    }
    if (equals == NULL) {
        for (size_t i = 0; is_first_pass && i < ROOM_COUNT; ++i) {
            levels[i] = level;
        }
        return true;
    }
    (void)snprintf(room, sizeof room, "%.*s", (int)(equals - entry), entry);
    const size_t index = find_room(room);
    if (index + 1 == ROOM_COUNT) {
        (void)snprintf(why, bytes,
                       "\"%.20s\" is no room of the library; its rooms are the folders of src/core "
                       "and src/models, such as executor, graph, pool",
                       room);
        return false;
    }
    if (!is_first_pass) {
        levels[index] = level;
    }
    return true;
}

static bool read_levels(const char *text, int levels[ROOM_COUNT], char *why, size_t bytes) {
    char entry[2 * NAME_BYTES];
    for (size_t i = 0; i < ROOM_COUNT; ++i) {
        levels[i] = RONDO_LOG_WARNING;
    }
    for (int pass = 0; pass < 2; ++pass) {
        for (const char *at = text; *at != '\0';) {
            const size_t length = strcspn(at, ",");
            (void)snprintf(entry, sizeof entry, "%.*s", (int)(length < 60 ? length : 60), at);
            if (length > 0 && !read_entry(entry, pass == 0, levels, why, bytes)) {
                return false;
            }
            at += length + (at[length] == ',' ? 1 : 0);
        }
    }
    return true;
}

static void set_levels(const int levels[ROOM_COUNT]) {
    int most_detailed = RONDO_LOG_ERROR;
    for (size_t i = 0; i < ROOM_COUNT; ++i) {
        atomic_store(&g_levels[i], levels[i]);
        most_detailed = levels[i] > most_detailed ? levels[i] : most_detailed;
    }
    atomic_store(&g_most_detailed, most_detailed);
}

// An invalid RONDO_LOG leaves the default level.
static void read_environment(void) {
    const char *text = getenv("RONDO_LOG");
    int levels[ROOM_COUNT];
    if (!read_levels(text != NULL ? text : "", levels, g_unknown_why, sizeof g_unknown_why)) {
        (void)read_levels("", levels, g_unknown_why, 0);
        atomic_store(&g_has_unknown, true);
    }
    set_levels(levels);
}

const char *rondo__log_take_unknown(char *why, size_t bytes) {
    pthread_once(&g_once, read_environment);
    if (!atomic_load_explicit(&g_has_unknown, memory_order_relaxed) ||
        !atomic_exchange(&g_has_unknown, false)) {
        return NULL;
    }
    (void)snprintf(why, bytes, "%s", g_unknown_why);
    const char *text = getenv("RONDO_LOG");
    return text != NULL ? text : "";
}

// ---- asking -----------------------------------------------------------------------------------

void rondo__log_find_room(const char *file, char *room, size_t bytes) {
    const char *found = NULL;
    for (const char *at = strstr(file, "src/"); at != NULL; at = strstr(at + 1, "src/")) {
        found = at == file || at[-1] == '/' ? at + 4 : found;
    }
    static const char *const houses[] = {"core/", "models/"};
    for (size_t i = 0; found != NULL && i < sizeof houses / sizeof *houses; ++i) {
        const size_t house = strlen(houses[i]);
        found += strncmp(found, houses[i], house) == 0 ? house : 0;
    }
    const size_t length = found != NULL ? strcspn(found, "/") : 0;
    const bool is_folder = found != NULL && found[length] == '/';
    (void)snprintf(room, bytes, "%.*s", is_folder ? (int)length : 0, is_folder ? found : "");
}

static int get_level(const char *file) {
    char room[NAME_BYTES];
    rondo__log_find_room(file, room, sizeof room);
    return atomic_load_explicit(&g_levels[find_room(room)], memory_order_relaxed);
}

bool rondo__log_is_wanted_in(rondo_log_level level, const char *file) {
    pthread_once(&g_once, read_environment);
    return (int)level <= atomic_load_explicit(&g_most_detailed, memory_order_relaxed) &&
           (int)level <= get_level(file);
}

bool rondo__log_is_detailed_in(const char *file) {
    return rondo__log_is_wanted_in(RONDO_LOG_DEBUG, file);
}

// ---- the program's wish -----------------------------------------------------------------------

void rondo_log_set_level(rondo_log_level level) {
    const int value = level < RONDO_LOG_ERROR   ? RONDO_LOG_ERROR
                      : level > RONDO_LOG_DEBUG ? RONDO_LOG_DEBUG
                                                : (int)level;
    int levels[ROOM_COUNT];
    for (size_t i = 0; i < ROOM_COUNT; ++i) {
        levels[i] = value;
    }
    pthread_once(&g_once, read_environment);
    atomic_store(&g_has_unknown, false);
    set_levels(levels);
}

rondo_status rondo_log_set_levels(const char *levels) {
    int wanted[ROOM_COUNT];
    char why[160];
    if (levels == NULL) {
        return RONDO_FAIL(INVALID, "levels is NULL");
    }
    if (!read_levels(levels, wanted, why, sizeof why)) {
        return RONDO_FAIL(INVALID, "%s", why);
    }
    pthread_once(&g_once, read_environment);
    atomic_store(&g_has_unknown, false);
    set_levels(wanted);
    return RONDO_STATUS_OK;
}
