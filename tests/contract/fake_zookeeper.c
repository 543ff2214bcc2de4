#include "fake.h"
#include "zk_fake.h"

static struct zk_client *exposed;

struct zk_client *contract_zk_open(enum contract_side side, struct inbox *inbox, uint32_t number)
{
    struct zk_client *client = NULL;
    const struct zk_client_options options = {.servers = "zk1,zk2,zk3",
                                              .session_ms = CONTRACT_SESSION_MS,
                                              .session = number,
                                              .inbox = inbox};
    if (zk_client_open(&options, &client, NULL) == STATUS_OK) {
        client->process = fake_side(side);
        exposed = side == SIDE_EXPOSED ? client : exposed;
    }
    return client;
}

void contract_zk_way(enum contract_way way)
{
    if (way == WAY_CLOSED) {
        contract_zk_cut();
    }
    fake_way(SERVICE_ZOOKEEPER, way);
}

void contract_zk_cut(void)
{
    if (exposed != NULL) {
        zk_drop_client(exposed);
    }
}
