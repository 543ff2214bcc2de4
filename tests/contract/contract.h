/* What the ports promise about ZooKeeper, PostgreSQL and Kafka, once for the real services and once
 * for their fakes in tests/simulate: the same cases, which know the port's header and the few
 * functions here. So a simulated cluster is wrong about a service only where no case says so.
 *
 * contract_real runs them on the stack of `dev/stack env`, contract_fake as a process of the
 * simulated machine, where clock, poll and threads are the machine's. A case waits for conditions
 * with a deadline and judges what both must do; where real parts leave a choice, so does the case.
 */
#ifndef RS_CONTRACT_H
#define RS_CONTRACT_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "coord_zk_client.h"
#include "dispatch.h"
#include "store.h"

/* One group each: number of cases that failed. */
int contract_zookeeper(void);
int contract_store(void);
int contract_store_fence(void); /* its parts */
int contract_store_plan(void);
int contract_store_work(void);
int contract_kafka(void);

/* Whose way to the service it is. Only that of the first can be disturbed. */
enum contract_side {
    SIDE_EXPOSED,
    SIDE_SURE,
};

/* How the exposed side's packets fare. */
enum contract_way {
    WAY_OPEN,
    WAY_DEAF,  /* what it sends arrives, answers are lost */
    WAY_HOLE,  /* both are lost; no connection is seen to end */
    WAY_CLOSED /* connections are ended, new ones do not come about */
};

/* Is this the real service? For bounds on time only. */
bool contract_is_real(void);

/* ZooKeeper -----------------------------------------------------------------------------------
 */

#define CONTRACT_SESSION_MS 3000
#define CONTRACT_TICK_MS    500

/* number: on every message. Owns: zk_client_close. */
struct zk_client *contract_zk_open(enum contract_side side, struct inbox *inbox, uint32_t number);
void contract_zk_way(enum contract_way way);
void contract_zk_cut(void); /* its connection ends once; it may connect again at once */

/* PostgreSQL ----------------------------------------------------------------------------------
 */

/* An empty database with scope "main", queues "queue-0" without and "queue-1" with a bound of one
 * outstanding job, and schedules "schedule-00" on. */
void contract_db_begin(void);
void contract_db_end(void);
/* Owns: store_close. */
struct store *contract_db_open(enum contract_side side, enum store_role role);
void contract_db_way(enum contract_way way);

struct contract_schedule {
    int number;
    const char *overlap; /* a word of schedule.overlap */
    int queue;
    bool paused;
};
/* INSERT, or UPDATE of one that is there: a version and a change row, as the trigger makes. */
void contract_db_edit(const struct contract_schedule *schedule);

/* Of one job, "" when there is none: its state's word. Valid until the next call. */
const char *contract_db_state(const char *job);
int64_t contract_db_outbox(const char *job); /* rows for it */
int64_t contract_db_gap_firings(int schedule);
void contract_db_cancel(const char *job); /* somebody has asked for it */
void contract_db_hold(void);              /* on scope main, by an operator */
void contract_db_lift(void);              /* whatever stands */
void contract_db_age(int64_t us); /* leases, waits for a retry, workers' signs of life and the pause
                                     of reaping lie so much back */
void contract_db_silence(int64_t us); /* the same for the leader's sign of life */

/* Kafka ---------------------------------------------------------------------------------------
 */

/* A fresh topic of four partitions. */
void contract_kafka_begin(void);
const char *contract_kafka_topic(void);
struct dispatch_options contract_kafka_options(const char *client_id);
void contract_kafka_lose_topic(void);
void contract_kafka_make_topic(void);

#endif
