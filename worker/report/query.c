#include "query.h"

#include <string.h>

struct query_scan query_scan_start(const char *query)
{
    return (struct query_scan){.at = query, .before = '\0'};
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static size_t name_length(const char *p)
{
    size_t n = 0;
    while (is_name_byte(p[n])) {
        n++;
    }
    return n;
}

/* Behind the closing quote; a doubled quote does not close. */
static const char *skip_quoted(const char *p, char quote, bool backslash)
{
    for (p++; *p != '\0'; p++) {
        if (backslash && *p == '\\' && p[1] != '\0') {
            p++;
        } else if (*p == quote) {
            if (p[1] != quote) {
                return p + 1;
            }
            p++;
        }
    }
    return p;
}

static const char *skip_block_comment(const char *p)
{
    int depth = 0;
    while (*p != '\0') {
        if (p[0] == '/' && p[1] == '*') {
            depth++;
            p += 2;
        } else if (p[0] == '*' && p[1] == '/') {
            depth--;
            p += 2;
            if (depth == 0) {
                return p;
            }
        } else {
            p++;
        }
    }
    return p;
}

/* $tag$ ... $tag$; returns p + 1 when no dollar quote begins here ($1 is a parameter). */
static const char *skip_dollar_quoted(const char *p)
{
    size_t tag = name_length(p + 1);
    if (p[1 + tag] != '$' || (tag > 0 && p[1] >= '0' && p[1] <= '9')) {
        return p + 1;
    }
    size_t mark = tag + 2;
    for (const char *end = p + mark; *end != '\0'; end++) {
        if (*end == '$' && strncmp(end, p, mark) == 0) {
            return end + mark;
        }
    }
    return p + strlen(p);
}

/* The whole of the thing at p in which nothing is substituted; at least one byte. */
static const char *skip_opaque(const char *p, char before)
{
    if (*p == '\'') {
        return skip_quoted(p, '\'', false);
    }
    if (*p == '"') {
        return skip_quoted(p, '"', false);
    }
    if (p[0] == '-' && p[1] == '-') {
        return p + strcspn(p, "\n");
    }
    if (p[0] == '/' && p[1] == '*') {
        return skip_block_comment(p);
    }
    if (*p == '$' && !is_name_byte(before)) {
        return skip_dollar_quoted(p);
    }
    if (p[0] == ':' && (p[1] == ':' || p[1] == '=')) {
        return p + 2;
    }
    if (is_name_byte(*p)) {
        size_t n = name_length(p);
        /* E'...' is the one word that changes how the literal behind it ends. */
        if (n == 1 && (*p == 'E' || *p == 'e') && p[1] == '\'') {
            return skip_quoted(p + 1, '\'', true);
        }
        while (p[n] == '$' || is_name_byte(p[n])) { /* a$b$ is one identifier, no dollar quote */
            n++;
        }
        return p + n;
    }
    return p + 1;
}

/* Is there a parameter at p? Its length with colon and quotes, or 0. */
static size_t parameter_at(const char *p, struct query_piece *piece)
{
    if (*p != ':') {
        return 0;
    }
    bool quoted = p[1] == '\'' || p[1] == '"';
    const char *name = p + (quoted ? 2 : 1);
    size_t n = name_length(name);
    if (n == 0 || (quoted && name[n] != p[1])) {
        return 0;
    }
    piece->kind = !quoted ? QUERY_BARE : p[1] == '\'' ? QUERY_LITERAL : QUERY_IDENTIFIER;
    piece->text = name;
    piece->size = n;
    return quoted ? n + 3 : n + 1;
}

bool query_scan_next(struct query_scan *scan, struct query_piece *ret_piece)
{
    if (*scan->at == '\0') {
        return false;
    }
    size_t n = parameter_at(scan->at, ret_piece);
    if (n > 0) {
        scan->before = scan->at[n - 1];
        scan->at += n;
        return true;
    }
    const char *start = scan->at;
    const char *p = start;
    char before = scan->before;
    struct query_piece next;
    while (*p != '\0' && (p == start || parameter_at(p, &next) == 0)) {
        p = skip_opaque(p, before);
        before = p[-1];
    }
    *ret_piece =
        (struct query_piece){.kind = QUERY_TEXT, .text = start, .size = (size_t)(p - start)};
    scan->at = p;
    scan->before = before;
    return true;
}
