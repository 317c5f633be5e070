// base/file.c — whole files: mapped for reading, written atomically.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // the strerror_r that returns its text
#endif
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

// strerror without its shared buffer.
static const char *describe_errno(int code, char *buffer, size_t bytes) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    return strerror_r(code, buffer, bytes);
#else
    if (strerror_r(code, buffer, bytes) != 0 && bytes > 0) {
        buffer[0] = '\0';
    }
    return buffer;
#endif
}

static rondo_status fail(const char *path, const char *action, int code, int32_t line) {
    char buffer[96];
    const char *text = describe_errno(code, buffer, sizeof buffer);
    return rondo__error_set(code == ENOMEM ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_UNAVAILABLE, 0,
                            "", __FILE__, line, action, "cannot %s %s: %s", action, path, text);
}

// Maps an open file and closes it; `path` is for messages.
static rondo_status map_descriptor(int descriptor, const char *path, rondo__file *out_file) {
    rondo_status status = RONDO_STATUS_OK;
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) {
        status = fail(path, "stat", errno, __LINE__);
        goto close_descriptor;
    }
    if (!S_ISREG(facts.st_mode)) {
        status = RONDO_FAIL(UNAVAILABLE, "cannot read %s: it is %s, not a regular file", path,
                            S_ISDIR(facts.st_mode) ? "a directory" : "a device or pipe");
        goto close_descriptor;
    }
    if (facts.st_size > 0) {
        void *bytes =
            mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, descriptor, (off_t)0);
        if (bytes == MAP_FAILED) {
            status = fail(path, "map", errno, __LINE__);
            goto close_descriptor;
        }
        out_file->bytes = bytes;
        out_file->byte_count = (size_t)facts.st_size;
    }
close_descriptor:
    close(descriptor);
    return status;
}

rondo_status rondo__file_map(const char *path, rondo__file *out_file) {
    *out_file = (rondo__file){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return fail(path, "open", errno, __LINE__);
    }
    return map_descriptor(descriptor, path, out_file);
}

// ---- files beside a file ----------------------------------------------------------------------

// A location as ONNX allows it: relative, and going only downwards.
static rondo_status check_location(const char *location) {
    if (location[0] == '\0') {
        return RONDO_FAIL(BAD_DATA, "the location is empty");
    }
    if (location[0] == '/') {
        return RONDO_FAIL(BAD_DATA, "the location \"%.80s\" is absolute, not in the model's folder",
                          location);
    }
    if (strchr(location, '\\') != NULL) {
        return RONDO_FAIL(BAD_DATA,
                          "the location \"%.80s\" has a backslash; ONNX separates folders by /",
                          location);
    }
    for (const char *part = location; part != NULL;) {
        const char *slash = strchr(part, '/');
        size_t length = slash == NULL ? strlen(part) : (size_t)(slash - part);
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            return RONDO_FAIL(BAD_DATA, "the location \"%.80s\" leads out of the model's folder",
                              location);
        }
        part = slash == NULL ? NULL : slash + 1;
    }
    return RONDO_STATUS_OK;
}

// Length of the folder part of a path, with its slash.
static size_t measure_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

// The part of the canonical `path` behind the canonical `folder`; NULL when the path lies
// elsewhere.
static const char *find_below(const char *folder, const char *path) {
    size_t length = strlen(folder);
    length -= length > 0 && folder[length - 1] == '/' ? 1 : 0;  // the root
    return strncmp(folder, path, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

// Opens `below` from `folder`, one name after the other, without following links: the path is
// canonical, so a link in it was put there a moment ago. -1 with errno where it cannot.
static int open_below(const char *folder, const char *below) {
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        char name[NAME_MAX + 1];
        const char *slash = strchr(below, '/');
        const size_t length = slash == NULL ? strlen(below) : (size_t)(slash - below);
        const size_t kept = length <= NAME_MAX ? length : NAME_MAX;
        memcpy(name, below, kept);
        name[kept] = '\0';
        const int next = openat(at, name,
                                slash != NULL ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
                                              : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        const int code = errno;
        close(at);
        errno = code;
        if (slash == NULL) {
            return next;
        }
        at = next;
        below = slash + 1;
    }
    return -1;
}

// realpath of the folder of `path`, from malloc; NULL with errno.
static char *resolve_folder(const char *path) {
    const size_t length = measure_folder(path);
    char *folder = length == 0 ? rondo__strdup(".") : rondo__strndup(path, length);
    char *resolved = folder != NULL ? realpath(folder, NULL) : NULL;
    rondo__free(folder);
    return resolved;
}

rondo_status rondo__file_map_beside(const char *path, const char *location, rondo__file *out_file) {
    *out_file = (rondo__file){0};
    RETURN_IF_ERROR(check_location(location));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    char *wanted =
        rondo__strformat("%.*s%s", (int)measure_folder(path), path, location);  // as it is named
    if (wanted == NULL) {
        return status;
    }
    // realpath and free are the system's: no block of ours.
    char *resolved = realpath(wanted, NULL);
    const int code = errno;
    char *own = realpath(path, NULL);
    char *folders[2] = {resolve_folder(path), own != NULL ? resolve_folder(own) : NULL};
    const char *below = NULL;
    int i = 0;
    if (resolved == NULL) {
        status = fail(wanted, "open", code, __LINE__);
        goto free_paths;
    }
    for (; i < 2 && below == NULL; ++i) {
        below = folders[i] != NULL ? find_below(folders[i], resolved) : NULL;
    }
    if (below == NULL) {
        status = RONDO_FAIL(
            BAD_DATA, "the location \"%.60s\" leads out of the model's folder by a link, to %.80s",
            location, resolved);
        goto free_paths;
    }
    int descriptor = open_below(folders[i - 1], below);
    status = descriptor >= 0 ? map_descriptor(descriptor, wanted, out_file)
                             : fail(wanted, "open", errno, __LINE__);

free_paths:
    free(resolved);
    free(own);
    free(folders[0]);
    free(folders[1]);
    rondo__free(wanted);
    return status;
}

void rondo__file_unmap(rondo__file *file) {
    if (file != NULL && file->bytes != NULL) {
        munmap((void *)(uintptr_t)file->bytes, file->byte_count);
    }
    if (file != NULL) {
        *file = (rondo__file){0};
    }
}

static int write_all(int descriptor, const void *bytes, size_t byte_count) {
    const char *cursor = bytes;
    while (byte_count > 0) {
        ssize_t written = write(descriptor, cursor, byte_count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return written < 0 ? errno : EIO;
        }
        cursor += written;
        byte_count -= (size_t)written;
    }
    return 0;
}

rondo_status rondo__file_write_atomic(const char *path, const void *bytes, size_t byte_count) {
    const rondo__file_part part = {bytes, byte_count};
    return rondo__file_write_parts(path, &part, 1);
}

// The file behind symbolic links, or the path itself where nothing is yet; the caller frees it.
// What is there and is no regular file (a device, a pipe) must not be replaced.
static rondo_status find_target(const char *path, char **out_target) {
    struct stat info;
    *out_target = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return RONDO_FAIL(INVALID, "cannot replace %s: it is no regular file", path);
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && stat(path, &info) != 0) {
        return RONDO_FAIL(INVALID, "cannot replace %s: it is a symbolic link to nothing", path);
    }
    char *resolved = realpath(path, NULL);
    *out_target = rondo__strdup(resolved != NULL ? resolved : path);
    free(resolved);
    return *out_target != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static rondo_status write_parts(const char *path, const rondo__file_part *parts, size_t part_count);

rondo_status rondo__file_write_parts(const char *path, const rondo__file_part *parts,
                                     size_t part_count) {
    char *target;
    RETURN_IF_ERROR(find_target(path, &target));
    const rondo_status status = write_parts(target, parts, part_count);
    rondo__free(target);
    return status;
}

static int write_and_flush(int descriptor, const rondo__file_part *parts, size_t part_count) {
    int code = 0;
    for (size_t i = 0; i < part_count && code == 0; ++i) {
        code = write_all(descriptor, parts[i].bytes, parts[i].byte_count);
    }
    // Without the flush a power cut after the rename may leave an empty file under the final name.
    if (code == 0 && fdatasync(descriptor) != 0 && errno != EINVAL && errno != EROFS) {
        code = errno;
    }
    return code;
}

// A file without a name in the folder of `path`, so that a process that is ended while it writes
// leaves nothing; *out_descriptor -1: the file system has no such files.
static rondo_status open_nameless(const char *path, int *out_descriptor) {
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? rondo__strdup(".")
                   : slash == path ? rondo__strdup("/")
                                   : rondo__strformat("%.*s", (int)(slash - path), path);
    if (folder == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_descriptor = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    rondo__free(folder);
    return RONDO_STATUS_OK;
}

// Gives the file its first name, or makes an empty one of that name; errno tells why not.
static bool name_file(int *in_out_descriptor, const char *name) {
    char link_path[64];
    if (*in_out_descriptor < 0) {
        *in_out_descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return *in_out_descriptor >= 0;
    }
    (void)snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", *in_out_descriptor);
    return linkat(AT_FDCWD, link_path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

// Finds a free name: skips one that a crashed process of the same id has left.
static rondo_status take_name(const char *path, int *in_out_descriptor, char **out_name) {
    static atomic_uint counter;
    for (int attempt = 0;; ++attempt) {
        char *name =
            rondo__strformat("%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        if (name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        if (name_file(in_out_descriptor, name)) {
            *out_name = name;
            return RONDO_STATUS_OK;
        }
        const int code = errno;
        if (code != EEXIST || attempt == 16) {
            const rondo_status status = fail(name, "create", code, __LINE__);
            rondo__free(name);
            return status;
        }
        rondo__free(name);
    }
}

// `descriptor` is of a file without a name, or -1. *out_cannot_link: it gets none here.
static rondo_status write_to(int descriptor, const char *path, const rondo__file_part *parts,
                             size_t part_count, bool *out_cannot_link) {
    char *temporary = NULL;
    const bool is_nameless = descriptor >= 0;
    rondo_status status = RONDO_STATUS_OK;
    if (!is_nameless) {
        RETURN_IF_ERROR(take_name(path, &descriptor, &temporary));
    }
    int code = write_and_flush(descriptor, parts, part_count);
    if (code == 0 && is_nameless) {
        status = take_name(path, &descriptor, &temporary);
        *out_cannot_link = status == RONDO_STATUS_UNAVAILABLE;
    }
    if (close(descriptor) != 0 && code == 0) {
        code = errno;
    }
    if (code != 0) {
        status = fail(temporary != NULL ? temporary : path, "write", code, __LINE__);
    }
    if (status == RONDO_STATUS_OK && rename(temporary, path) != 0) {
        status = fail(path, "replace", errno, __LINE__);
    }
    if (status != RONDO_STATUS_OK && temporary != NULL) {
        (void)unlink(temporary);
    }
    rondo__free(temporary);
    return status;
}

static rondo_status write_parts(const char *path, const rondo__file_part *parts,
                                size_t part_count) {
    bool cannot_link = false;
    int descriptor = -1;
    RETURN_IF_ERROR(open_nameless(path, &descriptor));
    const rondo_status status = write_to(descriptor, path, parts, part_count, &cannot_link);
    return cannot_link ? write_to(-1, path, parts, part_count, &cannot_link) : status;
}

rondo_status rondo__directory_create(const char *path) {
    char *partial = rondo__strdup(path);
    if (partial == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    size_t length = strlen(partial);
    for (size_t i = 1; i <= length && status == RONDO_STATUS_OK; ++i) {
        if (partial[i] != '/' && partial[i] != '\0') {
            continue;
        }
        char separator = partial[i];
        partial[i] = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST) {
            int code = errno;
            struct stat facts;
            // Parents that exist may refuse mkdir with another error (a read-only root, say).
            if (stat(partial, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
                status = fail(partial, "create directory", code, __LINE__);
            }
        }
        partial[i] = separator;
    }
    if (status == RONDO_STATUS_OK) {
        struct stat facts;
        if (stat(path, &facts) != 0) {
            status = fail(path, "create directory", errno, __LINE__);
        } else if (!S_ISDIR(facts.st_mode)) {
            status =
                RONDO_FAIL(UNAVAILABLE, "cannot create directory %s: a file has this name", path);
        }
    }
    rondo__free(partial);
    return status;
}
