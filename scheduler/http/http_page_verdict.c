/* What is wrong, at the top of the page: whoever opens it at night should not have to compare
 * tables. */
#include "http_page.h"

#include <string.h>

struct verdict {
    FILE *to;
    size_t count;
};

/* Begin a line, about a scope or "" for all; the caller writes the rest and "</li>". */
static void wrong(struct verdict *d, const char *scope)
{
    (void)fputs(d->count++ == 0 ? "<ul class=\"wrong\">\n<li>" : "<li>", d->to);
    page_escaped(d->to, scope);
    (void)fputs(scope[0] != '\0' ? ": " : "", d->to);
}

static void wrong_for(struct verdict *d, const char *scope, const char *before, int64_t ms,
                      const char *after)
{
    wrong(d, scope);
    (void)fputs(before, d->to);
    page_duration(d->to, ms);
    (void)fprintf(d->to, "%s</li>\n", after);
}

static void wrong_count(struct verdict *d, const char *scope, const char *what, double count)
{
    if (count > 0) {
        wrong(d, scope);
        (void)fprintf(d->to, "%s: %.0f</li>\n", what, count);
    }
}

static void replica_judge(struct verdict *d, const struct view *v, size_t i)
{
    const struct scope_snapshot *s = &v->scopes[i];
    const struct request_leader *l = page_leader(v, s->name);
    const char *why = "";
    bool ready = view_scope_is_ready(s, VIEW_READY_ANY, &why);
    if (!ready || s->problem[0] != '\0') {
        wrong(d, s->name);
        (void)fprintf(d->to, "%s%s", ready ? "" : lifecycle_state_name(s->state),
                      ready ? "" : " on this replica: ");
        page_escaped(d->to, s->problem[0] != '\0' ? s->problem : why);
        (void)fputs("</li>\n", d->to);
    }
    /* Under a hold nobody should. */
    if (l != NULL && !l->leads && s->state != LIFECYCLE_ACTIVE && v->facts[i].holds <= 0) {
        wrong(d, s->name);
        (void)fputs("nobody leads it</li>\n", d->to);
    }
}

static void facts_judge(struct verdict *d, const char *scope, const struct view_facts *f)
{
    if (!f->known) {
        wrong(d, scope);
        (void)fputs("the database tells nothing of it</li>\n", d->to);
        return;
    }
    if (f->due_lag_s > PAGE_DUE_LAG_S && f->holds <= 0) {
        wrong_for(d, scope, "firings have been due for ", (int64_t)(f->due_lag_s * 1000),
                  " and are not planned");
    }
    wrong_count(d, scope, "schedules with a problem", f->problems);
    wrong_count(d, scope, "holds that stand", f->holds);
    if (f->outbox_oldest_s > PAGE_OUTBOX_OLD_S) {
        wrong_for(d, scope, "messages have waited for Kafka for ",
                  (int64_t)(f->outbox_oldest_s * 1000), "");
    }
}

/* The list of `reportctl status`: all scopes, and what belongs to none. */
static void problems_judge(struct verdict *d, const struct problem_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct problem *p = &list->rows[i];
        char subject[sizeof p->kind + sizeof p->subject];
        (void)snprintf(subject, sizeof subject, "%s %s", p->kind, p->subject);
        wrong(d, subject);
        page_escaped(d->to, p->text);
        (void)fputs("<br><span class=\"note\">", d->to);
        page_escaped(d->to, p->remedy);
        (void)fputs("</span></li>\n", d->to);
    }
    if (list->more) {
        wrong(d, "");
        (void)fputs("and more: <code>reportctl status</code></li>\n", d->to);
    }
}

static void loop_judge(struct verdict *d, const struct view_loop *loop)
{
    if (view_loop_turns(loop)) {
        return;
    }
    wrong(d, "");
    (void)fprintf(d->to, "loop %s", loop->name);
    if (loop->scope[0] != '\0') {
        (void)fputs(" of ", d->to);
        page_escaped(d->to, loop->scope);
    }
    (void)fputs(" has not turned for ", d->to);
    page_duration(d->to, loop->silent_ms);
    (void)fputs("</li>\n", d->to);
}

void page_verdict(FILE *to, const struct view *view)
{
    struct verdict d = {.to = to};
    size_t known = 0;
    double queue_holds = 0; /* every scope tells the same of them */
    for (size_t i = 0; i < view->count; i++) {
        known += view->facts[i].known ? 1 : 0;
        queue_holds =
            view->facts[i].queue_holds > queue_holds ? view->facts[i].queue_holds : queue_holds;
    }
    for (size_t i = 0; i < view->loop_count; i++) {
        loop_judge(&d, &view->loops[i]);
    }
    if (known == 0) {
        wrong(&d, "");
        (void)fputs("the database has not been read of late: what waits is not known</li>\n", to);
    }
    for (size_t i = 0; i < view->count; i++) {
        replica_judge(&d, view, i);
        if (known > 0 && !view->problems_known) {
            facts_judge(&d, view->scopes[i].name, &view->facts[i]);
        }
    }
    if (view->problems_known) {
        problems_judge(&d, &view->problems);
    } else {
        wrong_count(&d, "", "queues that are held", queue_holds);
    }
    (void)fputs(d.count > 0 ? "</ul>\n" : "<p class=\"fine\">Nothing is known to be wrong.</p>\n",
                to);
}
