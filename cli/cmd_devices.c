// rondo devices — which devices there are, and why one cannot be used.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "json_writer.h"

typedef struct devices_settings {
    bool is_json;
} devices_settings;

static void print_device(const rondo_device_info *info) {
    char total[32];
    char available[48] = "";
    char gpu[96] = "";
    if (!info->available) {
        cli_say(CLI_RESULT, "%-8s not available: %s", info->name, info->reason);
        return;
    }
    if (info->free_bytes > 0) {
        char bytes[32];
        snprintf(available, sizeof available, ", %s free",
                 cli_format_bytes(info->free_bytes, bytes, sizeof bytes));
    }
    if (info->arch_major > 0) {
        snprintf(gpu, sizeof gpu, "; compute capability %d.%d; driver for CUDA %d.%d",
                 info->arch_major, info->arch_minor, info->driver_version / 1000,
                 info->driver_version % 1000 / 10);
    }
    cli_say(CLI_RESULT, "%-8s %s", info->name, info->description);
    cli_say(CLI_RESULT, "         %s memory%s; %d %s%s",
            cli_format_bytes(info->memory_bytes, total, sizeof total), available,
            info->compute_units, info->arch_major > 0 ? "multiprocessors" : "hardware threads",
            gpu);
}

static void write_device(cli_json *json, const rondo_device_info *info) {
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "name", info->name);
    cli_json_flag(json, "available", info->available);
    if (!info->available) {
        cli_json_text(json, "reason", info->reason);
        cli_json_end(json, '}');
        return;
    }
    cli_json_text(json, "description", info->description);
    cli_json_count(json, "memory_bytes", info->memory_bytes);
    if (info->free_bytes > 0) {
        cli_json_count(json, "free_bytes", info->free_bytes);
    }
    cli_json_count(json, "compute_units", (uint64_t)info->compute_units);
    if (info->arch_major > 0) {
        char text[32];
        snprintf(text, sizeof text, "%d.%d", info->arch_major, info->arch_minor);
        cli_json_text(json, "compute_capability", text);
        cli_json_count(json, "driver_version", (uint64_t)info->driver_version);
    }
    cli_json_end(json, '}');
}

static void show_devices(const devices_settings *settings, const rondo_device_info *infos,
                         size_t count) {
    if (!settings->is_json) {
        for (size_t i = 0; i < count; i++) {
            print_device(&infos[i]);
        }
        return;
    }
    cli_json json = {.file = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "rondo", rondo_version_get_text());
    cli_json_begin(&json, "devices", '[');
    for (size_t i = 0; i < count; i++) {
        write_device(&json, &infos[i]);
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}

static int run_devices(const cli_command *command, int argc, char **argv) {
    devices_settings settings = {.is_json = false};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    size_t count = 0;
    if (rondo_device_list(NULL, 0, &count) != RONDO_STATUS_OK) {
        return cli_fail_with_record();
    }
    rondo_device_info *infos = calloc(count > 0 ? count : 1, sizeof *infos);
    if (infos == NULL) {
        (void)cli_fail_memory();
        return CLI_FAILED;
    }
    infos->struct_size = sizeof *infos;
    int status = CLI_DONE;
    size_t present = 0;
    if (rondo_device_list(infos, count, &present) != RONDO_STATUS_OK) {
        status = cli_fail_with_record();
    } else {
        show_devices(&settings, infos, present < count ? present : count);
    }
    free(infos);
    return status;
}

static const cli_option devices_options[] = {
    {"--json", NULL, CLI_SWITCH, offsetof(devices_settings, is_json), NULL, "print them as JSON"},
};

const cli_command cli_command_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the devices, and why one cannot be used",
    .details = "",
    .options = devices_options,
    .option_count = sizeof devices_options / sizeof devices_options[0],
    .run = run_devices,
};
