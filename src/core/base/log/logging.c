// base/log/logging.c — the log sink: one of the two pieces of process-wide state (the other is the
// device registry).
// SPDX-License-Identifier: Apache-2.0
#include "base/log/logging.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "rondo/text.h"

enum { MESSAGE_BYTES = 1024 };

// One of the two functions is set, or none: stderr.
typedef struct sink {
    rondo_log_function function;
    rondo_log_record_function record_function;
    void *user_data;
} sink;

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static sink g_sink;  // guarded by sink_lock

static void set_sink(const sink *wanted) {
    pthread_mutex_lock(&sink_lock);
    g_sink = *wanted;
    pthread_mutex_unlock(&sink_lock);
}

void rondo_log_set_sink(rondo_log_function function, void *user_data) {
    set_sink(&(sink){.function = function, .user_data = user_data});
}

void rondo_log_set_record_sink(rondo_log_record_function function, void *user_data) {
    set_sink(&(sink){.record_function = function, .user_data = user_data});
}

// ---- delivery ---------------------------------------------------------------------------------

// Where debug messages are wanted each line says when, by whom and where it was written.
static void print(const rondo_log_record *record) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (!rondo__log_is_detailed_in(record->file)) {
        fprintf(stderr, "rondo: %s: %s\n", names[record->level], record->message);
        return;
    }
    const time_t seconds = (time_t)(record->time_ns / 1000000000u);
    struct tm time;
    char clock[16] = "";
    if (localtime_r(&seconds, &time) != NULL) {
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &time);
    }
    const char *name = strrchr(record->file, '/');
    fprintf(stderr, "rondo: %s: %s  [%s.%06" PRIu64 " thread %" PRIu64 " %s %s:%" PRId32 "]\n",
            names[record->level], record->message, clock, record->time_ns % 1000000000u / 1000u,
            record->thread, record->room, name != NULL ? name + 1 : record->file, record->line);
}

static void hand_over(const rondo_log_record *record) {
    pthread_mutex_lock(&sink_lock);
    const sink now = g_sink;
    pthread_mutex_unlock(&sink_lock);
    if (now.record_function != NULL) {
        now.record_function(now.user_data, record);
    } else if (now.function != NULL) {
        now.function(now.user_data, record->level, record->message);
    } else {
        print(record);
    }
}

RONDO_PRINTF(4, 0)
static void deliver(rondo_log_level level, const char *file, int32_t line, const char *format,
                    va_list arguments) {
    int saved_errno = errno;
    rondo_error saved_error;
    rondo__error_save(&saved_error);

    char formatted[MESSAGE_BYTES];
    char message[MESSAGE_BYTES];
    char room[32];
    struct timespec now = {0};
    vsnprintf(formatted, sizeof formatted, format, arguments);
    for (char *cursor = formatted; *cursor != '\0'; ++cursor) {
        if (*cursor == '\n' || *cursor == '\r' || *cursor == '\t') {
            *cursor = ' ';
        }
    }
    (void)rondo_text_escape(formatted, message, sizeof message);
    rondo__log_find_room(file, room, sizeof room);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const rondo_log_record record = {
        .struct_size = sizeof record,
        .level = level,
        .message = message,
        .room = room,
        .file = file,
        .line = line,
        .thread = (uint64_t)syscall(SYS_gettid),
        .time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
    hand_over(&record);

    rondo__error_restore(&saved_error);
    errno = saved_errno;
}

RONDO_PRINTF(1, 2) static void deliver_own(const char *format, ...);

static void deliver_own(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    deliver(RONDO_LOG_WARNING, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
}

// Says once what RONDO_LOG has that means nothing.
static void warn_of_unknown(void) {
    char why[160];
    const char *text = rondo__log_take_unknown(why, sizeof why);
    if (text != NULL) {
        deliver_own("RONDO_LOG is \"%.60s\": %s; warning is used", text, why);
    }
}

void rondo__log(rondo_log_level level, const char *file, int32_t line, const char *format, ...) {
    warn_of_unknown();
    if (rondo__log_is_wanted_in(level, file)) {
        va_list arguments;
        va_start(arguments, format);
        deliver(level, file, line, format, arguments);
        va_end(arguments);
    }
}

void rondo__log_asked(const char *file, int32_t line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    deliver(RONDO_LOG_INFO, file, line, format, arguments);
    va_end(arguments);
}
