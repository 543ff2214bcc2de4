/* A question before something that cannot be taken back. */
#ifndef RS_ASK_H
#define RS_ASK_H

#include "session.h"

/* Print the question and read one line from standard input: "yes" goes on. The command has a flag
 * --yes, which answers for a script; without it and without a terminal nobody is asked, and it is
 * refused. The session's deadline begins anew.
 * Returns: DONE; USAGE: nobody to ask; REFUSED: the answer was another. Both have been reported.
 * Thread: main. Blocks: until there is an answer. */
MUST_USE enum exit_code ask_first(struct session *s, const char *question);

#endif
