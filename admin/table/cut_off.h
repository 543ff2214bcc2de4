/* What a command says when ^C or SIGTERM ends it while the leader may still do what was asked: the
 * line that looks again. One at a time. Thread: main. */
#ifndef RS_CUT_OFF_H
#define RS_CUT_OFF_H

/* From now on either signal prints "reportctl: cut off; TEXT" and ends the process, as it would
 * have without. `text` is copied; a longer one than some kilobytes is cut. */
void cut_off_begin(const char *text);

/* The answer is there: either signal ends the process without a word again. */
void cut_off_end(void);

#endif
