// doctor/inject/inject_place.c — see inject_place.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_place.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/inject/inject_python.h"
#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_record.h"

enum {
    FRAMES_MAX = 40,
    FIRST_ONES = 64,  // calls of a name that are all looked at
    EVERY = 61,       // and of the later ones; prime, so that each call of a step has its turn
    PLACES_SHOWN = 2,
};

static bool is_looked_at(uint16_t call) {
    switch (rondo__doctor_call_kind(call)) {
        case RONDO__DOCTOR_KIND_LAUNCH:
        case RONDO__DOCTOR_KIND_FILL:
        case RONDO__DOCTOR_KIND_EVENT_RECORD:
        case RONDO__DOCTOR_KIND_EVENT_WAIT:
            return false;
        default:
            break;
    }
    static atomic_uint counts[RONDO__DOCTOR_CALL_COUNT];
    const unsigned count = atomic_fetch_add(&counts[call], 1);
    return count < FIRST_ONES || count % EVERY == 0;
}

// NVIDIA's own libraries and ours say nothing of the place.
static bool is_passed_over(const char *file) {
    static const char *const names[] = {"librondo_doctor", "libcuda.",   "libcudart", "libcublas",
                                        "libcudnn",        "libnvidia-", "libc.so",   "libpthread"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(file, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

void rondo__inject_read_symbol(const char *symbol, char *out, size_t bytes) {
    typedef char *(*demangle_function)(const char *, char *, size_t *, int *);
    const bool is_mangled = symbol[0] == '_' && symbol[1] == 'Z';
    demangle_function demangle =
        is_mangled ? (demangle_function)rondo__inject_real_dlsym(RTLD_DEFAULT, "__cxa_demangle")
                   : NULL;
    void *library =
        is_mangled && demangle == NULL ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library != NULL) {
        demangle = (demangle_function)rondo__inject_real_dlsym(library, "__cxa_demangle");
    }
    int status = -1;
    char *plain = demangle != NULL ? demangle(symbol, NULL, NULL, &status) : NULL;
    (void)snprintf(out, bytes, "%s", status == 0 && plain != NULL ? plain : symbol);
    free(plain);
}

// Arguments are left out.
static void copy_symbol(const char *symbol, char *out, size_t bytes) {
    rondo__inject_read_symbol(symbol, out, bytes);
    char *arguments = strchr(out, '(');
    if (arguments != NULL && arguments != out) {
        *arguments = '\0';
    }
}

static size_t describe(const Dl_info *info, const void *frame, char *out, size_t bytes) {
    const char *slash = strrchr(info->dli_fname, '/');
    const char *file = slash != NULL ? slash + 1 : info->dli_fname;
    if (is_passed_over(file)) {
        return 0;
    }
    char symbol[256] = "";
    int length = 0;
    if (info->dli_sname != NULL) {
        copy_symbol(info->dli_sname, symbol, sizeof(symbol));
        length = snprintf(out, bytes, "%s (%s)", symbol, file);
    } else {
        length = snprintf(out, bytes, "%s+0x%zx", file,
                          (size_t)((const char *)frame - (const char *)info->dli_fbase));
    }
    return length > 0 ? ((size_t)length < bytes ? (size_t)length : bytes - 1) : 0;
}

static uint32_t name_place(void *const *frames, int count) {
    char text[RONDO__DOCTOR_TEXT_MAX] = "";
    size_t used = 0;
    int shown = 0;
    for (int i = 0; i < count && shown < PLACES_SHOWN; i++) {
        Dl_info info;
        char one[400];
        if (dladdr(frames[i], &info) == 0 || info.dli_fname == NULL ||
            describe(&info, frames[i], one, sizeof(one)) == 0) {
            continue;
        }
        const int length =
            snprintf(text + used, sizeof(text) - used, "%s%s", shown > 0 ? " < " : "", one);
        used += length > 0 ? (size_t)length : 0;
        used = used < sizeof(text) ? used : sizeof(text) - 1;
        ++shown;
    }
    return rondo__inject_text(text);
}

static uint64_t hash_frames(void *const *frames, int count) {
    uint64_t hash = (uint64_t)count + ((uint64_t)rondo__inject_count_forks() << 32);
    for (int i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

// Symbols of a large library take a millisecond to search, so each way to a call is named once.
static uint32_t find_known_place(void *const *frames, int count) {
    enum { SLOTS = 1 << 11 };
    static struct {
        uint64_t hash;
        uint32_t place;
    } known[SLOTS];
    static atomic_flag is_busy = ATOMIC_FLAG_INIT;
    const uint64_t hash = hash_frames(frames, count);
    if (atomic_flag_test_and_set(&is_busy)) {
        return 0;
    }
    if (known[hash % SLOTS].hash != hash) {
        known[hash % SLOTS].hash = hash;
        known[hash % SLOTS].place = name_place(frames, count);
    }
    const uint32_t place = known[hash % SLOTS].place;
    atomic_flag_clear(&is_busy);
    return place;
}

uint32_t rondo__inject_find_place(uint16_t call) {
    if (!is_looked_at(call)) {
        return 0;
    }
    void *frames[FRAMES_MAX];
    const uint32_t place = find_known_place(frames, backtrace(frames, FRAMES_MAX));
    if (place != 0) {
        rondo__inject_ask_python(call);
    }
    return place;
}
