// libnvrtc.so.13 of the emulated GPU: kernel texts go to g++, behind emulated_cuda.cuh and before
// an entry for each kernel; the "machine code" is a shared object. Rondo keeps it in its cache of
// kernels, under a version that stands for the compiler, its options and the prelude.
//
// RONDO_EMULATED_CXX names another compiler; RONDO_EMULATED_KEEP a folder that keeps the texts and
// the objects, for a debugger.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulated/emulated_abi.h"
#include "emulated/emulated_limits.h"
#include "emulated/emulated_text.h"

#define EXPORT __attribute__((visibility("default")))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, COMPILATION = 6, OPTIONS_MAX = 64 };
enum { PATH_BYTES = 512 };

extern char **environ;

static const char *const g_options[] = {
    "-std=c++17",
    "-O1",
    "-w",
    "-fPIC",
    "-shared",
    "-nostdinc",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-fno-gnu-unique",  // each text has its own statics
    "-fwrapv",          // as the GPU adds
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    ("-I" EMULATED_FOLDER),
#ifdef EMULATED_SANITIZE
    ("-fsanitize=" EMULATED_SANITIZE),
    "-fno-sanitize-recover=all",
    // What the hardware or the address sanitizer shows, too: a seventh of the compiler's time.
    "-fno-sanitize=vptr,null,pointer-overflow,object-size",
    "-g1",
#endif
};

typedef struct kernel_text {
    char *source;
    emulated_buffer log, image;
} kernel_text;

static emulated_buffer read_file(const char *path) {
    emulated_buffer all = {0};
    char part[4096];
    FILE *file = fopen(path, "rb");
    emulated_append(&all, "", 0);
    for (size_t count = 1; file != NULL && count > 0;) {
        count = fread(part, 1, sizeof(part), file);
        emulated_append(&all, part, count);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return all;
}

static bool write_file(const char *path, const emulated_buffer *text) {
    FILE *file = fopen(path, "wb");
    bool is_whole = file != NULL && fwrite(text->bytes, 1, text->count, file) == text->count;
    return file != NULL && fclose(file) == 0 && is_whole;
}

static const char *get_compiler(void) {
    const char *compiler = getenv("RONDO_EMULATED_CXX");
    return compiler != NULL && compiler[0] != '\0' ? compiler : "g++";
}

// ---- the compiler -----------------------------------------------------------------------------

static bool run(const char *const *arguments, const char *log_path) {
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 1, log_path, O_WRONLY | O_CREAT | O_TRUNC,
                                           0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    // posix_spawnp takes them without const, and changes none.
    union {
        const char *const *given;
        char *const *taken;
    } list = {.given = arguments};
    const bool is_started =
        posix_spawnp(&child, arguments[0], &actions, NULL, list.taken, environ) == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    return is_started && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static void append_image(kernel_text *program, const emulated_buffer *object) {
    unsigned char size[8];
    for (size_t i = 0; i < sizeof(size); i++) {
        size[i] = (unsigned char)((uint64_t)object->count >> (8 * i));
    }
    emulated_append_text(&program->image, EMULATED_MAGIC);
    emulated_append(&program->image, size, sizeof(size));
    emulated_append(&program->image, object->bytes, object->count);
}

static int compile(kernel_text *program, int option_count, const char *const *options,
                   const char *folder) {
    char text_path[PATH_BYTES], object_path[PATH_BYTES], log_path[PATH_BYTES];
    const char *arguments[8 + ARRAY_COUNT(g_options) + OPTIONS_MAX];
    size_t count = 0;
    emulated_buffer text = {0};
    (void)snprintf(text_path, sizeof(text_path), "%s/rondo.cpp", folder);
    (void)snprintf(object_path, sizeof(object_path), "%s/rondo.so", folder);
    (void)snprintf(log_path, sizeof(log_path), "%s/log", folder);
    arguments[count++] = get_compiler();
    for (size_t i = 0; i < ARRAY_COUNT(g_options); i++) {
        arguments[count++] = g_options[i];
    }
    char arch[32] = "-D__CUDA_ARCH__=750";
    for (int i = 0; i < option_count; i++) {
        const char *number = strpbrk(options[i], "_");
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0 && number != NULL) {
            (void)snprintf(arch, sizeof(arch), "-D__CUDA_ARCH__=%d0", atoi(number + 1));
        }
    }
    arguments[count++] = arch;
    arguments[count++] = "-o";
    arguments[count++] = object_path;
    arguments[count++] = text_path;
    arguments[count] = NULL;

    emulated_translate(&text, program->source, options, option_count);
    bool is_compiled = write_file(text_path, &text) && run(arguments, log_path);
    free(text.bytes);
    program->log = read_file(log_path);
    if (!is_compiled && program->log.count == 0) {
        emulated_append_text(&program->log, "error: the emulation cannot run ");
        emulated_append_text(&program->log, get_compiler());
        emulated_append_text(&program->log,
                             "; install it or name another C++ compiler in RONDO_EMULATED_CXX");
    }
    if (is_compiled) {
        emulated_buffer object = read_file(object_path);
#ifndef EMULATED_SANITIZE  // which puts something of its own around static data
        is_compiled = emulated_fits_shared(&object, &program->log);
#endif
        append_image(program, &object);
        free(object.bytes);
    }
    if (getenv("RONDO_EMULATED_KEEP") == NULL) {
        (void)unlink(text_path);
        (void)unlink(object_path);
        (void)unlink(log_path);
        (void)rmdir(folder);
    }
    return is_compiled ? SUCCESS : COMPILATION;
}

// ---- what libnvrtc exports --------------------------------------------------------------------

EXPORT int nvrtcVersion(int *out_major, int *out_minor);
EXPORT int nvrtcVersion(int *out_major, int *out_minor) {
    static const char *const files[] = {
        EMULATED_FOLDER "/emulated_cuda.cuh", EMULATED_FOLDER "/emulated_copies.cuh",
        EMULATED_FOLDER "/emulated_bytes.cuh", EMULATED_FOLDER "/emulated_abi.h",
        EMULATED_FOLDER "/emulated_limits.c"};  // what was kept before a limit is looked at again
    uint32_t sum = 2166136261u;                 // FNV-1a
    emulated_buffer all = {0};
    emulated_append_text(&all, get_compiler());
    for (size_t i = 0; i < ARRAY_COUNT(g_options); i++) {
        emulated_append_text(&all, g_options[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        const emulated_buffer part = read_file(files[i]);
        emulated_append(&all, part.bytes, part.count);
        free(part.bytes);
    }
    for (size_t i = 0; i < all.count; i++) {
        sum = (sum ^ (unsigned char)all.bytes[i]) * 16777619u;
    }
    free(all.bytes);
    *out_major = 13;
    *out_minor = 1000 + (int)(sum % 100000000u);  // no NVRTC's
    return SUCCESS;
}

EXPORT int nvrtcGetNumSupportedArchs(int *out_count);
EXPORT int nvrtcGetNumSupportedArchs(int *out_count) {
    *out_count = 3;
    return SUCCESS;
}

EXPORT int nvrtcGetSupportedArchs(int *out_archs);
EXPORT int nvrtcGetSupportedArchs(int *out_archs) {
    static const int archs[] = {75, 80, 90};
    memcpy(out_archs, archs, sizeof(archs));
    return SUCCESS;
}

EXPORT int nvrtcCreateProgram(kernel_text **out_program, const char *source, const char *name,
                              int header_count, const char *const *headers,
                              const char *const *names);
EXPORT int nvrtcCreateProgram(kernel_text **out_program, const char *source, const char *name,
                              int header_count, const char *const *headers,
                              const char *const *names) {
    (void)name;
    (void)headers;
    (void)names;
    kernel_text *made = calloc(1, sizeof(*made));
    *out_program = made;
    if (header_count != 0) {
        free(made);
        return INVALID_INPUT;
    }
    if (made != NULL) {
        made->source = strdup(source);
    }
    return made != NULL && made->source != NULL ? SUCCESS : OUT_OF_MEMORY;
}

EXPORT int nvrtcDestroyProgram(kernel_text **in_out_program);
EXPORT int nvrtcDestroyProgram(kernel_text **in_out_program) {
    free((*in_out_program)->source);
    free((*in_out_program)->log.bytes);
    free((*in_out_program)->image.bytes);
    free(*in_out_program);
    *in_out_program = NULL;
    return SUCCESS;
}

EXPORT int nvrtcCompileProgram(kernel_text *program, int option_count, const char *const *options);
EXPORT int nvrtcCompileProgram(kernel_text *program, int option_count, const char *const *options) {
    char folder[PATH_BYTES / 2];
    const char *kept = getenv("RONDO_EMULATED_KEEP");
    const char *temporary = getenv("TMPDIR");
    const char *parent = kept != NULL ? kept : temporary != NULL ? temporary : "/tmp";
    const int length = snprintf(folder, sizeof(folder), "%s/rondo-compile-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof(folder) || mkdtemp(folder) == NULL) {
        emulated_append_text(&program->log, "error: the emulation cannot make a folder in ");
        emulated_append_text(&program->log, parent);
        return COMPILATION;
    }
    return compile(program, option_count, options, folder);
}

static int give(const emulated_buffer *from, char *out_bytes) {
    memcpy(out_bytes, from->bytes != NULL ? from->bytes : "", from->count);
    return SUCCESS;
}

EXPORT int nvrtcGetCUBINSize(kernel_text *program, size_t *out_bytes);
EXPORT int nvrtcGetCUBINSize(kernel_text *program, size_t *out_bytes) {
    *out_bytes = program->image.count;
    return SUCCESS;
}

EXPORT int nvrtcGetCUBIN(kernel_text *program, char *out_code);
EXPORT int nvrtcGetCUBIN(kernel_text *program, char *out_code) {
    return give(&program->image, out_code);
}

EXPORT int nvrtcGetPTXSize(kernel_text *program, size_t *out_bytes);
EXPORT int nvrtcGetPTXSize(kernel_text *program, size_t *out_bytes) {
    return nvrtcGetCUBINSize(program, out_bytes);
}

EXPORT int nvrtcGetPTX(kernel_text *program, char *out_code);
EXPORT int nvrtcGetPTX(kernel_text *program, char *out_code) {
    return give(&program->image, out_code);
}

EXPORT int nvrtcGetProgramLogSize(kernel_text *program, size_t *out_bytes);
EXPORT int nvrtcGetProgramLogSize(kernel_text *program, size_t *out_bytes) {
    *out_bytes = program->log.count;
    return SUCCESS;
}

EXPORT int nvrtcGetProgramLog(kernel_text *program, char *out_log);
EXPORT int nvrtcGetProgramLog(kernel_text *program, char *out_log) {
    return give(&program->log, out_log);
}

EXPORT const char *nvrtcGetErrorString(int result);
EXPORT const char *nvrtcGetErrorString(int result) {
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "the emulated compiler failed";
}
