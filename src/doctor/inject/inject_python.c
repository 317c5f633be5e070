// doctor/inject/inject_python.c — see inject_python.h.
//
// Source: the Python/C API reference, 3.9 and newer: pending calls, frame objects.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_python.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_record.h"

enum { FRAMES_MAX = 12 };

typedef struct python_api {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*function)(void *), void *data);
    void *(*get_frame)(void);        // borrowed
    void *(*get_back)(void *frame);  // new
    void *(*get_code)(void *frame);  // new
    int (*get_line)(void *frame);
    void *(*get_attribute)(void *object, const char *name);  // new
    const char *(*get_text)(void *object);
    void (*forget)(void *object);
    void (*clear_error)(void);
} python_api;

static const char *const g_names[] = {
    "Py_IsInitialized", "Py_AddPendingCall",     "PyEval_GetFrame",        "PyFrame_GetBack",
    "PyFrame_GetCode",  "PyFrame_GetLineNumber", "PyObject_GetAttrString", "PyUnicode_AsUTF8",
    "Py_DecRef",        "PyErr_Clear",
};
enum { NAME_COUNT = sizeof(g_names) / sizeof(g_names[0]) };

_Static_assert(sizeof(python_api) == NAME_COUNT * sizeof(void *), "a member for each name");

static python_api g_python;
static atomic_bool g_is_asked;

// An interpreter is in the program itself or in a library that all see, or it is none for us.
static bool load(void) {
    enum { UNKNOWN, FOUND, ABSENT };
    static atomic_int state;
    int known = atomic_load(&state);
    if (known != UNKNOWN) {
        return known == FOUND;
    }
    void *found[NAME_COUNT];
    known = FOUND;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        found[i] = rondo__inject_real_dlsym(RTLD_DEFAULT, g_names[i]);
        known = found[i] != NULL ? known : ABSENT;
    }
    if (known == FOUND) {
        memcpy(&g_python, found, sizeof(g_python));
    }
    atomic_store(&state, known);
    return known == FOUND;
}

// The text of an attribute of a code object.
static void copy_attribute(void *code, const char *name, char *out, size_t bytes) {
    void *object = code != NULL ? g_python.get_attribute(code, name) : NULL;
    const char *text = object != NULL ? g_python.get_text(object) : NULL;
    (void)snprintf(out, bytes, "%s", text != NULL ? text : "");
    if (text == NULL) {
        g_python.clear_error();
    }
    if (object != NULL) {
        g_python.forget(object);
    }
}

static void describe(void *frame, char *out, size_t bytes, bool *out_is_own) {
    char file[400];
    char function[128];
    void *code = g_python.get_code(frame);
    copy_attribute(code, "co_filename", file, sizeof(file));
    copy_attribute(code, "co_name", function, sizeof(function));
    if (code != NULL) {
        g_python.forget(code);
    }
    (void)snprintf(out, bytes, "%s:%d in %s", file, g_python.get_line(frame), function);
    *out_is_own = strstr(file, "-packages/") == NULL && file[0] != '<' && file[0] != '\0';
}

// Runs in the main thread, with the interpreter's lock. The nearest line that is of no installed
// package; without any the nearest line.
static int record_line(void *data) {
    char text[RONDO__DOCTOR_TEXT_MAX];
    char nearest[RONDO__DOCTOR_TEXT_MAX] = "";
    bool is_own = false;
    void *frame = g_python.get_frame();
    void *owned = NULL;
    for (int i = 0; i < FRAMES_MAX && frame != NULL && !is_own; i++) {
        describe(frame, text, sizeof(text), &is_own);
        if (nearest[0] == '\0' || is_own) {
            (void)snprintf(nearest, sizeof(nearest), "%s", text);
        }
        frame = g_python.get_back(frame);
        if (owned != NULL) {
            g_python.forget(owned);
        }
        owned = frame;
    }
    if (owned != NULL) {
        g_python.forget(owned);
    }
    if (nearest[0] != '\0') {
        rondo__doctor_event event = {.call = RONDO__DOCTOR_LINE,
                                     .object = (uint64_t)(uintptr_t)data,
                                     .thread = (uint32_t)syscall(SYS_gettid),
                                     .name = rondo__inject_text(nearest)};
        rondo__inject_put(&event, NULL);
    }
    atomic_store(&g_is_asked, false);
    return 0;
}

void rondo__inject_ask_python(uint16_t call) {
    if (atomic_load(&g_is_asked) || syscall(SYS_gettid) != getpid() || !load() ||
        g_python.is_initialized() == 0) {
        return;
    }
    if (!atomic_exchange(&g_is_asked, true) &&
        g_python.add_pending_call(record_line, (void *)(uintptr_t)call) != 0) {
        atomic_store(&g_is_asked, false);
    }
}
