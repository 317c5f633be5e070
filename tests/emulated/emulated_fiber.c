// Fibers: on x86-64 a switch saves what a function call must keep; elsewhere ucontext does it, with
// a system call each time.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/emulated_fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 << 10 };

static char *get_stack(unsigned int index) {
    static char *stacks;
    if (stacks == NULL) {
        stacks = mmap(NULL, (size_t)STACK_BYTES * EMULATED_FIBERS, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) {
            abort();
        }
    }
    return stacks + (size_t)STACK_BYTES * index;
}

#ifdef __x86_64__

static void *g_stack_pointers[EMULATED_FIBERS];

// It goes back by a jump: processors predict that a return leads to where its call came from, which
// here it never does.
void emulated_fiber_swap(void **save, void *load);
__asm__(
    ".text\n"
    ".local emulated_fiber_swap\n"
    ".type emulated_fiber_swap, @function\n"
    "emulated_fiber_swap:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq "
    "%r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    popq %rcx\n    jmpq *%rcx\n"
    ".size emulated_fiber_swap, . - emulated_fiber_swap\n");

void emulated_fiber_start(unsigned int index, void (*main)(void)) {
    // As if the swap had saved six registers, with `main` to return to; its stack is then as after
    // a call.
    uint64_t *top = (uint64_t *)(void *)(get_stack(index) + STACK_BYTES) - 2;
    top[0] = (uint64_t)(uintptr_t)main;
    top[1] = 0;
    for (int i = 1; i <= 6; i++) {
        top[-i] = 0;
    }
    g_stack_pointers[index] = top - 6;
}

void emulated_fiber_switch(unsigned int from, unsigned int to) {
    emulated_fiber_swap(&g_stack_pointers[from], g_stack_pointers[to]);
}

#else

static ucontext_t g_contexts[EMULATED_FIBERS];

void emulated_fiber_start(unsigned int index, void (*main)(void)) {
    (void)getcontext(&g_contexts[index]);
    g_contexts[index].uc_stack.ss_sp = get_stack(index);
    g_contexts[index].uc_stack.ss_size = STACK_BYTES;
    g_contexts[index].uc_link = NULL;
    makecontext(&g_contexts[index], main, 0);
}

void emulated_fiber_switch(unsigned int from, unsigned int to) {
    (void)swapcontext(&g_contexts[from], &g_contexts[to]);
}

#endif
