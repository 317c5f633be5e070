// bench.h — what the measurements in C share: giving up, medians, the kernel of a step on either
// backend, the bare driver.
//
// Exit statuses: 1 is a missed goal, 2 a measurement that could not be taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "rondo/rondo.h"

static inline void must(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        fprintf(stderr, "%s: %s %s\n", error->call, error->message, error->driver_name);
        exit(2);
    }
}

static inline int compare_doubles(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

// Sorts the values; the least is values[0] after it.
static inline double get_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

static inline double *make_values(size_t count) {
    double *values = calloc(count, sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "no memory for %zu values\n", count);
        exit(2);
    }
    return values;
}

// What a launch calls: the kernel `name` of a CUDA C text, on the host the function that does the
// same.
static inline void *get_kernel(rondo_device *device, const char *text, const char *name,
                               rondo_host_function function) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = function};
    if (!rondo_device_is_host(device)) {
        must(rondo__device_get_function(device, text, NULL, 0, name, &kernel.address));
    }
    return kernel.address;
}

// A function of libcuda, to be called beside the library.
static inline void find_in_driver(const char *name, void *out_function) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *address = library != NULL ? dlsym(library, name) : NULL;
    if (address == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    memcpy(out_function, &address, sizeof address);
}

static inline double get_resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1) {
        fprintf(stderr, "cannot read /proc/self/statm\n");
        exit(2);
    }
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}
