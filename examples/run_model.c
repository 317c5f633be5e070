// Run an ONNX model from C: eager first, then captured, then replayed, all by itself.
//
//   run_model examples/models/squeezenet1_1/model.onnx
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

static int check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

int main(int argc, char **argv) {
    rondo_device *device = NULL;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    rondo_binding feed = {0};
    rondo_binding fetch = {0};
    rondo_port input = {.struct_size = sizeof input};
    rondo_port output = {.struct_size = sizeof output};
    int status = EXIT_FAILURE;
    if (argc != 2) {
        fprintf(stderr, "usage: run_model MODEL (with one input and one output)\n");
        return 2;
    }

    if (!check(rondo_device_open("auto", &device)) ||
        !check(rondo_program_load_onnx(argv[1], &program)) ||
        !check(rondo_program_get_input(program, 0, &input)) ||
        !check(rondo_program_get_output(program, 0, &output)) ||
        !check(rondo_executor_create(program, device, NULL, &executor))) {
        goto clean_up;
    }
    rondo_shape shape = {.rank = input.rank};
    for (int d = 0; d < input.rank; d++) {
        shape.extent[d] = input.extent[d] >= 0 ? input.extent[d] : 1;
    }
    feed.name = input.name;
    fetch.name = output.name;
    if (!check(rondo_tensor_init(input.dtype, &shape, &feed.tensor))) {
        goto clean_up;
    }
    for (int run = 1; run <= 4; run++) {
        rondo_run_times times = {.struct_size = sizeof times};
        if (!check(rondo_executor_run(executor, &feed, 1, &fetch, 1)) ||
            !check(rondo_executor_get_times(executor, &times))) {
            goto clean_up;
        }
        printf("run %d on %s: %-8s %.3f ms\n", run, rondo_device_get_name(device),
               times.was_replayed ? "replayed" : "eager", (double)times.latency_ns * 1e-6);
    }
    status = EXIT_SUCCESS;

clean_up:
    rondo_tensor_deinit(&feed.tensor);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return status;
}
