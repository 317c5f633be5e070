// rondo devices — which devices there are, and why one cannot be used.
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

static void print_device(const rondo_device_info *info) {
    char total[32];
    char free_memory[32];
    if (!info->available) {
        printf("%-8s not available: %s\n", info->name, info->reason);
        return;
    }
    printf("%-8s %s\n", info->name, info->description);
    printf("         %s memory", cli_format_bytes(info->memory_bytes, total, sizeof total));
    if (info->free_bytes > 0) {
        printf(", %s free", cli_format_bytes(info->free_bytes, free_memory, sizeof free_memory));
    }
    printf("; %d %s", info->compute_units,
           info->arch_major > 0 ? "multiprocessors" : "hardware threads");
    if (info->arch_major > 0) {
        printf("; compute capability %d.%d; driver for CUDA %d.%d", info->arch_major,
               info->arch_minor, info->driver_version / 1000, info->driver_version % 1000 / 10);
    }
    printf("\n");
}

static int run_devices(const cli_command *command, int argc, char **argv) {
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, NULL, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    size_t count = 0;
    if (rondo_device_list(NULL, 0, &count) != RONDO_STATUS_OK) {
        return cli_fail_with_record();
    }
    rondo_device_info *infos = calloc(count > 0 ? count : 1, sizeof *infos);
    if (infos == NULL) {
        cli_print_error("out of memory");
        return CLI_FAILED;
    }
    int status = CLI_DONE;
    size_t present = 0;
    if (rondo_device_list(infos, count, &present) != RONDO_STATUS_OK) {
        status = cli_fail_with_record();
    } else {
        for (size_t i = 0; i < present && i < count; i++) {
            print_device(&infos[i]);
        }
    }
    free(infos);
    return status;
}

const cli_command cli_command_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the devices, and why one cannot be used",
    .details = "",
    .run = run_devices,
};
