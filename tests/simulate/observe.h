/* What an observer sees inside the product's processes without asking them: the linker sends some
 * of their own calls by here (tests/CMakeLists.txt), which pass them on unchanged. */
#ifndef RS_SIMULATE_OBSERVE_H
#define RS_SIMULATE_OBSERVE_H

void observe_reset(void);
void observe_forget(int node);

#endif
