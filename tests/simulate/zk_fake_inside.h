/* Inside of the ensemble in memory: zk_fake.c and zk_fake_requests.c. */
#ifndef RS_SIMULATE_ZK_FAKE_INSIDE_H
#define RS_SIMULATE_ZK_FAKE_INSIDE_H

#include "history.h"
#include "zk_fake.h"

bool zk_is_in_view(const struct znode *n, int64_t view);
void zk_data_put(struct znode *n, const char *text);
const struct zdata *zk_data_in_view(const struct znode *n, int64_t view);
struct znode *zk_find_now(const char *path);
struct znode *zk_node_new(void);
void zk_tell_candidate_made(const struct znode *n);
void zk_tell_candidate_gone(const struct znode *n, enum candidate_end end);
/* Every server applies what was committed; then the answer goes back. */
void zk_committed(const char *changed, struct zk_packet *reply);
void zk_session_end(struct zsession *s, enum candidate_end how);

#endif
