/* Members of an election for tests: in this process, or as a child that can be killed and stopped.
 * Needs RS_ZK (`dev/stack env`). Failures are the test's failures. */
#ifndef RS_FIXTURE_COORD_H
#define RS_FIXTURE_COORD_H

#include <sys/types.h>

#include "coord.h"
#include "coord_zk_client.h"

#define TEST_SESSION_MS 3000
#define LONG_SESSION_MS 10000 /* the longest for this tick: where none is to end by slowness */
#define TEST_TICK_MS    500   /* of the local stack's servers */
#define TEST_MARGIN_MS  500

struct member {
    struct coord *coord;
    struct inbox *events;
    unsigned scope;
    struct coord_event last; /* the last event that expect_event took */
};

/* A root of its own for each test: none sees another's nodes. */
void test_root(char ret_root[64]);

/* Take part in scope "main" below root; servers NULL: RS_ZK. Connected and told so on return. */
void member_join(struct member *m, const char *root, const char *servers);
/* The same with a session of LONG_SESSION_MS. */
void member_join_for_long(struct member *m, const char *root, const char *servers);
/* The same with the identity in a file, and without waiting for the session. */
void member_try(struct member *m, const char *root, const char *servers, const char *digest_file);
/* End the session in order. */
void member_leave(struct member *m);

/* Take events until one of that type comes; false (with a message) after limit_ms. */
bool expect_event(struct member *m, enum coord_event_type type, int64_t limit_ms);
/* The same, for a rank. */
bool expect_rank(struct member *m, unsigned ahead, int64_t limit_ms);
/* Did an event of that type come within the time? Nothing is said when not. */
bool event_comes(struct member *m, enum coord_event_type type, int64_t limit_ms);

/* A child process that enrolls, and enrolls again whenever it has lost its place. It tells its
 * events and each new end of its lease. */
struct child {
    pid_t pid;
    int from;            /* struct child_report */
    instant lease_until; /* last told */
    struct coord_event last;
};
void child_start(struct child *c, const char *root);
bool child_expects(struct child *c, enum coord_event_type type, int64_t limit_ms);
/* Kill and reap. */
void child_end(struct child *c);

/* An operator's connection, with one request at a time. */
struct operator_link;
struct operator_link *operator_connect(void);
/* Take part in what an identity may do; "user:password". */
void operator_identify(struct operator_link *o, const char *digest);
/* May others than the node's identity change it? As it is now, whichever server is asked. */
bool operator_sees_open(struct operator_link *o, const char *path);
enum zk_answer operator_write(struct operator_link *o, const char *path);
enum zk_answer operator_delete(struct operator_link *o, const char *path);
enum zk_answer operator_create(struct operator_link *o, const char *path);
/* How many children there are now, whichever server is asked; -1 when there is no such node. */
int operator_count(struct operator_link *o, const char *path);
void operator_leave(struct operator_link *o);

#endif
