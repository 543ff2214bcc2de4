/* Kafka topics: made and deleted, with no database. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "dispatch.h"
#include "scheduler_settings.h"

struct topic_run {
    struct dispatch_options options;
    instant deadline;
    struct scheduler_settings *settings; /* NULL: no --config */
    const char *properties[SETTING_LIST_MAX + 1];
    const char *secret_files[SETTING_LIST_MAX + 1];
};

static void items_take(const char *to[SETTING_LIST_MAX + 1], const struct setting_list *from)
{
    for (size_t i = 0; i < from->count; i++) {
        to[i] = from->items[i];
    }
}

static enum exit_code topic_begin(struct invocation *in, struct topic_run *ret)
{
    const char *path = command_text(in, "--config");
    struct error err = {0};
    *ret = (struct topic_run){
        .options = {.brokers = command_text(in, "--brokers"), .client_id = "reportctl"},
        .deadline = instant_add_ms(clock_now(), in->timeout_s * 1000),
    };
    if (path == NULL && ret->options.brokers == NULL) {
        return command_fail(in, EXIT_USAGE,
                            "which Kafka? give --brokers LIST, or --config FILE of a scheduler");
    }
    if (path == NULL) {
        return EXIT_DONE;
    }
    void *settings = NULL;
    if (settings_read(&scheduler_spec, path, &settings, NULL, &err) != STATUS_OK) {
        return command_fail(in, EXIT_USAGE, "%s", err.text);
    }
    ret->settings = settings;
    items_take(ret->properties, &ret->settings->kafka_properties);
    items_take(ret->secret_files, &ret->settings->kafka_secret_files);
    ret->options.properties = ret->properties;
    ret->options.secret_files = ret->secret_files;
    if (ret->options.brokers == NULL) {
        ret->options.brokers = ret->settings->kafka_brokers;
    }
    return EXIT_DONE;
}

static enum exit_code topic_fail(struct invocation *in, const struct topic_run *run, enum status s,
                                 const struct error *err)
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
        return command_fail(in, EXIT_FAILED, "topic \"%s\": %s; check the brokers %s", name,
                            err->text, run->options.brokers);
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
    struct topic_run run;
    struct error err = {0};
    enum exit_code code = topic_begin(in, &run);
    if (code != EXIT_DONE) {
        return code;
    }
    const struct topic_spec spec = {
        .name = command_text(in, "name"),
        .partitions = (int)command_int(in, "--partitions"),
        .replication = (int)command_int(in, "--replication"),
        .retention_ms = command_int(in, "--retention-hours") * 3600000,
    };
    enum status s = topic_create(&run.options, &spec, run.deadline, &err);
    code = s == STATUS_OK ? EXIT_DONE : topic_fail(in, &run, s, &err);
    free(run.settings);
    if (s != STATUS_OK) {
        return code;
    }
    (void)fprintf(in->out, "topic %s made: %d partitions, replication %d\n", spec.name,
                  spec.partitions, spec.replication);
    return EXIT_DONE;
}

enum exit_code topic_delete_command(struct invocation *in)
{
    struct topic_run run;
    struct error err = {0};
    enum exit_code code = topic_begin(in, &run);
    if (code != EXIT_DONE) {
        return code;
    }
    enum status s = topic_delete(&run.options, command_text(in, "name"), run.deadline, &err);
    code = s == STATUS_OK ? EXIT_DONE : topic_fail(in, &run, s, &err);
    free(run.settings);
    if (s != STATUS_OK) {
        return code;
    }
    (void)fprintf(in->out, "topic %s deleted\n", command_text(in, "name"));
    return EXIT_DONE;
}
