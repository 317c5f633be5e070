// backend/cuda/compile/cuda_module.c — kernels out of CUDA C text: compiled by NVRTC or taken from
// the disk cache, loaded once for the device's life.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // dladdr
#include "backend/cuda/compile/cuda_module.h"

#include <dlfcn.h>
#include <string.h>

#include "backend/cuda/compile/kernel_cache.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/text.h"

static bool find_text(rondo__cuda_device *device, const char *source, rondo__hash128 *out_hash) {
    bool is_found = false;
    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < device->text_count && !is_found; i++) {
        is_found = device->texts[i].text == source;
        *out_hash = device->texts[i].hash;
    }
    pthread_mutex_unlock(&device->lock);
    return is_found;
}

// The hash of a text. Most are constants of the library that each plan asks for again, and are
// known by their addresses; others lie in memory that is used again.
static rondo__hash128 hash_text(rondo__cuda_device *device, const char *source) {
    rondo__cuda_text entry = {.text = source};
    Dl_info place;
    if (find_text(device, source, &entry.hash)) {
        return entry.hash;
    }
    entry.hash = rondo__hash128_bytes(source, strlen(source));
    if (dladdr(source, &place) != 0) {
        rondo_error saved;
        rondo__error_save(&saved);
        pthread_mutex_lock(&device->lock);
        if (RONDO__ARRAY_RESERVE(device->texts, device->text_capacity, device->text_count + 1) ==
            RONDO_STATUS_OK) {
            device->texts[device->text_count++] = entry;
        }
        pthread_mutex_unlock(&device->lock);
        rondo__error_restore(&saved);
    }
    return entry.hash;
}

// Of everything that decides the machine code: options end with zero bytes, which none of them can
// contain. In one process the compiler's version decides nothing, and is 0: it is not asked for
// where the machine code is there.
static rondo_status make_key(rondo__cuda_device *device, const char *source,
                             const char *const *options, size_t option_count,
                             int32_t compiler_version, rondo__hash128 *out_key) {
    struct {
        rondo__hash128 source;
        int32_t version, arch, compiler_version, zero;
    } head = {.source = hash_text(device, source),
              .version = 2,
              .arch = device->arch,
              .compiler_version = compiler_version};
    rondo__text text = {0};
    rondo__text_append_bytes(&text, (const char *)&head, sizeof head);
    for (size_t i = 0; i < option_count; i++) {
        rondo__text_append_bytes(&text, options[i], strlen(options[i]) + 1);
    }
    rondo_status status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        *out_key = rondo__hash128_bytes(text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    return status;
}

// ---- modules by key; the caller holds the lock ------------------------------------------------

static uint32_t *get_place(const rondo__cuda_device *device, rondo__hash128 key) {
    size_t at = (size_t)key.low & (device->module_table_size - 1);
    for (;; at = (at + 1) & (device->module_table_size - 1)) {
        const uint32_t place = device->module_table[at];
        if (place == 0 || (device->modules[place - 1].key.low == key.low &&
                           device->modules[place - 1].key.high == key.high)) {
            return &device->module_table[at];
        }
    }
}

static rondo__cuda_module *look_up(rondo__cuda_device *device, rondo__hash128 key) {
    const uint32_t place = device->module_table_size > 0 ? *get_place(device, key) : 0;
    return place > 0 ? &device->modules[place - 1] : NULL;
}

static rondo_status reserve_table(rondo__cuda_device *device) {
    if (2 * (device->module_count + 1) <= device->module_table_size) {
        return RONDO_STATUS_OK;
    }
    const size_t size = device->module_table_size > 0 ? 2 * device->module_table_size : 64;
    uint32_t *table = rondo__calloc(size, sizeof(*table));
    if (table == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(device->module_table);
    device->module_table = table;
    device->module_table_size = size;
    for (size_t i = 0; i < device->module_count; i++) {
        *get_place(device, device->modules[i].key) = (uint32_t)i + 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_module(rondo__cuda_device *device, const rondo__cuda_module *made) {
    RETURN_IF_ERROR(reserve_table(device));
    const rondo_status status =
        RONDO__ARRAY_RESERVE(device->modules, device->module_capacity, device->module_count + 1);
    if (status == RONDO_STATUS_OK) {
        device->modules[device->module_count++] = *made;
        *get_place(device, made->key) = (uint32_t)device->module_count;
    }
    return status;
}

// ---- the same with the lock -------------------------------------------------------------------

static bool find_module(rondo__cuda_device *device, rondo__hash128 key,
                        rondo__cu_module *out_module) {
    pthread_mutex_lock(&device->lock);
    const rondo__cuda_module *entry = look_up(device, key);
    if (entry != NULL) {
        *out_module = entry->module;
    }
    pthread_mutex_unlock(&device->lock);
    return entry != NULL;
}

// A kernel that was found before; its function is NULL where none was.
static rondo__cuda_found find_function(rondo__cuda_device *device, rondo__hash128 key,
                                       const char *name) {
    rondo__cuda_found found = {.function = NULL};
    pthread_mutex_lock(&device->lock);
    const rondo__cuda_module *entry = look_up(device, key);
    for (size_t i = 0; entry != NULL && i < entry->found_count && found.function == NULL; i++) {
        if (strcmp(entry->found[i].name, name) == 0) {
            found = entry->found[i];
        }
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

// Without memory it is asked for again.
static void keep_function(rondo__cuda_device *device, rondo__hash128 key, const char *name,
                          rondo__cu_function function) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__cuda_found added = {.name = rondo__strdup(name), .function = function};
    pthread_mutex_lock(&device->lock);
    rondo__cuda_module *entry = look_up(device, key);
    if (added.name != NULL && entry != NULL &&
        RONDO__ARRAY_RESERVE(entry->found, entry->found_capacity, entry->found_count + 1) ==
            RONDO_STATUS_OK) {
        entry->found[entry->found_count++] = added;
        added.name = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    rondo__free(added.name);
    rondo__error_restore(&saved);
}

// Adds a module unless another thread was quicker; then its module becomes that thread's, and ours
// is unloaded. Takes the image.
static rondo_status keep_module(rondo__cuda_device *device, rondo__cuda_module *made) {
    rondo__cu_module earlier = NULL;
    if (find_module(device, made->key, &earlier)) {
        rondo__cuda_log_failure(device, device->api->cuModuleUnload(made->module),
                                "cuModuleUnload");
        rondo__cuda_image_deinit(&made->image);
        made->module = earlier;
        return RONDO_STATUS_OK;
    }
    pthread_mutex_lock(&device->lock);
    const rondo_status status = add_module(device, made);
    pthread_mutex_unlock(&device->lock);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_log_failure(device, device->api->cuModuleUnload(made->module),
                                "cuModuleUnload");
        rondo__cuda_image_deinit(&made->image);
    }
    return status;
}

static rondo_status load_image(rondo__cuda_device *device, const rondo__cuda_image *image,
                               rondo__cu_module *out_module) {
    rondo__cu_result code = device->api->cuModuleLoadData(out_module, image->bytes);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuModuleLoadData", "cannot load machine code");
    }
    return RONDO_STATUS_OK;
}

// The disk cache keeps the image, or the module where there is no cache: rondo_executor_save wants
// it.
static void keep_image(rondo__cuda_module *made, rondo__cuda_image *image) {
    char folder[4096];
    if (!rondo__kernel_cache_get_folder(folder, sizeof folder)) {
        made->image = *image;
        *image = (rondo__cuda_image){0};
    }
    rondo__cuda_image_deinit(image);
}

static rondo_status compile_and_load(rondo__cuda_device *device, const char *source,
                                     const char *const *options, size_t option_count,
                                     const char *kernel_name, rondo__cuda_module *made) {
    rondo__cuda_image image = {0};
    uint64_t start_ns = rondo__clock_now_ns();
    RETURN_IF_ERROR(rondo__cuda_compile(source, options, option_count, device->arch, &image));
    RONDO_LOG_INFO_F("%s: compiled the text of %s in %.0f ms", device->head.name, kernel_name,
                     (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    rondo_status status = load_image(device, &image, &made->module);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_image_deinit(&image);
        return status;
    }
    rondo__kernel_cache_store(made->file_key, &image);
    keep_image(made, &image);
    return RONDO_STATUS_OK;
}

static rondo_status get_module(rondo__cuda_device *device, rondo__hash128 key, const char *source,
                               const char *const *options, size_t option_count,
                               const char *kernel_name, rondo__cu_module *out_module) {
    int32_t compiler_version = 0;
    rondo__cuda_module made = {.key = key};
    if (find_module(device, made.key, out_module)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__cuda_get_compiler_version(&compiler_version));
    RETURN_IF_ERROR(
        make_key(device, source, options, option_count, compiler_version, &made.file_key));
    rondo__cuda_image image = {0};
    bool is_loaded = false;
    if (rondo__compile_ahead_take(device->ahead, made.file_key, &image) ||
        rondo__kernel_cache_load(made.file_key, &image)) {
        // Sound bytes that the driver refuses all the same (made by hand, say) are compiled again.
        is_loaded = load_image(device, &image, &made.module) == RONDO_STATUS_OK;
        if (is_loaded) {
            keep_image(&made, &image);
        }
        rondo__cuda_image_deinit(&image);
    }
    if (!is_loaded) {
        RETURN_IF_ERROR(
            compile_and_load(device, source, options, option_count, kernel_name, &made));
    }
    const rondo_status status = keep_module(device, &made);
    *out_module = made.module;
    return status;
}

// Lets the kernel ask for as much dynamic shared memory as a block of this GPU may have. It costs
// nothing until a launch asks for more than the 48 KiB every kernel may have.
static rondo_status raise_shared_limit(rondo__cuda_device *device, rondo__cu_function function,
                                       const char *kernel_name) {
    const rondo__cuda_api *api = device->api;
    int static_bytes = 0;
    const char *call = "cuFuncGetAttribute";
    rondo__cu_result code = api->cuFuncGetAttribute(
        &static_bytes, RONDO__CU_FUNCTION_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (code == RONDO__CU_SUCCESS) {
        call = "cuFuncSetAttribute";
        code = api->cuFuncSetAttribute(function,
                                       RONDO__CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       device->shared_bytes_max - static_bytes);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, call, "cannot set up kernel %s", kernel_name);
    }
    return RONDO_STATUS_OK;
}

// Of the module with this key; it is known from then on.
static rondo_status take_function(rondo__cuda_device *device, rondo__cu_module module,
                                  rondo__hash128 key, const char *kernel_name,
                                  void **out_function) {
    rondo__cu_function function = NULL;
    const rondo__cu_result code = device->api->cuModuleGetFunction(&function, module, kernel_name);
    if (code == RONDO__CU_ERROR_NOT_FOUND) {
        return RONDO_FAIL_DRIVER(
            RONDO_STATUS_BAD_DATA, code, "CUDA_ERROR_NOT_FOUND", "cuModuleGetFunction",
            "the text has no kernel %s; declare it extern \"C\" __global__", kernel_name);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuModuleGetFunction", "cannot find kernel %s",
                                kernel_name);
    }
    RETURN_IF_ERROR(raise_shared_limit(device, function, kernel_name));
    keep_function(device, key, kernel_name, function);
    *out_function = function;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_get_function(rondo_device *device_, const char *source,
                                      const char *const *options, size_t option_count,
                                      const char *kernel_name, void **out_function) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__hash128 key;
    *out_function = NULL;
    RETURN_IF_ERROR(make_key(device, source, options, option_count, 0, &key));
    *out_function = find_function(device, key, kernel_name).function;
    if (*out_function != NULL) {
        return RONDO_STATUS_OK;
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    int mode = rondo__cuda_relax(device);  // the library's own kernels, loaded on first use
    rondo__cu_module module = NULL;
    rondo_status status =
        get_module(device, key, source, options, option_count, kernel_name, &module);
    if (status != RONDO_STATUS_OK) {
        goto leave;
    }
    status = take_function(device, module, key, kernel_name, out_function);

leave:
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_prefer_shared(rondo_device *device_, void *function, int percent) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    const rondo__cu_result code = device->api->cuFuncSetAttribute(
        function, RONDO__CU_FUNCTION_ATTRIBUTE_SHARED_PERCENT, percent);
    const rondo_status status =
        code == RONDO__CU_SUCCESS || rondo__cuda_is_refusal(code)
            ? RONDO_STATUS_OK
            : RONDO__CUDA_FAIL(device, code, "cuFuncSetAttribute", "cannot set up a kernel");
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_find_function(rondo_device *device_, rondo__hash128 key, const char *name,
                                       void **out_function, const char **out_name) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__cu_module module = NULL;
    rondo__cuda_found found = find_function(device, key, name);
    if (found.function == NULL && find_module(device, key, &module)) {
        bool was_pushed = false;
        RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
        const int mode = rondo__cuda_relax(device);
        const rondo_status status = take_function(device, module, key, name, out_function);
        rondo__cuda_restore(device, mode);
        rondo__cuda_leave(device, was_pushed);
        RETURN_IF_ERROR(status);
        found = find_function(device, key, name);
    }
    *out_function = found.function;
    *out_name = found.name;
    return found.function != NULL ? RONDO_STATUS_OK : RONDO_STATUS_UNSUPPORTED;
}

bool rondo__cuda_name_function(rondo_device *device_, const void *function, rondo__hash128 *out_key,
                               const char **out_name) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    bool is_found = false;
    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < device->module_count && !is_found; i++) {
        const rondo__cuda_module *entry = &device->modules[i];
        for (size_t k = 0; k < entry->found_count && !is_found; k++) {
            is_found = entry->found[k].function == function;
            *out_key = entry->key;
            *out_name = entry->found[k].name;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return is_found;
}

void rondo__cuda_want_function(rondo_device *device_, const char *source,
                               const char *const *options, size_t option_count,
                               const char *kernel_name) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__compile_want want = {.device = device->head.name,
                                .source = source,
                                .options = options,
                                .option_count = option_count,
                                .kernel_name = kernel_name,
                                .arch = device->arch};
    rondo__cu_module module = NULL;
    int32_t version = 0;
    rondo_error saved;
    rondo__error_save(&saved);
    if (make_key(device, source, options, option_count, 0, &want.key) == RONDO_STATUS_OK &&
        !find_module(device, want.key, &module) &&
        rondo__cuda_get_compiler_version(&version) == RONDO_STATUS_OK &&
        make_key(device, source, options, option_count, version, &want.key) == RONDO_STATUS_OK) {
        rondo__compile_ahead_want(device->ahead, &want);
    }
    rondo__error_restore(&saved);
}

rondo_status rondo__cuda_load_ptx(rondo__cuda_device *device, const char *text,
                                  const char *kernel_name, rondo__cu_function *out_function) {
    rondo__cuda_module made = {.key = rondo__hash128_bytes(text, strlen(text))};
    *out_function = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    int mode = rondo__cuda_relax(device);  // the library's own kernels, loaded on first use
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_function function = NULL;
    if (!find_module(device, made.key, &made.module)) {
        rondo__cu_result code = device->api->cuModuleLoadData(&made.module, text);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuModuleLoadData",
                                      "the driver cannot compile kernel %s", kernel_name);
            goto leave;
        }
        status = keep_module(device, &made);
    }
    if (status == RONDO_STATUS_OK) {
        rondo__cu_result code =
            device->api->cuModuleGetFunction(&function, made.module, kernel_name);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuModuleGetFunction", "cannot find kernel %s",
                                      kernel_name);
        }
    }
    if (status == RONDO_STATUS_OK) {
        *out_function = function;
    }

leave:
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// ---- machine code for other processes ---------------------------------------------------------

// A copy of entry `index`, without its image; false behind the last.
static bool get_entry(rondo__cuda_device *device, size_t index, rondo__cuda_module *out_entry) {
    pthread_mutex_lock(&device->lock);
    const bool is_there = index < device->module_count;
    if (is_there) {
        *out_entry = device->modules[index];  // which stays: modules go with the device
    }
    pthread_mutex_unlock(&device->lock);
    return is_there;
}

size_t rondo__cuda_count_kernels(rondo_device *device_) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    pthread_mutex_lock(&device->lock);
    const size_t count = device->module_count;
    pthread_mutex_unlock(&device->lock);
    return count;
}

rondo_status rondo__cuda_visit_kernels(rondo_device *device_, rondo__kernel_code_visit visit,
                                       void *user_data) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__cuda_module entry;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; status == RONDO_STATUS_OK && get_entry(device, i, &entry); ++i) {
        rondo__cuda_image image = {0};
        const bool has_file_key = entry.file_key.low != 0 || entry.file_key.high != 0;
        if (entry.image.bytes == NULL && has_file_key &&
            !rondo__kernel_cache_load(entry.file_key, &image)) {
            RONDO_LOG_INFO_F("%s: the machine code of a kernel is no longer in the cache",
                             device->head.name);
        }
        const rondo__cuda_image *from = entry.image.bytes != NULL ? &entry.image : &image;
        if (from->bytes != NULL) {
            const rondo__kernel_code code = {entry.key, from->bytes, from->byte_count};
            status = visit(user_data, &code);
        }
        rondo__cuda_image_deinit(&image);
    }
    return status;
}

// An image of a plan file is kept: the disk cache need not have it.
static rondo_status load_offered(rondo__cuda_device *device, const rondo__kernel_code *code) {
    rondo__cuda_module made = {.key = code->key};
    made.image.bytes = rondo__malloc(code->byte_count);
    if (made.image.bytes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(made.image.bytes, code->bytes, code->byte_count);
    made.image.byte_count = code->byte_count;
    const rondo_status status = load_image(device, &made.image, &made.module);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_image_deinit(&made.image);
        return status;
    }
    return keep_module(device, &made);
}

rondo_status rondo__cuda_offer_kernel(rondo_device *device_, const rondo__kernel_code *code) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__cu_module there = NULL;
    bool was_pushed = false;
    if (find_module(device, code->key, &there)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    const int mode = rondo__cuda_relax(device);
    const rondo_status status = load_offered(device, code);
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

void rondo__cuda_unload_modules(rondo__cuda_device *device) {
    for (size_t i = 0; i < device->module_count; i++) {
        rondo__cuda_module *entry = &device->modules[i];
        rondo__cuda_log_failure(device, device->api->cuModuleUnload(entry->module),
                                "cuModuleUnload");
        rondo__cuda_image_deinit(&entry->image);
        for (size_t k = 0; k < entry->found_count; k++) {
            rondo__free(entry->found[k].name);
        }
        rondo__free(entry->found);
    }
    device->module_count = 0;
}
