/* Inside of contract_fake. */
#ifndef RS_CONTRACT_FAKE_H
#define RS_CONTRACT_FAKE_H

#include "contract.h"
#include "kernel.h"
#include "world.h"

struct process *fake_side(enum contract_side side);
void fake_way(enum service service, enum contract_way way);

#endif
