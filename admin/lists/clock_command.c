/* reportctl clocks: each replica's clock against the database's. */
#include "commands.h"

#include "list_command.h"
#include "session.h"

enum exit_code clocks_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT member, at AS \"at~\", offset_us / 1000000.0::float8 AS \"offset_s\","
        " round_trip_us / 1000000.0::float8 AS \"round_trip_s\","
        " CASE WHEN synchronised THEN 'yes' WHEN NOT synchronised THEN 'no' ELSE 'unknown' END"
        " AS \"synchronised|SYNCED\","
        " last_step_at AS \"last_step_at~\", last_step_us / 1000000.0::float8 AS"
        " \"last_step_s|STEPPED BY?\", last_verdict AS \"last_verdict|VERDICT\", boot AS \"boot-\""
        " FROM reports.v_member_clock ORDER BY member LIMIT $1";
    char limit[24];
    const char *values[] = {limit};
    session_limit(in, limit);
    return list_command_run(
        in, &(struct list_command){.sql = sql,
                                   .count = 1,
                                   .values = values,
                                   .empty = "No scheduler has compared its clock within a day."});
}
