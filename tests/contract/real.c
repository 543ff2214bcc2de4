/* The contracts on the real services: contract_real zookeeper|store|kafka. */
#include <stdio.h>
#include <string.h>

#include "contract.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } contracts[] = {
        {"zookeeper", contract_zookeeper}, {"store", contract_store}, {"kafka", contract_kafka}};
    for (size_t i = 0; argc == 2 && i < sizeof contracts / sizeof contracts[0]; i++) {
        if (strcmp(argv[1], contracts[i].name) == 0) {
            return contracts[i].run();
        }
    }
    (void)fprintf(stderr, "usage: contract_real zookeeper|store|kafka\n");
    return 2;
}
