/* reportctl: parse, run the row, say what happened by the exit code. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define TIMEOUT_USUAL_S 15

/* Widths of UTF-8 text are needed also under LANG=C (cron, systemd); numbers stay in the C form. */
static void locale_choose(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

int main(int argc, char **argv)
{
    locale_choose();
    const char *database = getenv("REPORTCTL_DATABASE");
    struct invocation in = {.database = database != NULL ? database : "",
                            .format = OUTPUT_TABLE,
                            .timeout_s = TIMEOUT_USUAL_S,
                            .out = stdout,
                            .errors = stderr};
    enum exit_code code = EXIT_DONE;
    if (command_parse(argc - 1, (const char *const *)argv + 1, &in, &code)) {
        code = in.command->run(&in);
    }
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fputs("reportctl: the output could not be written\n", stderr);
        code = code == EXIT_DONE ? EXIT_FAILED : code;
    }
    return (int)code;
}
