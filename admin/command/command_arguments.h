/* Arguments and texts that several rows of command_table.c share; only that file reads this. */
#ifndef RS_COMMAND_ARGUMENTS_H
#define RS_COMMAND_ARGUMENTS_H

#include "command.h"

#define READER   "report_reader"
#define OPERATOR "report_operator"
#define AUTHOR   "report_author"

#define LIMIT(n)                                                                                   \
    {                                                                                              \
        .name = "--limit", .placeholder = "N", .kind = PARAMETER_OPTION, .value = VALUE_INT,       \
        .min = 1, .max = 100000, .fallback = n, .help = "how many rows at most."                   \
    }
#define SCOPE                                                                                      \
    {                                                                                              \
        .name = "--scope", .placeholder = "SCOPE", .kind = PARAMETER_OPTION, .value = VALUE_NAME,  \
        .help = "only this scope."                                                                 \
    }
#define BROKERS                                                                                    \
    {                                                                                              \
        .name = "--brokers", .placeholder = "LIST", .kind = PARAMETER_OPTION,                      \
        .help = "Kafka's bootstrap servers, host:port separated by commas."                        \
    }
#define KAFKA_CONFIG                                                                               \
    {                                                                                              \
        .name = "--config", .placeholder = "FILE", .kind = PARAMETER_OPTION,                       \
        .help = "a scheduler.conf: its brokers, unless --brokers names others, and its TLS, SASL " \
                "and secret files."                                                                \
    }
#define TOPIC                                                                                      \
    {                                                                                              \
        .name = "name", .placeholder = "NAME", .kind = PARAMETER_WORD, .required = true,           \
        .help = "the topic."                                                                       \
    }

#define SCHEDULE                                                                                   \
    {                                                                                              \
        .name = "schedule", .placeholder = "SCHEDULE", .kind = PARAMETER_WORD,                     \
        .value = VALUE_NAME, .required = true, .help = "the schedule."                             \
    }
#define JOB                                                                                        \
    {                                                                                              \
        .name = "job", .placeholder = "JOB", .kind = PARAMETER_WORD, .required = true,             \
        .help = "the job's id, or SCHEDULE:KEY."                                                   \
    }
#define QUEUE                                                                                      \
    {                                                                                              \
        .name = "queue", .placeholder = "QUEUE", .kind = PARAMETER_WORD, .value = VALUE_NAME,      \
        .required = true, .help = "the queue."                                                     \
    }
#define CALENDAR_SOURCE                                                                            \
    {                                                                                              \
        .name = "--calendar", .placeholder = "FILE|NAME", .kind = PARAMETER_OPTION,                \
        .required = true,                                                                          \
        .help = "a file (with a slash, or ending in .csv or .ics), or the name of a shipped one: " \
                "weekends, us-federal, nyse, uk, target, de, fr, jp."                              \
    }
#define CALENDAR_NAME(is_required)                                                                 \
    {                                                                                              \
        .name = "name", .placeholder = "CALENDAR", .kind = PARAMETER_WORD, .value = VALUE_NAME,    \
        .required = is_required, .help = "the calendar."                                           \
    }
/* A command that asks first has it; ask.c reads it. */
#define YES                                                                                        \
    {                                                                                              \
        .name = "--yes", .kind = PARAMETER_FLAG,                                                   \
        .help = "do not ask; for scripts, which have nobody to answer."                            \
    }
#define REASON(text)                                                                               \
    {                                                                                              \
        .name = "--reason", .placeholder = "TEXT", .kind = PARAMETER_OPTION, .help = text          \
    }
/* What asks something of the leader has these two; request_commands.c reads them. */
#define WAIT                                                                                       \
    {                                                                                              \
        .name = "--wait", .placeholder = "SECONDS", .kind = PARAMETER_OPTION, .value = VALUE_INT,  \
        .min = 0, .max = 3600, .fallback = "30",                                                   \
        .help = "how long the leader may take; 0: do not wait for the answer."                     \
    }
#define REQUEST_ID                                                                                 \
    {                                                                                              \
        .name = "--request-id", .placeholder = "UUID", .kind = PARAMETER_OPTION,                   \
        .value = VALUE_UUID,                                                                       \
        .help = "identity of the request; made up when not given. Repeated, it gets the first "    \
                "answer."                                                                          \
    }
#define REQUEST                                                                                    \
    "The request is a row that the leader carries out and answers in one transaction. If none "    \
    "answers within --wait it expires and is not carried out later (exit code 4). A connection "   \
    "that breaks is opened again for up to --timeout and the same id is asked again, so it costs " \
    "nothing."

#endif
