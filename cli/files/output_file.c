// SPDX-License-Identifier: Apache-2.0

#include "output_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console.h"

static bool fail(const char *path) {
    cli_print_error("%s: %s", path, strerror(errno));
    return false;
}

// The file that `path` names behind symbolic links; the path itself while there is no file.
static char *resolve(const char *path) {
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        char *target = realpath(path, NULL);
        if (target != NULL) {
            return target;
        }
    }
    return strdup(path);
}

// ---- signals ----------------------------------------------------------------------------------
//
// A signal that ends the process takes its temporary files along. Only the main thread writes
// files, and signals reach no other.

enum { OPEN_MAX = 4 };  // one is usual
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
enum { SIGNAL_COUNT = sizeof ending_signals / sizeof ending_signals[0] };
static const char *volatile temporaries[OPEN_MAX];
static volatile int temporary_count;  // unlinked by the handler

void cli_output_abandon_all(void) {
    for (int i = 0; i < temporary_count; i++) {
        (void)unlink(temporaries[i]);
    }
}

static void remove_temporaries(int number) {
    cli_output_abandon_all();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

// A program that catches or ignores a signal goes on doing so.
static void replace_handlers(void (*former)(int), void (*handler)(int)) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action;
        if (sigaction(ending_signals[i], NULL, &action) == 0 && action.sa_handler == former) {
            memset(&action, 0, sizeof action);
            action.sa_handler = handler;
            (void)sigemptyset(&action.sa_mask);
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
}

static void guard(const char *temporary) {
    if (temporary_count == OPEN_MAX) {
        return;
    }
    temporaries[temporary_count] = temporary;
    temporary_count++;
    if (temporary_count == 1) {
        replace_handlers(SIG_DFL, remove_temporaries);
    }
}

static void unguard(const char *temporary) {
    for (int i = 0; i < temporary_count; i++) {
        if (temporaries[i] == temporary) {
            temporaries[i] = temporaries[temporary_count - 1];
            temporary_count--;
            break;
        }
    }
    if (temporary_count == 0) {
        replace_handlers(remove_temporaries, SIG_DFL);
    }
}

// ---- files ------------------------------------------------------------------------------------

static bool open_temporary(cli_output *output) {
    static const char suffix[] = ".rondo-XXXXXX";
    const size_t length = strlen(output->target);
    output->temporary = malloc(length + sizeof suffix);
    if (output->temporary == NULL) {
        return cli_fail_memory();
    }
    memcpy(output->temporary, output->target, length);
    memcpy(output->temporary + length, suffix, sizeof suffix);
    guard(output->temporary);  // before there is a file of this name
    const int descriptor = mkstemp(output->temporary);
    if (descriptor < 0) {
        const int reason = errno;
        unguard(output->temporary);
        errno = reason;
        free(output->temporary);
        output->temporary = NULL;
        return fail(output->path);
    }
    // mkstemp lets nobody else read; an ordinary file follows the mask of the process.
    const mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(descriptor, 0666 & ~mask);
    output->file = fdopen(descriptor, "wb");
    if (output->file == NULL) {
        close(descriptor);
        return fail(output->path);
    }
    return true;
}

bool cli_output_open(const char *path, cli_output *out_output) {
    struct stat info;
    cli_output output = {.path = path};
    *out_output = output;
    if (strcmp(path, "-") == 0) {
        out_output->file = stdout;
        return true;
    }
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail(path);
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        out_output->file = fopen(path, "wb");
        return out_output->file != NULL || fail(path);
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && stat(path, &info) != 0) {
        cli_print_error("%s: a symbolic link to nothing", path);
        return false;
    }
    output.target = resolve(path);
    if (output.target == NULL) {
        return cli_fail_memory();
    }
    if (!open_temporary(&output)) {
        cli_output_discard(&output);
        return false;
    }
    *out_output = output;
    return true;
}

static void forget(cli_output *output) {
    if (output->temporary != NULL) {
        unguard(output->temporary);
    }
    free(output->target);
    free(output->temporary);
    memset(output, 0, sizeof *output);
}

void cli_output_discard(cli_output *output) {
    if (output->file != NULL && output->file != stdout) {
        (void)fclose(output->file);
    }
    if (output->temporary != NULL) {
        (void)unlink(output->temporary);
    }
    forget(output);
}

bool cli_output_save(const char *path, bool (*write)(void *data, FILE *file), void *data) {
    cli_output output;
    if (path == NULL) {
        return true;
    }
    if (!cli_output_open(path, &output)) {
        return false;
    }
    if (!write(data, output.file)) {
        cli_output_discard(&output);
        return false;
    }
    if (!cli_output_close(&output)) {
        return false;
    }
    cli_say(CLI_NORMAL, "%s written", path);
    return true;
}

bool cli_output_write_text(void *file, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, file) == bytes;
}

bool cli_output_close(cli_output *output) {
    bool is_written = fflush(output->file) == 0 && ferror(output->file) == 0;
    int reason = errno;
    if (output->file == stdout) {
        forget(output);
        return is_written;  // main tells of a stdout that cannot be written
    }
    if (fclose(output->file) != 0 && is_written) {
        is_written = false;
        reason = errno;
    }
    output->file = NULL;
    if (is_written && output->temporary != NULL && rename(output->temporary, output->target) != 0) {
        is_written = false;
        reason = errno;
    }
    if (!is_written) {
        cli_print_error("%s: could not be written: %s", output->path, strerror(reason));
        cli_output_discard(output);
        return false;
    }
    forget(output);
    return true;
}

bool cli_output_check(const char *path) {
    cli_output output;
    if (path == NULL || strcmp(path, "-") == 0) {
        return true;
    }
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return access(path, W_OK) == 0 || fail(path);  // opening a pipe may wait for its reader
    }
    if (!cli_output_open(path, &output)) {
        return false;
    }
    cli_output_discard(&output);
    return true;
}

bool cli_output_check_replaced(const char *path) {
    struct stat info;
    if (path != NULL && stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode)) {
        cli_print_error("%s: a device or pipe, where a regular file is to be written", path);
        return false;
    }
    return cli_output_check(path);
}

bool cli_make_folders(const char *path) {
    char *part = strdup(path);
    struct stat info;
    bool is_made = false;
    if (part == NULL) {
        return cli_fail_memory();
    }
    for (char *slash = part + 1; *part != '\0'; slash++) {
        const char end = *slash;
        if (end != '/' && end != '\0') {
            continue;
        }
        *slash = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            goto done;
        }
        *slash = end;
        if (end == '\0') {
            break;
        }
    }
    if (stat(path, &info) != 0) {
        goto done;
    }
    errno = ENOTDIR;
    is_made = S_ISDIR(info.st_mode);

done:
    if (!is_made) {
        fail(path);
    }
    free(part);
    return is_made;
}
