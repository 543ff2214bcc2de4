/* The functions behind the rows of command_table.c. Each prints its answer on in->out, one line on
 * in->errors when it fails, and returns the exit code. Thread: main. Blocks: until --timeout. */
#ifndef RS_COMMANDS_H
#define RS_COMMANDS_H

#include "command.h"

command_function status_command, leaders_command, schedules_command, schedule_command,
    occurrences_command, jobs_command, job_command, workers_command, outbox_command, events_command;
command_function trigger_command, pause_command, resume_command, cancel_command, retry_command,
    requests_command, handoff_command, breaker_close_command;
command_function catchup_show_command, catchup_discard_command;
command_function hold_command, release_hold_command, holds_command, queue_hold_command,
    queue_resume_command, queues_command;
command_function clocks_command;
command_function tz_status_command, tz_drift_command;
command_function fence_show_command, fence_rebase_command, fence_audit_command;
command_function verify_command, why_command;
command_function next_command, migrate_command;
command_function plan_command, forecast_command, backfill_command;
command_function roll_command, business_day_command;
command_function calendar_import_command, calendar_list_command, calendar_show_command,
    calendar_check_command;
command_function lifecycle_command, check_config_command, config_reference_command,
    topic_create_command, topic_delete_command, help_command;

#endif
