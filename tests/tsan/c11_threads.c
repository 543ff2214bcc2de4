/* C11 threads for ThreadSanitizer, which knows pthread_* only: librdkafka of Debian uses thrd_*,
 * mtx_* and cnd_*, so its threads would run unknown to the sanitizer (and crash it) and its locks
 * would order nothing. A program built with RS_TSAN exports these, and the dynamic linker prefers
 * them to libc's. glibc's own are the same thin layer over the same objects. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "a mutex is kept in the room of C11's");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "and a condition");

#define EXPORTED __attribute__((visibility("default")))

/* Of the sanitizer's library (libtsan), in no header. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static int answer_of(int failed)
{
    switch (failed) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    case ENOMEM:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

/* The library hands its locks from thread to thread by atomics that the sanitizer does not see:
 * that the lock's own bytes are read is not looked at; what it orders still is. */
static void look_away(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static int look_again(int failed)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return answer_of(failed);
}

static pthread_mutex_t *mutex_of(mtx_t *m)
{
    return (pthread_mutex_t *)(void *)m;
}

static pthread_cond_t *condition_of(cnd_t *c)
{
    return (pthread_cond_t *)(void *)c;
}

struct beginning {
    thrd_start_t run;
    void *argument;
};

static void *begin(void *of)
{
    struct beginning b = *(struct beginning *)of;

    free(of);
    return (void *)(intptr_t)b.run(b.argument);
}

EXPORTED int thrd_create(thrd_t *ret_thread, thrd_start_t run, void *argument)
{
    struct beginning *b = malloc(sizeof *b);
    int failed;

    if (b == NULL) {
        return thrd_nomem;
    }
    *b = (struct beginning){.run = run, .argument = argument};
    failed = pthread_create(ret_thread, NULL, begin, b);
    if (failed != 0) {
        free(b);
    }
    return failed == EAGAIN ? thrd_nomem : answer_of(failed);
}

EXPORTED int thrd_join(thrd_t thread, int *ret_result)
{
    void *result = NULL;
    int failed = pthread_join(thread, &result);

    if (failed == 0 && ret_result != NULL) {
        *ret_result = (int)(intptr_t)result;
    }
    return answer_of(failed);
}

EXPORTED int thrd_detach(thrd_t thread)
{
    return answer_of(pthread_detach(thread));
}

EXPORTED int mtx_init(mtx_t *m, int type)
{
    pthread_mutexattr_t attributes;
    int failed;

    look_away();
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(
        &attributes, (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    failed = pthread_mutex_init(mutex_of(m), &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return look_again(failed);
}

EXPORTED void mtx_destroy(mtx_t *m)
{
    look_away();
    (void)look_again(pthread_mutex_destroy(mutex_of(m)));
}

EXPORTED int mtx_lock(mtx_t *m)
{
    look_away();
    return look_again(pthread_mutex_lock(mutex_of(m)));
}

EXPORTED int mtx_trylock(mtx_t *m)
{
    look_away();
    return look_again(pthread_mutex_trylock(mutex_of(m)));
}

EXPORTED int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
    look_away();
    return look_again(pthread_mutex_timedlock(mutex_of(m), until));
}

EXPORTED int mtx_unlock(mtx_t *m)
{
    look_away();
    return look_again(pthread_mutex_unlock(mutex_of(m)));
}

EXPORTED int cnd_init(cnd_t *c)
{
    look_away();
    return look_again(pthread_cond_init(condition_of(c), NULL));
}

EXPORTED void cnd_destroy(cnd_t *c)
{
    look_away();
    (void)look_again(pthread_cond_destroy(condition_of(c)));
}

EXPORTED int cnd_signal(cnd_t *c)
{
    look_away();
    return look_again(pthread_cond_signal(condition_of(c)));
}

EXPORTED int cnd_broadcast(cnd_t *c)
{
    look_away();
    return look_again(pthread_cond_broadcast(condition_of(c)));
}

EXPORTED int cnd_wait(cnd_t *c, mtx_t *m)
{
    look_away();
    return look_again(pthread_cond_wait(condition_of(c), mutex_of(m)));
}

EXPORTED int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
    look_away();
    return look_again(pthread_cond_timedwait(condition_of(c), mutex_of(m), until));
}

EXPORTED void call_once(once_flag *once, void (*run)(void))
{
    (void)pthread_once((pthread_once_t *)(void *)once, run);
}
