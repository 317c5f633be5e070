// SPDX-License-Identifier: Apache-2.0

#include "progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rondo/text.h"

enum { LARGE_FILE_BYTES = 100 * 1000 * 1000 };

static bool is_shown;  // the tool's one terminal line; touched by the main thread only

// Asked of the system once: a program is loaded in dozens of steps.
static bool is_wanted(void) {
    static enum { UNKNOWN, WANTED, UNWANTED } answer;
    if (answer == UNKNOWN) {
        answer = isatty(STDERR_FILENO) == 1 ? WANTED : UNWANTED;
    }
    return answer == WANTED;
}

void cli_progress_show(void *user_data, const char *what, size_t done, size_t total) {
    (void)user_data;
    if (!is_wanted()) {
        return;
    }
    char shown[200];
    (void)rondo_text_escape(what, shown, sizeof shown);
    if (total > 0) {
        fprintf(stderr, "\r\033[K%s: %zu of %zu", shown, done, total);
    } else {
        fprintf(stderr, "\r\033[K%s ...", shown);
    }
    fflush(stderr);
    is_shown = true;
}

void cli_progress_show_loading(const char *path) {
    struct stat info;
    if (is_wanted() && stat(path, &info) == 0 && info.st_size > LARGE_FILE_BYTES) {
        char shown[200];
        (void)rondo_text_escape(path, shown, sizeof shown);
        fprintf(stderr, "\r\033[Kloading %s (%lld MB) ...", shown,
                (long long)(info.st_size / 1000000));
        fflush(stderr);
        is_shown = true;
    }
}

void cli_progress_clear(void) {
    if (is_shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        is_shown = false;
    }
}

double cli_get_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
