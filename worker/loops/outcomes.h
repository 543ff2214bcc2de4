/* The outcome writer: collects outcomes of all runners for a few milliseconds and records them in
 * one statement: two commits a batch, not two a job. After a lost answer the same
 * outcomes are sent again under the same tokens. */
#ifndef RS_OUTCOMES_H
#define RS_OUTCOMES_H

/* Thread function; argument: struct worker *. Ends when worker.finishing is set and nothing is left
 * to record, or the database cannot be reached then. */
void *outcomes_main(void *worker);

#endif
