/* An HTTP server with some routes, and a client that sees every byte. */
#ifndef RS_FIXTURE_HTTP_H
#define RS_FIXTURE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "http.h"

#define SOON_MS       5000
#define SUBJECT_TOKEN "s3cret-token-for-tests"
#define LARGE_BYTES   ((size_t)15 * 1024 * 1024) /* of GET /large */
#define LATER_MAX     8

extern struct http_server *subject; /* the running server */
extern char subject_token_path[64]; /* its token's file; "" without one */

instant instant_in_ms(int64_t ms);

/* cmocka's set-ups and tear-down, and what they start with. */
int subject_with_token(void **state);
int subject_without_token(void **state);
int subject_end(void **state);
struct http_options subject_options(const char *token_file);

/* GET /later keeps its exchanges: wait until there are n, and answer them all. */
void later_wait(size_t n);
void later_answer(const char *text);

int client_dial(void);
void client_say(int fd, const char *text, size_t n);
/* Everything until the server closes; fails after ms. The buffer is the next call's. */
size_t client_hear(int fd, int64_t ms, const char **ret_text);
/* One request on a connection of its own; `head` without its line end; body NULL: none. */
const char *client_ask(const char *head, const char *body, size_t body_size);

unsigned answer_status(const char *answer);
const char *answer_body(const char *answer);
bool text_has(const char *text, const char *part); /* whatever the case */

#endif
