// Start from a plan file where there is one that fits, and make it otherwise; both twice, compared.
//
//   start_faster examples/models/squeezenet1_1/model.onnx squeezenet.rondo [DEVICE]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rondo/models.h>

typedef struct model {
    rondo_program *program;
    rondo_executor *executor;
    rondo_binding feed, fetch;
} model;

static int check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

// One run with zeros; the model has one input and one output.
static int run(model *m) {
    rondo_port input = {.struct_size = sizeof input}, output = {.struct_size = sizeof output};
    if (!check(rondo_program_get_input(m->program, 0, &input)) ||
        !check(rondo_program_get_output(m->program, 0, &output))) {
        return 0;
    }
    rondo_shape shape = {.rank = input.rank};
    for (int d = 0; d < input.rank; d++) {
        shape.extent[d] = input.extent[d] >= 0 ? input.extent[d] : 1;
    }
    m->feed.name = input.name;
    m->fetch.name = output.name;
    return check(rondo_tensor_init(input.dtype, &shape, &m->feed.tensor)) &&
           check(rondo_executor_run(m->executor, &m->feed, 1, &m->fetch, 1));
}

static int is_there(const char *path) {
    FILE *file = fopen(path, "rb");
    return file != NULL && fclose(file) == 0;
}

static int start(const char *model_path, const char *plan_path, rondo_device *device, model *m) {
    if (is_there(plan_path)) {
        const rondo_status status =
            rondo_executor_load(plan_path, device, NULL, NULL, &m->program, &m->executor);
        if (status == RONDO_STATUS_OK) {
            return run(m);
        }
        // It was made by another version or for another device, and is made anew.
        printf("%s\n", rondo_error_get_last()->message);
        if (status != RONDO_STATUS_UNSUPPORTED) {
            return 0;
        }
    }
    return check(rondo_program_load_onnx(model_path, &m->program)) &&
           check(rondo_executor_create(m->program, device, NULL, &m->executor)) && run(m) &&
           check(rondo_executor_save(m->executor, plan_path));
}

static void stop(model *m) {
    rondo_tensor_deinit(&m->feed.tensor);
    rondo_tensor_deinit(&m->fetch.tensor);
    rondo_executor_destroy(m->executor);
    rondo_program_destroy(m->program);
}

static double now_ms(void) {
    struct timespec now;
    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    model models[2] = {{0}};
    rondo_device *device = NULL;
    int is_done = 1;
    if (argc < 3) {
        fprintf(stderr, "usage: start_faster MODEL PLAN [DEVICE] (with one input and output)\n");
        return 2;
    }
    is_done = check(rondo_device_open(argc > 3 ? argv[3] : "auto", &device));
    for (int i = 0; i < 2 && is_done; i++) {
        const double begin = now_ms();
        is_done = start(argv[1], argv[2], device, &models[i]);
        printf("start %d: first result after %.1f ms\n", i + 1, now_ms() - begin);
    }
    if (is_done) {
        const rondo_tensor *a = &models[0].fetch.tensor, *b = &models[1].fetch.tensor;
        is_done = memcmp(a->data, b->data, rondo_tensor_get_bytes(a)) == 0;
        printf("results are %s\n", is_done ? "the same" : "different");
    }
    stop(&models[0]);
    stop(&models[1]);
    rondo_device_release(device);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
