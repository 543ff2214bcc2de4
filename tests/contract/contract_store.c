/* store*.h: what each protected and each claim-guarded function answers, and what is certain after
 * an answer that did not come. */
#include "contract.h"

int contract_store(void)
{
    return contract_store_fence() + contract_store_plan() + contract_store_work();
}
