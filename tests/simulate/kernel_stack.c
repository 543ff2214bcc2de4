/* How stacks are switched. With AddressSanitizer by swapcontext, and it is told which stack is in
 * use; without it by the plain jumps of the C library, which ask the kernel for nothing. */
#undef _FORTIFY_SOURCE /* its longjmp takes another stack for a corrupt one */
#include "kernel_fiber.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STACKS_ARE_WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define STACKS_ARE_WATCHED 1
#endif

#ifdef STACKS_ARE_WATCHED
/* As <sanitizer/common_interface_defs.h> has them. */
void __sanitizer_start_switch_fiber(void **fake, const void *stack, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **stack, size_t *size);

static const void *program_stack;
static size_t program_size;

static void leave(struct fiber_side *from, const struct fiber_side *to, bool for_ever)
{
    const void *stack = to->stack == NULL ? program_stack : to->stack;
    size_t size = to->stack == NULL ? program_size : to->size;
    __sanitizer_start_switch_fiber(for_ever ? NULL : &from->fake, stack, size);
}

void fiber_side_arrive(struct fiber_side *here)
{
    const void *from = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(here->fake, &from, &size);
    if (program_stack == NULL) {
        program_stack = from; /* the first switch comes from the program's own stack */
        program_size = size;
    }
}

void fiber_switch(struct fiber_side *from, struct fiber_side *to, bool for_ever)
{
    leave(from, to, for_ever);
    if (swapcontext(&from->context, &to->context) != 0) {
        abort();
    }
    fiber_side_arrive(from);
}
#else
void fiber_side_arrive(struct fiber_side *here)
{
    (void)here;
}

void fiber_switch(struct fiber_side *from, struct fiber_side *to, bool for_ever)
{
    (void)for_ever;
    if (_setjmp(from->jump) != 0) {
        return; /* back again */
    }
    if (to->jumps) {
        _longjmp(to->jump, 1);
    }
    to->jumps = true; /* it begins at the top of its stack */
    (void)setcontext(&to->context);
    abort();
}
#endif
