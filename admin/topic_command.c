/* Kafka topics: made and deleted, with no database. */
#include "commands.h"

#include <stdio.h>

#include "dispatch.h"

struct topic_run {
    struct dispatch_options options;
    instant deadline;
};

static struct topic_run topic_begin(const struct invocation *in)
{
    return (struct topic_run){
        .options = {.brokers = command_text(in, "--brokers"), .client_id = "reportctl"},
        .deadline = instant_add_ms(clock_now(), in->timeout_s * 1000),
    };
}

static enum exit_code topic_fail(struct invocation *in, enum status s, const struct error *err)
{
    const char *name = command_text(in, "name");
    switch (s) {
    case STATUS_CONFLICT:
        return command_fail(in, EXIT_USAGE, "topic \"%s\" exists already", name);
    case STATUS_NOT_FOUND:
        return command_fail(in, EXIT_NOT_FOUND, "topic \"%s\" does not exist", name);
    case STATUS_INVALID:
        return command_fail(in, EXIT_USAGE, "topic \"%s\": %s", name, err->text);
    case STATUS_AGAIN:
    case STATUS_TIMEOUT:
        return command_fail(in, EXIT_FAILED, "topic \"%s\": %s; check --brokers %s", name,
                            err->text, command_text(in, "--brokers"));
    case STATUS_OK:
    case STATUS_FENCED:
    case STATUS_HELD:
    case STATUS_CORRUPT:
    case STATUS_FULL:
    case STATUS_FATAL:
        break;
    }
    return command_fail(in, EXIT_FAILED, "topic \"%s\": %s", name, err->text);
}

enum exit_code topic_create_command(struct invocation *in)
{
    struct topic_run run = topic_begin(in);
    struct error err = {0};
    const struct topic_spec spec = {
        .name = command_text(in, "name"),
        .partitions = (int)command_int(in, "--partitions"),
        .replication = (int)command_int(in, "--replication"),
        .retention_ms = command_int(in, "--retention-hours") * 3600000,
    };
    enum status s = topic_create(&run.options, &spec, run.deadline, &err);
    if (s != STATUS_OK) {
        return topic_fail(in, s, &err);
    }
    (void)fprintf(in->out, "topic %s made: %d partitions, replication %d\n", spec.name,
                  spec.partitions, spec.replication);
    return EXIT_DONE;
}

enum exit_code topic_delete_command(struct invocation *in)
{
    struct topic_run run = topic_begin(in);
    struct error err = {0};
    enum status s = topic_delete(&run.options, command_text(in, "name"), run.deadline, &err);
    if (s != STATUS_OK) {
        return topic_fail(in, s, &err);
    }
    (void)fprintf(in->out, "topic %s deleted\n", command_text(in, "name"));
    return EXIT_DONE;
}
