/* A TCP proxy in front of one server, so that a test can make network trouble for one client
 * without touching what others use. */
#ifndef RS_FIXTURE_PROXY_H
#define RS_FIXTURE_PROXY_H

#include <stdbool.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_DEAF,   /* requests reach the server, answers are thrown away */
    PROXY_HOLE,   /* nothing passes, connections stay open: a black hole */
    PROXY_REFUSE, /* connections are closed, new ones too */
};

struct proxy;

/* `server`: "host:port", the first of a list. Ends the test program when it cannot be made. */
struct proxy *proxy_start(const char *server);
const char *proxy_address(const struct proxy *p); /* "127.0.0.1:port" */
void proxy_set(struct proxy *p, enum proxy_mode mode);
/* PROXY_DEAF from the next request on that has `marker` in it (and comes in one piece). Borrowed.
 */
void proxy_deafen_at(struct proxy *p, const char *marker);
bool proxy_is_deaf(const struct proxy *p);
/* Close every connection once; what follows is treated by the mode. */
void proxy_cut(struct proxy *p);
void proxy_stop(struct proxy *p);

#endif
