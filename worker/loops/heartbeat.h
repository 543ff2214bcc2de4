/* The heartbeat thread: registers the incarnation, renews all claims in one statement, brings
 * cancellations and lost claims to the table, and begins a new incarnation when the old one was
 * ended. It has a connection of its own, so that nothing else can make it late. */
#ifndef RS_HEARTBEAT_H
#define RS_HEARTBEAT_H

/* Thread function; argument: struct worker *. Ends when worker.finishing is set, after it has told
 * the database that the worker has stopped. */
void *heartbeat_main(void *worker);

#endif
