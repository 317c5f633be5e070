// SPDX-License-Identifier: Apache-2.0

#include "support/fake/fake_cuda.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/fake/fake_cuda_state.h"

fake_state g_fake = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Thread_local fake_thread g_fake_thread;

// ---- bookkeeping ------------------------------------------------------------------------------

void fake_violation(const char *format, ...) {
    size_t used = strlen(g_fake.violations);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(g_fake.violations + used, sizeof(g_fake.violations) - used, format, arguments);
    va_end(arguments);
    used = strlen(g_fake.violations);
    snprintf(g_fake.violations + used, sizeof(g_fake.violations) - used, "\n");
}

static fake_object **list_of(fake_kind kind) {
    return kind == FAKE_USER_OBJECT ? &g_fake.user_objects : &g_fake.objects;
}

void *fake_new_object(fake_kind kind, size_t bytes) {
    fake_object **list = list_of(kind);
    fake_object *object = calloc(1, bytes);
    if (object == NULL) {
        abort();
    }
    object->kind = kind;
    object->context =
        g_fake_thread.depth > 0 ? g_fake_thread.contexts[g_fake_thread.depth - 1] : NULL;
    if (kind == FAKE_GRAPH || kind == FAKE_EXEC) {
        ((fake_graph *)object)->number = ++g_fake.last_graph_number;
    }
    object->next = *list;
    if (object->next != NULL) {
        object->next->previous = object;
    }
    *list = object;
    return object;
}

void fake_free_object(void *address) {
    fake_object *object = address;
    if (object->previous != NULL) {
        object->previous->next = object->next;
    } else {
        *list_of(object->kind) = object->next;
    }
    if (object->next != NULL) {
        object->next->previous = object->previous;
    }
    free(object);
}

bool fake_is_alive(const void *address, fake_kind kind) {
    for (const fake_object *object = *list_of(kind); object != NULL; object = object->next) {
        if (object == address) {
            return object->kind == kind;
        }
    }
    return false;
}

static fake_call_count *count_slot(const char *name) {
    for (size_t i = 0; i < g_fake.call_name_count; i++) {
        if (g_fake.calls[i].name == name) {  // nearly always: names are constants
            return &g_fake.calls[i];
        }
    }
    for (size_t i = 0; i < g_fake.call_name_count; i++) {
        if (strcmp(g_fake.calls[i].name, name) == 0) {
            return &g_fake.calls[i];
        }
    }
    if (g_fake.call_name_count == FAKE_CALL_NAMES_MAX) {
        abort();
    }
    fake_call_count *slot = &g_fake.calls[g_fake.call_name_count++];
    slot->name = name;
    slot->count = 0;
    return slot;
}

static bool is_sticky(rondo__cu_result code) {
    return code >= RONDO__CU_ERROR_ILLEGAL_ADDRESS && code <= RONDO__CU_ERROR_LAUNCH_FAILED &&
           code != RONDO__CU_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static struct {
    _Atomic(const char *) name;
    void (*function)(void *data);
    void *data;
} g_hook;

void fake_cuda_set_hook(const char *name, void (*hook)(void *data), void *data) {
    g_hook.function = hook;
    g_hook.data = data;
    atomic_store(&g_hook.name, name);
}

static void (*_Atomic g_watch)(void);
static uint64_t (*_Atomic g_clock)(void);

void fake_cuda_set_watch(void (*watch)(void)) {
    atomic_store(&g_watch, watch);
}

void fake_cuda_set_clock(uint64_t (*now_ns)(void)) {
    atomic_store(&g_clock, now_ns);
}

uint64_t fake_now_ns(void) {
    uint64_t (*now_ns)(void) = atomic_load(&g_clock);
    return now_ns != NULL ? now_ns() : rondo__clock_now_ns();
}

static void run_hook(const char *name) {
    const char *wanted = atomic_load(&g_hook.name);
    if (wanted != NULL && strcmp(name, wanted) == 0 &&
        atomic_compare_exchange_strong(&g_hook.name, &wanted, NULL)) {
        g_hook.function(g_hook.data);
    }
}

rondo__cu_result fake_enter(const char *name) {
    run_hook(name);
    pthread_mutex_lock(&g_fake.lock);
    fake_lazy_enter(name);
    count_slot(name)->count++;
    g_fake.call_count++;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    // What only describes an error has nothing to fail.
    bool is_plain = strncmp(name, "cuGetError", strlen("cuGetError")) == 0;
    void (*watch)(void) = atomic_load(&g_watch);
    if (watch != NULL && !is_plain) {
        watch();
    }
    if (!is_plain && g_fake.fail_countdown >= 0 && g_fake.fail_countdown-- == 0) {
        g_fake.failed_call = name;
        code = g_fake.fail_code;
    } else if (!is_plain && g_fake.failed_call != NULL && is_sticky(g_fake.fail_code)) {
        code = g_fake.fail_code;
    }
    return code;
}

rondo__cu_result fake_leave(rondo__cu_result code) {
    pthread_mutex_unlock(&g_fake.lock);
    return code;
}

bool fake_has_context(const char *name) {
    if (g_fake_thread.depth > 0) {
        return true;
    }
    // Clean-up goes on when selecting the context is what failed; that is no violation.
    bool is_planned = g_fake.failed_call != NULL && strstr(g_fake.failed_call, "cuCtx") != NULL;
    if (!is_planned) {
        fake_violation("%s without a current context", name);
    }
    return false;
}

bool fake_may_launch(rondo__cu_stream handle, const char *name) {
    if ((uintptr_t)handle <= 2) {
        return fake_has_context(name);
    }
    return g_fake_thread.depth > 0 || g_fake.options.driver_version >= 13000;
}

static void empty_module(fake_module *module) {
    while (module->kernels != NULL) {
        fake_kernel_entry *entry = module->kernels;
        module->kernels = entry->next;
        free(entry);
    }
    if (module->code != NULL) {
        emulated_unload(module->code);
    }
    free(module->text);
}

void fake_cuda_reset(const fake_cuda_options *options) {
    static const fake_cuda_options defaults = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    pthread_mutex_lock(&g_fake.lock);
    fake_lazy_drop();
    while (g_fake.user_objects != NULL) {
        fake_free_object(g_fake.user_objects);
    }
    while (g_fake.objects != NULL) {
        fake_object *object = g_fake.objects;
        if (object->kind == FAKE_GRAPH || object->kind == FAKE_EXEC) {
            fake_graph *graph = (fake_graph *)object;
            for (size_t i = 0; i < graph->node_count; i++) {
                free(graph->nodes[i].bodies);  // the list; they are objects themselves
            }
            free(((fake_graph *)object)->nodes);
            free(((fake_graph *)object)->user_objects);
        } else if (object->kind == FAKE_MEMORY) {
            free(((fake_memory *)object)->bytes);
        } else if (object->kind == FAKE_MODULE) {
            empty_module((fake_module *)object);
        }
        fake_free_object(object);
    }
    g_fake.options = options != NULL ? *options : defaults;
    memset(g_fake.retain_counts, 0, sizeof(g_fake.retain_counts));
    memset(g_fake.peers, 0, sizeof(g_fake.peers));
    g_fake.call_name_count = 0;
    g_fake.call_count = 0;
    g_fake.fail_countdown = -1;
    g_fake.failed_call = NULL;
    g_fake.violations[0] = '\0';
    g_fake.kernel_count = 0;
    g_fake.reserved_bytes = 0;
    memset(g_fake.condition_graphs, 0, sizeof(g_fake.condition_graphs));
    fake_free_hidden();
    g_fake_thread = (fake_thread){0};
    pthread_mutex_unlock(&g_fake.lock);
}

void fake_cuda_fail_nth(long n, rondo__cu_result code) {
    pthread_mutex_lock(&g_fake.lock);
    g_fake.fail_countdown = n;
    g_fake.fail_code = code;
    g_fake.failed_call = NULL;
    pthread_mutex_unlock(&g_fake.lock);
}

bool fake_cuda_has_failed(void) {
    return g_fake.failed_call != NULL;
}

const char *fake_cuda_get_failed_call(void) {
    return g_fake.failed_call != NULL ? g_fake.failed_call : "";
}

size_t fake_cuda_count_calls(const char *name) {
    if (name == NULL) {
        return g_fake.call_count;
    }
    for (size_t i = 0; i < g_fake.call_name_count; i++) {
        if (strcmp(g_fake.calls[i].name, name) == 0) {
            return g_fake.calls[i].count;
        }
    }
    return 0;
}

size_t fake_cuda_count_objects(void) {
    size_t count = (size_t)g_fake_thread.depth;
    for (size_t i = 0; i < FAKE_DEVICES_MAX; i++) {
        count += (size_t)g_fake.retain_counts[i];
    }
    const fake_object *lists[] = {g_fake.objects, g_fake.user_objects};
    for (size_t i = 0; i < 2; i++) {
        for (const fake_object *object = lists[i]; object != NULL; object = object->next) {
            count++;
        }
    }
    return count;
}

const char *fake_cuda_get_violations(void) {
    return g_fake.violations;
}

void fake_cuda_set_kernel(const char *name, fake_cuda_kernel kernel) {
    for (size_t i = 0; i < g_fake.kernel_count; i++) {
        if (strcmp(g_fake.kernels[i].name, name) == 0) {
            g_fake.kernels[i].kernel = kernel;
            return;
        }
    }
    if (g_fake.kernel_count == FAKE_KERNELS_MAX) {
        abort();
    }
    g_fake.kernels[g_fake.kernel_count++] = (fake_kernel_entry){.name = name, .kernel = kernel};
}

void fake_cuda_run_host(rondo_host_function function, const void *arguments,
                        size_t argument_bytes) {
    _Alignas(16) unsigned char copy[256];
    if (argument_bytes > sizeof copy) {
        abort();
    }
    memcpy(copy, arguments, argument_bytes);
    function(copy);
}

// ---- driver, devices, contexts ----------------------------------------------------------------

rondo__cu_result fake_cuInit(unsigned int flags) {
    (void)flags;
    ENTER("cuInit");
    return fake_leave(g_fake.options.device_count > 0 ? RONDO__CU_SUCCESS
                                                      : RONDO__CU_ERROR_NO_DEVICE);
}

rondo__cu_result fake_cuDriverGetVersion(int *out_version) {
    ENTER("cuDriverGetVersion");
    *out_version = g_fake.options.driver_version;
    return fake_leave(code);
}

rondo__cu_result fake_cuGetErrorName(rondo__cu_result value, const char **out_name) {
    ENTER("cuGetErrorName");
    *out_name = "CUDA_ERROR_unnamed";
#define NAME(name, number)         \
    if (value == (number)) {       \
        *out_name = "CUDA_" #name; \
    }
    RONDO__CU_RESULT_MAP(NAME)
#undef NAME
    return fake_leave(code);
}

rondo__cu_result fake_cuGetErrorString(rondo__cu_result value, const char **out_text) {
    (void)value;
    ENTER("cuGetErrorString");
    *out_text = "the fake driver failed";
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceGet(rondo__cu_device *out_device, int ordinal) {
    ENTER("cuDeviceGet");
    if (ordinal < 0 || ordinal >= g_fake.options.device_count) {
        return fake_leave(RONDO__CU_ERROR_INVALID_DEVICE);
    }
    *out_device = ordinal;
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceGetCount(int *out_count) {
    ENTER("cuDeviceGetCount");
    *out_count = g_fake.options.device_count;
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceGetName(char *name, int name_bytes, rondo__cu_device device) {
    ENTER("cuDeviceGetName");
    const char *kind = g_fake.options.name != NULL ? g_fake.options.name : "Fake GPU";
    snprintf(name, (size_t)name_bytes, "%s %d", kind, (int)device);
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceGetAttribute(int *out_value, int attribute, rondo__cu_device device) {
    (void)device;
    ENTER("cuDeviceGetAttribute");
    const int capability =
        g_fake.options.compute_capability != 0 ? g_fake.options.compute_capability : 90;
    switch (attribute) {
        case RONDO__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *out_value = 132;
            break;
        case RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *out_value = capability / 10;
            break;
        case RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *out_value = capability % 10;
            break;
        case RONDO__CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            *out_value = FAKE_SHARED_MAX;
            break;
        default:
            return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuDeviceTotalMem(size_t *out_bytes, rondo__cu_device device) {
    (void)device;
    ENTER("cuDeviceTotalMem");
    *out_bytes = g_fake.options.memory_bytes != 0 ? g_fake.options.memory_bytes : (size_t)1 << 37;
    return fake_leave(code);
}

static rondo__cu_context context_of(rondo__cu_device device) {
    return (rondo__cu_context)(void *)&g_fake.contexts[device];
}

rondo__cu_result fake_cuDevicePrimaryCtxRetain(rondo__cu_context *out_context,
                                               rondo__cu_device device) {
    ENTER("cuDevicePrimaryCtxRetain");
    g_fake.retain_counts[device]++;
    *out_context = context_of(device);
    return fake_leave(code);
}

rondo__cu_result fake_cuDevicePrimaryCtxRelease(rondo__cu_device device) {
    rondo__cu_result code = fake_enter("cuDevicePrimaryCtxRelease");
    if (g_fake.retain_counts[device] == 0) {
        fake_violation("cuDevicePrimaryCtxRelease without a retain");
    } else if (--g_fake.retain_counts[device] == 0) {
        for (size_t i = 0; i < FAKE_DEVICES_MAX; i++) {
            g_fake.peers[i][device] = false;
            g_fake.peers[device][i] = false;
        }
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuDevicePrimaryCtxGetState(rondo__cu_device device, unsigned int *out_flags,
                                                 int *out_active) {
    ENTER("cuDevicePrimaryCtxGetState");
    *out_flags = 0;
    *out_active = g_fake.retain_counts[device] > 0;
    return fake_leave(code);
}

rondo__cu_result fake_cuCtxGetCurrent(rondo__cu_context *out_context) {
    ENTER("cuCtxGetCurrent");
    *out_context = g_fake_thread.depth > 0 ? g_fake_thread.contexts[g_fake_thread.depth - 1] : NULL;
    return fake_leave(code);
}

rondo__cu_result fake_cuCtxPushCurrent(rondo__cu_context context) {
    ENTER("cuCtxPushCurrent");
    if (g_fake_thread.depth == FAKE_CONTEXTS_MAX) {
        abort();
    }
    g_fake_thread.contexts[g_fake_thread.depth++] = context;
    return fake_leave(code);
}

rondo__cu_result fake_cuCtxPopCurrent(rondo__cu_context *out_context) {
    rondo__cu_result code = fake_enter("cuCtxPopCurrent");
    if (g_fake_thread.depth == 0) {
        fake_violation("cuCtxPopCurrent of an empty stack");
    } else {
        *out_context = g_fake_thread.contexts[--g_fake_thread.depth];
    }
    return fake_leave(code);
}

// ---- memory -----------------------------------------------------------------------------------

enum { FILLED_BYTES_MAX = 1 << 18 };

static rondo__cu_result allocate(const char *name, size_t bytes, bool is_host, void **out_address) {
    ENTER(name);
    NEED_CONTEXT(name);
    if (fake_break_unsafe(name)) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (bytes == 0 || bytes > ((size_t)1 << 33)) {
        return fake_leave(bytes == 0 ? RONDO__CU_ERROR_INVALID_VALUE
                                     : RONDO__CU_ERROR_OUT_OF_MEMORY);
    }
    fake_memory *memory = fake_new_object(FAKE_MEMORY, sizeof(*memory));
    memory->byte_count = bytes;
    memory->is_host = is_host;
    memory->id = ++g_fake.last_memory_id;
    if (posix_memalign(&memory->bytes, 512, bytes) != 0) {
        abort();
    }
    // What tests read lies near the start; filling all of a region would take longer than the rest.
    memset(memory->bytes, 0xcd, bytes < FILLED_BYTES_MAX ? bytes : FILLED_BYTES_MAX);
    *out_address = memory->bytes;
    return fake_leave(code);
}

fake_memory *fake_find_memory(const void *address) {
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        fake_memory *memory = (fake_memory *)object;
        if (object->kind == FAKE_MEMORY && (const char *)address >= (char *)memory->bytes &&
            (const char *)address < (char *)memory->bytes + memory->byte_count) {
            return memory;
        }
    }
    return NULL;
}

static rondo__cu_result deallocate(const char *name, void *address) {
    rondo__cu_result code = fake_enter(name);
    if (code == RONDO__CU_SUCCESS && fake_break_unsafe(name)) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    fake_memory *memory = fake_find_memory(address);
    if (memory == NULL || memory->bytes != address) {
        fake_violation("%s of an address that is not allocated", name);
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    free(memory->bytes);
    fake_free_object(memory);
    return fake_leave(code);
}

rondo__cu_result fake_cuMemGetInfo(size_t *out_free, size_t *out_total) {
    ENTER("cuMemGetInfo");
    NEED_CONTEXT("cuMemGetInfo");
    *out_free = ((size_t)1 << 36) - g_fake.reserved_bytes;
    *out_total = (size_t)1 << 37;
    return fake_leave(code);
}

rondo__cu_result fake_cuMemAlloc(rondo__cu_address *out_address, size_t bytes) {
    void *address = NULL;
    rondo__cu_result code = allocate("cuMemAlloc", bytes, false, &address);
    if (code == RONDO__CU_SUCCESS) {
        *out_address = (rondo__cu_address)(uintptr_t)address;
    }
    return code;
}

rondo__cu_result fake_cuMemFree(rondo__cu_address address) {
    return deallocate("cuMemFree", (void *)(uintptr_t)address);
}

rondo__cu_result fake_cuMemHostAlloc(void **out_address, size_t bytes, unsigned int flags) {
    (void)flags;
    return allocate("cuMemHostAlloc", bytes, true, out_address);
}

rondo__cu_result fake_cuMemFreeHost(void *address) {
    return deallocate("cuMemFreeHost", address);
}

// ---- modules ----------------------------------------------------------------------------------

rondo__cu_result fake_cuModuleLoadData(rondo__cu_module *out_module, const void *image) {
    ENTER("cuModuleLoadData");
    NEED_CONTEXT("cuModuleLoadData");
    // Newer drivers load a module beside any capture.
    if (g_fake.options.driver_version < 13000 && fake_break_unsafe("cuModuleLoadData")) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    const bool is_text = image != NULL && strncmp(image, FAKE_MAGIC, strlen(FAKE_MAGIC)) == 0;
    const bool is_code =
        image != NULL && strncmp(image, EMULATED_MAGIC, strlen(EMULATED_MAGIC)) == 0;
    const char *problem = NULL;
    void *loaded = is_code ? emulated_load(image, &problem) : NULL;
    if (is_code && loaded == NULL) {
        fake_violation("cuModuleLoadData: %s", problem);
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    fake_module *module = fake_new_object(FAKE_MODULE, sizeof(fake_module));
    module->text = strdup(is_text ? (const char *)image + strlen(FAKE_MAGIC) : "");
    module->code = loaded;
    *out_module = (rondo__cu_module)(void *)module;
    return fake_leave(code);
}

rondo__cu_result fake_cuModuleUnload(rondo__cu_module module) {
    rondo__cu_result code = fake_enter("cuModuleUnload");
    if (!fake_is_alive(module, FAKE_MODULE)) {
        fake_violation("cuModuleUnload of a dead module");
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
    }
    empty_module((fake_module *)(void *)module);
    fake_free_object(module);
    return fake_leave(code);
}

// The module's own kernel of this name, as compiled code or as a text; NULL: it has none.
static fake_kernel_entry *find_own_kernel(fake_module *module, const char *name) {
    for (fake_kernel_entry *entry = module->kernels; entry != NULL; entry = entry->next) {
        if (strcmp(entry->name, name) == 0) {
            return entry;
        }
    }
    const emulated_kernel none = {0};
    const emulated_kernel code = module->code != NULL ? emulated_find(module->code, name) : none;
    const bool is_text =
        (strcmp(name, "pointwise") == 0 && fake_pointwise_is_known(module->text)) ||
        fake_select_is_known(name, module->text);
    if (code.thread == NULL && !is_text) {
        return NULL;
    }
    fake_kernel_entry *entry = malloc(sizeof(*entry) + strlen(name) + 1);
    if (entry == NULL) {
        abort();
    }
    char *own_name = (char *)(entry + 1);
    strcpy(own_name, name);
    *entry = (fake_kernel_entry){.name = own_name,
                                 .module = module,
                                 .text = code.thread == NULL ? module->text : NULL,
                                 .code = code,
                                 .next = module->kernels};
    module->kernels = entry;
    return entry;
}

rondo__cu_result fake_cuModuleGetFunction(rondo__cu_function *out_function, rondo__cu_module module,
                                          const char *name) {
    ENTER("cuModuleGetFunction");
    if (!fake_is_alive(module, FAKE_MODULE)) {
        fake_violation("cuModuleGetFunction of a dead module");
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
    }
    if (strcmp(name, fake_condition_kernel.name) == 0) {
        union {
            const fake_kernel_entry *entry;
            rondo__cu_function function;
        } built_in = {.entry = &fake_condition_kernel};
        *out_function = built_in.function;
        return fake_leave(code);
    }
    void *code_of_module = ((fake_module *)(void *)module)->code;  // goes before the fake's own
    const bool is_brought = code_of_module != NULL && emulated_find(code_of_module, name).thread;
    for (size_t i = 0; i < g_fake.kernel_count && !is_brought; i++) {
        if (g_fake.kernels[i].name[0] == '\0' || strcmp(g_fake.kernels[i].name, name) == 0) {
            *out_function = (rondo__cu_function)(void *)&g_fake.kernels[i];
            return fake_leave(code);
        }
    }
    fake_kernel_entry *own = find_own_kernel((fake_module *)(void *)module, name);
    *out_function = (rondo__cu_function)(void *)own;
    return fake_leave(own != NULL ? code : RONDO__CU_ERROR_NOT_FOUND);
}

rondo__cu_result fake_cuFuncGetAttribute(int *out_value, int attribute,
                                         rondo__cu_function function) {
    (void)function;
    (void)attribute;
    ENTER("cuFuncGetAttribute");
    *out_value = 1024;
    return fake_leave(code);
}

rondo__cu_result fake_cuFuncSetAttribute(rondo__cu_function function, int attribute, int value) {
    ENTER("cuFuncSetAttribute");
    if (attribute == RONDO__CU_FUNCTION_ATTRIBUTE_SHARED_PERCENT) {
        return fake_leave(value >= -1 && value <= 100 ? code : RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (value != FAKE_SHARED_MAX - 1024) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    ((fake_kernel_entry *)(void *)function)->has_large_shared = true;
    return fake_leave(code);
}

static emulated_map *begin_map(rondo__cu_tensor_map *map, void *address, const char *call) {
    static_assert(sizeof(emulated_map) <= sizeof *map, "a map holds what the emulation wants");
    emulated_map *to = (emulated_map *)(void *)map->word;
    if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0) {
        fake_violation("%s at an address that is not aligned", call);
    }
    memset(map, 0, sizeof *map);
    to->base = address;
    to->magic = EMULATED_MAP;
    return to;
}

rondo__cu_result fake_cuTensorMapEncodeTiled(rondo__cu_tensor_map *out_map, int type, uint32_t rank,
                                             void *address, const uint64_t *extent,
                                             const uint64_t *stride_bytes, const uint32_t *box,
                                             const uint32_t *element_step, int interleave,
                                             int swizzle, int promotion, int fill) {
    (void)type, (void)element_step, (void)interleave, (void)promotion, (void)fill;
    ENTER("cuTensorMapEncodeTiled");
    emulated_map *map = begin_map(out_map, address, "cuTensorMapEncodeTiled");
    if (rank != 2 || box[0] * 2 != 16u << swizzle || box[1] > 256 || stride_bytes[0] % 16 != 0) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    map->extent[0] = extent[0];
    map->extent[1] = extent[1];
    map->stride_bytes[0] = stride_bytes[0];
    map->box_columns = box[0];
    map->box_rows = box[1];
    return fake_leave(code);
}

rondo__cu_result fake_cuTensorMapEncodeIm2col(rondo__cu_tensor_map *out_map, int type,
                                              uint32_t rank, void *address, const uint64_t *extent,
                                              const uint64_t *stride_bytes, const int *lower_corner,
                                              const int *upper_corner, uint32_t channels,
                                              uint32_t pixels, const uint32_t *element_step,
                                              int interleave, int swizzle, int promotion,
                                              int fill) {
    (void)type, (void)interleave, (void)promotion, (void)fill;
    ENTER("cuTensorMapEncodeIm2col");
    emulated_map *map = begin_map(out_map, address, "cuTensorMapEncodeIm2col");
    if (rank != 4 || channels * 2 != 16u << swizzle || pixels > 1024 || stride_bytes[0] % 16 != 0) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    map->is_image = 1;
    for (int d = 0; d < 4; d++) {
        map->extent[d] = extent[d];
        map->stride_bytes[d < 3 ? d : 0] = stride_bytes[d < 3 ? d : 0];
    }
    for (int d = 0; d < 2; d++) {
        map->lower[d] = (short)lower_corner[d];
        map->upper[d] = (short)upper_corner[d];
        map->step[d] = element_step[d + 1];
    }
    map->box_columns = channels;
    map->box_rows = pixels;
    return fake_leave(code);
}

rondo__cu_result fake_cuFuncGetName(const char **out_name, rondo__cu_function function) {
    ENTER("cuFuncGetName");
    *out_name = ((const fake_kernel_entry *)(const void *)function)->name;
    return fake_leave(code);
}

rondo__cu_result fake_cuKernelGetName(const char **out_name, rondo__cu_kernel kernel) {
    (void)kernel;
    ENTER("cuKernelGetName");
    *out_name = "";
    return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
}

// ---- the library's exports --------------------------------------------------------------------

typedef struct fake_export {
    const char *base;
    const char *exported;
    int version;
    void (*function)(void);
} fake_export;

static const fake_export g_exports[] = {
#define RONDO__CUDA_SYMBOL(need, name, since, export_name, arguments) \
    {#name, export_name, since, (void (*)(void))fake_##name},
#include "backend/cuda/driver/cuda_symbols.h"
#include "support/driver_symbols.h"
#undef RONDO__CUDA_SYMBOL
};

static void *address_of_export(const fake_export *entry) {
    void *address = NULL;
    memcpy(&address, &entry->function, sizeof(address));
    return address;
}

static bool is_missing(const fake_export *entry) {
    return entry->version > g_fake.options.driver_version ||
           (g_fake.options.missing_symbol != NULL &&
            strcmp(entry->exported, g_fake.options.missing_symbol) == 0);
}

// The newest form that `version` may have. A missing one is a success without a pointer, as the
// real driver's page says it may be.
static rondo__cu_result get_proc_address(const char *symbol, void **out_function, int version,
                                         uint64_t flags, int *out_status) {
    (void)flags;
    const fake_export *best = NULL;
    size_t length = strlen(symbol);
    for (size_t i = 0; i < sizeof(g_exports) / sizeof(g_exports[0]); i++) {
        const fake_export *entry = &g_exports[i];
        bool is_form = strncmp(entry->base, symbol, length) == 0 &&
                       (entry->base[length] == '\0' || entry->base[length] == '_');
        if (is_form && !is_missing(entry) && entry->version <= version &&
            (best == NULL || entry->version > best->version)) {
            best = entry;
        }
    }
    *out_function = best != NULL ? address_of_export(best) : NULL;
    *out_status = RONDO__CU_GET_PROC_ADDRESS_SUCCESS;
    return RONDO__CU_SUCCESS;
}

void *fake_cuda_resolve(void *user_data, const char *symbol) {
    (void)user_data;
    void *address = NULL;
    if (strcmp(symbol, "cuGetProcAddress_v2") == 0 && g_fake.options.has_get_proc_address) {
        rondo__cu_result (*function)(const char *, void **, int, uint64_t, int *) =
            get_proc_address;
        memcpy(&address, &function, sizeof(address));
        return address;
    }
    for (size_t i = 0; i < sizeof(g_exports) / sizeof(g_exports[0]); i++) {
        if (strcmp(g_exports[i].exported, symbol) == 0 && !is_missing(&g_exports[i])) {
            return address_of_export(&g_exports[i]);
        }
    }
    return NULL;
}
