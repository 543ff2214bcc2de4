/* The lifecycle as data. docs/lifecycle.md is printed from it; tests/unit/test_lifecycle.c holds
 * the list of edges that the design allows, and fails on any other. */
#include "lifecycle_table.h"

const struct lifecycle_meaning lifecycle_meanings[LIFECYCLE_STATES] = {
    {LIFECYCLE_DOWN, LIFECYCLE_WRITES_NOTHING, "no session, waiting out a backoff"},
    {LIFECYCLE_CONNECTING, LIFECYCLE_WRITES_NOTHING, "session requested"},
    {LIFECYCLE_HELD, LIFECYCLE_WRITES_NOTHING, "refused for a durable reason"},
    {LIFECYCLE_ENROLLING, LIFECYCLE_WRITES_NOTHING, "finding or creating the own candidate node"},
    {LIFECYCLE_FOLLOWING, LIFECYCLE_WRITES_NOTHING,
     "someone is ahead; watching the predecessor; database connection warm"},
    {LIFECYCLE_ESTABLISHING, LIFECYCLE_WRITES_ESTABLISH,
     "first in line: making the generation the accepted one in the fence row"},
    {LIFECYCLE_PREPARING, LIFECYCLE_WRITES_FENCED,
     "loading durable state; reconciling unfinished work"},
    {LIFECYCLE_ACTIVE, LIFECYCLE_WRITES_FENCED, "planning and relaying"},
    {LIFECYCLE_SUSPENDED, LIFECYCLE_WRITES_NOTHING,
     "connection lost; session fate unknown; running statement cancelled"},
    {LIFECYCLE_DRAINING, LIFECYCLE_WRITES_FENCED,
     "stop or handoff asked for: finish or abandon in-flight work, bounded"},
    {LIFECYCLE_RELEASING, LIFECYCLE_WRITES_RELEASE,
     "marking the fence row released, then deleting the node"},
    {LIFECYCLE_STOPPED, LIFECYCLE_WRITES_NOTHING, "final"},
};

/* Short names keep a row on one line or two; they exist in this file only. */
#define S(x)      LIFECYCLE_##x
#define E(x)      LIFECYCLE_EV_##x
#define DO(x)     LIFECYCLE_DO_##x
#define R(x)      LIFECYCLE_REASON_##x
#define STEP_DOWN (DO(STOP_RELAY) | DO(NOTE) | DO(RELEASE))

const struct lifecycle_row lifecycle_rows[] = {
    /* DOWN */
    {S(DOWN), E(BACKOFF_OVER), S(ALWAYS), S(CONNECTING), DO(AWAIT_SESSION), R(NONE),
     "backoff over, session requested"},
    {S(DOWN), E(STOP), S(ALWAYS), S(STOPPED), 0, R(STOPPED), "stopped, there was no node"},

    /* CONNECTING */
    {S(CONNECTING), E(SESSION_UP), S(ALWAYS), S(ENROLLING), DO(MEET), R(NONE),
     "session up, asking the database about the ensemble"},
    {S(CONNECTING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(NONE),
     "no session could be had, backing off"},
    {S(CONNECTING), E(STOP), S(ALWAYS), S(STOPPED), 0, R(STOPPED), "stopped, there was no node"},

    /* HELD: no node, so that a refused replica is in nobody's way. */
    {S(HELD), E(LIFTED), S(WITH_SESSION), S(ENROLLING), DO(NOTE) | DO(MEET), R(NONE),
     "hold lifted, enrolling"},
    {S(HELD), E(LIFTED), S(WITHOUT_SESSION), S(CONNECTING), DO(NOTE) | DO(AWAIT_SESSION), R(NONE),
     "hold lifted, session requested"},
    {S(HELD), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(NONE),
     "session lost while held, backing off"},
    {S(HELD), E(STOP), S(ALWAYS), S(STOPPED), 0, R(STOPPED), "stopped while held"},

    /* ENROLLING: the database is asked before each node is made, so a replica without a database
     * never stands first in line, blocking the others. */
    {S(ENROLLING), E(BACKOFF_OVER), S(WITHOUT_NODE), S(ENROLLING), DO(MEET), R(NONE),
     "backoff over, asking the database about the ensemble"},
    {S(ENROLLING), E(ENSEMBLE_KNOWN), S(WITHOUT_NODE), S(ENROLLING), DO(ENROLL), R(NONE),
     "ensemble known, creating a candidate node"},
    {S(ENROLLING), E(HOLD_FOUND), S(WITH_NODE), S(HELD), DO(NOTE) | DO(WITHDRAW), R(NONE),
     "held by what the own node shows, deleting it"},
    {S(ENROLLING), E(HOLD_FOUND), S(WITHOUT_NODE), S(HELD), DO(NOTE), R(NONE), "held"},
    {S(ENROLLING), E(ENROLL_FAILED), S(ALWAYS), S(ENROLLING), DO(BACKOFF), R(NONE),
     "enrolling failed, backing off"},
    {S(ENROLLING), E(NODE_LOST), S(ALWAYS), S(ENROLLING), DO(BACKOFF), R(NODE_LOST),
     "candidate node vanished, backing off"},
    {S(ENROLLING), E(RANK_FIRST), S(WITH_NODE), S(ESTABLISHING), DO(ESTABLISH), R(NONE),
     "first in line, establishing"},
    {S(ENROLLING), E(RANK_BEHIND), S(WITH_NODE), S(FOLLOWING), DO(WARM), R(NONE),
     "someone is ahead, following"},
    {S(ENROLLING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(SESSION_EXPIRED),
     "session lost while enrolling, backing off"},
    {S(ENROLLING), E(STOP), S(WITH_NODE), S(RELEASING), DO(RELEASE), R(STOPPED),
     "stop asked for, deleting the node"},
    {S(ENROLLING), E(STOP), S(WITHOUT_NODE), S(STOPPED), 0, R(STOPPED),
     "stopped, there was no node"},

    /* FOLLOWING: a suspension changes nothing for a follower; ranks come again after it. */
    {S(FOLLOWING), E(RANK_FIRST), S(ALWAYS), S(ESTABLISHING), DO(ESTABLISH), R(NONE),
     "first in line, establishing"},
    {S(FOLLOWING), E(NODE_LOST), S(ALWAYS), S(ENROLLING), DO(BACKOFF), R(NODE_LOST),
     "candidate node vanished, enrolling again"},
    {S(FOLLOWING), E(STAND_ASIDE), S(ALWAYS), S(ENROLLING), DO(WITHDRAW) | DO(MEET), R(NONE),
     "standing aside for a handoff, enrolling again behind"},
    {S(FOLLOWING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(SESSION_EXPIRED),
     "session lost while following, backing off"},
    {S(FOLLOWING), E(STOP), S(ALWAYS), S(RELEASING), DO(RELEASE), R(STOPPED),
     "stop asked for, deleting the node"},

    /* ESTABLISHING. Superseded is not regressed: somebody newer established, that is all. */
    {S(ESTABLISHING), E(ESTABLISHED), S(ALWAYS), S(PREPARING), DO(PREPARE), R(NONE),
     "established, preparing"},
    {S(ESTABLISHING), E(SUPERSEDED), S(ALWAYS), S(ENROLLING), DO(WITHDRAW) | DO(BACKOFF), R(FENCED),
     "superseded, enrolling with a new node"},
    {S(ESTABLISHING), E(SUSPENDED), S(ALWAYS), S(SUSPENDED), DO(CANCEL), R(SUSPENDED),
     "connection lost while establishing"},
    {S(ESTABLISHING), E(HOLD_FOUND), S(ALWAYS), S(RELEASING), DO(RELEASE), R(HELD),
     "held while establishing, releasing"},
    {S(ESTABLISHING), E(NODE_LOST), S(ALWAYS), S(RELEASING), DO(RELEASE), R(NODE_LOST),
     "candidate node vanished, releasing"},
    {S(ESTABLISHING), E(LEASE_EXPIRED), S(ALWAYS), S(RELEASING), DO(RELEASE), R(LEASE_EXPIRED),
     "lease ran out, releasing"},
    {S(ESTABLISHING), E(DATABASE_UNHEALTHY), S(ALWAYS), S(RELEASING), DO(RELEASE),
     R(DATABASE_UNHEALTHY), "could not establish within the bound, releasing"},
    {S(ESTABLISHING), E(CLOCK_SUSPECT), S(ALWAYS), S(RELEASING), DO(RELEASE), R(CLOCK_SUSPECT),
     "the database's clock is suspect, releasing"},
    {S(ESTABLISHING), E(STUCK), S(ALWAYS), S(RELEASING), DO(RELEASE), R(STUCK),
     "no progress, releasing"},
    {S(ESTABLISHING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(SESSION_EXPIRED),
     "session lost while establishing, backing off"},
    {S(ESTABLISHING), E(STOP), S(ALWAYS), S(RELEASING), DO(RELEASE), R(STOPPED),
     "stop asked for, releasing"},

    /* PREPARING */
    {S(PREPARING), E(PREPARED), S(ALWAYS), S(ACTIVE), DO(LEAD), R(NONE), "prepared, leading"},
    {S(PREPARING), E(PREPARE_FAILED), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE),
     R(PREPARE_FAILED), "preparing failed repeatedly, releasing"},
    {S(PREPARING), E(SUSPENDED), S(ALWAYS), S(SUSPENDED), DO(CANCEL), R(SUSPENDED),
     "connection lost while preparing"},
    {S(PREPARING), E(FENCED), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE), R(FENCED),
     "fenced, stepping down"},
    {S(PREPARING), E(HOLD_FOUND), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE), R(HELD),
     "held, stepping down"},
    {S(PREPARING), E(NODE_LOST), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE), R(NODE_LOST),
     "candidate node vanished, stepping down"},
    {S(PREPARING), E(LEASE_EXPIRED), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE),
     R(LEASE_EXPIRED), "lease ran out, stepping down"},
    {S(PREPARING), E(DATABASE_UNHEALTHY), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE),
     R(DATABASE_UNHEALTHY), "database unhealthy for too long, stepping down"},
    {S(PREPARING), E(DATABASE_MOVED), S(ALWAYS), S(ESTABLISHING), DO(ESTABLISH), R(DATABASE_MOVED),
     "the server is another one, establishing again"},
    {S(PREPARING), E(CLOCK_SUSPECT), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE),
     R(CLOCK_SUSPECT), "the database's clock is suspect, stepping down"},
    {S(PREPARING), E(STUCK), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE), R(STUCK),
     "no progress, stepping down"},
    {S(PREPARING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(NOTE) | DO(BACKOFF), R(SESSION_EXPIRED),
     "session lost while preparing, backing off"},
    {S(PREPARING), E(STOP), S(ALWAYS), S(RELEASING), DO(RELEASE), R(STOPPED),
     "stop asked for, releasing"},

    /* ACTIVE */
    {S(ACTIVE), E(STOP), S(ALWAYS), S(DRAINING), DO(DRAIN), R(STOPPED), "stop asked for, draining"},
    {S(ACTIVE), E(HANDOFF), S(ALWAYS), S(DRAINING), DO(DRAIN), R(HANDOFF),
     "handing over, draining"},
    {S(ACTIVE), E(SUSPENDED), S(ALWAYS), S(SUSPENDED), DO(CANCEL) | DO(STOP_RELAY), R(SUSPENDED),
     "connection lost, leadership suspended"},
    {S(ACTIVE), E(FENCED), S(ALWAYS), S(RELEASING), STEP_DOWN, R(FENCED), "fenced, stepping down"},
    {S(ACTIVE), E(HOLD_FOUND), S(ALWAYS), S(RELEASING), STEP_DOWN, R(HELD), "held, stepping down"},
    {S(ACTIVE), E(NODE_LOST), S(ALWAYS), S(RELEASING), STEP_DOWN, R(NODE_LOST),
     "candidate node vanished, stepping down"},
    {S(ACTIVE), E(LEASE_EXPIRED), S(ALWAYS), S(RELEASING), STEP_DOWN, R(LEASE_EXPIRED),
     "lease ran out, stepping down"},
    {S(ACTIVE), E(DATABASE_UNHEALTHY), S(ALWAYS), S(RELEASING), STEP_DOWN, R(DATABASE_UNHEALTHY),
     "database unhealthy for too long, stepping down"},
    {S(ACTIVE), E(DATABASE_MOVED), S(ALWAYS), S(ESTABLISHING), DO(STOP_RELAY) | DO(ESTABLISH),
     R(DATABASE_MOVED), "the server is another one, establishing again"},
    {S(ACTIVE), E(CLOCK_SUSPECT), S(ALWAYS), S(RELEASING), STEP_DOWN, R(CLOCK_SUSPECT),
     "the database's clock is suspect, stepping down"},
    {S(ACTIVE), E(STUCK), S(ALWAYS), S(RELEASING), STEP_DOWN, R(STUCK),
     "no progress, stepping down"},
    {S(ACTIVE), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(STOP_RELAY) | DO(NOTE) | DO(BACKOFF),
     R(SESSION_EXPIRED), "session lost while leading, backing off"},

    /* SUSPENDED: back only through ESTABLISHING with the same owner, whose barrier covers the
     * cancelled statement. A confirmation after lease_until is never told as RESUMED: the
     * coordination thread gives the session up instead. */
    {S(SUSPENDED), E(RESUMED), S(ALWAYS), S(ESTABLISHING), DO(ESTABLISH), R(NONE),
     "same session confirmed in time, establishing again"},
    {S(SUSPENDED), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(NOTE) | DO(BACKOFF), R(SESSION_EXPIRED),
     "session lost while suspended, backing off"},
    {S(SUSPENDED), E(STOP), S(ALWAYS), S(RELEASING), DO(RELEASE), R(STOPPED),
     "stop asked for while suspended, releasing"},

    /* DRAINING */
    {S(DRAINING), E(DRAINED), S(ALWAYS), S(RELEASING), DO(NOTE) | DO(RELEASE), R(NONE),
     "drained, releasing"},
    {S(DRAINING), E(SUSPENDED), S(ALWAYS), S(SUSPENDED), DO(CANCEL) | DO(STOP_RELAY), R(SUSPENDED),
     "connection lost while draining"},
    {S(DRAINING), E(FENCED), S(ALWAYS), S(RELEASING), STEP_DOWN, R(FENCED),
     "fenced while draining"},
    {S(DRAINING), E(HOLD_FOUND), S(ALWAYS), S(RELEASING), STEP_DOWN, R(HELD),
     "held while draining"},
    {S(DRAINING), E(NODE_LOST), S(ALWAYS), S(RELEASING), STEP_DOWN, R(NODE_LOST),
     "candidate node vanished while draining"},
    {S(DRAINING), E(LEASE_EXPIRED), S(ALWAYS), S(RELEASING), STEP_DOWN, R(LEASE_EXPIRED),
     "lease ran out while draining"},
    {S(DRAINING), E(DATABASE_UNHEALTHY), S(ALWAYS), S(RELEASING), STEP_DOWN, R(DATABASE_UNHEALTHY),
     "database unhealthy while draining"},
    {S(DRAINING), E(STUCK), S(ALWAYS), S(RELEASING), STEP_DOWN, R(STUCK),
     "no progress while draining"},
    {S(DRAINING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(STOP_RELAY) | DO(NOTE) | DO(BACKOFF),
     R(SESSION_EXPIRED), "session lost while draining, backing off"},

    /* RELEASING: the order of guards is the order of importance. */
    {S(RELEASING), E(RELEASED), S(STOPPING), S(STOPPED), 0, R(NONE), "released, stopped"},
    {S(RELEASING), E(RELEASED), S(HOLDING), S(HELD), DO(NOTE), R(NONE), "released, held"},
    {S(RELEASING), E(RELEASED), S(ALWAYS), S(ENROLLING), DO(BACKOFF), R(NONE),
     "released, backing off before enrolling again"},
    {S(RELEASING), E(SESSION_LOST), S(ALWAYS), S(DOWN), DO(BACKOFF), R(NONE),
     "session lost while releasing, backing off"},
};

const size_t lifecycle_row_count = sizeof lifecycle_rows / sizeof lifecycle_rows[0];
