/* What the loops of our daemons are called, wherever one is named: /livez, the status page, the
 * label `loop` of metrics and alerts, the log, thread names, docs/operations.md. */
#ifndef RS_LOOP_NAME_H
#define RS_LOOP_NAME_H

#define LOOP_MAIN "main" /* signals, and watching the others */

/* report-scheduler */
#define LOOP_COORDINATION "coordination" /* ZooKeeper */
#define LOOP_SCOPE        "scope"        /* lifecycle and planning of one scope */
#define LOOP_RELAY        "relay"        /* of a scope that is led: outbox to Kafka */
#define LOOP_REQUESTS     "requests"     /* those that come over HTTP */

/* report-worker */
#define LOOP_CLAIMS    "claims"    /* Kafka, and claiming */
#define LOOP_HEARTBEAT "heartbeat" /* renewing claims */
#define LOOP_OUTCOMES  "outcomes"  /* recording */

#endif
