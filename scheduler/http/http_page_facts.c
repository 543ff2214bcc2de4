/* What the page shows of the database: the figures that the observer keeps as metrics, so that a
 * page asks nobody and waits for nothing. */
#include "http_page.h"
#include "scheduler_metrics.h"

static double figure(enum scheduler_metric which, const char *scope, const char *label)
{
    double value = 0;
    return metric_peek(&SCHEDULER_FAMILIES[which], scope, label, &value) ? value : 0;
}

struct view_facts view_facts_read(const char *scope)
{
    double due_lag_s = 0;
    bool known = metric_peek(&SCHEDULER_FAMILIES[SCHEDULER_DUE_LAG], scope, NULL, &due_lag_s);
    return (struct view_facts){
        .known = known,
        .due_lag_s = due_lag_s,
        .queued = figure(SCHEDULER_JOBS, scope, "queued"),
        .running = figure(SCHEDULER_JOBS, scope, "running"),
        .waiting =
            figure(SCHEDULER_JOBS, scope, "waiting") + figure(SCHEDULER_JOBS, scope, "retry_wait"),
        .problems = figure(SCHEDULER_PROBLEMS, scope, NULL),
        .holds = figure(SCHEDULER_HOLDS, scope, NULL),
        .queue_holds =
            (double)metric_count(&SCHEDULER_FAMILIES[SCHEDULER_QUEUE_HOLD_SECONDS], scope),
        .outbox = figure(SCHEDULER_OUTBOX_MESSAGES, scope, NULL),
        .outbox_oldest_s = figure(SCHEDULER_OUTBOX_OLDEST, scope, NULL),
    };
}

static void count_cell(FILE *to, const char *label, double value, bool bad)
{
    (void)fprintf(to, "<td class=\"n%s\" data-l=\"%s\">%.0f</td>", bad ? " bad" : "", label, value);
}

void page_facts(FILE *to, const struct view *v)
{
    (void)fputs("<h2>Work, as the database tells</h2>\n<table><tr><th>scope</th>"
                "<th class=\"n\">not planned for</th><th class=\"n\">queued</th>"
                "<th class=\"n\">running</th><th class=\"n\">waiting</th>"
                "<th class=\"n\">problems</th><th class=\"n\">holds</th>"
                "<th class=\"n\">outbox</th></tr>\n",
                to);
    for (size_t i = 0; i < v->count; i++) {
        const struct view_facts *f = &v->facts[i];
        (void)fputs("<tr>", to);
        page_cell(to, "", "scope", v->scopes[i].name);
        if (!f->known) {
            (void)fputs("<td class=\"bad\" colspan=\"7\">not known</td></tr>\n", to);
            continue;
        }
        (void)fprintf(to, "<td class=\"n%s\" data-l=\"not planned for\">",
                      f->due_lag_s > PAGE_DUE_LAG_S ? " bad" : "");
        page_duration(to, (int64_t)(f->due_lag_s * 1000));
        (void)fputs("</td>", to);
        count_cell(to, "queued", f->queued, false);
        count_cell(to, "running", f->running, false);
        count_cell(to, "waiting", f->waiting, false);
        count_cell(to, "problems", f->problems, f->problems > 0);
        count_cell(to, "holds", f->holds, f->holds > 0);
        count_cell(to, "outbox", f->outbox, f->outbox_oldest_s > PAGE_OUTBOX_OLD_S);
        (void)fputs("</tr>\n", to);
    }
    (void)fputs(
        "</table>\n<p class=\"note\">Unfinished jobs, schedules with a problem, messages for "
        "Kafka; the same from every replica. Names and "
        "reasons: <code>reportctl status</code>.</p>\n",
        to);
}
