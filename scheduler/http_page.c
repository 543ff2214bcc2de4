/* The page for people. */
#include "http_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>report-scheduler</title>\n<style>\n"
    "body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;"
    " color: #222; background: #fff }\n"
    "h1 { font-size: 1.4em; margin-bottom: 0 } h2 { font-size: 1.1em; margin-top: 1.6em }\n"
    "p.note { color: #555; margin-top: 0 }\n"
    "table { border-collapse: collapse; width: 100% }\n"
    "th, td { text-align: left; padding: .3em .8em .3em 0; border-bottom: 1px solid #ddd;"
    " vertical-align: top }\n"
    "td.n { font-variant-numeric: tabular-nums; white-space: nowrap }\n"
    "td.bad { color: #a00000; font-weight: bold } td.good { color: #006000 }\n"
    "</style></head><body>\n";

/* Names and problems come from outside: a server's error text, a user's scope. */
static void escaped(FILE *to, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '&':
            (void)fputs("&amp;", to);
            break;
        case '<':
            (void)fputs("&lt;", to);
            break;
        case '>':
            (void)fputs("&gt;", to);
            break;
        case '"':
            (void)fputs("&quot;", to);
            break;
        case '\'':
            (void)fputs("&#39;", to);
            break;
        default:
            (void)fputc(*p, to);
        }
    }
}

static void duration(FILE *to, int64_t ms)
{
    int64_t s = ms / 1000;
    if (s < 60) {
        (void)fprintf(to, "%" PRId64 " s", s);
    } else if (s < 3600) {
        (void)fprintf(to, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    } else if (s < 86400) {
        (void)fprintf(to, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    } else {
        (void)fprintf(to, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
    }
}

/* A cell whose text is not ours. */
static void cell(FILE *to, const char *class, const char *text)
{
    (void)fprintf(to, "<td%s%s%s>", class[0] == '\0' ? "" : " class=\"", class,
                  class[0] == '\0' ? "" : "\"");
    escaped(to, text);
    (void)fputs("</td>", to);
}

static const struct request_leader *leader_of(const struct view *v, const char *scope)
{
    for (size_t i = 0; i < v->leader_count; i++) {
        if (strcmp(v->leaders[i].scope, scope) == 0) {
            return &v->leaders[i];
        }
    }
    return NULL;
}

/* Where this replica leads it knows better than the database a few seconds ago. */
static void leader_cells(FILE *to, const struct view *v, const struct scope_snapshot *scope)
{
    const struct request_leader *l = leader_of(v, scope->name);
    bool ours = scope->state == LIFECYCLE_ACTIVE;
    if (l == NULL && !ours) {
        (void)fprintf(to, "<td>%s</td><td></td>",
                      v->leaders_at.ns == 0 ? "not known" : "the scope has no fence row");
        return;
    }
    bool leads = ours || l->leads;
    cell(to, leads ? "" : "bad", ours ? v->member : leads ? l->member : "nobody");
    (void)fprintf(to, "<td class=\"n\">%" PRId64 ":%" PRId64 "</td>",
                  ours ? scope->incarnation : l->incarnation,
                  ours ? scope->generation : l->generation);
}

static void scope_row(FILE *to, const struct view *v, const struct scope_snapshot *scope)
{
    const char *why = "";
    bool ready = view_scope_is_ready(scope, VIEW_READY_ANY, &why);
    (void)fputs("<tr>", to);
    cell(to, "", scope->name);
    cell(to, ready ? "good" : "bad", lifecycle_state_name(scope->state));
    (void)fputs("<td class=\"n\">", to);
    duration(to, instant_ms_between(scope->since, v->now));
    (void)fputs("</td>", to);
    leader_cells(to, v, scope);
    cell(to, scope->has_database ? "" : "bad", scope->has_database ? "connected" : "no connection");
    cell(to, "", scope->problem[0] != '\0' ? scope->problem : why);
    (void)fputs("</tr>\n", to);
}

static void relay_row(FILE *to, const struct scope_snapshot *scope)
{
    const struct relay_snapshot *r = &scope->relay;
    (void)fputs("<tr>", to);
    cell(to, "", scope->name);
    cell(to, r->kafka_reachable ? "good" : "bad", r->kafka_reachable ? "reachable" : "away");
    (void)fprintf(to,
                  "<td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRId64
                  "</td><td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRIu64 "</td></tr>\n",
                  (uint64_t)r->published, (int64_t)r->in_flight, (uint64_t)r->failed,
                  (uint64_t)r->buried);
}

static void relays(FILE *to, const struct view *v)
{
    bool some = false;
    for (size_t i = 0; i < v->count; i++) {
        if (v->scopes[i].has_relay && !some) {
            (void)fputs("<h2>Relays</h2>\n<table><tr><th>scope</th><th>Kafka</th><th>published</th>"
                        "<th>in flight</th><th>failed</th><th>buried</th></tr>\n",
                        to);
            some = true;
        }
        if (v->scopes[i].has_relay) {
            relay_row(to, &v->scopes[i]);
        }
    }
    (void)fputs(some ? "</table>\n" : "", to);
}

static void loops(FILE *to, const struct view *v)
{
    (void)fputs("<h2>Loops</h2>\n<table><tr><th>loop</th><th>scope</th><th>turns</th><th>last "
                "turn</th></tr>\n",
                to);
    for (size_t i = 0; i < v->loop_count; i++) {
        const struct view_loop *l = &v->loops[i];
        (void)fputs("<tr>", to);
        cell(to, "", l->name);
        cell(to, "", l->scope);
        cell(to, view_loop_turns(l) ? "good" : "bad", view_loop_turns(l) ? "yes" : "no");
        (void)fprintf(to, "<td class=\"n\">%" PRId64 " ms ago</td></tr>\n", l->silent_ms);
    }
    (void)fputs("</table>\n", to);
}

char *view_page(const struct view *view, const char *version, size_t *ret_size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, ret_size);
    if (to == NULL) {
        return NULL;
    }
    (void)fputs(head, to);
    (void)fputs("<h1>report-scheduler ", to);
    escaped(to, view->member);
    (void)fputs("</h1>\n<p class=\"note\">version ", to);
    escaped(to, version);
    (void)fputs(", as this replica sees it now. <a href=\"/livez\">livez</a> "
                "<a href=\"/readyz\">readyz</a> <a href=\"/metrics\">metrics</a></p>\n"
                "<h2>Scopes</h2>\n<table><tr><th>scope</th><th>this replica</th><th>for</th>"
                "<th>leader</th><th>incarnation:generation</th><th>database</th>"
                "<th>problem</th></tr>\n",
                to);
    for (size_t i = 0; i < view->count; i++) {
        scope_row(to, view, &view->scopes[i]);
    }
    (void)fputs("</table>\n", to);
    if (view->leaders_at.ns != 0) {
        (void)fputs("<p class=\"note\">Leaders elsewhere as the database named them ", to);
        duration(to, instant_ms_between(view->leaders_at, view->now));
        (void)fputs(" ago.</p>\n", to);
    }
    relays(to, view);
    loops(to, view);
    (void)fputs("</body></html>\n", to);
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
