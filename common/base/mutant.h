/* Rules broken on purpose, so that the tests which guard them can be seen to fail (`dev/soak
 * mutants`).
 *
 * MUTANT("name") is the constant false, and costs nothing, in every build but one configured with
 * -DRS_MUTANTS=ON; there it is true in a process whose environment says RS_MUTANT=name. The names
 * are listed in tests/simulate/mutants.py, with what each breaks. */
#ifndef RS_MUTANT_H
#define RS_MUTANT_H

#include <stdbool.h>

#ifdef RS_MUTANTS
#include <stdlib.h>
#include <string.h>

static inline bool mutant_is(const char *name)
{
    const char *chosen = getenv("RS_MUTANT");
    return chosen != NULL && strcmp(chosen, name) == 0;
}
#define MUTANT(name) mutant_is(name)
#else
#define MUTANT(name) false
#endif

#endif
