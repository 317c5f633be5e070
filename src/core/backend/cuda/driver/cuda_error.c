// backend/cuda/driver/cuda_error.c — driver result codes in plain words: which status they are,
// what they mean, what to do.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"
#include "base/log/logging.h"

// The meaning of one code for a caller. `is_sticky`: all later calls in the context fail, too.
typedef struct meaning {
    rondo__cu_result code;
    rondo_status status;
    bool is_sticky;
    const char *advice;
} meaning;

static const meaning g_meanings[] = {
    {RONDO__CU_ERROR_INVALID_VALUE, RONDO_STATUS_DRIVER, false,
     "the driver finds an argument wrong"},
    {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO_STATUS_NO_DEVICE_MEMORY, false,
     "the GPU's memory is exhausted; free some, or use a smaller batch"},
    {RONDO__CU_ERROR_NOT_INITIALIZED, RONDO_STATUS_UNAVAILABLE, false,
     "the driver does not work in the child of a fork once the parent has used it; fork first, or "
     "start a new program"},
    {RONDO__CU_ERROR_DEINITIALIZED, RONDO_STATUS_DRIVER, false,
     "the driver has shut down; the process is ending"},
    {RONDO__CU_ERROR_DEVICE_UNAVAILABLE, RONDO_STATUS_UNAVAILABLE, false,
     "the GPU is taken by another process or in a mode that forbids use; see nvidia-smi"},
    {RONDO__CU_ERROR_INVALID_IMAGE, RONDO_STATUS_DRIVER, false,
     "the machine code is damaged; clear the kernel cache (RONDO_CACHE_DIR)"},
    {RONDO__CU_ERROR_NO_BINARY_FOR_GPU, RONDO_STATUS_UNSUPPORTED, false,
     "the machine code is for another chip; clear the kernel cache (RONDO_CACHE_DIR)"},
    {RONDO__CU_ERROR_UNSUPPORTED_PTX_VERSION, RONDO_STATUS_UNSUPPORTED, false,
     "the compiler is newer than the driver; update the driver or use an older NVRTC"},
    {RONDO__CU_ERROR_NOT_SUPPORTED, RONDO_STATUS_UNSUPPORTED, false,
     "this driver or GPU cannot do it"},
    {RONDO__CU_ERROR_LAUNCH_OUT_OF_RESOURCES, RONDO_STATUS_DRIVER, false,
     "the kernel wants more registers or threads than a block may have"},

    {RONDO__CU_ERROR_ECC_UNCORRECTABLE, RONDO_STATUS_LOST, true,
     "the GPU's memory has a hardware fault; see nvidia-smi -q -d ECC"},
    {RONDO__CU_ERROR_NVLINK_UNCORRECTABLE, RONDO_STATUS_LOST, true,
     "the link between GPUs has a hardware fault"},
    {RONDO__CU_ERROR_ILLEGAL_ADDRESS, RONDO_STATUS_LOST, true,
     "work on the GPU touched memory that is not its own; find it with compute-sanitizer"},
    {RONDO__CU_ERROR_LAUNCH_TIMEOUT, RONDO_STATUS_LOST, true,
     "a kernel ran longer than the system allows"},
    {RONDO__CU_ERROR_CONTEXT_IS_DESTROYED, RONDO_STATUS_LOST, true,
     "somebody destroyed or reset the GPU's primary context"},
    {RONDO__CU_ERROR_ASSERT, RONDO_STATUS_LOST, true, "an assert in a kernel failed"},
    {RONDO__CU_ERROR_HARDWARE_STACK_ERROR, RONDO_STATUS_LOST, true,
     "a kernel overflowed its stack"},
    {RONDO__CU_ERROR_ILLEGAL_INSTRUCTION, RONDO_STATUS_LOST, true,
     "a kernel met an illegal instruction"},
    {RONDO__CU_ERROR_MISALIGNED_ADDRESS, RONDO_STATUS_LOST, true,
     "a kernel read or wrote a misaligned address; find it with compute-sanitizer"},
    {RONDO__CU_ERROR_INVALID_ADDRESS_SPACE, RONDO_STATUS_LOST, true,
     "a kernel used an address of the wrong memory space"},
    {RONDO__CU_ERROR_INVALID_PC, RONDO_STATUS_LOST, true, "a kernel jumped to a wrong address"},
    {RONDO__CU_ERROR_LAUNCH_FAILED, RONDO_STATUS_LOST, true,
     "a kernel failed while it ran; find it with compute-sanitizer"},

    {RONDO__CU_ERROR_ILLEGAL_STATE, RONDO_STATUS_STATE, false,
     "the driver finds the object in a state that forbids this"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED, RONDO_STATUS_STATE, false,
     "a call that waits, queries or is unsafe cannot be recorded and broke the capture; make it "
     "before or after"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED, RONDO_STATUS_STATE, false,
     "an earlier call broke the capture; end it, mend that call, record again"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_MERGE, RONDO_STATUS_STATE, false,
     "it would join two separate captures; wait only for events of the same capture"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_UNMATCHED, RONDO_STATUS_STATE, false,
     "the capture did not begin on this stream; end it where it began"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_UNJOINED, RONDO_STATUS_STATE, false,
     "a stream forked inside the capture was not joined; record an event on it and let the first "
     "stream wait for that"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_ISOLATION, RONDO_STATUS_STATE, false,
     "recorded work cannot wait for work outside the capture; record the event inside it"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_IMPLICIT, RONDO_STATUS_STATE, false,
     "the legacy default stream would wait for the recording stream; use a stream of your own"},
    {RONDO__CU_ERROR_CAPTURED_EVENT, RONDO_STATUS_STATE, false,
     "the event was recorded in a capture and never happens by itself; only streams can wait for "
     "it"},
    {RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD, RONDO_STATUS_STATE, false,
     "the thread that began the capture must end it, unless its mode is relaxed"},
};

static const meaning *find_meaning(rondo__cu_result code) {
    for (size_t i = 0; i < sizeof(g_meanings) / sizeof(g_meanings[0]); i++) {
        if (g_meanings[i].code == code) {
            return &g_meanings[i];
        }
    }
    return NULL;
}

// True when the code says that no further work is possible in the context.
static bool ends_context(rondo__cu_result code) {
    const meaning *found = find_meaning(code);
    return found != NULL && found->is_sticky;
}

static const char *get_code_name(const rondo__cuda_api *api, rondo__cu_result code) {
    const char *name = NULL;
    if (api->cuGetErrorName(code, &name) != RONDO__CU_SUCCESS || name == NULL) {
        name = "CUDA_ERROR_unnamed";
    }
    return name;
}

rondo_status rondo__cuda_fail(const rondo__cuda_api *api, rondo_device *device,
                              rondo__cu_result code, const char *call, const char *file,
                              int32_t line, const char *format, ...) {
    char wanted[RONDO__MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wanted, sizeof(wanted), format, arguments);
    va_end(arguments);

    const meaning *found = find_meaning(code);
    rondo_status status = RONDO_STATUS_DRIVER;
    const char *advice = NULL;
    if (found != NULL) {
        status = found->status;
        advice = found->advice;
        if (found->is_sticky && device != NULL) {
            atomic_store(&device->is_lost, true);
        }
    }
    if (advice == NULL && (api->cuGetErrorString(code, &advice) != RONDO__CU_SUCCESS)) {
        advice = NULL;
    }
    return rondo__error_set(status, code, get_code_name(api, code), file, line, call, "%s: %s",
                            wanted, advice != NULL ? advice : "unknown driver error");
}

void rondo__cuda_log_failure(rondo__cuda_device *device, rondo__cu_result code, const char *call) {
    if (code == RONDO__CU_SUCCESS || code == RONDO__CU_ERROR_DEINITIALIZED) {
        return;
    }
    if (ends_context(code)) {
        atomic_store(&device->head.is_lost, true);  // the next call says so
        return;
    }
    RONDO_LOG_WARN_F("%s: %s failed with %s while cleaning up", device->head.name, call,
                     get_code_name(device->api, code));
}

bool rondo__cuda_is_refusal(rondo__cu_result code) {
    return code == RONDO__CU_ERROR_INVALID_VALUE || code == RONDO__CU_ERROR_INVALID_HANDLE ||
           code == RONDO__CU_ERROR_NOT_SUPPORTED;
}
