#include "cut_off.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define TEXT_MAX 2048

/* Whole before the signals are caught: what runs on a signal may only write it. */
static char line[TEXT_MAX];
static volatile sig_atomic_t length;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

#define SIGNALS (sizeof signals / sizeof signals[0])

/* The action is the default one by now (SA_RESETHAND), and carried out on return. */
static void line_write(int number)
{
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)length);
    (void)ignored;
    (void)raise(number);
}

/* One that is ignored (nohup) stays so. */
static void action_set(int number, void (*action)(int))
{
    struct sigaction before;
    struct sigaction now = {.sa_handler = action, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&now.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
        (void)sigaction(number, &now, NULL);
    }
}

void cut_off_begin(const char *text)
{
    int n = snprintf(line, sizeof line, "\nreportctl: cut off; %s\n", text);
    length = n < (int)sizeof line ? n : (int)sizeof line - 1;
    for (size_t i = 0; i < SIGNALS; i++) {
        action_set(signals[i], line_write);
    }
}

void cut_off_end(void)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        action_set(signals[i], SIG_DFL);
    }
}
