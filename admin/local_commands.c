/* Commands that ask no server: the lifecycle table and the help. */
#include "commands.h"

#include "lifecycle.h"

enum exit_code lifecycle_command(struct invocation *in)
{
    lifecycle_print(in->out, in->format == OUTPUT_MARKDOWN ? LIFECYCLE_MARKDOWN : LIFECYCLE_TEXT);
    return EXIT_DONE;
}

enum exit_code help_command(struct invocation *in)
{
    if (command_flag(in, "--markdown")) {
        command_print_markdown(in->out);
    } else if (command_flag(in, "--man")) {
        command_print_manual(in->out);
    } else {
        command_print_overview(in->out);
    }
    return EXIT_DONE;
}
