/* Commands that ask no server: the lifecycle table, questions to a calendar, and the help. */
#include "commands.h"

#include "calendar_command.h"
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

enum exit_code roll_command(struct invocation *in)
{
    struct roll_arguments arguments = {
        .calendar = command_text(in, "--calendar"),
        .convention = command_text(in, "--convention"),
        .date = command_text(in, "date"),
    };
    return exit_code_of(roll_command_run(&arguments, in->out, in->errors));
}

enum exit_code business_day_command(struct invocation *in)
{
    struct business_day_arguments arguments = {
        .calendar = command_text(in, "--calendar"),
        .add = command_text(in, "--add"),
        .first = command_text(in, "--first"),
        .last = command_text(in, "--last"),
        .date = command_text(in, "date"),
    };
    return exit_code_of(business_day_command_run(&arguments, in->out, in->errors));
}
