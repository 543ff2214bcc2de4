/* The sweeping thread: at the start and every sweep_ms a walk through each artifact store, in
 * bounded steps with pauses, so that it is never in anybody's way (artifact_sweep.h). */
#ifndef RS_SWEEPER_H
#define RS_SWEEPER_H

/* Thread function; argument: struct worker *. Ends when worker.draining is set. */
void *sweeper_main(void *worker);

#endif
