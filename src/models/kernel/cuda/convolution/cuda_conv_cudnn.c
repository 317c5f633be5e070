// kernel/cuda/convolution/cuda_conv_cudnn.c — convolutions through cuDNN's graph API: convolution,
// residual, bias and activation as one fused operation graph, or the bare convolution with our own
// ending where cuDNN has no fused engine.
//
// Engines that round inputs down (TF32), sum in half precision or in no fixed order are left out:
// single precision means single precision here, and results repeat bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/convolution/cuda_conv_cudnn.h"

#include <pthread.h>
#include <string.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/cuda/convolution/cudnn_api.h"
#include "kernel/cuda/elementwise/cuda_pointwise.h"

enum {
    CONFIGS_MAX = 24,  // engine configurations looked at
    RANK_MAX = 5,
    DESCRIPTORS_MAX = 48,
    // Tensors of the graph.
    NUMBER_X = 'x',
    NUMBER_W = 'w',
    NUMBER_B = 'b',
    NUMBER_Z = 'z',
    NUMBER_Y = 'y',
};

// ---- the handle, one a device -----------------------------------------------------------------

// A handle costs much to make and is used by one thread at a time, so convolutions share it.
typedef struct shared_handle {
    rondo__dnn_handle native;
    rondo_device *device;
    size_t use_count;
    struct shared_handle *next;
} shared_handle;

static pthread_mutex_t handle_lock = PTHREAD_MUTEX_INITIALIZER;
static shared_handle *handles;  // guarded by handle_lock, which also serialises calls with a handle

static rondo_status fail(const rondo__dnn_api *api, int code, const char *call) {
    return RONDO_FAIL_DRIVER(RONDO_STATUS_UNSUPPORTED, code, api->cudnnGetErrorString(code), call,
                             "cuDNN cannot do this convolution so");
}

static rondo_status take_handle(const rondo__dnn_api *api, rondo_device *device,
                                shared_handle **out_handle) {
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&handle_lock);
    shared_handle *handle = handles;
    while (handle != NULL && handle->device != device) {
        handle = handle->next;
    }
    if (handle == NULL) {
        handle = rondo__calloc(1, sizeof(*handle));
        if (handle == NULL) {
            status = RONDO_STATUS_NO_MEMORY;
        } else {
            const int code = api->cudnnCreate(&handle->native);
            if (code != RONDO__DNN_SUCCESS) {
                status = fail(api, code, "cudnnCreate");
                rondo__free(handle);
                handle = NULL;
            } else {
                handle->device = device;
                handle->next = handles;
                handles = handle;
            }
        }
    }
    if (handle != NULL) {
        handle->use_count++;
    }
    pthread_mutex_unlock(&handle_lock);
    *out_handle = handle;
    return status;
}

static void give_handle(const rondo__dnn_api *api, shared_handle *handle) {
    pthread_mutex_lock(&handle_lock);
    if (--handle->use_count == 0) {
        shared_handle **at = &handles;
        while (*at != handle) {
            at = &(*at)->next;
        }
        *at = handle->next;
        (void)api->cudnnDestroy(handle->native);
        rondo__free(handle);
    }
    pthread_mutex_unlock(&handle_lock);
}

// ---- descriptors ------------------------------------------------------------------------------

// Descriptors that live until the plan is made; the first failure sticks.
typedef struct description {
    const rondo__dnn_api *api;
    rondo_status status;
    size_t count;
    rondo__dnn_descriptor all[DESCRIPTORS_MAX];
} description;

static rondo__dnn_descriptor begin(description *d, int type) {
    rondo__dnn_descriptor made = NULL;
    if (d->status != RONDO_STATUS_OK) {
        return NULL;
    }
    if (d->count == DESCRIPTORS_MAX) {
        d->status = RONDO_FAIL(INTERNAL, "a graph of more descriptors than planned");
        return NULL;
    }
    const int code = d->api->cudnnBackendCreateDescriptor(type, &made);
    if (code != RONDO__DNN_SUCCESS) {
        d->status = fail(d->api, code, "cudnnBackendCreateDescriptor");
        return NULL;
    }
    d->all[d->count++] = made;
    return made;
}

static void set(description *d, rondo__dnn_descriptor target, int attribute, int type,
                int64_t count, const void *values) {
    if (d->status != RONDO_STATUS_OK) {
        return;
    }
    const int code = d->api->cudnnBackendSetAttribute(target, attribute, type, count, values);
    if (code != RONDO__DNN_SUCCESS) {
        d->status = fail(d->api, code, "cudnnBackendSetAttribute");
    }
}

static void set_enum(description *d, rondo__dnn_descriptor target, int attribute, int type,
                     int32_t value) {
    set(d, target, attribute, type, 1, &value);
}

static void set_descriptor(description *d, rondo__dnn_descriptor target, int attribute,
                           const rondo__dnn_descriptor *value) {
    set(d, target, attribute, RONDO__DNN_TYPE_DESCRIPTOR, 1, value);
}

static void finalise(description *d, rondo__dnn_descriptor target) {
    if (d->status == RONDO_STATUS_OK) {
        const int code = d->api->cudnnBackendFinalize(target);
        if (code != RONDO__DNN_SUCCESS) {
            d->status = fail(d->api, code, "cudnnBackendFinalize");
        }
    }
}

static void end_description(description *d) {
    while (d->count > 0) {
        (void)d->api->cudnnBackendDestroyDescriptor(d->all[--d->count]);
    }
}

static int32_t get_type(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F16    ? RONDO__DNN_HALF_DATA
           : dtype == RONDO_DTYPE_BF16 ? RONDO__DNN_BFLOAT_DATA
                                       : RONDO__DNN_FLOAT_DATA;
}

// A tensor of extents [n, c, spatial...] in either layout.
static rondo__dnn_descriptor make_tensor(description *d, const rondo__cuda_convolution *c,
                                         int64_t number, int32_t type, int64_t n, int64_t channels,
                                         const int64_t *spatial, bool is_virtual) {
    const int32_t rank = c->window.spatial_rank == 3 ? 5 : 4;
    int64_t extents[RANK_MAX] = {n, channels}, strides[RANK_MAX];
    const int64_t alignment = 16;
    const bool virtual_flag = is_virtual;
    int64_t step = c->window.channels_last ? channels : 1;

    for (int32_t i = 2; i < rank; i++) {
        extents[i] = spatial[i - 2 + (5 - rank)];
    }
    for (int32_t i = rank - 1; i >= 2; i--) {
        strides[i] = step;
        step *= extents[i];
    }
    strides[1] = c->window.channels_last ? 1 : step;
    strides[0] = c->window.channels_last ? step : step * channels;
    rondo__dnn_descriptor tensor = begin(d, RONDO__DNN_TENSOR_DESCRIPTOR);
    set_enum(d, tensor, RONDO__DNN_TENSOR_TYPE, RONDO__DNN_TYPE_DATA_TYPE, type);
    set(d, tensor, RONDO__DNN_TENSOR_EXTENTS, RONDO__DNN_TYPE_INT64, rank, extents);
    set(d, tensor, RONDO__DNN_TENSOR_STRIDES, RONDO__DNN_TYPE_INT64, rank, strides);
    set(d, tensor, RONDO__DNN_TENSOR_NUMBER, RONDO__DNN_TYPE_INT64, 1, &number);
    set(d, tensor, RONDO__DNN_TENSOR_ALIGNMENT, RONDO__DNN_TYPE_INT64, 1, &alignment);
    set(d, tensor, RONDO__DNN_TENSOR_IS_VIRTUAL, RONDO__DNN_TYPE_BOOLEAN, 1, &virtual_flag);
    finalise(d, tensor);
    return tensor;
}

// By default an activation of cuDNN makes a number of NaN. Where it cannot be told to keep it, the
// graph is refused, and the bare convolution with our own ending takes its place.
static rondo__dnn_descriptor make_pointwise(description *d, int32_t mode, bool clips, double lower,
                                            double upper) {
    rondo__dnn_descriptor pointwise = begin(d, RONDO__DNN_POINTWISE_DESCRIPTOR);
    set_enum(d, pointwise, RONDO__DNN_POINTWISE_MODE, RONDO__DNN_TYPE_POINTWISE_MODE, mode);
    set_enum(d, pointwise, RONDO__DNN_POINTWISE_PRECISION, RONDO__DNN_TYPE_DATA_TYPE,
             RONDO__DNN_FLOAT_DATA);
    if (mode == RONDO__DNN_POINTWISE_RELU) {
        set_enum(d, pointwise, RONDO__DNN_POINTWISE_NAN, RONDO__DNN_TYPE_NAN,
                 RONDO__DNN_PROPAGATE_NAN);
    }
    if (clips) {
        set(d, pointwise, RONDO__DNN_POINTWISE_LOWER, RONDO__DNN_TYPE_DOUBLE, 1, &lower);
        set(d, pointwise, RONDO__DNN_POINTWISE_UPPER, RONDO__DNN_TYPE_DOUBLE, 1, &upper);
    }
    finalise(d, pointwise);
    return pointwise;
}

static rondo__dnn_descriptor add_pointwise(description *d, rondo__dnn_descriptor pointwise,
                                           rondo__dnn_descriptor x, rondo__dnn_descriptor b,
                                           rondo__dnn_descriptor y) {
    rondo__dnn_descriptor operation = begin(d, RONDO__DNN_POINTWISE_OPERATION);
    set_descriptor(d, operation, RONDO__DNN_OPERATION_POINTWISE, &pointwise);
    set_descriptor(d, operation, RONDO__DNN_OPERATION_X, &x);
    if (b != NULL) {
        set_descriptor(d, operation, RONDO__DNN_OPERATION_B, &b);
    }
    set_descriptor(d, operation, RONDO__DNN_OPERATION_Y, &y);
    finalise(d, operation);
    return operation;
}

static rondo__dnn_descriptor make_convolution(description *d, const rondo__cuda_convolution *c) {
    const int64_t rank = c->window.spatial_rank == 3 ? 3 : 2;
    const int64_t first = 3 - rank;
    rondo__dnn_descriptor made = begin(d, RONDO__DNN_CONVOLUTION_DESCRIPTOR);
    set_enum(d, made, RONDO__DNN_CONVOLUTION_PRECISION, RONDO__DNN_TYPE_DATA_TYPE,
             RONDO__DNN_FLOAT_DATA);
    set_enum(d, made, RONDO__DNN_CONVOLUTION_MODE, RONDO__DNN_TYPE_CONVOLUTION_MODE,
             RONDO__DNN_CROSS_CORRELATION);
    set(d, made, RONDO__DNN_CONVOLUTION_RANK, RONDO__DNN_TYPE_INT64, 1, &rank);
    set(d, made, RONDO__DNN_CONVOLUTION_DILATIONS, RONDO__DNN_TYPE_INT64, rank,
        c->window.dilation + first);
    set(d, made, RONDO__DNN_CONVOLUTION_STRIDES, RONDO__DNN_TYPE_INT64, rank,
        c->window.stride + first);
    set(d, made, RONDO__DNN_CONVOLUTION_BEFORE, RONDO__DNN_TYPE_INT64, rank,
        c->window.before + first);
    set(d, made, RONDO__DNN_CONVOLUTION_AFTER, RONDO__DNN_TYPE_INT64, rank,
        c->window.after + first);
    finalise(d, made);
    return made;
}

// The operation graph; `fuses`: residual, bias and activation are part of it.
static rondo__dnn_descriptor make_graph(description *d, rondo__dnn_handle handle,
                                        const rondo__cuda_convolution *c, bool fuses) {
    const rondo__window *w = &c->window;
    const rondo__cuda_epilogue *e = &c->epilogue;
    const int64_t ones[3] = {1, 1, 1};
    const int32_t type = get_type(c->dtype);
    const float one = 1.0f, zero = 0.0f;
    rondo__dnn_descriptor operations[4];
    int64_t count = 0, number = 1000;

    const bool adds = fuses && e->has_residual, biases = fuses && e->has_bias;
    const bool activates = fuses && e->activation != RONDO__ACTIVATION_NONE;
    rondo__dnn_descriptor x =
        make_tensor(d, c, NUMBER_X, type, w->batch, w->channels_in, w->in, false);
    const bool makes_y = c->weights_dtype == RONDO_DTYPE_NONE;
    rondo__dnn_descriptor filters =
        make_tensor(d, c, NUMBER_W, makes_y ? type : get_type(c->weights_dtype), w->channels_out,
                    w->channels_in / c->groups, w->kernel, false);
    rondo__dnn_descriptor y =
        make_tensor(d, c, NUMBER_Y, type, w->batch, w->channels_out, w->out, false);
    const bool is_last = !adds && !biases && !activates;
    rondo__dnn_descriptor now = is_last ? y
                                        : make_tensor(d, c, number++, RONDO__DNN_FLOAT_DATA,
                                                      w->batch, w->channels_out, w->out, true);
    rondo__dnn_descriptor convolution = make_convolution(d, c);
    static const int of_y[] = {RONDO__DNN_FORWARD_DESCRIPTOR, RONDO__DNN_FORWARD_CONVOLUTION,
                               RONDO__DNN_FORWARD_X,          RONDO__DNN_FORWARD_W,
                               RONDO__DNN_FORWARD_Y,          RONDO__DNN_FORWARD_ALPHA,
                               RONDO__DNN_FORWARD_BETA};
    static const int of_w[] = {RONDO__DNN_WEIGHTS_DESCRIPTOR, RONDO__DNN_WEIGHTS_CONVOLUTION,
                               RONDO__DNN_WEIGHTS_X,          RONDO__DNN_WEIGHTS_W,
                               RONDO__DNN_WEIGHTS_Y,          RONDO__DNN_WEIGHTS_ALPHA,
                               RONDO__DNN_WEIGHTS_BETA};
    const int *of = makes_y ? of_y : of_w;
    rondo__dnn_descriptor operation = begin(d, of[0]);
    set_descriptor(d, operation, of[1], &convolution);
    set_descriptor(d, operation, of[2], &x);
    set_descriptor(d, operation, of[3], &filters);
    set_descriptor(d, operation, of[4], &now);
    set(d, operation, of[5], RONDO__DNN_TYPE_FLOAT, 1, &one);
    set(d, operation, of[6], RONDO__DNN_TYPE_FLOAT, 1, &zero);
    finalise(d, operation);
    operations[count++] = operation;
    if (adds) {
        rondo__dnn_descriptor z =
            make_tensor(d, c, NUMBER_Z, type, w->batch, w->channels_out, w->out, false);
        rondo__dnn_descriptor next = !biases && !activates
                                         ? y
                                         : make_tensor(d, c, number++, RONDO__DNN_FLOAT_DATA,
                                                       w->batch, w->channels_out, w->out, true);
        operations[count++] = add_pointwise(
            d, make_pointwise(d, RONDO__DNN_POINTWISE_ADD, false, 0.0, 0.0), now, z, next);
        now = next;
    }
    if (biases) {
        rondo__dnn_descriptor b =
            make_tensor(d, c, NUMBER_B, type, 1, w->channels_out, ones, false);
        rondo__dnn_descriptor next = !activates
                                         ? y
                                         : make_tensor(d, c, number++, RONDO__DNN_FLOAT_DATA,
                                                       w->batch, w->channels_out, w->out, true);
        operations[count++] = add_pointwise(
            d, make_pointwise(d, RONDO__DNN_POINTWISE_ADD, false, 0.0, 0.0), now, b, next);
        now = next;
    }
    if (activates) {
        const bool clips = e->activation == RONDO__ACTIVATION_CLIP;
        operations[count++] = add_pointwise(
            d,
            make_pointwise(d, RONDO__DNN_POINTWISE_RELU, clips, (double)e->alpha, (double)e->beta),
            now, NULL, y);
    }
    rondo__dnn_descriptor graph = begin(d, RONDO__DNN_GRAPH_DESCRIPTOR);
    set(d, graph, RONDO__DNN_GRAPH_HANDLE, RONDO__DNN_TYPE_HANDLE, 1, &handle);
    set(d, graph, RONDO__DNN_GRAPH_OPERATIONS, RONDO__DNN_TYPE_DESCRIPTOR, count, operations);
    finalise(d, graph);
    return graph;
}

// ---- engines ----------------------------------------------------------------------------------

// Notes of an engine; -1 when cuDNN does not tell.
static int64_t get_notes(const rondo__dnn_api *api, rondo__dnn_descriptor engine, int attribute,
                         int type, int64_t capacity, int32_t *out_notes) {
    int64_t count = 0;
    if (api->cudnnBackendGetAttribute(engine, attribute, type, capacity, &count, out_notes) !=
        RONDO__DNN_SUCCESS) {
        return -1;
    }
    return count < capacity ? count : capacity;
}

// Tensor cores have no single precision: on f32 data they mean TF32, whatever else is noted.
// Engines that compile at run time take seconds each, and for f32 bring nothing that pays for it.
static bool suits_engine(const rondo__dnn_api *api, rondo__dnn_descriptor config,
                         rondo_dtype dtype) {
    rondo__dnn_descriptor engine = NULL;
    int32_t notes[RONDO__DNN_NOTE_COUNT] = {0}, habits[RONDO__DNN_HABIT_COUNT] = {0};
    int64_t count = 0;
    bool suits = false;

    if (api->cudnnBackendCreateDescriptor(RONDO__DNN_ENGINE_DESCRIPTOR, &engine) !=
        RONDO__DNN_SUCCESS) {
        return false;
    }
    if (api->cudnnBackendGetAttribute(config, RONDO__DNN_CONFIG_ENGINE, RONDO__DNN_TYPE_DESCRIPTOR,
                                      1, &count, &engine) == RONDO__DNN_SUCCESS) {
        const bool is_single = dtype == RONDO_DTYPE_F32;
        count = get_notes(api, engine, RONDO__DNN_ENGINE_NOTES, RONDO__DNN_TYPE_NOTE,
                          RONDO__DNN_NOTE_COUNT, notes);
        suits = count >= 0;
        for (int64_t i = 0; i < count; i++) {
            suits = suits && (notes[i] != RONDO__DNN_NOTE_TENSOR_CORE || !is_single) &&
                    notes[i] != RONDO__DNN_NOTE_DOWN_CONVERT &&
                    notes[i] != RONDO__DNN_NOTE_REDUCED_SUMS &&
                    notes[i] != RONDO__DNN_NOTE_RANDOM_ORDER;
        }
        count = get_notes(api, engine, RONDO__DNN_ENGINE_HABITS, RONDO__DNN_TYPE_HABIT,
                          RONDO__DNN_HABIT_COUNT, habits);
        for (int64_t i = 0; i < count; i++) {
            suits = suits && (habits[i] != RONDO__DNN_HABIT_COMPILES || !is_single);
        }
    }
    (void)api->cudnnBackendDestroyDescriptor(engine);
    return suits;
}

struct rondo__cudnn_menu {
    description description;
    rondo__cuda_device *device;
    shared_handle *handle;
    const rondo__cuda_convolution *convolution;  // borrowed
    bool fuses;
    size_t count;
    rondo__dnn_descriptor configs[RONDO__CUDNN_PLANS];  // owned by the description
};

// Adds the suitable configurations that a heuristic proposes.
static void list_configs(rondo__cudnn_menu *menu, rondo__dnn_descriptor graph, int32_t mode) {
    description *d = &menu->description;
    rondo__dnn_descriptor configs[CONFIGS_MAX] = {NULL};
    int64_t found = 0, made = 0;
    const rondo__dnn_api *api = d->api;

    rondo__dnn_descriptor heuristic = begin(d, RONDO__DNN_HEURISTIC_DESCRIPTOR);
    set_descriptor(d, heuristic, RONDO__DNN_HEURISTIC_GRAPH, &graph);
    set_enum(d, heuristic, RONDO__DNN_HEURISTIC_MODE, RONDO__DNN_TYPE_HEURISTIC, mode);
    finalise(d, heuristic);
    if (d->status != RONDO_STATUS_OK) {
        return;
    }
    while (made < CONFIGS_MAX &&
           api->cudnnBackendCreateDescriptor(RONDO__DNN_CONFIG_DESCRIPTOR, &configs[made]) ==
               RONDO__DNN_SUCCESS) {
        made++;
    }
    if (api->cudnnBackendGetAttribute(heuristic, RONDO__DNN_HEURISTIC_RESULTS,
                                      RONDO__DNN_TYPE_DESCRIPTOR, made, &found,
                                      configs) != RONDO__DNN_SUCCESS) {
        found = 0;
    }
    for (int64_t i = 0; i < made; i++) {
        if (i < found && menu->count < RONDO__CUDNN_PLANS && d->count < DESCRIPTORS_MAX &&
            suits_engine(api, configs[i], menu->convolution->dtype)) {
            menu->configs[menu->count++] = configs[i];
            d->all[d->count++] = configs[i];
        } else {
            (void)api->cudnnBackendDestroyDescriptor(configs[i]);
        }
    }
}

rondo__cudnn_menu *rondo__cuda_open_cudnn_menu(rondo__cuda_kernel *kernel,
                                               const rondo__cuda_convolution *c, bool fuses) {
    const rondo__dnn_api *api = NULL;
    bool was_pushed = false;

    if (!rondo__cuda_check(kernel, rondo__cudnn_get_api(&api))) {
        return NULL;
    }
    rondo__cudnn_menu *menu = rondo__calloc(1, sizeof(*menu));
    if (menu == NULL) {
        (void)rondo__cuda_check(kernel, RONDO_STATUS_NO_MEMORY);
        return NULL;
    }
    description *d = &menu->description;
    d->api = api;
    menu->device = rondo__cuda_device_of(kernel->device);
    menu->convolution = c;
    menu->fuses = fuses;
    rondo_status status = rondo__cuda_enter(menu->device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        status = take_handle(api, kernel->device, &menu->handle);
        if (status == RONDO_STATUS_OK) {
            rondo__dnn_descriptor graph = make_graph(d, menu->handle->native, c, fuses);
            list_configs(menu, graph, RONDO__DNN_HEURISTIC_A);
            if (menu->count == 0) {
                list_configs(menu, graph, RONDO__DNN_HEURISTIC_FALLBACK);
            }
            status = d->status;
        }
        rondo__cuda_leave(menu->device, was_pushed);
    }
    if (!rondo__cuda_check(kernel, status)) {
        rondo__cuda_close_cudnn_menu(menu);
        return NULL;
    }
    return menu;
}

void rondo__cuda_close_cudnn_menu(rondo__cudnn_menu *menu) {
    bool was_pushed = false;
    if (menu == NULL) {
        return;
    }
    if (rondo__cuda_enter(menu->device, &was_pushed) == RONDO_STATUS_OK) {
        end_description(&menu->description);
        if (menu->handle != NULL) {
            give_handle(menu->description.api, menu->handle);
        }
        rondo__cuda_leave(menu->device, was_pushed);
    }
    rondo__free(menu);
}

// ---- the step ---------------------------------------------------------------------------------

typedef struct dnn_state {
    const rondo__dnn_api *api;
    rondo__cuda_device *device;
    shared_handle *handle;
    rondo__dnn_descriptor plan;
    int64_t workspace_bytes;
    rondo__address workspace;
    size_t tensor_count;
    int64_t numbers[5];
    rondo__address addresses[5];
} dnn_state;

static void destroy_state(void *data) {
    dnn_state *state = data;
    bool was_pushed = false;
    if (state->handle != NULL && rondo__cuda_enter(state->device, &was_pushed) == RONDO_STATUS_OK) {
        if (state->plan != NULL) {
            (void)state->api->cudnnBackendDestroyDescriptor(state->plan);
        }
        give_handle(state->api, state->handle);
        rondo__cuda_leave(state->device, was_pushed);
    }
    rondo__free(state);
}

static rondo_status execute(const dnn_state *state, rondo_stream *stream, void **addresses,
                            void *workspace) {
    description d = {.api = state->api};
    rondo__dnn_descriptor pack = begin(&d, RONDO__DNN_PACK_DESCRIPTOR);
    set(&d, pack, RONDO__DNN_PACK_NUMBERS, RONDO__DNN_TYPE_INT64, (int64_t)state->tensor_count,
        state->numbers);
    set(&d, pack, RONDO__DNN_PACK_ADDRESSES, RONDO__DNN_TYPE_POINTER, (int64_t)state->tensor_count,
        addresses);
    set(&d, pack, RONDO__DNN_PACK_WORKSPACE, RONDO__DNN_TYPE_POINTER, 1, &workspace);
    finalise(&d, pack);
    if (d.status == RONDO_STATUS_OK) {
        pthread_mutex_lock(&handle_lock);
        const char *call = "cudnnSetStream";
        int code = state->api->cudnnSetStream(state->handle->native, stream->native);
        if (code == RONDO__DNN_SUCCESS) {
            call = "cudnnBackendExecute";
            code = state->api->cudnnBackendExecute(state->handle->native, state->plan, pack);
        }
        pthread_mutex_unlock(&handle_lock);
        if (code != RONDO__DNN_SUCCESS) {
            d.status = fail(state->api, code, call);
        }
    }
    end_description(&d);
    return d.status;
}

static rondo_status run_convolution(void *data, rondo_stream *stream,
                                    const rondo__cuda_arguments *arguments) {
    const dnn_state *state = data;
    void *addresses[5];
    bool was_pushed = false;
    void *workspace =
        state->workspace_bytes > 0 ? rondo__address_resolve(&state->workspace, arguments) : NULL;
    for (size_t i = 0; i < state->tensor_count; i++) {
        addresses[i] = rondo__address_resolve(&state->addresses[i], arguments);
    }
    RETURN_IF_ERROR(rondo__cuda_enter(state->device, &was_pushed));
    const rondo_status status = execute(state, stream, addresses, workspace);
    rondo__cuda_leave(state->device, was_pushed);
    return status;
}

static rondo_status make_plan(dnn_state *state, const rondo__cudnn_menu *menu, size_t number) {
    description d = {.api = state->api};
    int64_t count = 0;

    if (number >= menu->count) {
        return RONDO_FAIL(UNSUPPORTED,
                          "cuDNN has %zu suitable engines for this convolution, not %zu",
                          menu->count, number + 1);
    }
    int code = d.api->cudnnBackendCreateDescriptor(RONDO__DNN_PLAN_DESCRIPTOR, &state->plan);
    if (code != RONDO__DNN_SUCCESS) {
        return fail(d.api, code, "cudnnBackendCreateDescriptor");
    }
    set(&d, state->plan, RONDO__DNN_PLAN_HANDLE, RONDO__DNN_TYPE_HANDLE, 1, &state->handle->native);
    set_descriptor(&d, state->plan, RONDO__DNN_PLAN_CONFIG, &menu->configs[number]);
    finalise(&d, state->plan);
    if (d.status == RONDO_STATUS_OK) {
        code = d.api->cudnnBackendGetAttribute(state->plan, RONDO__DNN_PLAN_WORKSPACE,
                                               RONDO__DNN_TYPE_INT64, 1, &count,
                                               &state->workspace_bytes);
        if (code != RONDO__DNN_SUCCESS) {
            d.status = fail(d.api, code, "cudnnBackendGetAttribute");
        }
    }
    return d.status;
}

static void use_tensor(dnn_state *state, int64_t number, rondo__address address) {
    state->numbers[state->tensor_count] = number;
    state->addresses[state->tensor_count] = address;
    state->tensor_count++;
}

// Residual, bias and activation in place on y, after a bare convolution.
static void add_ending(rondo__cuda_kernel *kernel, const rondo__cuda_convolution *c) {
    const rondo__cuda_epilogue *e = &c->epilogue;
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__pointwise pointwise = {
        .input_count = 1,
        .output = c->y,
        .output_dtype = c->dtype,
        .output_shape = y->shape,
    };
    if (!e->has_bias && !e->has_residual && e->activation == RONDO__ACTIVATION_NONE) {
        return;
    }
    pointwise.inputs[0].address = c->y;
    pointwise.inputs[0].dtype = c->dtype;
    pointwise.inputs[0].shape = y->shape;
    rondo__text_append(&pointwise.body, "            float t = x0;\n");
    if (e->has_bias) {
        rondo_shape shape = {.rank = 1, .extent = {c->window.channels_out}};
        if (!c->window.channels_last) {
            shape.rank = y->shape.rank - 1;
            for (int32_t i = 1; i < shape.rank; i++) {
                shape.extent[i] = 1;
            }
        }
        pointwise.inputs[pointwise.input_count].address = e->bias;
        pointwise.inputs[pointwise.input_count].dtype = c->dtype;
        pointwise.inputs[pointwise.input_count].shape = shape;
        rondo__text_append(&pointwise.body, "            t += x%zu;\n", pointwise.input_count);
        pointwise.input_count++;
    }
    if (e->has_residual) {
        pointwise.inputs[pointwise.input_count].address = e->residual;
        pointwise.inputs[pointwise.input_count].dtype = c->dtype;
        pointwise.inputs[pointwise.input_count].shape = y->shape;
        rondo__text_append(&pointwise.body, "            t += x%zu;\n", pointwise.input_count);
        pointwise.input_count++;
    }
    rondo__text_append(&pointwise.body, "            y = activate<%d>(t, ", (int)e->activation);
    rondo__pointwise_append_float(&pointwise.body, e->alpha);
    rondo__text_append(&pointwise.body, ", ");
    rondo__pointwise_append_float(&pointwise.body, e->beta);
    rondo__text_append(&pointwise.body, ");\n");
    rondo__cuda_add_pointwise(kernel, &pointwise);
}

size_t rondo__cuda_get_cudnn_version(const rondo__cuda_kernel *kernel) {
    const rondo__dnn_api *api = NULL;
    return rondo__cuda_may_have_libraries(kernel) && rondo__cudnn_get_api(&api) == RONDO_STATUS_OK
               ? api->cudnnGetVersion()
               : 0;
}

bool rondo__cuda_has_cudnn(const rondo__cuda_kernel *kernel) {
    return rondo__cuda_get_cudnn_version(kernel) != 0;
}

void rondo__cuda_add_cudnn_plan(rondo__cuda_kernel *kernel, const rondo__cudnn_menu *menu,
                                size_t plan) {
    const rondo__cuda_convolution *c = menu->convolution;
    const rondo__cuda_epilogue *e = &c->epilogue;
    bool was_pushed = false;

    dnn_state *state = rondo__calloc(1, sizeof(*state));
    if (state == NULL) {
        (void)rondo__cuda_check(kernel, RONDO_STATUS_NO_MEMORY);
        return;
    }
    state->api = menu->description.api;
    state->device = menu->device;
    rondo_status status = rondo__cuda_enter(state->device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        status = take_handle(state->api, kernel->device, &state->handle);
        if (status == RONDO_STATUS_OK) {
            status = make_plan(state, menu, plan);
        }
        rondo__cuda_leave(state->device, was_pushed);
    }
    if (!rondo__cuda_check(kernel, status)) {
        destroy_state(state);
        return;
    }
    use_tensor(state, NUMBER_X, c->x);
    use_tensor(state, NUMBER_W, c->w);
    use_tensor(state, NUMBER_Y, c->y);
    if (menu->fuses && e->has_bias) {
        use_tensor(state, NUMBER_B, e->bias);
    }
    if (menu->fuses && e->has_residual) {
        use_tensor(state, NUMBER_Z, e->residual);
    }
    if (state->workspace_bytes > 0) {
        state->workspace = rondo__address_workspace(
            rondo__cuda_reserve_workspace(kernel, (size_t)state->workspace_bytes));
    }
    (void)rondo__cuda_add_call(kernel, run_convolution, state, destroy_state);
    kernel->head.implementation = "cudnn";
    if (!menu->fuses) {
        add_ending(kernel, c);
    }
}
