// Whole training steps, one replay each, of the nets of train_nets.h: mlp by SGD with momentum, cnn
// by AdamW, resnet18 in half precision by SGD with momentum, gpt2 in half precision by AdamW, embed
// by SGD on the rows looked up; on the host all in single precision.
// bench/peers/torch_train_steps.py has the same in PyTorch.
//
//   train_steps [DEVICE] [CASE...] [--show] [--profile] [--steps N]
//               [--gradients] [--records FILE] [--processor] [--branches on|off]
//               [--losses N] [--seed S] [--dtype fp32|fp16|bf16] [--keep OP]
//               [--use OP] [--average] [--bucket BYTES] [--shard]
//
// CASE: mlp, cnn, resnet18, gpt2, embed, embed_cpu (10 000 000 rows on the processor; after ":" the
// rows); without one mlp and cnn. "replay" is a step whose inputs are on the device already and
// whose loss stays there, with the wait, as PyTorch's graph is measured; "run" also feeds from host
// memory and reads the loss. --gradients: the gradients alone, which stay on the device; the rest
// of a step is the optimiser's. --show: the plan, op by op; --profile: where the time of "replay"
// goes; --records: the same with each kernel's begin and end, as JSON, for step_times.py beside it,
// where "%d" becomes the rank. --processor: what the processor spends to put a step on the stream,
// beside a bare cuGraphLaunch of the same executable. --losses: the loss of each Nth step of "run",
// and the scale at last; weights are drawn from S; --keep: ops of that type stay in f32; --use:
// they do not ("AllReduce" of a step: ranks send half the bytes). Started by
// mpirun or torchrun, each rank has a GPU and a batch of its own, and averages its gradients with
// the others' in buckets of BYTES; "cuda" is the GPU of the rank. --average: so does a single rank,
// whose records tell when each bucket is ready (RONDO_RANK=0 RONDO_RANKS=1). --shard: each rank
// updates its part of the variables.
// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include "backend/cuda/driver/cuda_api.h"
#include "bench.h"
#include "executor/state/plan.h"
#include "rondo/executor_stream.h"
#include "train_nets.h"

enum { WARM_UP_MAX = 8, GRADIENTS_MAX = 200 };

typedef struct setting {
    const char *device;
    int steps, warm_up;
    bool shows;
    bool is_bare;  // gradients alone
    rondo_ranks ranks;
    bool averages;
    bool shards;
    size_t bucket_bytes;
    bool profiles;
    const char *records;
    bool has_processor;
    int losses;         // 0: none are printed
    rondo_dtype dtype;  // BOOL: as the case has it
    const char *keep, *use;
    rondo_branches_mode branches;
} setting;

static double get_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// What all threads of the process have had of the processors.
static double get_processor_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static bool show(void *data, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, data) == bytes;
}

static rondo_dtype get_dtype(const setting *how, const char *name) {
    const bool is_half = strcmp(how->device, "host") != 0 &&
                         (strcmp(name, "resnet18") == 0 || strcmp(name, "gpt2") == 0);
    return how->dtype != RONDO_DTYPE_BOOL ? how->dtype
           : is_half                      ? RONDO_DTYPE_F16
                                          : RONDO_DTYPE_F32;
}

static rondo_dtype find_dtype(const char *name) {
    return strcmp(name, "fp16") == 0   ? RONDO_DTYPE_F16
           : strcmp(name, "bf16") == 0 ? RONDO_DTYPE_BF16
                                       : RONDO_DTYPE_F32;
}

static void build(net *n, const char *name) {
    const char *rows = strchr(name, ':');
    if (strcmp(name, "mlp") == 0) {
        build_mlp(n);
    } else if (strcmp(name, "cnn") == 0) {
        build_cnn(n);
    } else if (strcmp(name, "resnet18") == 0) {
        build_resnet18(n);
    } else if (strcmp(name, "gpt2") == 0) {
        build_gpt2(n);
    } else if (strncmp(name, "embed_cpu", 9) == 0) {
        build_embed(n, rows != NULL ? atoll(rows + 1) : 10000000, "cpu");
    } else if (strncmp(name, "embed", 5) == 0) {
        build_embed(n, rows != NULL ? atoll(rows + 1) : 1000000, NULL);
    } else {
        fprintf(stderr, "no case %s\n", name);
        exit(EXIT_FAILURE);
    }
    check(rondo_builder_add_output(n->b, "loss", NULL));
}

// Adds the gradients of all parameters that look trained as outputs, and fetches on the device.
static size_t add_gradients(net *n, rondo_device *device, rondo_binding *fetches) {
    rondo_program *whole;
    size_t count = 0;
    rondo_parameter list[GRADIENTS_MAX];
    const char *weights[GRADIENTS_MAX];
    const char *outputs[GRADIENTS_MAX];
    size_t used = 0;
    check(rondo_builder_finish(n->b, &whole));
    rondo_builder_destroy(n->b);
    check(rondo_builder_create_from(whole, &n->b));
    check(rondo_program_list_parameters(whole, GRADIENTS_MAX, list, &count));
    for (size_t i = 0; i < count && i < GRADIENTS_MAX; ++i) {
        const size_t length = strlen(list[i].name);
        const char last = list[i].name[length - 1];
        if (list[i].tensor->dtype == RONDO_DTYPE_F32 && last != '2' && last != '3' &&
            rondo_shape_get_count(&list[i].tensor->shape) > 1) {
            weights[used] = name_of("%s", list[i].name);
            outputs[used] = name_of("d.%s", list[i].name);
            fetches[used] = (rondo_binding){.name = outputs[used], .tensor = {.device = device}};
            used += 1;
        }
    }
    rondo_program_destroy(whole);
    check(rondo_builder_add_gradients(n->b, "loss", weights, outputs, used, NULL));
    for (size_t i = 0; i < used; ++i) {
        check(rondo_builder_add_output(n->b, outputs[i], NULL));
    }
    return used;
}

static void add_minimize(const setting *how, net *n, const char *name) {
    const bool is_adam = strcmp(name, "cnn") == 0 || strcmp(name, "gpt2") == 0;
    const bool is_table = strncmp(name, "embed", 5) == 0;
    const rondo_minimize_options options = {
        .struct_size = sizeof options,
        .optimizer = is_adam ? RONDO_OPTIMIZER_ADAMW : RONDO_OPTIMIZER_SGD,
        .learning_rate = is_adam || is_table ? 0.001 : 0.01,
        .momentum = is_adam || is_table ? 0.0 : 0.9,
        .weight_decay = is_adam ? 0.01 : 0.0,
        .scale_loss = get_dtype(how, name) == RONDO_DTYPE_F16,
        .average_ranks = how->averages,
        .shard_updates = how->shards,
        .bucket_bytes = how->bucket_bytes};
    check(rondo_builder_minimize(n->b, "loss", &options));
}

static rondo_binding make_feed(const char *name, rondo_dtype dtype, rondo_shape shape,
                               int64_t limit, int32_t rank) {
    rondo_binding feed = {.name = name};
    check(rondo_tensor_init(dtype, &shape, &feed.tensor));
    const int64_t count = rondo_shape_get_count(&shape);
    if (dtype == RONDO_DTYPE_F32) {
        fill(feed.tensor.data, count, 1.0f);
    }
    for (int64_t i = 0; i < count && dtype == RONDO_DTYPE_I64; ++i) {
        ((int64_t *)feed.tensor.data)[i] = (i * 7919 + 128 + rank * 4099) % limit;
    }
    return feed;
}

// The same on the device.
static rondo_binding move(rondo_device *device, const rondo_binding *feed) {
    rondo_binding moved = {.name = feed->name};
    rondo_stream *stream;
    check(rondo_tensor_init_device(device, feed->tensor.dtype, &feed->tensor.shape, &moved.tensor));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_tensor_copy(stream, &feed->tensor, &moved.tensor));
    check(rondo_stream_synchronize(stream));
    rondo_stream_destroy(stream);
    return moved;
}

static void print_scale(const char *name, rondo_device *device, rondo_executor *executor) {
    float scale = 0.0f;
    rondo_tensor here = {.dtype = RONDO_DTYPE_F32, .data = &scale};
    rondo_tensor there;
    rondo_stream *stream;
    check(rondo_executor_get_variable(executor, "train.scale", &there));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_tensor_copy(stream, &there, &here));
    check(rondo_stream_synchronize(stream));
    printf("%s: scale %g\n", name, (double)scale);
    rondo_tensor_deinit(&there);
    rondo_stream_destroy(stream);
}

static rondo_profile *begun;  // before captures, so that nodes have names

static void write_records(const setting *how) {
    rondo_profile_write_options json = {.struct_size = sizeof json, .format = RONDO_PROFILE_JSON};
    char path[256];
    const char *mark = strstr(how->records, "%d");
    const int before = mark != NULL ? (int)(mark - how->records) : (int)strlen(how->records);
    (void)snprintf(path, sizeof path, "%.*s", before, how->records);
    if (mark != NULL) {
        (void)snprintf(path + before, sizeof path - (size_t)before, "%d%s", (int)how->ranks.rank,
                       mark + 2);
    }
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(EXIT_FAILURE);
    }
    check(rondo_profile_write(begun, &json, show, file));
    (void)fclose(file);
}

static void profile(const setting *how, rondo_executor *executor, const rondo_binding *feeds,
                    rondo_binding *fetches, size_t fetch_count) {
    rondo_profile_write_options by_gpu = {.struct_size = sizeof by_gpu,
                                          .key = RONDO_PROFILE_BY_GPU};
    check(rondo_profile_start(begun));
    for (int i = 0; i < how->steps; ++i) {
        check(rondo_executor_run(executor, feeds, 2, fetches, fetch_count));
    }
    check(rondo_profile_stop(begun));
    if (how->records != NULL) {
        write_records(how);
    }
    if (how->profiles) {
        check(rondo_profile_write(begun, &by_gpu, show, stdout));
    }
}

// ---- the processor's time ---------------------------------------------------------------------

typedef rondo__cu_result (*launch_function)(rondo__cu_graph_exec, rondo__cu_stream);

static launch_function launch_in_driver;
static void *last_launched;  // a graph's executable

static rondo__cu_result note_launch(rondo__cu_graph_exec executable, rondo__cu_stream stream) {
    last_launched = executable;
    return launch_in_driver(executable, stream);
}

// From now on the executable of the last launch is known.
static void note_launches(void) {
    static rondo__cuda_api noting;
    const rondo__cuda_api *api;
    check(rondo__cuda_get_api(&api));
    launch_in_driver = api->cuGraphLaunch;
    noting = *api;
    noting.cuGraphLaunch = note_launch;
    rondo__cuda_set_api(&noting);
}

// A way to put a step on the executor's stream.
typedef struct way {
    const char *name;
    rondo_executor *executor;
    rondo_bound_run *bound;  // NULL: by names
    const rondo_binding *feeds;
    rondo_binding *fetches;
    size_t fetch_count;
} way;

static void put_step(const way *by) {
    check(by->bound != NULL ? rondo_bound_run_run_async(by->bound, NULL)
                            : rondo_executor_run_async(by->executor, by->feeds, 2, by->fetches,
                                                       by->fetch_count, NULL));
}

static void run_step(const way *by) {
    check(by->bound != NULL
              ? rondo_bound_run_run(by->bound)
              : rondo_executor_run(by->executor, by->feeds, 2, by->fetches, by->fetch_count));
}

// Steps that are waited for; then steps put on the stream, each when the one before is done, in
// turns with launches of the same executable by the driver alone, which are steps, too. All are on
// the executor's stream, since the driver takes longer where an executable goes to another one.
static void compare_with_launch(const setting *how, const char *name, const way *by) {
    rondo_stream *stream = by->executor->main.stream;
    const size_t count = (size_t)how->steps;
    double *times = make_values(4 * count);
    double *put = times + count;
    double *bare = put + count;
    double *bare_waited = bare + count;
    for (int i = -how->warm_up; i < how->steps; ++i) {
        const double start = get_us();
        run_step(by);
        times[i < 0 ? 0 : i] = get_us() - start;
    }
    for (int i = -how->warm_up; i < how->steps; ++i) {
        double start = get_us();
        put_step(by);
        put[i < 0 ? 0 : i] = get_us() - start;
        check(rondo_executor_wait(by->executor));
        start = get_us();
        const rondo__cu_result code =
            launch_in_driver(last_launched, rondo_stream_get_native(stream));
        bare[i < 0 ? 0 : i] = get_us() - start;
        check(rondo_stream_synchronize(stream));
        bare_waited[i < 0 ? 0 : i] = get_us() - start;
        if (code != 0) {
            fprintf(stderr, "cuGraphLaunch failed: %d\n", code);
            exit(EXIT_FAILURE);
        }
    }
    const double own = get_median(put, count);
    const double least = get_median(bare, count);
    printf(
        "%s on %s, %s: with the wait %.1f us, cuGraphLaunch of the same graph %.1f us; put on the "
        "stream %.1f us, cuGraphLaunch %.1f us, %+.1f us\n",
        name, how->device, by->name, get_median(times, count), get_median(bare_waited, count), own,
        least, own - least);
    free(times);
}

// What the processor spends on a step, by names and bound.
static void compare_submissions(const setting *how, const char *name, rondo_executor *executor,
                                const rondo_binding *feeds, rondo_binding *fetches,
                                size_t fetch_count) {
    way by = {"by names", executor, NULL, feeds, fetches, fetch_count};
    compare_with_launch(how, name, &by);
    by.name = "bound";
    check(rondo_bound_run_create(executor, &by.bound));
    for (size_t i = 0; i < 2; ++i) {
        check(rondo_bound_run_set_feed(by.bound, feeds[i].name, &feeds[i].tensor));
    }
    for (size_t i = 0; i < fetch_count; ++i) {
        check(rondo_bound_run_set_fetch(by.bound, fetches[i].name, &fetches[i].tensor));
    }
    compare_with_launch(how, name, &by);
    rondo_bound_run_destroy(by.bound);
}

static void run(const setting *how, const char *name) {
    net n = {.x_dtype = RONDO_DTYPE_F32};
    const rondo_builder_options opset = {.struct_size = sizeof opset, .opset = 23};
    rondo_executor_options options = {.struct_size = sizeof options,
                                      .dtype = get_dtype(how, name),
                                      .keep_f32 = &how->keep,
                                      .keep_f32_count = how->keep != NULL,
                                      .use_f16 = &how->use,
                                      .use_f16_count = how->use != NULL,
                                      .branches = how->branches,
                                      .memory_limit_bytes = (uint64_t)40 << 30};
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    float loss = 0.0f;
    float first = 0.0f;
    rondo_binding fetches[1 + GRADIENTS_MAX] = {
        {.name = "loss", .tensor = {.dtype = RONDO_DTYPE_F32, .data = &loss}}};
    size_t fetch_count = 1;
    double *times = calloc(2 * (size_t)how->steps, sizeof *times);
    double *again = times + how->steps;
    check(rondo_device_open(how->device, &device));
    check(rondo_builder_create(&opset, &n.b));
    build(&n, name);
    if (how->is_bare) {
        fetch_count += add_gradients(&n, device, fetches + 1);
    } else {
        add_minimize(how, &n, name);
    }
    check(rondo_builder_finish(n.b, &program));
    rondo_builder_destroy(n.b);
    if (how->averages) {
        check(rondo_communicator_create(device, NULL, &options.communicator));
    }
    check(rondo_executor_create(program, device, &options, &executor));
    rondo_communicator_destroy(options.communicator);  // the executor has it
    rondo_binding feeds[] = {make_feed("x", n.x_dtype, n.x, n.words, how->ranks.rank),
                             make_feed("y", n.y_dtype, n.y, n.classes, how->ranks.rank)};
    for (int i = 0; i < how->warm_up + how->steps; ++i) {
        const double start = get_us();
        check(rondo_executor_run(executor, feeds, 2, fetches, fetch_count));
        times[i < how->warm_up ? 0 : i - how->warm_up] = get_us() - start;
        first = i == 0 ? loss : first;
        if (how->losses > 0 && (i + 1) % how->losses == 0) {
            printf("%s %d: %.4f\n", name, i + 1, (double)loss);
        }
    }
    if (how->losses > 0 && get_dtype(how, name) == RONDO_DTYPE_F16) {
        print_scale(name, device, executor);
    }
    rondo_binding near[] = {move(device, &feeds[0]), move(device, &feeds[1])};
    rondo_tensor near_loss;
    check(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &SHAPE(0, 0), &near_loss));
    fetches[0].tensor = near_loss;
    double spent = 0.0;
    for (int i = 0; i < how->warm_up + how->steps; ++i) {
        spent = i == how->warm_up ? get_processor_us() : spent;
        const double start = get_us();
        check(rondo_executor_run(executor, near, 2, fetches, fetch_count));
        again[i < how->warm_up ? 0 : i - how->warm_up] = get_us() - start;
    }
    spent = (get_processor_us() - spent) / how->steps;
    if (begun != NULL) {
        profile(how, executor, near, fetches, fetch_count);
    }
    if (how->has_processor) {
        compare_submissions(how, name, executor, near, fetches, fetch_count);
    }
    if (how->shows) {
        check(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, show, stdout));
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    check(rondo_executor_get_stats(executor, &stats));
    qsort(times, (size_t)how->steps, sizeof *times, compare_doubles);
    qsort(again, (size_t)how->steps, sizeof *again, compare_doubles);
    const int tenth = how->steps / 10;
    char of_ranks[48] = "";
    if (how->ranks.size > 1) {
        (void)snprintf(of_ranks, sizeof of_ranks, ", rank %d of %d,", (int)how->ranks.rank,
                       (int)how->ranks.size);
    }
    printf(
        "%s%s%s on %s: replay %.0f us (%.0f to %.0f), processors %.0f us, run %.0f us (%.0f to "
        "%.0f), median of %d; "
        "%llu ops in %llu segments, %llu beside them; loss %.4f, then %.4f\n",
        name, how->is_bare ? ", gradients alone," : "", of_ranks, how->device,
        again[how->steps / 2], again[tenth], again[how->steps - 1 - tenth], spent,
        times[how->steps / 2], times[tenth], times[how->steps - 1 - tenth], how->steps,
        (unsigned long long)stats.op_count, (unsigned long long)stats.segment_count,
        (unsigned long long)stats.bypassed_count, (double)first, (double)loss);
    (void)fflush(stdout);
    for (size_t i = 0; i < 2; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
        rondo_tensor_deinit(&near[i].tensor);
    }
    for (size_t i = 0; i < fetch_count; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    free(times);
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

int main(int argc, char **argv) {
    setting how = {.device = "auto", .steps = 60, .dtype = RONDO_DTYPE_BOOL};
    const char *cases[16] = {"mlp", "cnn"};
    int given = 0;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--show") == 0) {
            how.shows = true;
        } else if (strcmp(argv[i], "--gradients") == 0) {
            how.is_bare = true;
        } else if (strcmp(argv[i], "--profile") == 0) {
            how.profiles = true;
        } else if (strcmp(argv[i], "--processor") == 0) {
            how.has_processor = true;
        } else if (strcmp(argv[i], "--average") == 0) {
            how.averages = true;
        } else if (strcmp(argv[i], "--shard") == 0) {
            how.shards = true;
        } else if (strcmp(argv[i], "--bucket") == 0 && i + 1 < argc) {
            how.bucket_bytes = (size_t)strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--branches") == 0 && i + 1 < argc) {
            how.branches = strcmp(argv[++i], "on") == 0 ? RONDO_BRANCHES_ON : RONDO_BRANCHES_OFF;
        } else if (strcmp(argv[i], "--records") == 0 && i + 1 < argc) {
            how.records = argv[++i];
        } else if (strcmp(argv[i], "--losses") == 0 && i + 1 < argc) {
            how.losses = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            fill_seed = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--dtype") == 0 && i + 1 < argc) {
            how.dtype = find_dtype(argv[++i]);
        } else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc) {
            how.keep = argv[++i];
        } else if (strcmp(argv[i], "--use") == 0 && i + 1 < argc) {
            how.use = argv[++i];
        } else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) {
            how.steps = atoi(argv[++i]);
        } else if (i == 1) {
            how.device = argv[i];
        } else if (given < 16) {
            cases[given++] = argv[i];
        }
    }
    how.warm_up = how.steps < WARM_UP_MAX ? how.steps : WARM_UP_MAX;
    char own[24];
    how.ranks.struct_size = sizeof how.ranks;
    check(rondo_find_ranks(&how.ranks));
    how.averages = how.averages || how.ranks.size > 1;
    if (strcmp(how.device, "cuda") == 0) {
        (void)snprintf(own, sizeof own, "cuda:%d", (int)how.ranks.local_rank);
        how.device = own;
    }
    if (how.steps < 1) {
        fprintf(stderr, "--steps wants a number from 1\n");
        return EXIT_FAILURE;
    }
    if (how.has_processor) {
        note_launches();
    }
    if (how.profiles || how.records != NULL) {
        check(rondo_profile_create(NULL, &begun));
    }
    for (int i = 0; i < (given > 0 ? given : 2); ++i) {
        run(&how, cases[i]);
    }
    rondo_profile_destroy(begun);
    return 0;
}
