#include "ask.h"

#include <string.h>
#include <unistd.h>

enum exit_code ask_first(struct session *s, const char *question)
{
    char line[16] = "";
    if (command_flag(s->in, "--yes")) {
        return EXIT_DONE;
    }
    if (isatty(STDIN_FILENO) != 1) {
        return command_fail(s->in, EXIT_USAGE,
                            "nobody can be asked here, and nothing was done; add --yes to answer");
    }
    (void)fprintf(s->in->out, "%s (yes/no) ", question);
    (void)fflush(s->in->out);
    if (fgets(line, sizeof line, stdin) == NULL || strcmp(line, "yes\n") != 0) {
        return command_fail(s->in, EXIT_REFUSED, "not answered with yes; nothing was done");
    }
    s->deadline = instant_add_ms(clock_now(), s->in->timeout_s * 1000);
    return EXIT_DONE;
}
