// backend/cuda/compile/nvrtc.c — NVRTC, loaded when the first kernel is compiled.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/compile/nvrtc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/discover.h"
#include "base/error.h"
#include "base/library.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"

typedef int nvrtc_result;  // nvrtcResult; 0 is success
typedef struct nvrtc_program_object *nvrtc_program;

enum { NVRTC_ERROR_COMPILATION = 6, OPTION_COUNT_MAX = 64, ARCH_COUNT_MAX = 64 };

// Everything here is in NVRTC 11.2 and later.
#define NVRTC_MAP(X)                                                                        \
    X(nvrtc_result, nvrtcVersion, (int *out_major, int *out_minor))                         \
    X(nvrtc_result, nvrtcGetNumSupportedArchs, (int *out_count))                            \
    X(nvrtc_result, nvrtcGetSupportedArchs, (int *out_archs))                               \
    X(nvrtc_result, nvrtcCreateProgram,                                                     \
      (nvrtc_program * out_program, const char *source, const char *name, int header_count, \
       const char *const *headers, const char *const *names))                               \
    X(nvrtc_result, nvrtcDestroyProgram, (nvrtc_program * program))                         \
    X(nvrtc_result, nvrtcCompileProgram,                                                    \
      (nvrtc_program program, int option_count, const char *const *options))                \
    X(nvrtc_result, nvrtcGetCUBINSize, (nvrtc_program program, size_t * out_bytes))         \
    X(nvrtc_result, nvrtcGetCUBIN, (nvrtc_program program, char *out_code))                 \
    X(nvrtc_result, nvrtcGetPTXSize, (nvrtc_program program, size_t * out_bytes))           \
    X(nvrtc_result, nvrtcGetPTX, (nvrtc_program program, char *out_code))                   \
    X(nvrtc_result, nvrtcGetProgramLogSize, (nvrtc_program program, size_t * out_bytes))    \
    X(nvrtc_result, nvrtcGetProgramLog, (nvrtc_program program, char *out_log))             \
    X(const char *, nvrtcGetErrorString, (nvrtc_result result))

typedef struct nvrtc_api {
    NVRTC_MAP(RONDO__CUDA_FUNCTION)
} nvrtc_api;

static const char *const g_names[] = {NVRTC_MAP(RONDO__CUDA_FUNCTION_NAME)};

// The compiler of this process; guarded by `lock` until `library` is set, constant from then on.
static struct {
    pthread_mutex_t lock;
    rondo__library *library;
    nvrtc_api api;
    char include_option[512];  // "-I..." for cuda_fp16.h and its like; empty when not found
} g_compiler = {.lock = PTHREAD_MUTEX_INITIALIZER};

static rondo_status load_compiler(void) {
    rondo__library *library = NULL;
    RETURN_IF_ERROR(rondo__cuda_open_library("nvrtc", &library));
    const char *absent = rondo__library_find_all(
        library, g_names, sizeof(g_names) / sizeof(g_names[0]), &g_compiler.api);
    if (absent != NULL) {
        rondo_status status =
            RONDO_FAIL(UNAVAILABLE, "%s has no %s; Rondo needs NVRTC 11.2 or newer",
                       rondo__library_get_path(library), absent);
        rondo__library_close(library);
        return status;
    }
    char folder[480];
    if (rondo__cuda_find_headers(rondo__library_get_path(library), folder, sizeof(folder))) {
        snprintf(g_compiler.include_option, sizeof(g_compiler.include_option), "-I%s", folder);
    }
    g_compiler.library = library;
    return RONDO_STATUS_OK;
}

static rondo_status get_compiler(const nvrtc_api **out_api) {
    *out_api = NULL;
    pthread_mutex_lock(&g_compiler.lock);
    rondo_status status = RONDO_STATUS_OK;
    if (g_compiler.library == NULL) {
        status = load_compiler();
    }
    pthread_mutex_unlock(&g_compiler.lock);
    if (status == RONDO_STATUS_OK) {
        *out_api = &g_compiler.api;
    }
    return status;
}

static rondo_status fail(const nvrtc_api *api, nvrtc_result result, const char *call) {
    return RONDO_FAIL_DRIVER(RONDO_STATUS_DRIVER, result, api->nvrtcGetErrorString(result), call,
                             "NVRTC failed: %s", api->nvrtcGetErrorString(result));
}

static _Atomic(rondo__cuda_compiler) substitute;

void rondo__cuda_set_compiler(rondo__cuda_compiler compiler) {
    atomic_store(&substitute, compiler);
}

bool rondo__cuda_is_substituted(void) {
    return atomic_load(&substitute) != NULL;
}

rondo_status rondo__cuda_get_compiler_version(int32_t *out_version) {
    if (atomic_load(&substitute) != NULL) {
        *out_version = 1;  // no NVRTC's: nothing it made is taken for real code in the disk cache
        return RONDO_STATUS_OK;
    }
    const nvrtc_api *api = NULL;
    RETURN_IF_ERROR(get_compiler(&api));
    int major = 0;
    int minor = 0;
    nvrtc_result result = api->nvrtcVersion(&major, &minor);
    if (result != 0) {
        return fail(api, result, "nvrtcVersion");
    }
    *out_version = 1000 * major + 10 * minor;
    return RONDO_STATUS_OK;
}

void rondo__cuda_image_deinit(rondo__cuda_image *image) {
    rondo__free(image->bytes);
    *image = (rondo__cuda_image){0};
}

// ---- choosing the target ----------------------------------------------------------------------

typedef struct target {
    char option[48];
    bool is_ptx;  // the compiler does not know the chip yet: the driver compiles the rest
} target;

static rondo_status choose_target(const nvrtc_api *api, int32_t arch, target *out_target) {
    int archs[ARCH_COUNT_MAX];
    int count = 0;
    nvrtc_result result = api->nvrtcGetNumSupportedArchs(&count);
    if (result != 0 || count > ARCH_COUNT_MAX) {
        return fail(api, result, "nvrtcGetNumSupportedArchs");
    }
    result = api->nvrtcGetSupportedArchs(archs);
    if (result != 0) {
        return fail(api, result, "nvrtcGetSupportedArchs");
    }
    int best = 0;
    for (int i = 0; i < count; i++) {
        if (archs[i] <= arch && archs[i] > best) {
            best = archs[i];
        }
    }
    if (best == 0) {
        return RONDO_FAIL(
            UNSUPPORTED,
            "this NVRTC no longer compiles for compute capability %d.%d; use an older "
            "one (RONDO_LIBRARY_PATH)",
            (int)arch / 10, (int)arch % 10);
    }
    out_target->is_ptx = best != arch;
    snprintf(out_target->option, sizeof(out_target->option), "--gpu-architecture=%s_%d",
             out_target->is_ptx ? "compute" : "sm", best);
    return RONDO_STATUS_OK;
}

// A caller may name the target itself ("--gpu-architecture=sm_90a" for what only one chip has).
static const char *find_own_target(const char *const *options, size_t option_count) {
    static const char *const prefixes[] = {"--gpu-architecture=", "-arch="};
    for (size_t i = 0; i < option_count; i++) {
        for (size_t j = 0; j < sizeof(prefixes) / sizeof(prefixes[0]); j++) {
            if (strncmp(options[i], prefixes[j], strlen(prefixes[j])) == 0) {
                return options[i] + strlen(prefixes[j]);
            }
        }
    }
    return NULL;
}

// ---- compiling --------------------------------------------------------------------------------

// Puts the compiler's log in the log sink, line by line, and its first error in the record.
static rondo_status fail_compilation(const nvrtc_api *api, nvrtc_program program) {
    size_t bytes = 0;
    char *text = NULL;
    if (api->nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes > 0) {
        text = rondo__calloc(bytes + 1, 1);
    }
    if (text == NULL || api->nvrtcGetProgramLog(program, text) != 0) {
        rondo__free(text);
        return RONDO_FAIL(BAD_DATA, "the kernel text does not compile, and NVRTC gives no log");
    }
    char first_error[160] = "";
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        RONDO_LOG_WARN_F("nvrtc: %s", line);
        if (first_error[0] == '\0' && strstr(line, "error") != NULL) {
            snprintf(first_error, sizeof(first_error), "%s", line);
        }
    }
    rondo__free(text);
    return RONDO_FAIL_DRIVER(RONDO_STATUS_BAD_DATA, NVRTC_ERROR_COMPILATION,
                             "NVRTC_ERROR_COMPILATION", "nvrtcCompileProgram",
                             "the kernel text does not compile (log above): %s", first_error);
}

static rondo_status take_image(const nvrtc_api *api, nvrtc_program program, bool is_ptx,
                               rondo__cuda_image *out_image) {
    rondo__cuda_image image = {0};
    nvrtc_result result = is_ptx ? api->nvrtcGetPTXSize(program, &image.byte_count)
                                 : api->nvrtcGetCUBINSize(program, &image.byte_count);
    if (result != 0) {
        return fail(api, result, is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize");
    }
    image.bytes = rondo__malloc(image.byte_count);
    if (image.bytes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    result =
        is_ptx ? api->nvrtcGetPTX(program, image.bytes) : api->nvrtcGetCUBIN(program, image.bytes);
    if (result != 0) {
        rondo__cuda_image_deinit(&image);
        return fail(api, result, is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN");
    }
    *out_image = image;
    return RONDO_STATUS_OK;
}

// `out_ptx` may be NULL.
static rondo_status compile(const char *source, const char *const *options, size_t option_count,
                            int32_t arch, rondo__cuda_image *out_image,
                            rondo__cuda_image *out_ptx) {
    const nvrtc_api *api = NULL;
    RETURN_IF_ERROR(get_compiler(&api));
    if (option_count + 4 > OPTION_COUNT_MAX) {
        return RONDO_FAIL(INVALID, "%zu compiler options; at most %d are possible", option_count,
                          OPTION_COUNT_MAX - 4);
    }
    const char *all[OPTION_COUNT_MAX];
    int count = 0;
    target chosen = {.is_ptx = false};
    const char *own_target = find_own_target(options, option_count);
    if (own_target == NULL) {
        RETURN_IF_ERROR(choose_target(api, arch, &chosen));
        all[count++] = chosen.option;
    } else {
        chosen.is_ptx = strncmp(own_target, "compute", strlen("compute")) == 0;
    }
    all[count++] = "--std=c++17";
    all[count++] = "-default-device";
    if (g_compiler.include_option[0] != '\0') {
        all[count++] = g_compiler.include_option;
    }
    for (size_t i = 0; i < option_count; i++) {
        all[count++] = options[i];
    }

    nvrtc_program program = NULL;
    nvrtc_result result = api->nvrtcCreateProgram(&program, source, "rondo.cu", 0, NULL, NULL);
    if (result != 0) {
        return fail(api, result, "nvrtcCreateProgram");
    }
    rondo_status status = RONDO_STATUS_OK;
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_TUNE, "compile a kernel");
    result = api->nvrtcCompileProgram(program, count, all);
    rondo__hook_leave(&scope);
    if (result == NVRTC_ERROR_COMPILATION) {
        status = fail_compilation(api, program);
    } else if (result != 0) {
        status = fail(api, result, "nvrtcCompileProgram");
    } else {
        status = take_image(api, program, chosen.is_ptx, out_image);
    }
    if (status == RONDO_STATUS_OK && out_ptx != NULL) {
        status = take_image(api, program, true, out_ptx);
    }
    (void)api->nvrtcDestroyProgram(&program);
    return status;
}

rondo_status rondo__cuda_compile(const char *source, const char *const *options,
                                 size_t option_count, int32_t arch, rondo__cuda_image *out_image) {
    *out_image = (rondo__cuda_image){0};
    rondo__cuda_compiler compiler = atomic_load(&substitute);
    if (compiler != NULL) {
        return compiler(source, options, option_count, out_image);
    }
    return compile(source, options, option_count, arch, out_image, NULL);
}

rondo_status rondo__cuda_compile_both(const char *source, const char *const *options,
                                      size_t option_count, int32_t arch,
                                      rondo__cuda_image *out_image, rondo__cuda_image *out_ptx) {
    *out_image = *out_ptx = (rondo__cuda_image){0};
    const rondo_status status = compile(source, options, option_count, arch, out_image, out_ptx);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_image_deinit(out_image);
    }
    return status;
}
