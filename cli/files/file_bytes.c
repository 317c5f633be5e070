// SPDX-License-Identifier: Apache-2.0

#include "file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console.h"

static bool fail(const char *path, const char *reason) {
    cli_print_error("%s: %s", strcmp(path, "-") == 0 ? "standard input" : path, reason);
    return false;
}

static bool read_to_end(const char *path, int descriptor, cli_bytes *out_bytes) {
    size_t capacity = 1 << 16;
    size_t count = 0;
    uint8_t *bytes = malloc(capacity);
    while (bytes != NULL) {
        if (count == capacity) {
            uint8_t *grown = capacity <= SIZE_MAX / 2 ? realloc(bytes, 2 * capacity) : NULL;
            if (grown == NULL) {
                break;
            }
            bytes = grown;
            capacity *= 2;
        }
        const ssize_t length = read(descriptor, bytes + count, capacity - count);
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length < 0) {
            const int reason = errno;
            free(bytes);
            return fail(path, strerror(reason));
        }
        if (length == 0) {
            *out_bytes = (cli_bytes){.data = bytes, .count = count, .owned = bytes};
            return true;
        }
        count += (size_t)length;
    }
    free(bytes);
    return fail(path, "out of memory");
}

bool cli_bytes_load(const char *path, cli_bytes *out_bytes) {
    static const uint8_t nothing[1] = {0};
    struct stat info;
    bool is_done = false;
    memset(out_bytes, 0, sizeof *out_bytes);
    if (strcmp(path, "-") == 0) {
        return read_to_end(path, STDIN_FILENO, out_bytes);
    }
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        fail(path, strerror(errno));
        goto close_file;
    }
    if (!S_ISREG(info.st_mode)) {
        is_done = S_ISDIR(info.st_mode) ? fail(path, "is a folder")
                                        : read_to_end(path, descriptor, out_bytes);
        goto close_file;
    }
    if (info.st_size == 0) {
        *out_bytes = (cli_bytes){.data = nothing};
        is_done = true;
        goto close_file;
    }
    void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) {
        fail(path, strerror(errno));
        goto close_file;
    }
    *out_bytes = (cli_bytes){.data = mapping, .count = (size_t)info.st_size, .mapping = mapping};
    is_done = true;

close_file:
    if (descriptor >= 0) {
        close(descriptor);
    }
    return is_done;
}

void cli_bytes_free(cli_bytes *bytes) {
    if (bytes->mapping != NULL) {
        (void)munmap(bytes->mapping, bytes->count);
    }
    free(bytes->owned);
    memset(bytes, 0, sizeof *bytes);
}
