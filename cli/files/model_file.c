// SPDX-License-Identifier: Apache-2.0
#include "model_file.h"

#include <stdio.h>
#include <string.h>

bool cli_is_plan_file(const char *path) {
    static const char magic[] = "RondoPln";
    char start[sizeof magic - 1];
    FILE *file = fopen(path, "rb");
    const bool is = file != NULL && fread(start, sizeof start, 1, file) == 1 &&
                    memcmp(start, magic, sizeof start) == 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    return is;
}

rondo_status cli_model_load(const char *path, const rondo_load_options *options, bool allow_remake,
                            rondo_program **out_program) {
    const rondo_plan_options plan = {.struct_size = sizeof plan, .allow_remake = allow_remake};
    return cli_is_plan_file(path) ? rondo_program_load_plan(path, &plan, out_program)
                                  : rondo_program_load_onnx_with(path, options, out_program);
}

const char *cli_model_hint(const char *path, char *room, size_t room_bytes) {
    char inside[1024];
    const int length = snprintf(inside, sizeof inside, "%s/model.onnx", path);
    FILE *file = length > 0 && (size_t)length < sizeof inside ? fopen(inside, "rb") : NULL;
    if (file == NULL) {
        return "";
    }
    (void)fclose(file);
    const int written = snprintf(room, room_bytes, "; name the model in it: %s", inside);
    return written > 0 && (size_t)written < room_bytes ? room : "";
}
