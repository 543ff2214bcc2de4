#include "process_metrics.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "version.h"

static const double ACK_BOUNDS[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                    0.25,  0.5,    1,     2.5,  5,     10,   30};

/* table: exempt from the length limit */
const struct metric_family PROCESS_FAMILIES[PROCESS_METRICS] = {
    [PROCESS_BUILD_INFO] = {.name = "report_build_info",
                            .kind = METRIC_GAUGE,
                            .help = "1, with the version of the program.",
                            .labels = {"version"}},
    [PROCESS_START_TIME] = {.name = "process_start_time_seconds",
                            .kind = METRIC_GAUGE,
                            .help = "Start of the process since the Unix epoch."},
    [PROCESS_RESIDENT_BYTES] = {.name = "process_resident_memory_bytes",
                                .kind = METRIC_GAUGE,
                                .help = "Resident memory."},
    [PROCESS_CPU_SECONDS] = {.name = "process_cpu_seconds_total",
                             .kind = METRIC_COUNTER,
                             .help = "CPU time of the process, user and system."},
    [PROCESS_OPEN_FDS] = {.name = "process_open_fds",
                          .kind = METRIC_GAUGE,
                          .help = "Open file descriptors."},
    [PROCESS_LOG_DROPPED] = {.name = "report_log_lines_dropped_total",
                             .kind = METRIC_COUNTER,
                             .help = "Lines of the log that nobody took from stderr in time."},
    [PROCESS_DATABASE_SECONDS] =
        {.name = "report_database_call_seconds",
         .kind = METRIC_HISTOGRAM,
         .help = "Time from sending a statement to its answer or deadline, by the function called.",
         .labels = {"statement"},
         .bounds = METRIC_CALL_BOUNDS,
         .bound_count = 14},
    [PROCESS_DATABASE_FAILURES] =
        {.name = "report_database_call_failures_total",
         .kind = METRIC_COUNTER,
         .help = "Statements that ended in an error or at their deadline, by what the caller made "
                 "of it: again, timeout, invalid, corrupt.",
         .labels = {"statement", "status"}},
    [PROCESS_KAFKA_ACK_SECONDS] =
        {.name = "report_kafka_ack_seconds",
         .kind = METRIC_HISTOGRAM,
         .help =
             "Time from handing a message over to the brokers' acknowledgement; failed ones are "
             "not in it.",
         .bounds = ACK_BOUNDS,
         .bound_count = sizeof ACK_BOUNDS / sizeof ACK_BOUNDS[0]},
};

static struct metric *get(enum process_metric which)
{
    return metric_get(&PROCESS_FAMILIES[which], NULL, NULL);
}

/* The process ---------------------------------------------------------------------------------- */

/* Fields of /proc/self/stat, numbered as in proc(5). False: not readable. */
static bool stat_read(double *ret_cpu_s, double *ret_start_s, double *ret_bytes)
{
    char text[1024] = "";
    FILE *f = fopen("/proc/self/stat", "re");
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
    if (f != NULL) {
        (void)fclose(f);
    }
    text[n] = '\0';
    unsigned long user = 0;
    unsigned long system = 0;
    unsigned long long start = 0;
    long pages = 0;
    /* The name in parentheses may hold anything. 14: utime, 15: stime, 22: starttime, 24: rss. */
    const char *behind = strrchr(text, ')');
    if (behind == NULL ||
        sscanf(behind + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu "
               "%*u %ld",
               &user, &system, &start, &pages) != 4) {
        return false;
    }
    double ticks = (double)sysconf(_SC_CLK_TCK);
    *ret_cpu_s = (double)(user + system) / ticks;
    *ret_start_s = (double)start / ticks;
    *ret_bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
    return true;
}

/* When the machine booted, since the epoch; 0: not readable. No clock of ours is read for it. */
static double boot_time(void)
{
    char line[256];
    unsigned long long at = 0;
    FILE *f = fopen("/proc/stat", "re");
    while (f != NULL && at == 0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "btime %llu", &at);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return (double)at;
}

static int open_fds(void)
{
    int n = -3; /* ".", "..", and the directory itself */
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL) {
        return -1;
    }
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

void process_metrics_collect(void *ignored)
{
    double cpu_s = 0;
    double start_s = 0;
    double bytes = 0;
    (void)ignored;
    metric_set(get(PROCESS_LOG_DROPPED), (double)log_dropped());
    metric_set(metric_get(&PROCESS_FAMILIES[PROCESS_BUILD_INFO], RS_VERSION, NULL), 1);
    if (stat_read(&cpu_s, &start_s, &bytes)) {
        double boot = boot_time();
        metric_set(get(PROCESS_CPU_SECONDS), cpu_s);
        metric_set(get(PROCESS_RESIDENT_BYTES), bytes);
        if (boot > 0) {
            metric_set(get(PROCESS_START_TIME), boot + start_s);
        }
    } else {
        metric_clear(get(PROCESS_RESIDENT_BYTES));
    }
    int fds = open_fds();
    if (fds >= 0) {
        metric_set(get(PROCESS_OPEN_FDS), fds);
    } else {
        metric_clear(get(PROCESS_OPEN_FDS));
    }
}

/* Database calls ------------------------------------------------------------------------------- */

static size_t name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

void statement_name(const char *sql, char ret_name[STATEMENT_NAME_MAX])
{
    static const char schema[] = "reports.";
    const char *table = NULL;
    for (const char *at = strstr(sql, schema); at != NULL; at = strstr(at, schema)) {
        bool quoted = at > sql && at[-1] == '\'';
        at += sizeof schema - 1;
        size_t n = name_length(at);
        if (n > 0 && at[n] == '(') {
            (void)snprintf(ret_name, STATEMENT_NAME_MAX, "%.*s", (int)n, at);
            return;
        }
        table = table == NULL && !quoted ? at : table;
    }
    if (table != NULL) {
        (void)snprintf(ret_name, STATEMENT_NAME_MAX, "read_%.*s", (int)name_length(table), table);
    } else {
        (void)snprintf(ret_name, STATEMENT_NAME_MAX, "%s",
                       strncmp(sql, "LISTEN ", 7) == 0 ? "listen" : "other");
    }
}

void process_database_call(const char *sql, instant sent, enum status s)
{
    char name[STATEMENT_NAME_MAX];
    statement_name(sql, name);
    metric_observe(metric_get(&PROCESS_FAMILIES[PROCESS_DATABASE_SECONDS], name, NULL),
                   metric_seconds_since(sent, clock_now()));
    if (s != STATUS_OK) {
        metric_add(metric_get(&PROCESS_FAMILIES[PROCESS_DATABASE_FAILURES], name, status_name(s)),
                   1);
    }
}
