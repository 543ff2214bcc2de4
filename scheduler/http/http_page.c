/* The page for people: one document, without script, light or dark as the reader has it, in columns
 * where there is room and otherwise one value a line under each scope. */
#include "http_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<title>report-scheduler</title>\n<style>\n"
    ":root { color-scheme: light dark; --text: #222; --paper: #fff; --soft: #5a5a5a;"
    " --line: #ddd; --bad: #a00000; --good: #006000; --link: #0645ad }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #ddd; --paper: #161616;"
    " --soft: #a0a0a0; --line: #3a3a3a; --bad: #ff8a80; --good: #81c784; --link: #8ab4f8 } }\n"
    "body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em;"
    " color: var(--text); background: var(--paper) }\n"
    "a { color: var(--link) } h1 { font-size: 1.4em; margin-bottom: 0; overflow-wrap: anywhere }"
    " h2 { font-size: 1.1em; margin: 1.6em 0 .3em }\n"
    ".note { color: var(--soft); margin-top: .3em }\n"
    ".wrong { border-left: .3em solid var(--bad); padding-left: 1.6em; overflow-wrap: anywhere }"
    " .fine { border-left: .3em solid var(--good); padding-left: .6em }\n"
    "table { border-collapse: collapse; width: 100% } summary { cursor: pointer }\n"
    "th, td { text-align: left; padding: .3em 1em .3em 0; border-bottom: 1px solid var(--line);"
    " vertical-align: top; overflow-wrap: break-word }\n"
    "td.n { font-variant-numeric: tabular-nums; white-space: nowrap }\n"
    "td.bad { color: var(--bad); font-weight: bold } td.good { color: var(--good) }\n"
    "@media (max-width: 50em) { table, tbody, tr { display: block } th, td:empty { display: none }"
    " tr { border-bottom: 1px solid var(--line); padding: .4em 0 }"
    " tr:first-child { display: none }"
    " td { display: grid; grid-template-columns: 9em 1fr; border: 0; padding: .1em 0;"
    " overflow-wrap: anywhere } td.n { white-space: normal }"
    " td::before { content: attr(data-l); color: var(--soft); font-weight: normal }"
    " td:not([data-l])::before { content: \"\" } }\n"
    "</style></head><body>\n";

void page_escaped(FILE *to, const char *text)
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

void page_duration(FILE *to, int64_t ms)
{
    static const struct {
        int64_t seconds, small_seconds;
        const char *large, *small;
    } units[] = {{86400, 3600, "d", "h"}, {3600, 60, "h", "min"}, {60, 1, "min", "s"}};
    int64_t s = ms / 1000;
    size_t i = 0;
    while (i < 3 && s < units[i].seconds) {
        i++;
    }
    if (i == 3) {
        (void)fprintf(to, "%" PRId64 " s", s);
        return;
    }
    int64_t rest = s % units[i].seconds / units[i].small_seconds;
    (void)fprintf(to, "%" PRId64 " %s", s / units[i].seconds, units[i].large);
    if (rest > 0) {
        (void)fprintf(to, " %" PRId64 " %s", rest, units[i].small);
    }
}

void page_cell(FILE *to, const char *class, const char *label, const char *text)
{
    (void)fprintf(to, class[0] == '\0' ? "<td%s data-l=\"%s\">" : "<td class=\"%s\" data-l=\"%s\">",
                  class, label);
    page_escaped(to, text);
    (void)fputs("</td>", to);
}

const struct request_leader *page_leader(const struct view *view, const char *scope)
{
    for (size_t i = 0; i < view->leader_count; i++) {
        if (strcmp(view->leaders[i].scope, scope) == 0) {
            return &view->leaders[i];
        }
    }
    return NULL;
}

/* Where this replica leads it knows better than the database a few seconds ago. */
static void leader_cells(FILE *to, const struct view *v, const struct scope_snapshot *scope)
{
    const struct request_leader *l = page_leader(v, scope->name);
    bool ours = scope->state == LIFECYCLE_ACTIVE;
    if (l == NULL && !ours) {
        page_cell(to, "", "leader", v->leaders_at.ns == 0 ? "not known" : "no such scope");
        (void)fputs("<td></td>", to);
        return;
    }
    bool leads = ours || l->leads;
    page_cell(to, leads ? "" : "bad", "leader", ours ? v->member : leads ? l->member : "nobody");
    (void)fprintf(to, "<td class=\"n\" data-l=\"generation\">%" PRId64 ":%" PRId64 "</td>",
                  ours ? scope->incarnation : l->incarnation,
                  ours ? scope->generation : l->generation);
}

static void scope_row(FILE *to, const struct view *v, const struct scope_snapshot *scope)
{
    const char *why = "";
    char state[64];
    bool ready = view_scope_is_ready(scope, VIEW_READY_ANY, &why);
    (void)snprintf(state, sizeof state, "%s%s", lifecycle_state_name(scope->state),
                   scope->state == LIFECYCLE_ACTIVE ? ": leads"
                   : ready                          ? ": can take over"
                                                    : "");
    (void)fputs("<tr>", to);
    page_cell(to, "", "scope", scope->name);
    page_cell(to, ready ? "good" : "bad", "this replica", state);
    (void)fputs("<td class=\"n\" data-l=\"for\">", to);
    page_duration(to, instant_ms_between(scope->since, v->now));
    (void)fputs("</td>", to);
    leader_cells(to, v, scope);
    page_cell(to, scope->has_database ? "" : "bad", "database",
              scope->has_database ? "connected" : "no connection");
    page_cell(to, "", "problem", scope->problem[0] != '\0' ? scope->problem : why);
    (void)fputs("</tr>\n", to);
}

static void scopes(FILE *to, const struct view *v)
{
    (void)fputs("<h2>Scopes</h2>\n<table><tr><th>scope</th><th>this replica</th><th>for</th>"
                "<th>leader</th><th>generation</th><th>database</th><th>problem</th></tr>\n",
                to);
    for (size_t i = 0; i < v->count; i++) {
        scope_row(to, v, &v->scopes[i]);
    }
    (void)fputs("</table>\n<p class=\"note\">Generations as incarnation:generation.", to);
    if (v->leaders_at.ns != 0) {
        (void)fputs(" Leaders elsewhere as the database named them ", to);
        page_duration(to, instant_ms_between(v->leaders_at, v->now));
        (void)fputs(" ago.", to);
    }
    (void)fputs("</p>\n", to);
}

static void number_cell(FILE *to, const char *label, uint64_t value)
{
    (void)fprintf(to, "<td class=\"n\" data-l=\"%s\">%" PRIu64 "</td>", label, value);
}

static void relay_row(FILE *to, const struct scope_snapshot *scope)
{
    const struct relay_snapshot *r = &scope->relay;
    (void)fputs("<tr>", to);
    page_cell(to, "", "scope", scope->name);
    page_cell(to, r->kafka_reachable ? "good" : "bad", "Kafka",
              r->kafka_reachable ? "reachable" : "away");
    number_cell(to, "published", (uint64_t)r->published);
    number_cell(to, "in flight", (uint64_t)r->in_flight);
    number_cell(to, "failed", (uint64_t)r->failed);
    number_cell(to, "buried", (uint64_t)r->buried);
    (void)fputs("</tr>\n", to);
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
    (void)fputs(
        some ? "</table>\n<p class=\"note\">Messages since this replica leads. Buried: Kafka "
               "refuses them for good; their jobs run all the same.</p>\n"
             : "",
        to);
}

/* Folded away while all turn. */
static void loops(FILE *to, const struct view *v)
{
    int64_t slowest = 0;
    for (size_t i = 0; i < v->loop_count; i++) {
        slowest = v->loops[i].silent_ms > slowest ? v->loops[i].silent_ms : slowest;
    }
    (void)fprintf(to,
                  "<h2>Loops</h2>\n<details%s><summary>%zu, the slowest turned %" PRId64
                  " ms ago</summary>\n<table><tr><th>loop</th><th>scope</th><th>turns</th>"
                  "<th>last turn</th></tr>\n",
                  view_is_live(v) ? "" : " open", v->loop_count, slowest);
    for (size_t i = 0; i < v->loop_count; i++) {
        const struct view_loop *l = &v->loops[i];
        (void)fputs("<tr>", to);
        page_cell(to, "", "loop", l->name);
        page_cell(to, "", "scope", l->scope);
        page_cell(to, view_loop_turns(l) ? "good" : "bad", "turns",
                  view_loop_turns(l) ? "yes" : "no");
        (void)fprintf(to, "<td class=\"n\" data-l=\"last turn\">%" PRId64 " ms ago</td></tr>\n",
                      l->silent_ms);
    }
    (void)fputs("</table></details>\n", to);
}

char *view_page(const struct view *view, const char *version, size_t *ret_size)
{
    char *text = NULL;
    char stamp[CLOCK_STAMP_MAX];
    FILE *to = open_memstream(&text, ret_size);
    if (to == NULL) {
        return NULL;
    }
    clock_stamp(stamp);
    (void)fputs(head, to);
    (void)fputs("<h1>", to);
    page_escaped(to, view->member);
    (void)fputs("</h1>\n<p class=\"note\">report-scheduler ", to);
    page_escaped(to, version);
    (void)fprintf(to,
                  ", as this replica sees it at %.19sZ. <a href=\"/livez\">livez</a> "
                  "<a href=\"/readyz\">readyz</a> <a href=\"/metrics\">metrics</a></p>\n",
                  stamp);
    page_verdict(to, view);
    scopes(to, view);
    page_facts(to, view);
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
