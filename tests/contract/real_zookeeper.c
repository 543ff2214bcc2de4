#include "contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_database.h"
#include "fixture_proxy.h"

/* One proxy for the whole program: a handle is open from a case's begin to its end. */
static struct proxy *proxy(void)
{
    static struct proxy *p;
    if (p == NULL) {
        p = proxy_start(test_environment("RS_ZK"));
    }
    return p;
}

bool contract_is_real(void)
{
    return true;
}

struct zk_client *contract_zk_open(enum contract_side side, struct inbox *inbox, uint32_t number)
{
    struct zk_client *client = NULL;
    struct error err = {.text = ""};
    const struct zk_client_options options = {
        .servers = side == SIDE_EXPOSED ? proxy_address(proxy()) : test_environment("RS_ZK"),
        .session_ms = CONTRACT_SESSION_MS,
        .session = number,
        .inbox = inbox};
    if (zk_client_open(&options, &client, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return client;
}

void contract_zk_way(enum contract_way way)
{
    switch (way) {
    case WAY_OPEN:
        proxy_set(proxy(), PROXY_PASS);
        return;
    case WAY_DEAF:
        proxy_set(proxy(), PROXY_DEAF);
        return;
    case WAY_HOLE:
        proxy_set(proxy(), PROXY_HOLE);
        return;
    case WAY_CLOSED:
        proxy_set(proxy(), PROXY_REFUSE);
        proxy_cut(proxy());
        return;
    }
}

void contract_zk_cut(void)
{
    proxy_cut(proxy());
}
