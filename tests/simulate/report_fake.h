/* Data source and artifact store in memory. */
#ifndef RS_SIMULATE_REPORT_FAKE_H
#define RS_SIMULATE_REPORT_FAKE_H

#include <stdbool.h>

void report_reset(void);
bool report_file_is_there(const char *path);

#endif
