// libnvrtc.so.13 of the emulated GPU: kernel texts go to g++, behind emulated_cuda.cuh and before
// an entry for each kernel; the "machine code" is a shared object. Rondo keeps it in its cache of
// kernels, under a version that stands for the compiler, its options and the prelude.
//
// RONDO_EMULATED_CXX names another compiler; RONDO_EMULATED_KEEP a folder that keeps the texts and
// the objects, for a debugger.
// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulated/emulated_abi.h"

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
    "-I" EMULATED_FOLDER,
#ifdef EMULATED_SANITIZE
    "-fsanitize=" EMULATED_SANITIZE,
    "-fno-sanitize-recover=all",
    "-fno-sanitize=vptr",
    "-g1",
#endif
};

typedef struct buffer {
    char *bytes;
    size_t count;
} buffer;

typedef struct kernel_text {
    char *source;
    buffer log, image;
} kernel_text;

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *text, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, text);
    if (vasprintf(&result, text, arguments) < 0) {
        abort();
    }
    va_end(arguments);
    return result;
}

static void append(buffer *to, const void *bytes, size_t count) {
    to->bytes = realloc(to->bytes, to->count + count + 1);
    if (to->bytes == NULL) {
        abort();
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    to->bytes[to->count] = '\0';
}

static void append_text(buffer *to, const char *text) {
    append(to, text, strlen(text));
}

static buffer read_file(const char *path) {
    buffer all = {0};
    char part[4096];
    FILE *file = fopen(path, "rb");
    append(&all, "", 0);
    for (size_t count = 1; file != NULL && count > 0;) {
        count = fread(part, 1, sizeof(part), file);
        append(&all, part, count);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return all;
}

static bool write_file(const char *path, const buffer *text) {
    FILE *file = fopen(path, "wb");
    bool is_whole = file != NULL && fwrite(text->bytes, 1, text->count, file) == text->count;
    return file != NULL && fclose(file) == 0 && is_whole;
}

static const char *get_compiler(void) {
    const char *compiler = getenv("RONDO_EMULATED_CXX");
    return compiler != NULL && compiler[0] != '\0' ? compiler : "g++";
}

// ---- the text ---------------------------------------------------------------------------------

// After `__global__ void __launch_bounds__(...)` stands the name. NULL: this is no definition.
static const char *skip_to_name(const char *text) {
    text += strspn(text, " \n\t");
    for (;;) {
        if (strncmp(text, "void", 4) == 0 && !isalnum((unsigned char)text[4]) && text[4] != '_') {
            text += 4;
        } else if (strncmp(text, "__launch_bounds__", 17) == 0) {
            text = strchr(text, ')');
            if (text == NULL) {
                return NULL;
            }
            text++;
        } else {
            break;
        }
        text += strspn(text, " \n\t");
    }
    const size_t length = strspn(text,
                                 "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return length > 0 && text[length + strspn(text + length, " \n\t")] == '(' ? text : NULL;
}

// An entry for each kernel with a name of C; templates are not called by name.
static void append_entries(buffer *to, const char *source) {
    static const char mark[] = "extern \"C\" __global__";
    for (const char *at = strstr(source, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof(mark) - 1;
        const char *name = skip_to_name(at);
        if (name != NULL) {
            const size_t length = strcspn(name, " \n\t(");
            append_text(to, "EMULATED_KERNEL(");
            append(to, name, length);
            append_text(to, ")\n");
        }
    }
}

// "extern __shared__ __align__(16) T name[];" becomes "T *const name = (T *)emulated->shared;".
static void append_source(buffer *to, const char *source) {
    static const char mark[] = "extern __shared__";
    for (;;) {
        const char *at = strstr(source, mark);
        if (at == NULL) {
            break;
        }
        append(to, source, (size_t)(at - source));
        source = at + sizeof(mark) - 1;
        source += strspn(source, " ");
        if (strncmp(source, "__align__", 9) == 0) {
            source = strchr(source, ')') + 1;
            source += strspn(source, " ");
        }
        const size_t type = strcspn(source, " "), name = strcspn(source + type + 1, "[");
        char *line = format("%.*s *const %.*s = (%.*s *)emulated->shared", (int)type, source,
                            (int)name, source + type + 1, (int)type, source);
        append_text(to, line);
        free(line);
        source += strcspn(source, ";");
    }
    append_text(to, source);
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

static void append_image(kernel_text *program, const buffer *object) {
    unsigned char size[8];
    for (size_t i = 0; i < sizeof(size); i++) {
        size[i] = (unsigned char)((uint64_t)object->count >> (8 * i));
    }
    append_text(&program->image, EMULATED_MAGIC);
    append(&program->image, size, sizeof(size));
    append(&program->image, object->bytes, object->count);
}

static int compile(kernel_text *program, int option_count, const char *const *options,
                   const char *folder) {
    char text_path[PATH_BYTES], object_path[PATH_BYTES], log_path[PATH_BYTES];
    const char *arguments[8 + ARRAY_COUNT(g_options) + OPTIONS_MAX];
    size_t count = 0;
    buffer text = {0};
    (void)snprintf(text_path, sizeof(text_path), "%s/rondo.cpp", folder);
    (void)snprintf(object_path, sizeof(object_path), "%s/rondo.so", folder);
    (void)snprintf(log_path, sizeof(log_path), "%s/log", folder);
    arguments[count++] = get_compiler();
    for (size_t i = 0; i < ARRAY_COUNT(g_options); i++) {
        arguments[count++] = g_options[i];
    }
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], "-D", 2) == 0 && i < OPTIONS_MAX) {
            arguments[count++] = options[i];
        }
    }
    arguments[count++] = "-o";
    arguments[count++] = object_path;
    arguments[count++] = text_path;
    arguments[count] = NULL;

    append_text(&text, "#include \"emulated_cuda.cuh\"\n#line 1 \"rondo.cu\"\n");
    append_source(&text, program->source);
    append_text(&text, "\n");
    append_entries(&text, program->source);
    const bool is_compiled = write_file(text_path, &text) && run(arguments, log_path);
    free(text.bytes);
    program->log = read_file(log_path);
    if (!is_compiled && program->log.count == 0) {
        append_text(&program->log, "error: the emulation cannot run ");
        append_text(&program->log, get_compiler());
        append_text(&program->log,
                    "; install it or name another C++ compiler in RONDO_EMULATED_CXX");
    }
    if (is_compiled) {
        buffer object = read_file(object_path);
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
    static const char *const files[] = {EMULATED_FOLDER "/emulated_cuda.cuh",
                                        EMULATED_FOLDER "/emulated_abi.h"};
    uint32_t sum = 2166136261u;  // FNV-1a
    buffer all = {0};
    append_text(&all, get_compiler());
    for (size_t i = 0; i < ARRAY_COUNT(g_options); i++) {
        append_text(&all, g_options[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        const buffer part = read_file(files[i]);
        append(&all, part.bytes, part.count);
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
        append_text(&program->log, "error: the emulation cannot make a folder in ");
        append_text(&program->log, parent);
        return COMPILATION;
    }
    return compile(program, option_count, options, folder);
}

static int give(const buffer *from, char *out_bytes) {
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
