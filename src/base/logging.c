// base/logging.c — the log sink: one of the two pieces of process-wide state (the other is the
// device registry).
// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rondo/text.h"

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_log_function sink_function;  // guarded by sink_lock; NULL: stderr
static void *sink_user_data;              // guarded by sink_lock

enum { LEVEL_UNSET = -1 };
static atomic_int wanted_level = LEVEL_UNSET;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

// *out_unknown is the variable's value where no level has that name, otherwise NULL.
static int level_from_environment(const char **out_unknown) {
    const char *text = getenv("RONDO_LOG");
    *out_unknown = NULL;
    for (int level = RONDO_LOG_ERROR; text != NULL && level <= RONDO_LOG_DEBUG; ++level) {
        if (strcmp(text, level_names[level]) == 0) {
            return level;
        }
    }
    *out_unknown = text != NULL && text[0] != '\0' ? text : NULL;
    return RONDO_LOG_WARNING;
}

static int get_level(void) {
    int level = atomic_load_explicit(&wanted_level, memory_order_relaxed);
    if (level == LEVEL_UNSET) {
        // The first to arrive decides; a level set meanwhile by the program wins.
        int expected = LEVEL_UNSET;
        const char *unknown;
        level = level_from_environment(&unknown);
        if (!atomic_compare_exchange_strong(&wanted_level, &expected, level)) {
            level = expected;
        } else if (unknown != NULL) {
            RONDO_LOG_WARN_F(
                "RONDO_LOG is \"%.40s\", which is none of error, warning, info and debug; warning "
                "is "
                "used",
                unknown);
        }
    }
    return level;
}

void rondo_log_set_sink(rondo_log_function function, void *user_data) {
    pthread_mutex_lock(&sink_lock);
    sink_function = function;
    sink_user_data = user_data;
    pthread_mutex_unlock(&sink_lock);
}

void rondo_log_set_level(rondo_log_level level) {
    int value = (int)level;
    if (value < RONDO_LOG_ERROR) {
        value = RONDO_LOG_ERROR;
    }
    if (value > RONDO_LOG_DEBUG) {
        value = RONDO_LOG_DEBUG;
    }
    atomic_store(&wanted_level, value);
}

bool rondo__log_is_wanted(rondo_log_level level) {
    return (int)level <= get_level();
}

RONDO_PRINTF(2, 0)
static void deliver(rondo_log_level level, const char *format, va_list arguments) {
    int saved_errno = errno;
    rondo_error saved_error;
    rondo__error_save(&saved_error);

    char formatted[1024];
    char message[1024];
    vsnprintf(formatted, sizeof formatted, format, arguments);
    for (char *cursor = formatted; *cursor != '\0'; ++cursor) {
        if (*cursor == '\n' || *cursor == '\r' || *cursor == '\t') {
            *cursor = ' ';
        }
    }
    (void)rondo_text_escape(formatted, message, sizeof message);

    pthread_mutex_lock(&sink_lock);
    rondo_log_function function = sink_function;
    void *user_data = sink_user_data;
    pthread_mutex_unlock(&sink_lock);
    if (function != NULL) {
        function(user_data, level, message);
    } else {
        fprintf(stderr, "rondo: %s: %s\n", level_names[level], message);
    }

    rondo__error_restore(&saved_error);
    errno = saved_errno;
}

void rondo__log(rondo_log_level level, const char *format, ...) {
    if (rondo__log_is_wanted(level)) {
        va_list arguments;
        va_start(arguments, format);
        deliver(level, format, arguments);
        va_end(arguments);
    }
}

void rondo__log_asked(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    deliver(RONDO_LOG_INFO, format, arguments);
    va_end(arguments);
}
