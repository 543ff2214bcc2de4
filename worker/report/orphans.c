#include "orphans.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_parent.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct keeper_entry *keepers; /* protected by mutex */

void keeper_begins(void)
{
    (void)pthread_mutex_lock(&mutex);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void keeper_began(struct keeper_entry *entry)
{
    if (entry != NULL) {
        entry->next = keepers;
        keepers = entry;
    }
    (void)pthread_mutex_unlock(&mutex);
}

bool keeper_gone(struct keeper_entry *entry)
{
    (void)pthread_mutex_lock(&mutex);
    pid_t pid = 0;
    do {
        pid = waitpid(entry->pid, NULL, WNOHANG);
    } while (pid < 0 && errno == EINTR);
    struct keeper_entry **at = &keepers;
    while (pid != 0 && *at != NULL && *at != entry) {
        at = &(*at)->next;
    }
    if (pid != 0 && *at == entry) {
        *at = entry->next;
    }
    (void)pthread_mutex_unlock(&mutex);
    return pid != 0;
}

/* With the mutex held. */
static bool is_keeper(pid_t pid)
{
    for (const struct keeper_entry *e = keepers; e != NULL; e = e->next) {
        if (e->pid == pid) {
            return true;
        }
    }
    return false;
}

bool orphans_kill(void)
{
    (void)pthread_mutex_lock(&mutex);
    DIR *all = opendir("/proc");
    bool some = all == NULL; /* not known: no descriptors */
    for (struct dirent *e = all == NULL ? NULL : readdir(all); e != NULL; e = readdir(all)) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || process_parent(e->d_name) != getpid()) {
            continue;
        }
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (!is_keeper(pid)) {
            some = true;
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, NULL, WNOHANG); /* it waits for us, so its number is not another's */
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    (void)pthread_mutex_unlock(&mutex);
    return some;
}
