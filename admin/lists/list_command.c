#include "list_command.h"

#include "known_names.h"
#include "session.h"

enum exit_code list_command_run(struct invocation *in, const struct list_command *list)
{
    struct session s;
    struct table *t = NULL;
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, list->scope);
    }
    if (code == EXIT_DONE) {
        code = queue_name_check(&s, list->queue);
    }
    if (code == EXIT_DONE) {
        code = session_select(&s, list->sql, list->count, list->values, &t);
    }
    if (code == EXIT_DONE) {
        code = session_print_list(&s, t, command_int(in, "--limit"), list->empty);
    }
    session_close(&s);
    return code;
}
