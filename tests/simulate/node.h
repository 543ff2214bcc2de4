/* The product's processes in the simulated machine: their settings, their start, and what an
 * observer sees of them from outside. */
#ifndef RS_SIMULATE_NODE_H
#define RS_SIMULATE_NODE_H

#include <stdbool.h>

void nodes_reset(void); /* after kernel_reset: none lives */
bool node_is_worker(int node);
void node_start(int node);
void node_crash(int node);
void node_stop(int node); /* in order: SIGTERM */
void node_pause(int node);
void node_resume(int node);
/* Look at what no call tells: leases. After each step of the kernel. */
void nodes_look(void);

#endif
