/* The poll thread: takes messages from Kafka and jobs from the database, and never runs any. Claims
 * a batch in one statement and stores offsets only after that commit; decides by admission.h. */
#ifndef RS_INTAKE_H
#define RS_INTAKE_H

/* Thread function; argument: struct worker *. Ends when worker.draining is set, after it has left
 * the consumer group. */
void *intake_main(void *worker);

#endif
